"""Runs that are accepted after a round of preferences was drawn."""

import csv
import io
import json
import re
from itertools import combinations
from pathlib import Path

import pytest
from django.test import Client

from estimation.models import EstimateSet
from estimation.services import collections, files
from judging.models import Campaign, Pair
from judging.services import assignments, jobs, judgments
from tests.support import evaluation, factories, rest
from tests.support.later import (
    assert_a_copy_takes_part,
    file_of,
    join,
    latest,
    lines_of,
    numbers,
    of_run,
    ranked,
    report_of,
    table_of,
    with_news,
)
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]
SWAPS = {
    "measure": "#ofSwaps", "reported": ["wSwaps"], "prior": "constant", "depth": 4,
    "extra_share": 0.0,
}  # fmt: skip
ALL_OF_THEM = {"budget": 500, "batch_size": 500}


def better(pair: Pair) -> int:
    """The preference that follows from the grades of the material; 2 for the first document."""
    first, second = (
        evaluation.SMALL.truth.get((pair.topic.topic_id, docno), 0)
        for docno in (pair.docno, pair.other)
    )
    return 1 + (first > second) - (first < second)


def judge(campaign: Campaign, number: int = 10_000) -> None:
    anna = campaign.memberships.get(user__username="anna").user
    for _ in range(number):
        assignment = assignments.claim_next(campaign=campaign, by=anna)
        if assignment is None:
            break
        saying = judgments.Saying(better(assignment.pair), key=f"k{assignment.pk}")
        judgments.record(assignment=assignment, by=anna, saying=saying)
    factories.run_due_jobs()


def swaps(content: bytes, *, known: int) -> float:
    """#ofSwaps of a run down to rank 4, of which so many documents stood in lists before."""
    lists: dict[str, list[str]] = {}
    for line in content.decode().splitlines():
        topic, _, docno, *_rest = line.split()
        lists.setdefault(topic, []).append(docno)
    found = [
        evaluation.SMALL.truth[topic, lower] > evaluation.SMALL.truth[topic, upper]
        for topic, docnos in lists.items()
        for upper, lower in combinations(docnos[:known], 2)
    ]
    return sum(found) / 6 / len(lists)


def test_a_run_that_joins_is_in_the_next_estimates_with_a_rank(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **SWAPS)
    judge(campaign, 45)
    stored = Path(files.path_of(row.pool.file)).read_bytes()
    digest = collections.columns_of(row)[0].digest
    now = assert_a_copy_takes_part(campaign, row, measures=("#ofSwaps", "wSwaps"))
    for measure in ("#ofSwaps", "wSwaps"):
        assert of_run(now, "copy", measure).se == of_run(now, "run2", measure).se
    row.refresh_from_db()
    assert Path(files.path_of(row.pool.file)).read_bytes() == stored
    assert collections.columns_of(row)[0].digest == digest


def test_everything_judged_gives_the_swaps_among_known_pairs(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **SWAPS | ALL_OF_THEM)
    judge(campaign)
    join(campaign, with_news("late", known=3))
    shown = latest(row)
    late, first = of_run(shown, "late", "#ofSwaps"), of_run(shown, "run1", "#ofSwaps")
    assert late.value == pytest.approx(swaps(with_news("late", known=3), known=3), abs=1e-12)
    assert first.value == pytest.approx(swaps(lines_of("run1", "run1"), known=4), abs=1e-12)
    assert late.support == pytest.approx(3 / 6, abs=1e-12)
    assert 0.0 < late.value < first.value


def test_a_lower_bound_is_a_low_rank_but_no_verdict_in_its_favor(
    campaign: Campaign, organizer: Client
) -> None:
    """Fewer swaps are better. All else is judged; half of the later run's pairs are unknown."""
    row = evaluation.drawn(campaign, **SWAPS | ALL_OF_THEM)
    judge(campaign)
    before = numbers(latest(row))
    join(campaign, with_news("late", known=3))
    assert {key: each for key, each in numbers(latest(row)).items() if key in before} == before
    rows = table_of(row, "#ofSwaps").rows
    late = ranked(row, "late")
    values = [each.value for each in rows if not each.late]
    assert late.open_part
    assert late.rank_low == 1 + sum(value < late.value for value in values)
    assert late.rank_high == len(rows) - sum(value > late.value + 3 / 6 for value in values)
    assert late.rank_high > late.rank

    said = text(organizer.get(address("live", campaign, 1)))
    assert re.search(
        r"late joined after the sample was drawn, which reaches 50 % of what #ofSwaps counts for "
        r"it \(effective sample size \d+\)\. Its value is a lower bound, and it is called better "
        r"than another run only where the pairs of documents out of reach could not change that\.",
        said,
    )
    assert "not in this round" not in said
    assert organizer.get(address("compare", campaign, 1)).status_code == 200


def test_reports_and_the_api_name_it(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **SWAPS | ALL_OF_THEM)
    judge(campaign)
    join(campaign, with_news("late", known=3))
    evaluation.made_reports(row)
    said = report_of(row)
    assert "After the sample was drawn 1 further run joined: late." in said
    assert "Pairs of documents that only it returns together could not be drawn." in said
    assert "Not in this round" not in said
    lines = list(csv.DictReader(io.StringIO(file_of(row, "estimates.csv"))))
    assert {line["run"] for line in lines if line["late"] == "true"} == {"late"}
    assert json.loads(file_of(row, "estimates.json"))["runs_left_out"] == []
    found = rest.client_of(campaign.created_by).get(f"/api/campaigns/{campaign.slug}/estimates/")
    assert {each["run"] for each in found.json()["estimates"] if each["late"]} == {"late"}


def test_rounds_that_go_together_take_it(campaign: Campaign) -> None:
    evaluation.drawn(campaign, **SWAPS | {"budget": 30, "batch_size": 30})
    judge(campaign)
    second = evaluation.drawn(
        campaign, **SWAPS | {"budget": 30, "batch_size": 30, "with_earlier": True, "seed": "t"}
    )
    judge(campaign)
    before = numbers(latest(second))
    join(campaign, lines_of("run3", "copy"), "copy.run")
    join(campaign, with_news("late", known=3))
    shown = latest(second)
    assert shown.earlier == {"1": 1}
    assert {key: each for key, each in numbers(shown).items() if key in before} == before
    twin, copy = (of_run(shown, tag, "#ofSwaps") for tag in ("run3", "copy"))
    assert (copy.value, copy.support, copy.late) == (twin.value, 1.0, True)
    assert of_run(shown, "late", "#ofSwaps").support == pytest.approx(0.5, abs=1e-12)


def test_estimates_that_were_made_without_it_are_made_again(campaign: Campaign) -> None:
    """As stored by versions that left such runs out, whose words stay."""
    row = evaluation.drawn(campaign, **SWAPS)
    judge(campaign, 45)
    join(campaign, lines_of("run2", "copy"))
    made = latest(row)
    made.estimates.filter(late=True).delete()
    EstimateSet.objects.filter(pk=made.pk).update(left_out=["copy"])
    evaluation.made_reports(row)
    assert "Not in this round, because it joined after it was drawn: copy." in report_of(row)
    jobs.request("recompute", row.pk, campaign=campaign)
    factories.run_due_jobs()
    assert latest(row).number == made.number + 1
    assert (latest(row).left_out, latest(row).digest) == ([], made.digest)
    assert of_run(latest(row), "copy", "#ofSwaps").late
    made.refresh_from_db()
    assert made.left_out == ["copy"]
