"""Runs that are accepted after a round was drawn: in its numbers, on its pages, in its files."""

import csv
import io
import json
import re

import numpy as np
import pytest
from django.core.files.base import File
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from estimation import selectors
from estimation.models import Round, StoredPool
from estimation.services import estimates
from judging.models import Campaign, Job, Upload
from judging.services import jobs, uploads
from tests.support import evaluation, factories, rest, unknown
from tests.support.later import (
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
from tests.support.pages import TABS, address, text

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]

# ----------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("method", ["poisson", "priority", "iid", "per-query"])
def test_a_copy_that_joins_has_the_value_of_its_twin(campaign: Campaign, method: str) -> None:
    row = evaluation.drawn(campaign, method=method, reported=["P@10", "AP"])
    evaluation.judge(campaign, 45)
    before = latest(row)

    join(campaign, lines_of("run2", "copy"))

    now = latest(row)
    assert (now.number, now.batches) == (before.number + 1, before.batches)
    assert set(now.estimates.filter(late=True).values_list("run__tag", flat=True)) == {"copy"}
    kept = numbers(now)
    assert {key: kept[key] for key in numbers(before)} == numbers(before)
    for measure in ("DCG@10", "P@10", "AP"):
        twin, copy = of_run(now, "run2", measure), of_run(now, "copy", measure)
        assert (copy.value, copy.se, copy.support) == (twin.value, twin.se, twin.support)
        assert copy.sample_size == twin.sample_size
        assert measure == "AP" or copy.support == 1.0
        assert (copy.rank is None) == bool(copy.unknown)
        assert copy.unknown == twin.unknown
        pairs = selectors.pairwise(now, measure)
        i, j = pairs.runs.index("run2"), pairs.runs.index("copy")
        assert pairs.verdicts[i, j] == 0
        assert pairs.margin[i, j] == pytest.approx(0, abs=5e-3)  # ratios are never quite exact


def test_more_runs_are_more_comparisons(campaign: Campaign) -> None:
    """Over all pairs of runs: p-values grow, but for the chance in a fixed set of vectors."""
    row = evaluation.drawn(campaign)
    evaluation.judge(campaign, 1000)
    before = selectors.pairwise(latest(row), "DCG@10")
    for tag in ("copy1", "copy2", "copy3"):
        join(campaign, lines_of("run4", tag), f"{tag}.run")
    now = selectors.pairwise(latest(row), "DCG@10")
    square = np.ix_(*2 * [[now.runs.index(tag) for tag in before.runs]])
    assert now.covariance[square].tolist() == before.covariance.tolist()
    assert now.margin[square].tolist() == before.margin.tolist()
    assert np.all(now.adjusted_p[square] >= before.adjusted_p - 0.03)
    assert np.any(now.adjusted_p[square] > before.adjusted_p)


def test_documents_that_could_not_be_drawn_make_a_lower_bound(
    judged: Round, campaign: Campaign
) -> None:
    before = numbers(latest(judged))
    join(campaign, with_news("late", known=4))

    shown = latest(judged)
    late = of_run(shown, "late")
    gains = 1 / np.log2(np.arange(2, 10))
    assert late.support == pytest.approx(gains[:4].sum() / gains.sum(), abs=1e-12)
    assert late.late
    assert 0 < late.value < np.inf
    assert {key: number for key, number in numbers(shown).items() if key[0] != "late"} == before
    assert not table_of(judged).supported
    assert [row.tag for row in table_of(judged).late] == ["late"]
    assert ranked(judged, "late").open_part
    assert not ranked(judged, "run1").late


