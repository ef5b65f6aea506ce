"""More judgments for a round: a round of its own that takes what is judged for certain."""

from collections import defaultdict

import numpy as np
import pytest
from django.test import Client

from estimation import selectors
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.top_ups import unlearned
from estimation.models import Round
from estimation.services import choices, extending, rounds, stopping, topping
from estimation.services.collections import columns_of
from estimation.situation import Situation
from estimation.timeline import timeline
from judging.errors import UserError
from judging.models import Campaign, Judgment
from judging.services import assignments, campaigns, judgments
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
TRUTH = defaultdict(int, evaluation.SMALL.truth)


def judged(campaign: Campaign, **values: object) -> Round:
    chosen = {"budget": 40, "batch_size": 20, "extra_share": 0.0}
    row = evaluation.drawn(campaign, **chosen | values)
    while evaluation.judge(campaign, 1000, truth=TRUTH):  # some plan batches as they go
        pass
    row.refresh_from_db()
    return row


def drawn_on(row: Round, budget: int) -> Round:
    """The round that adds to one, drawn."""
    more = extending.extend(row=row, by=row.created_by, budget=budget)
    factories.run_due_jobs()
    rounds.request_draw(row=more, by=row.created_by)
    factories.run_due_jobs()
    more.refresh_from_db()
    assert more.is_drawn, more.preview
    return more


@pytest.mark.slow
def test_what_is_judged_before_is_no_work_that_is_left(campaign: Campaign) -> None:
    """The batch that takes it is opened by whoever comes first, who may come tomorrow."""
    before = selectors.round_progress(judged(campaign, method="poisson")).finished
    more = drawn_on(Round.objects.get(campaign=campaign, number=1), 15)
    progress = selectors.round_progress(more)
    assert [batch.state for batch in progress.batches] == ["waiting"] * len(progress.batches)
    assert progress.finished == before
    assert timeline(campaign).lines[0].finished == before
    assert progress.pairs - progress.finished == more.draws.count() - before < 30
    found = Situation(campaign)
    assert (found.judged, found.expected) == (before, more.draws.count())
    assert found.days_left is not None
    assert found.days_left < 1.0 + (found.expected - before) / before  # judged today


@pytest.mark.slow
def test_no_more_is_expected_than_there_is_to_judge(campaign: Campaign) -> None:
    """Of a round that is planned batch by batch, whatever its budget."""
    whole = {"method": "adaptive", "batch_size": 20, "extra_share": 0.0}
    row = evaluation.drawn(campaign, budget=5000, **whole)
    evaluation.judge(campaign, 10)
    found = Situation(campaign)
    assert found.expected == row.preview["eligible_pairs"] < 5000
    assert found.days_left is not None
    assert found.days_left <= found.expected / found.judged


@pytest.mark.slow
@pytest.mark.parametrize(
    "first",
    [
        {"method": "adaptive"},
        {"method": "poisson"},
        {"method": "iid", "reported": []},
        {"method": "adaptive", "goal": "winner"},
        {"method": "poisson", "estimator": "", "interval": "bernstein", "reported": []},
    ],
    ids=lambda given: "-".join(map(str, given.values())),
)
def test_what_is_judged_is_certain_and_the_rest_is_drawn_anew(
    campaign: Campaign, first: dict[str, object]
) -> None:
    """After every method: given the past, pairs are in with chances that are fixed."""
    row = judged(campaign, **first)
    more = drawn_on(row, 15)
    pool, drawn = columns_of(more)
    assert isinstance(drawn, AdaptiveRound), "as new rounds are, where they can be"
    chance = unlearned(drawn.design).inclusion()
    before = topping.judged_in(campaign, pool)
    assert before.any()
    assert np.all(chance[before] == 1.0)
    counts = np.asarray(np.abs(pool.weights(parse_measure(row.measure))).sum(axis=1)).ravel() > 0.0
    assert np.all(chance[counts] > 0.0), "what counts can come"
    assert chance[~before].sum() == pytest.approx(15, rel=0.01)
    assert (more.top_up, more.with_earlier) == (True, False)
    assert more.seed != row.seed, "numbers of its own: a pair left out would have a large one"
    row.refresh_from_db()
    assert row.state == Round.State.COMPLETE, "the round itself stays what it is"


