"""A finished round says what is known, what more would buy, and where to go."""

import re
from dataclasses import replace

import numpy as np
import pytest
from django.test import Client

from estimation import overview, selectors
from estimation.findings import further_judgments, what_more_buys
from estimation.models import Round
from estimation.situation import Situation
from judging.models import Campaign
from judging.services import campaigns
from tests.support import evaluation
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.fixture
def finished(campaign: Campaign) -> Round:
    evaluation.worker_alive()
    row = evaluation.drawn(campaign)
    evaluation.judge(campaign, 1000)
    row.refresh_from_db()
    assert row.state == Round.State.COMPLETE
    return row


def undecided(row: Round) -> int:
    shown = selectors.latest_estimates(row)
    assert shown is not None
    pairs = selectors.pairwise(shown, row.measure)
    return int(np.count_nonzero(np.triu(pairs.verdicts == 0, 1)))


@pytest.mark.slow
def test_home_says_what_is_known_and_what_to_do(finished: Round, organizer: Client) -> None:
    campaign = finished.campaign
    assert undecided(finished) > 0
    answer = organizer.get(address("campaign-home", campaign))
    said = text(answer)
    assert "Round 1 is judged: what is known" in said
    assert f"of {4 * 3 // 2} pairs of runs are decided" in said
    assert "What more would buy" in said
    assert "Everything that was asked for is done" not in said
    page = answer.content.decode()
    for name, number in (("round-new", ()), ("reports", (1,)), ("live", (1,))):
        assert f'href="{address(name, campaign, *number)}"' in page


@pytest.mark.slow
@pytest.mark.parametrize("method", ["query", "active"])
def test_where_nothing_is_foretold_the_half_width_stands_against_the_planned_one(
    campaign: Campaign, organizer: Client, method: str
) -> None:
    """Whole topics and active sampling have no forecast that would say it."""
    measure = "P@5" if method == "active" else "AP"
    asked = {
        "measure": measure,
        "reported": [],
        "budget": 80,
        "batch_size": 80,
        "extra_share": 0.0,
        "seed": "w",
    }
    row = evaluation.drawn(campaign, method=method, **asked)
    evaluation.judge(campaign, 1000)
    shown = selectors.latest_estimates(row)
    assert shown is not None
    table = selectors.ranking_table(row, measure, shown)
    widths = [
        max(each.high - each.value, each.value - each.low)
        for each in table.rows
        if not each.unknown
    ]
    said = text(organizer.get(address("campaign-home", campaign)))
    found = re.search(
        rf"{measure} of the middle run is known to ± ([0-9.]*[0-9])(; planned was ± [0-9])?", said
    )
    assert widths
    assert found is not None
    assert float(found[1]) == pytest.approx(np.median(widths), rel=0.06)
    assert bool(found[2]) == (method == "poisson"), "of the others no plan told one"


@pytest.mark.slow
def test_of_a_round_with_a_forecast_it_is_said_once(finished: Round, organizer: Client) -> None:
    said = text(organizer.get(address("campaign-home", finished.campaign)))
    assert said.count("of the middle run is known to") == 1


@pytest.mark.slow
def test_a_closed_campaign_keeps_what_is_known_and_asks_for_nothing(
    finished: Round, organizer: Client
) -> None:
    campaigns.close(campaign=finished.campaign, by=finished.campaign.created_by)
    answer = organizer.get(address("campaign-home", finished.campaign))
    assert "what is known" in text(answer)
    assert "Plan a further round" not in text(answer)


@pytest.mark.slow
def test_until_a_further_round_has_estimates_the_earlier_ones_are_not_forgotten(
    finished: Round, organizer: Client
) -> None:
    campaign = finished.campaign
    campaign.refresh_from_db()
    evaluation.drawn(campaign, seed="more")
    answer = organizer.get(address("campaign-home", campaign))
    said = text(answer)
    assert "No estimates of round 2 yet" in said
    assert "Until then the ranking of round 1 says what is known" in said
    assert f'href="{address("live", campaign, 1)}"' in answer.content.decode()


def test_a_round_that_is_judged_says_what_is_known_so_far(judged: Round, organizer: Client) -> None:
    found = overview.outcome(Situation(judged.campaign))
    assert found is not None
    assert not found.ended
    assert [action.url for action in found.actions] == ["live"]
    said = text(organizer.get(address("campaign-home", judged.campaign)))
    assert "What may be concluded so far" in said
    assert "What more would buy" not in said


@pytest.mark.slow
def test_more_judgments_decide_more_pairs_and_never_more_than_are_open(finished: Round) -> None:
    shown = selectors.latest_estimates(finished)
    assert shown is not None
    table = selectors.ranking_table(finished, finished.measure, shown)
    assert table is not None
    pairs = selectors.pairwise(shown, finished.measure)
    table.round.pool.pair_count *= 10
    said = what_more_buys(table, pairs)
    assert said is not None
    counts = [int(number.replace(",", "")) for number in re.findall(r"about ([\d,]*\d)", said)]
    assert len(counts) == 2
    assert 0 <= counts[0] <= counts[1] <= undecided(finished)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pool", "told"),
    [(1.0, None), (1.5, "the true ones, judging what is left of the pool, {left} pairs, would"),
     (2.0, "the true ones, judging what is left of the pool, {left} pairs, would"),
     (3.0, "would decide about 0 of them, and judging what is left of the pool, {left} pairs, w"),
     (4.5, "would decide about 0 of them, and four times as many about 1. The closest")],
)  # fmt: skip
def test_no_more_judgments_are_spoken_of_than_the_pool_has(
    finished: Round, pool: float, told: str | None
) -> None:
    shown = selectors.latest_estimates(finished)
    assert shown is not None
    table = selectors.ranking_table(finished, finished.measure, shown)
    assert table is not None
    assert table.pairs is not None
    first, second = table.known[:2]
    assert first.value is not None
    assert second.value is not None
    apart = (first.value - second.value) * 1.8  # above the root of 2, below that of 4
    pairs = replace(
        table.pairs,
        verdicts=np.zeros_like(table.pairs.verdicts),
        unknown=np.zeros_like(table.pairs.unknown),
        margin=np.full_like(table.pairs.margin, apart),
    )
    table = replace(table, rows=[first, second])
    finished.pool.pair_count = round(shown.pair_count * pool)
    table.round.pool = finished.pool
    said = what_more_buys(table, pairs)
    left = finished.pool.pair_count - shown.pair_count
    if told is None:
        assert said is None
        return
    assert told.format(left=left) in said
    assert ("closest" in said) == (pool > 4.0)
    further = further_judgments(table, pairs)
    assert (f"judging what is left of the pool, {left} pairs, should" in further) == (pool < 4.0)


@pytest.mark.slow
def test_where_everything_is_judged_more_buys_nothing(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, budget=10_000, batch_size=10_000, extra_share=0)
    evaluation.judge(campaign, 1000)
    row.refresh_from_db()
    found = overview.outcome(Situation(campaign))
    assert found is not None
    assert found.further == ""