@pytest.mark.parametrize(("known", "best_rank"), [(4, 1), (1, 2)])
def test_verdicts_allow_for_documents_that_could_not_be_drawn(
    campaign: Campaign, known: int, best_rank: int
) -> None:
    """All else is judged, so that every rank is certain but for them."""
    row = evaluation.drawn(campaign, budget=129, batch_size=129, extra_share=0.0)
    evaluation.judge(campaign, 10_000)
    join(campaign, with_news("late", known=known))
    late = ranked(row, "late")
    perfect = 3 * sum(1 / np.log2(rank + 1) for rank in range(known + 1, 2 * known + 1))
    values = [each.value for each in table_of(row).rows if not each.late]

    def rank_of(value: float) -> int:
        return 1 + sum(other > value for other in values)

    assert rank_of(late.value) > rank_of(late.value + perfect) == best_rank
    assert (late.rank, late.rank_low, late.rank_high) == (
        rank_of(late.value), best_rank, rank_of(late.value)
    )  # fmt: skip
    assert late.as_good_as_leader == (best_rank == 1)


@pytest.mark.parametrize("measure", ["DCG@10", "AP", "MSE"])
def test_a_run_of_other_documents_alone_is_not_known(
    campaign: Campaign, organizer: Client, measure: str
) -> None:
    """On pages, by REST and in files; errors, of which 0 is the best, too."""
    row = evaluation.drawn(campaign, prior="constant", reported=["AP", "MSE"])
    evaluation.judge(campaign, 45)
    join(campaign, lines_of("run2", "late").replace(b" d", b" other"))
    estimate = of_run(latest(row), "late", measure)
    assert (estimate.support, estimate.rank) == (0.0, None)
    assert estimate.low == 0.0 < estimate.high
    why = "Not known: too few documents of runs that joined after the draw were judged."
    told = {row.tag: row for row in table_of(row, measure).rows}["late"]
    assert (told.value, told.unknown, told.rank_low) == (None, "too_little", 1)
    assert (told.unknown_why or "").startswith(why)
    assert why in text(organizer.get(address("live", campaign, 1), {"measure": measure}))
    client = rest.client_of(campaign.created_by)
    found = client.get(f"/api/campaigns/{campaign.slug}/ranking/?measure={measure}&pairs=1").json()
    line = next(each for each in found["ranking"] if each["run"] == "late")
    assert (line["value"], line["unknown"], line["support"]) == (None, "too_little", 0.0)
    at = found["pairs"]["runs"].index("late")
    assert not any(found["pairs"]["verdicts"][at])
    evaluation.made_reports(row)
    rows = csv.DictReader(io.StringIO(file_of(row, "estimates.csv")))
    (kept,) = [each for each in rows if (each["run"], each["measure"]) == ("late", measure)]
    assert (kept["value"], kept["unknown"], kept["support"]) == ("", "too_little", "0.0")


def test_only_what_changes_makes_new_estimates(judged: Round, campaign: Campaign) -> None:
    join(campaign, lines_of("run2", "copy"))
    shown = latest(judged)
    outcome = estimates.from_scratch(judged)
    assert outcome is not None
    assert outcome.digest == shown.digest
    assert shown.provenance["joined_pool"] == outcome.inputs.joined.digest

    jobs.request("recompute", judged.pk, campaign=campaign)
    factories.run_due_jobs()
    assert latest(judged) == shown

    evaluation.judge(campaign, 1000)
    assert latest(judged).batches > shown.batches
    assert of_run(latest(judged), "copy").late
    assert estimates.from_scratch(judged).digest == latest(judged).digest  # type: ignore[union-attr]


def test_a_run_that_joins_before_the_first_batch_is_in_its_estimates(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign)
    join(campaign, lines_of("run2", "copy"))
    assert selectors.latest_estimates(row) is None
    evaluation.judge(campaign, 45)
    assert of_run(latest(row), "copy").late
    assert row.estimate_sets.count() == 1


