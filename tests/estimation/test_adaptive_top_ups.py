"""Adaptive rounds that add to what is judged: alone, or as the latest of their kind goes on."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from django.test import Client

from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.models import Draw, Round
from estimation.services import choices, designing, estimates, redrawing, topping
from estimation.services.collections import columns_of
from estimation.timeline import timeline
from judging.errors import UserError
from judging.models import Campaign, Job, Judgment
from tests.core.length import bounded
from tests.estimation.test_later_runs import with_news
from tests.estimation.test_score_command import assert_same_numbers
from tests.estimation.test_top_ups import TRUTH, judged, shown_of, topped_up
from tests.support import evaluation, factories
from tests.support.pages import address, text
from tests.support.rest import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]

LEARNING = {"method": "adaptive", "top_up": True, "budget": 20, "batch_size": 10, "seed": "t"}


def learned(campaign: Campaign, **chosen: object) -> Round:
    """An adaptive top-up that is judged completely."""
    row = evaluation.drawn(campaign, **LEARNING | {"extra_share": 0.0} | chosen)
    while evaluation.judge(campaign, 1000, truth=TRUTH):
        pass
    row.refresh_from_db()
    return row


def drawn_by(row: Round) -> AdaptiveRound:
    _, found = columns_of(row)
    assert isinstance(found, AdaptiveRound)
    return found


@pytest.mark.parametrize("method", ["adaptive", "poisson", *bounded([], ["active"])])
@pytest.mark.parametrize("together", [False, True])
def test_an_adaptive_top_up_knows_what_is_judged_before_its_first_batch(
    campaign: Campaign, method: str, together: bool
) -> None:
    first = judged(campaign, method=method, measure="P@5", reported=[])
    if together and method != "adaptive":
        row = evaluation.drafted(
            campaign, **LEARNING, with_earlier=True, measure="P@5", reported=[]
        )
        assert "round 1: its method is" in row.preview["error"]
        return
    before = set(first.draws.values_list("pair", flat=True))
    said = Judgment.objects.count()
    second = learned(campaign, measure="P@5", reported=[], with_earlier=together)
    draws = {each.pair_id: each for each in second.draws.all()}
    assert before <= set(draws)
    assert {(draws[pair].batch_number, draws[pair].probability) for pair in before} == {(1, 1.0)}
    new = set(draws) - before
    assert 5 < len(new) < 36
    assert Judgment.objects.count() == said + len(new), "nothing is judged twice"
    found = drawn_by(second)
    assert found.sample.steps[0].model is not None
    assert (found.design.past.sums is not None) == together
    shown = shown_of(second)
    assert (shown.earlier, shown.pair_count) == ({}, len(draws))
    assert shown.estimates.filter(run__tag="novel", late=False).exists()
    counting = {"counting": [1], "left_out": {}} if together else None
    assert second.preview["earlier"] == counting
    assert second.provenance["added_to"] == "round 1 (2 batches)"
    (line,) = (each for each in timeline(campaign).lines if each.round == second)
    assert [(e.number, e.batches, e.certain) for e in line.counts] == [(1, 2, not together)]
    outcome = estimates.from_scratch(second)
    assert outcome is not None
    assert outcome.digest == shown.digest
    assert not redrawing.faults_of(second)


def test_a_chain_of_rounds_is_continued_and_others_are_certain(campaign: Campaign) -> None:
    chosen = {"measure": "P@5", "reported": []}
    judged(campaign, method="adaptive", **chosen)
    learned(campaign, **chosen, seed="apart", top_up=False)
    second = learned(campaign, **chosen, with_earlier=True)
    assert second.preview["earlier"]["counting"] == [2]
    assert "only the latest" in second.preview["earlier"]["left_out"]["1"]
    third = learned(campaign, **chosen, with_earlier=True, seed="u", budget=10)
    assert third.preview["earlier"]["counting"] == [2, 3]
    assert third.provenance["added_to"] == "round 2 (2 batches), round 3 (2 batches)"
    every = set(Draw.objects.exclude(round=third).values_list("pair", flat=True))
    assert every <= set(third.draws.values_list("pair", flat=True))


def test_a_batch_that_is_completed_between_design_and_labels_has_the_draw_begin_anew(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the model was told labels of pairs that the design has not as judged."""
    evaluation.drawn(campaign, budget=40, batch_size=20, seed="s", extra_share=0.0)
    while not choices.complete(campaign):
        evaluation.judge(campaign, 1)
    row = evaluation.drafted(campaign, **LEARNING)
    made, told = designing.design_of, []

    def meanwhile(*given: object) -> object:
        design = made(*given)  # type: ignore[arg-type]
        if not told:
            told.append(evaluation.judge(campaign, 1000))
        return design

    monkeypatch.setattr(designing, "design_of", meanwhile)
    evaluation.rounds.request_draw(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    job = Job.objects.get(kind="draw", target=row.pk)
    assert job.error == ""
    row.refresh_from_db()
    assert row.provenance["added_to"] == "round 1 (2 batches)"


@pytest.mark.parametrize("together", [False, True])
def test_a_top_up_is_foretold_by_playing_it_from_what_is_judged(
    campaign: Campaign, organizer: Client, together: bool
) -> None:
    """And draws what it would have drawn if nobody had foretold it."""
    judged(campaign, method="adaptive")
    row = evaluation.drafted(campaign, **LEARNING, with_earlier=together)
    assert row.preview["error"] is None
    assert row.preview["learns"]
    for found in row.preview["measures"]:
        assert 0.0 < found["difference_least"] <= found["difference"]
        for line in found["half_widths"]:
            assert 0.0 < line["half_width_least"] <= line["half_width"]
    here = next(each for each in row.preview["reached"] if each["budget"] == row.budget)
    assert here["half_width"] < here["half_width_most"]
    page = organizer.get(address("round-detail", campaign, 2))
    assert " to " in page.context["figures"].reached.half_width
    assert "It was played from what is judged" in text(page)
    assert "if nothing is learned" not in text(page)
    asked = f"/api/campaigns/{campaign.slug}/rounds/2/"
    told = client_of(campaign.created_by).get(asked).json()
    assert told["preview"]["measures"] == row.preview["measures"]
    _, pool = designing.pool_for(row)
    plan, labels = designing.design_of(row, pool), topping.labels_of(row, pool)
    without = AdaptiveRound.begin(replace(pool), plan, seed=row.seed, labels=labels)
    evaluation.draw(campaign, row)
    row.refresh_from_db()
    drawn = drawn_by(row).sample
    for name in ("pair", "batch", "chance"):
        assert np.array_equal(getattr(drawn, name), getattr(without.sample, name)), name


def test_a_batch_that_is_completed_while_a_top_up_is_foretold_has_that_begin_anew(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluation.drawn(campaign, budget=40, batch_size=20, seed="s", extra_share=0.0)
    while not choices.complete(campaign):
        evaluation.judge(campaign, 1)
    made, told = designing.design_at, []

    def meanwhile(*given: object) -> object:
        design = made(*given)  # type: ignore[arg-type]
        if not told:
            told.append(evaluation.judge(campaign, 1000))
        return design

    monkeypatch.setattr(designing, "design_at", meanwhile)
    row = evaluation.drafted(campaign, **LEARNING)
    assert (row.preview["error"], row.preview["top_up"]["batches"]) == (None, {"1": 2})


def test_where_all_that_is_left_will_be_judged_values_are_exact(campaign: Campaign) -> None:
    """By earlier shares they would be off by what earlier batches happened to draw."""
    chosen = {"measure": "DCG@5", "reported": ["P@5"], "with_earlier": True}
    judged(campaign, method="adaptive", **chosen | {"with_earlier": False})
    learned(campaign, **chosen, seed="u")
    row = learned(campaign, **chosen)
    assert row.preview["is_census"]
    assert max(each.se for each in shown_of(row).estimates.filter(primary=True)) == 0.0


def test_an_adaptive_round_counts_earlier_ones_only_where_it_tops_up(campaign: Campaign) -> None:
    judged(campaign, method="adaptive")
    with pytest.raises(UserError, match="top up what is judged") as caught:
        evaluation.drafted(campaign, **LEARNING | {"top_up": False}, with_earlier=True)
    assert caught.value.field == "with_earlier"


def test_batches_by_topics_are_not_continued_but_certain(campaign: Campaign) -> None:
    chosen = {"measure": "P@5", "reported": []}
    judged(campaign, method="adaptive", topic_minimum=3, **chosen)
    row = evaluation.drafted(campaign, **LEARNING, with_earlier=True, **chosen)
    assert "pairs of a topic together" in row.preview["error"]
    assert learned(campaign, **chosen).state == Round.State.COMPLETE


@pytest.mark.parametrize("together", [False, True])
def test_score_tells_what_an_adaptive_top_up_tells(
    campaign: Campaign, tmp_path: Path, together: bool
) -> None:
    judged(campaign, method="adaptive")
    row = learned(campaign, with_earlier=together)
    assert_same_numbers(row, tmp_path, later={"novel.run": with_news("novel")})


def test_labels_of_what_is_judged_are_those_that_count(campaign: Campaign) -> None:
    """A pair that several rounds drew has its labels once, and no excluded one."""
    first = judged(campaign)
    topped_up(campaign, seed="v")
    row = evaluation.drafted(campaign, **LEARNING)
    _, pool = designing.pool_for(row)
    found = topping.judged_labels(campaign, pool)
    pairs = np.flatnonzero(topping.judged_in(campaign, pool))
    assert set(found.pair.tolist()) == set(pairs.tolist())
    assert len(found.pair) == Judgment.objects.filter(assignment__revision__gt=0).count()
    assert first.draws.count() < len(pairs)


def test_what_a_round_that_goes_on_says_of_others(campaign: Campaign, organizer: Client) -> None:
    """How many pairs are judged, wherever; and not that earlier batches are waited for."""
    evaluation.worker_alive()
    evaluation.drawn(campaign, budget=20, batch_size=20, seed="p", extra_share=0.0)
    judged(campaign, method="adaptive")
    row = evaluation.drafted(campaign, **LEARNING, with_earlier=True)
    number = Draw.objects.values("pair").distinct().count()
    assert row.preview["top_up"]["pairs"] == number
    there = address("round-detail", campaign, row.number)
    said = text(organizer.get(there))
    assert f"{number} pairs of this pool are judged already. They are in the sample" in said
    assert "what the batches of round 2 (2 batches) say of all other pairs counts on" in said
    assert "Round 1 is not continued: its method is Poisson" in said
    evaluation.draw(campaign, row)
    while evaluation.judge(campaign, 1000, truth=TRUTH):
        pass
    said = text(organizer.get(there))
    assert "round 1 is not continued: its method is Poisson" in said
    assert "round 2 (2 batches), whose batches go on here" in said
    said = text(organizer.get(address("live", campaign, row.number)))
    assert "Result of" in said
    assert "no batch is complete" not in said
    assert "each by itself" not in said
