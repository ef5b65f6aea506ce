"""Runs that are accepted while an active round is judged."""

import re

import pytest
from django.test import Client

from estimation import selectors
from estimation.models import Draw, Round
from judging.models import Campaign
from tests.support import evaluation
from tests.support.later import (
    assert_a_copy_takes_part,
    assert_half_a_run_takes_part,
    join,
    latest,
    lines_of,
    numbers,
    of_run,
    report_of,
    table_of,
    with_news,
)
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]
ACTIVE = {
    "method": "active", "measure": "DCG@5", "reported": ["AP", "Rprec"], "extra_share": 0.0,
    "budget": 40, "batch_size": 12,
}  # fmt: skip


def judge_next_batch(row: Round) -> None:
    """Judges the batch that is open, and no more."""
    open_pairs = Draw.objects.filter(round=row).count()
    evaluation.judge(row.campaign, open_pairs - latest_pairs(row))
    row.refresh_from_db()


def latest_pairs(row: Round) -> int:
    shown = selectors.latest_estimates(row)
    return shown.pair_count if shown else 0


def planned(row: Round) -> dict[int, set[tuple[str, str]]]:
    """The pairs of each batch."""
    found: dict[int, set[tuple[str, str]]] = {}
    draws = Draw.objects.filter(round=row).select_related("pair__topic")
    for draw in draws:
        of_batch = found.setdefault(draw.batch_number, set())
        of_batch.add((draw.pair.topic.topic_id, draw.pair.docno))
    return found


def test_a_run_that_joins_is_in_the_next_estimates_with_a_rank(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **ACTIVE)
    judge_next_batch(row)
    assert (latest(row).batches, row.state) == (1, Round.State.JUDGING)
    measures = ("DCG@5", "AP", "Rprec")
    now = assert_a_copy_takes_part(campaign, row, measures=measures)
    for measure in measures:
        twin, copy = of_run(now, "run2", measure), of_run(now, "copy", measure)
        assert copy.se == pytest.approx(twin.se, rel=1e-9)


def test_batches_are_planned_as_they_would_be_without_it(campaign: Campaign) -> None:
    """Two campaigns with the same judgments, of which a run joins one after the first batch."""
    other = evaluation.with_material(slug="other")
    rows = [evaluation.drawn(made, **ACTIVE) for made in (campaign, other)]
    judge_next_batch(rows[0])
    join(campaign, with_news("late"))
    join(campaign, lines_of("run4", "copy"), "copy.run")
    assert len(planned(rows[0])) == 2
    for row in rows:
        while row.state != Round.State.COMPLETE:
            judge_next_batch(row)
    first, second = (planned(row) for row in rows)
    assert first == second
    assert len(first) > 2
    joined, alone = (numbers(latest(row)) for row in rows)
    assert {key: joined[key] for key in alone} == alone
    assert {tag for tag, *_ in joined} - {tag for tag, *_ in alone} == {"late", "copy"}


def test_documents_outside_of_the_pool_make_a_lower_bound(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drawn(campaign, **ACTIVE)
    judge_next_batch(row)
    late = assert_half_a_run_takes_part(campaign, row)
    assert 1 <= late.rank_low <= late.rank <= late.rank_high <= 6
    assert {each.tag for each in table_of(row).late} == {"late", "copy"}
    said = text(organizer.get(address("live", campaign, 1)))
    assert re.search(
        r"copy joined after the sample was drawn; all that DCG@5 counts for it could be drawn "
        r"\(effective sample size \d+\)\.", said
    )  # fmt: skip
    assert re.search(
        r"late joined after the sample was drawn, which reaches \d\d(\.\d)? % of what DCG@5 "
        r"counts for it", said
    )  # fmt: skip
    assert "not in this round" not in said
    evaluation.made_reports(row)
    said = report_of(row)
    assert "After the sample was drawn 2 further runs joined:" in said
    assert "Not in this round" not in said