def test_all_drawn_rounds_take_it_and_a_later_one_has_it_in_its_pool(campaign: Campaign) -> None:
    first = evaluation.drawn(campaign)
    evaluation.judge(campaign, 1000)
    second = evaluation.drawn(campaign, seed="again", budget=20)
    evaluation.judge(campaign, 1000)
    drafted = evaluation.drafted(campaign, seed="third")
    join(campaign, with_news("late"))
    assert of_run(latest(first), "late").late
    assert of_run(latest(second), "late").late
    assert not Job.objects.filter(kind="recompute", target=drafted.pk).exists()
    third = evaluation.drawn(campaign, seed="fourth", budget=30)
    new = {(f"t{topic}", f"new{n}"): 1 for topic in range(1, 7) for n in range(4)}
    evaluation.judge(campaign, 1000, truth=evaluation.SMALL.truth | new)
    assert not of_run(latest(third), "late").late
    assert of_run(latest(third), "late").support == 1.0


def test_uploads_that_bring_no_run_make_nothing_due(judged: Round, campaign: Campaign) -> None:
    requested = Job.objects.get(kind="recompute", target=judged.pk).requested
    bad = factories.stored_upload(campaign, b"t1 Q0 d1 1 x late\n", name="x.run", kind="run")
    assert bad.state == Upload.State.REJECTED
    same = factories.stored_upload(campaign, lines_of("run2", "run2"), name="y.run", kind="run")
    assert same.state == Upload.State.REJECTED
    assert Job.objects.get(kind="recompute", target=judged.pk).requested == requested


def test_runs_that_join_together_are_one_recompute(judged: Round, campaign: Campaign) -> None:
    count = judged.estimate_sets.count()
    read = []
    for tag in ("copy1", "copy2"):
        file: File[bytes] = File(io.BytesIO(lines_of("run2", tag)), name=tag)
        by = campaign.created_by
        read.append(uploads.store(campaign=campaign, by=by, file=file, name=tag, kind="run").pk)
    for job in Job.objects.filter(kind="upload", target__in=read):
        jobs.run(job.pk)
    factories.run_due_jobs()
    assert judged.estimate_sets.count() == count + 1
    assert latest(judged).estimates.filter(late=True, measure="DCG@10", primary=True).count() == 2


def test_measures_of_predictions_keep_the_scores(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, measure="MAE", prior="constant", reported=[])
    evaluation.judge(campaign, 45)
    before = numbers(latest(row))
    join(campaign, lines_of("run3", "copy"))
    kept = numbers(latest(row))
    assert {key: kept[key] for key in before} == before
    twin, copy = of_run(latest(row), "run3", "MAE"), of_run(latest(row), "copy", "MAE")
    assert (twin.value, twin.support) == (copy.value, copy.support)


