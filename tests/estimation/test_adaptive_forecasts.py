"""What an adaptive round is foretold to bring: on its page, by REST and in the report."""

import re

import numpy as np
import pytest
from django.test import Client

from estimation import selectors
from estimation.conclusions import GO_ON, OUT_OF_REACH, pair_states
from estimation.forecasts import forecast_of
from estimation.models import Draw, Round
from judging.models import Campaign
from tests.estimation.test_adaptive_rounds import ADAPTIVE, judge_all, judge_batch
from tests.support import evaluation
from tests.support.kept import Kept
from tests.support.later import latest, report_of
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.fixture
def two_batches(campaign: Campaign, kept: Kept) -> Round:
    """Two of four batches are judged, and the third is planned."""
    return kept("two batches foretold", lambda: _two_batches(campaign), campaign)


def _two_batches(campaign: Campaign) -> Round:
    row = judge_batch(judge_batch(evaluation.drawn(campaign, **ADAPTIVE)))
    assert latest(row).batches == 2
    return row


@pytest.mark.slow
def test_a_forecast_is_stored_with_each_estimate_up_to_the_end_of_the_budget(
    two_batches: Round,
) -> None:
    for shown in two_batches.estimate_sets.all():
        found = forecast_of(shown)
        assert found is not None
        assert found.batches == shown.batches
        assert found.steps[0].pairs == shown.pair_count
        assert [each.batches for each in found.steps if each.batches][-1] == 4
        assert found.end == pytest.approx(60, abs=1)


@pytest.mark.slow
def test_the_page_says_what_more_judgments_will_bring(
    two_batches: Round, campaign: Campaign, organizer: Client
) -> None:
    page = text(organizer.get(address("live", campaign, two_batches.number)))
    assert "What more judgments will bring." in page
    assert "at the end of the budget" in page
    assert "foretold after batch 1" in page
    assert "is the true one" not in page
    assert re.search(r"Go on: about|Out of reach with|is decided|are decided|Not even", page)


@pytest.mark.slow
def test_rest_says_the_same(two_batches: Round, campaign: Campaign, organizer: Client) -> None:
    found = organizer.get(f"/api/campaigns/{campaign.slug}/ranking/").json()
    told = found["forecast"]
    page = text(organizer.get(address("live", campaign, two_batches.number)))
    assert told["best"]["text"] in page
    assert told["ranking"]["text"] in page
    assert told["steps"][0]["batches"] == 2
    other = organizer.get(f"/api/campaigns/{campaign.slug}/ranking/", {"measure": "P@5"}).json()
    assert other["forecast"] is None


def test_every_two_runs_that_are_open_go_on_or_are_out_of_reach(two_batches: Round) -> None:
    pairs = selectors.pairwise(latest(two_batches), two_batches.measure)
    found = pair_states(two_batches, pairs)
    open_ = np.isin(found.state, (GO_ON, OUT_OF_REACH))
    assert open_.any()
    assert not np.any(found.state == "open")
    assert np.isfinite(found.more[found.state == GO_ON]).all()


@pytest.mark.slow
def test_a_round_that_is_judged_is_told_what_lies_beyond(
    two_batches: Round, campaign: Campaign, organizer: Client
) -> None:
    row = judge_all(two_batches)
    found = forecast_of(latest(row))
    assert found is not None
    assert all(each.batches is None for each in found.steps[1:])
    assert found.steps[-1].half_width == pytest.approx(0.0, abs=1e-9)
    assert "The round is judged." in text(organizer.get(address("live", campaign, row.number)))
    evaluation.made_reports(row)
    assert "The round is judged." in report_of(row)


@pytest.mark.slow
def test_the_same_batches_are_drawn_as_without_a_forecast(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn_of(slug: str) -> list[tuple[int, int, float]]:
        made = evaluation.with_material(slug=slug)
        row = judge_batch(judge_batch(evaluation.drawn(made, **ADAPTIVE)))
        draws = Draw.objects.filter(round=row).order_by("position")
        return list(draws.values_list("position", "batch_number", "probability"))

    with_one = drawn_of("with")
    monkeypatch.setattr("estimation.services.forecasting.supports", lambda *_: False)
    assert drawn_of("without") == with_one


@pytest.mark.slow
@pytest.mark.parametrize(
    "choice",
    [
        {"goal": "winner"},
        {"topic_minimum": 3},
        {"labels": 2, "budget": 40, "batch_size": 10},
        {"negligible": 0.5},
    ],
    ids=lambda choice: next(iter(choice)),
)
def test_every_choice_of_an_adaptive_round_has_a_forecast(
    campaign: Campaign, choice: dict[str, object]
) -> None:
    row = evaluation.drawn(campaign, **ADAPTIVE | choice)
    evaluation.judge(campaign, 20)
    assert forecast_of(latest(row)) is not None


@pytest.mark.slow
def test_a_batch_that_drew_nothing_has_numbers_and_no_forecast(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **ADAPTIVE | {"budget": 1, "batch_size": 1, "seed": "s"})
    assert not row.draws.exists()
    evaluation.judge(campaign, 1)
    assert forecast_of(latest(row)) is None


@pytest.mark.slow
def test_ratio_measures_have_one(campaign: Campaign, organizer: Client) -> None:
    row = evaluation.drawn(campaign, **ADAPTIVE | {"measure": "AP@5", "reported": []})
    for _ in range(3):
        judge_batch(row)
        assert forecast_of(latest(row)) is not None
    assert "will bring" in text(organizer.get(address("live", campaign, row.number)))