@pytest.mark.slow
def test_no_judgment_is_asked_again_and_the_numbers_hold_at_its_own_looks(
    campaign: Campaign,
) -> None:
    row = judged(campaign, method="adaptive")
    before = Judgment.objects.count()
    more = drawn_on(row, 20)
    while evaluation.judge(campaign, 1000, truth=TRUTH):
        pass
    more.refresh_from_db()
    assert more.state == Round.State.COMPLETE
    new = Judgment.objects.count() - before
    drawn = set(more.draws.values_list("pair", flat=True))
    old = set(row.draws.values_list("pair", flat=True))
    assert old <= drawn
    assert new == len(drawn - old)
    looks = {shown.batches: shown.looks for shown in more.estimate_sets.all()}
    assert set(looks.values()) == {more.round_batches.count()}, "those of the first do not count"


@pytest.mark.slow
def test_where_it_cannot_be_the_page_says_what_to_do(campaign: Campaign, organizer: Client) -> None:
    draft = evaluation.drafted(campaign)
    with pytest.raises(UserError, match="change its budget"):
        extending.extend(row=draft, by=draft.created_by, budget=10)
    rounds.discard(row=draft, by=draft.created_by)
    topics = {"method": "query", "measure": "ERR@5", "budget": 60, "batch_size": 60}
    row = evaluation.drawn(campaign, reported=[], **topics)
    with pytest.raises(UserError, match="No batch of it is judged yet"):
        extending.extend(row=row, by=row.created_by, budget=10)
    while evaluation.judge(campaign, 1000, truth=TRUTH):
        pass
    with pytest.raises(UserError, match="needs whole topics"):
        extending.extend(row=row, by=row.created_by, budget=10)
    said = text(organizer.get(address("round-list", campaign)))
    assert "Plan a further round by the same method" in said
    assert "More pairs" not in said
    campaign.refresh_from_db()
    campaigns.close(campaign=campaign, by=campaign.created_by)
    row.refresh_from_db()
    row.campaign.refresh_from_db()
    with pytest.raises(UserError, match="Open it again"):
        extending.extend(row=row, by=row.created_by, budget=10)


@pytest.mark.slow
def test_page_and_rest_draft_it(campaign: Campaign, organizer: Client) -> None:
    row = judged(campaign)
    there = address("round-extend", campaign, row.number)
    said = text(organizer.post(there, {"budget": "12"}, follow=True))
    assert "Round 2 goes on from round 1" in said
    second = campaign.rounds.get(number=2)
    assert (second.budget, second.top_up, second.state) == (12, True, "drafted")
    assert "whole number" in text(organizer.post(there, {"budget": "none"}, follow=True))
    rest = f"/api/campaigns/{campaign.slug}/rounds/{row.number}/extension/"
    answer = organizer.post(rest, {"budget": 9}, content_type="application/json")
    assert (answer.status_code, answer.json()["number"], answer.json()["budget"]) == (201, 3, 9)
    assert organizer.post(rest, {}, content_type="application/json").status_code == 400
    draft = f"/api/campaigns/{campaign.slug}/rounds/3/extension/"
    refused = organizer.post(draft, {"budget": 9}, content_type="application/json")
    assert (refused.status_code, refused.json()["code"]) == (409, "not_extended")