def test_topics_that_were_added_since_stay_outside(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    before = numbers(latest(judged))
    factories.stored_upload(campaign, b"t99\tanother\n", name="more.tsv", kind="topics")
    join(campaign, lines_of("run2", "copy") + b"t99 Q0 d1 1 1 copy\n")
    kept = numbers(latest(judged))
    assert {key: kept[key] for key in before} == before
    assert of_run(latest(judged), "copy").support == 1.0
    assert set(StoredPool.objects.values_list("topic_count", flat=True)) == {6}
    assert organizer.get(address("compare", campaign, 1)).status_code == 200


# ------------------------------------------------------------------------------ pages and files


def test_the_ranking_marks_runs_that_joined_later(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    there = address("live", campaign, 1)
    assert "oined" not in text(organizer.get(there))
    join(campaign, lines_of("run2", "copy"), "copy.run")
    join(campaign, with_news("late"))

    response = organizer.get(there)
    html, said = response.content.decode(), text(response)
    assert html.count(">joined later</span>") == 2
    assert "Joined after the sample was drawn. The sample reaches 100 % of its weight;" in html
    assert re.search(
        r"Joined after the sample was drawn\. The sample reaches 64\.7 % of its weight; "
        r"effective sample size \d+\.", html
    )  # fmt: skip
    assert re.search(
        r"copy joined after the sample was drawn; all that DCG@10 counts for it could be drawn "
        r"\(effective sample size \d+\)\.", said
    )  # fmt: skip
    assert re.search(
        r"late joined after the sample was drawn, which reaches 64\.7 % of what DCG@10 counts for "
        r"it \(effective sample size \d+\)\. Its value is a lower bound, and it is called worse "
        r"than another run only where the documents out of reach could not change that\.", said
    )  # fmt: skip
    assert "The sample leaves out part" not in said
    assert said.count("≥") == 1


def test_a_comparison_tells_what_it_is_about(
    campaign: Campaign, organizer: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation.drawn(campaign)
    unknown.patch(monkeypatch)
    evaluation.judge(campaign, 45)
    join(campaign, with_news("late"))
    there = address("compare", campaign, 1)
    said = text(organizer.get(there, {"first": "run1", "second": "late"}))
    assert "The difference is that of the sampled part; verdict and p allow for the rest." in said
    said = text(organizer.get(there, {"first": "run1", "second": "run2"}))
    assert "sampled part" not in said


def test_every_tab_shows_later_runs(
    judged: Round,
    campaign: Campaign,
    organizer: Client,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    join(campaign, with_news("late"))
    for name in TABS:
        with django_assert_max_num_queries(34):
            response = organizer.get(address(name, campaign, 1))
        assert response.status_code == 200
        if name in ("live", "live-pairs", "live-history", "compare"):
            assert "late" in response.content.decode()


def test_material_shows_nothing_special(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    join(campaign, with_news("late"))
    said = text(organizer.get(address("material", campaign)))
    assert "late.run" in said
    assert "joined" not in said


def test_the_files_say_who_is_late(judged: Round, campaign: Campaign) -> None:
    join(campaign, with_news("late"))
    evaluation.made_reports(judged)
    lines = list(csv.DictReader(io.StringIO(file_of(judged, "estimates.csv"))))
    assert {line["run"] for line in lines if line["late"] == "true"} == {"late"}
    assert {line["late"] for line in lines} == {"true", "false"}
    document = json.loads(file_of(judged, "estimates.json"))
    assert {each["run"] for each in document["estimates"] if each["late"]} == {"late"}
    assert document["runs_left_out"] == []
    assert "late" in document["pairwise"][0]["runs"]
    said = report_of(judged)
    assert "After the sample was drawn 1 further run joined: late." in said
    assert "It is estimated from the same judgments." in said
    assert "values marked ≥ are lower bounds" in said


def test_a_hostile_tag_is_escaped(judged: Round, campaign: Campaign, organizer: Client) -> None:
    join(campaign, with_news("<b>x</b>"))
    evaluation.made_reports(judged)
    for html in (
        organizer.get(address("live", campaign, 1)).content.decode(),
        organizer.get(
            address("compare", campaign, 1), {"first": "run1", "second": "<b>x</b>"}
        ).content.decode(),
        file_of(judged, "report.html"),
    ):
        assert "&lt;b&gt;x" in html
        assert "<b>x" not in html


def test_the_api_tells_who_is_late(judged: Round, campaign: Campaign) -> None:
    """Every answer is also held against the OpenAPI document."""
    join(campaign, with_news("late"))
    client = rest.client_of(campaign.created_by)
    base = f"/api/campaigns/{campaign.slug}/"
    found = client.get(f"{base}estimates/").json()
    assert found["estimate_set"]["left_out"] == []
    assert {each["run"] for each in found["estimates"] if each["late"]} == {"late"}
    ranking = client.get(f"{base}ranking/?pairs=1").json()
    assert ranking["supported"] is False
    late = [each for each in ranking["ranking"] if each["late"]]
    assert [each["run"] for each in late] == ["late"]
    assert late[0]["support"] < 1.0
    assert len(ranking["ranking"]) == len(ranking["pairs"]["runs"]) == 5
