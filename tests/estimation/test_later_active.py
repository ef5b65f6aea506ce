"""Runs that are accepted while an active round is judged."""

import re

import numpy as np
import pytest
from django.test import Client

from estimation import selectors
from estimation.models import Draw, Round
from estimation.services import estimates
from judging.models import Campaign
from judging.services import jobs
from tests.estimation.test_later_runs import (
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
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
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
    before = latest(row)
    assert (before.batches, row.state) == (1, Round.State.JUDGING)

    join(campaign, lines_of("run2", "copy"))

    now = latest(row)
    assert (now.number, now.batches, now.left_out) == (before.number + 1, 1, [])
    assert (now.pair_count, now.label_count) == (before.pair_count, before.label_count)
    assert now.provenance["joined_pool"] != estimates.columns_of(row)[0].digest
    kept = numbers(now)
    assert {key: kept[key] for key in numbers(before)} == numbers(before)
    for measure in ("DCG@5", "AP", "Rprec"):
        twin, copy = of_run(now, "run2", measure), of_run(now, "copy", measure)
        assert (copy.late, twin.late) == (True, False)
        assert (copy.value, copy.support) == (twin.value, 1.0)
        assert copy.se == pytest.approx(twin.se, rel=1e-9)
        assert copy.sample_size == twin.sample_size
        assert {copy.rank, twin.rank} <= set(range(1, 6))
        pairs = selectors.pairwise(now, measure)
        assert pairs.verdicts[pairs.runs.index("run2"), pairs.runs.index("copy")] == 0
    outcome = estimates.from_scratch(row)
    assert outcome is not None
    assert outcome.digest == now.digest
    jobs.request("recompute", row.pk, campaign=campaign)
    factories.run_due_jobs()
    assert latest(row) == now


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
    before = numbers(latest(row))
    join(campaign, with_news("late", known=3))
    join(campaign, lines_of("run2", "copy"), "copy.run")

    shown = latest(row)
    late = of_run(shown, "late", "DCG@5")
    gains = 1 / np.log2(np.arange(2, 7))
    assert late.support == pytest.approx(gains[:3].sum() / gains.sum(), abs=1e-12)
    assert 0 < late.value < np.inf
    assert 1 <= late.rank_low <= late.rank <= late.rank_high <= 6
    assert {key: each for key, each in numbers(shown).items() if key in before} == before
    assert ranked(row, "late").open_part
    assert not ranked(row, "copy").open_part
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