def ended_early(campaign: Campaign, **values: object) -> Round:
    """One of two batches complete, and some pairs of the second judged, when somebody ends it."""
    chosen = {"budget": 40, "batch_size": 20, "extra_share": 0.0, "method": "poisson"}
    row = evaluation.drawn(campaign, **chosen | values)
    first = row.draws.filter(batch_number=1).count()
    assert evaluation.judge(campaign, first + 6, truth=TRUTH) == first + 6
    stopping.by_hand(row=row, by=row.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED
    return row


@pytest.mark.slow
def test_what_was_kept_is_taken_for_certain(campaign: Campaign) -> None:
    """Judged pairs of the batch that was left open are paid for: none is asked for again."""
    row = ended_early(campaign)
    before = set(Judgment.objects.values_list("assignment__pair", flat=True))
    complete = set(row.draws.filter(batch_number=1).values_list("pair", flat=True))
    assert len(before - complete) == 6
    more = extending.extend(row=row, by=row.created_by, budget=15)
    factories.run_due_jobs()
    more.refresh_from_db()
    assert more.preview["top_up"]["kept"] == 6
    assert more.preview["top_up"]["pairs"] == len(before)
    rounds.request_draw(row=more, by=row.created_by)
    factories.run_due_jobs()
    more.refresh_from_db()
    sure = set(more.draws.filter(probability=1.0).values_list("pair", flat=True))
    assert before <= sure
    assert more.provenance["added_to"] == (
        "round 1 (1 batch), batches that were left open (6 judged pairs)"
    )
    given = Judgment.objects.count()
    while evaluation.judge(campaign, 1000, truth=TRUTH):
        pass
    more.refresh_from_db()
    assert more.state == Round.State.COMPLETE
    drawn = set(more.draws.values_list("pair", flat=True))
    assert Judgment.objects.count() - given == len(drawn - before)


@pytest.mark.slow
def test_a_batch_that_was_judged_after_one_that_was_left_open_is_kept(campaign: Campaign) -> None:
    """Somebody holds a pair of the second batch while others complete the third; then it ends."""
    row = evaluation.drawn(campaign, budget=36, batch_size=12, extra_share=0.0, method="poisson")
    sizes = [row.draws.filter(batch_number=number).count() for number in (1, 2, 3)]
    evaluation.judge(campaign, sizes[0], truth=TRUTH)
    by = campaign.memberships.filter(role="assessor").order_by("pk")[0].user
    held = assignments.claim_next(campaign=campaign, by=by)
    assert held is not None
    other = campaign.memberships.filter(role="assessor").order_by("pk")[1].user
    while factories.judge_next(campaign, other, 1):
        pass
    factories.run_due_jobs()
    stopping.by_hand(row=row, by=row.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    states = row.round_batches.order_by("number").values_list("batch__state", flat=True)
    assert list(states) == ["complete", "dropped", "dropped"], "it counts for nothing, as judged"
    judged = set(Judgment.objects.values_list("assignment__pair", flat=True))
    assert len(judged) == sum(sizes) - 1
    more = extending.extend(row=row, by=row.created_by, budget=15)
    factories.run_due_jobs()
    more.refresh_from_db()
    assert more.preview["top_up"]["pairs"] == len(judged)
    assert more.preview["top_up"]["kept"] == sizes[1] - 1 + sizes[2]
    rounds.request_draw(row=more, by=row.created_by)
    factories.run_due_jobs()
    sure = set(more.draws.filter(probability=1.0).values_list("pair", flat=True))
    assert judged <= sure


@pytest.mark.slow
def test_what_comes_late_to_a_batch_that_was_left_open_is_shown_first(campaign: Campaign) -> None:
    """Whoever has a pair on the screen may still answer; then the sample is another one."""
    row = evaluation.drawn(campaign, budget=40, batch_size=20, extra_share=0.0, method="poisson")
    first = row.draws.filter(batch_number=1).count()
    evaluation.judge(campaign, first + 2, truth=TRUTH)
    by = campaign.memberships.filter(role="assessor").order_by("pk")[0].user
    held = assignments.claim_next(campaign=campaign, by=by)
    assert held is not None
    stopping.by_hand(row=row, by=row.created_by)
    factories.run_due_jobs()
    more = extending.extend(row=row, by=row.created_by, budget=15)
    factories.run_due_jobs()
    more.refresh_from_db()
    seen = more.preview["design"]
    assert choices.digest_of(more) == seen
    judgments.record(assignment=held, by=by, saying=judgments.Saying(grade=1, key="late"))
    assert choices.digest_of(more) != seen
    with pytest.raises(UserError, match="have changed meanwhile"):
        rounds.request_draw(row=more, by=row.created_by, design=seen)


@pytest.mark.slow
def test_a_union_counts_nothing_of_what_was_kept(campaign: Campaign) -> None:
    """Which pairs of a batch people came to first is no sample: chances follow from designs."""
    ended_early(campaign)
    asked = {"top_up": True, "with_earlier": True, "budget": 15, "batch_size": 15, "seed": "t"}
    more = evaluation.drawn(campaign, method="poisson", extra_share=0.0, **asked)
    assert more.preview["top_up"]["kept"] == 0
    assert more.provenance["added_to"] == "round 1 (1 batch)"
