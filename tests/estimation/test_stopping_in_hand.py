"""While others have to end an early batch, a rule is left something to save."""

import pytest
from django.test import Client

from estimation.models import Round
from estimation.situation import Situation
from judging import selectors as judging
from judging.clock import seconds_from_now
from judging.models import Assignment, Batch, Campaign, Judgment, User
from judging.services import assignments, judgments
from tests.estimation.test_stopping import drawn
from tests.support import evaluation, factories
from tests.support.evaluation import batch_states
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def judged_while_one_is_held(campaign: Campaign) -> tuple[Assignment, list[Judgment]]:
    """Somebody takes the first pair of all and waits; another judges as long as there is work."""
    among = User.objects.filter(memberships__campaign=campaign, memberships__role="assessor")
    holds, judges = among.order_by("pk")
    held = assignments.claim_next(campaign=campaign, by=holds)
    assert held is not None
    while (assignment := assignments.claim_next(campaign=campaign, by=judges)) is not None:
        saying = judgments.Saying(grade=1, key=f"{assignment.pk}")
        judgments.record(assignment=assignment, by=judges, saying=saying)
    return held, list(Judgment.objects.filter(assessor=judges))


@pytest.mark.slow
@pytest.mark.on_both
def test_one_pair_in_hand_does_not_defeat_a_rule(campaign: Campaign) -> None:
    """All other batches were judged to the end of the budget, and none of them could count."""
    row = drawn(campaign)
    held, said = judged_while_one_is_held(campaign)
    states = batch_states(row)
    assert states[:2] == [Batch.State.OPEN, Batch.State.COMPLETE], "one batch ahead is work"
    assert set(states[2:]) == {Batch.State.WAITING}
    first_two = row.draws.filter(batch_number__lte=2)
    assert {each.assignment.pair_id for each in said} | {held.pair_id} == set(
        first_two.values_list("pair", flat=True)
    )
    judge = held.assessor
    assert judging.empty_queue(campaign, said[0].assessor) == "others"
    judgments.record(assignment=held, by=judge, saying=judgments.Saying(grade=1, key="held"))
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED
    assert row.stopping["saved"] == row.draws.filter(batch_number__gt=2).count()


@pytest.mark.slow
@pytest.mark.parametrize("prolonged", [True, False])
def test_nobody_waits_for_longer_than_a_lease(campaign: Campaign, *, prolonged: bool) -> None:
    """Who prolongs a lease again and again keeps nobody; one that ran out is taken over."""
    row = drawn(campaign)
    held, said = judged_while_one_is_held(campaign)
    long_ago = seconds_from_now(-60.0 * campaign.lease_minutes - 1)
    column = "changed" if prolonged else "lease_until"
    Assignment.objects.filter(pk=held.pk).update(**{column: long_ago})
    onward = assignments.claim_next(campaign=campaign, by=said[0].assessor)
    assert onward is not None
    third = set(row.draws.filter(batch_number=3).values_list("pair", flat=True))
    assert onward.pair_id in third if prolonged else onward.pair_id == held.pair_id


def judge_all(campaign: Campaign, by: User, most: int = 1000) -> int:
    """By hand, as long as there is work for somebody."""
    said = 0
    while said < most and (assignment := assignments.claim_next(campaign=campaign, by=by)):
        saying = judgments.Saying(grade=1, key=f"{assignment.pk} {by.pk}")
        judgments.record(assignment=assignment, by=by, saying=saying)
        said += 1
    return said


def two_of(campaign: Campaign) -> list[User]:
    among = User.objects.filter(memberships__campaign=campaign, memberships__role="assessor")
    return list(among.order_by("pk"))


@pytest.mark.slow
@pytest.mark.on_both
def test_one_person_of_two_is_not_handed_the_whole_budget(
    campaign: Campaign, organizer: Client
) -> None:
    """Every pair wanted a second label: no batch was ever complete, and no rule could save one."""
    evaluation.worker_alive()
    row, (one, other) = drawn(campaign, labels=2), two_of(campaign)
    sizes = [row.draws.filter(batch_number=number).count() for number in (1, 2)]
    assert judge_all(campaign, one) == sum(sizes), "a batch ahead is work"
    states = batch_states(row)
    assert states[:2] == [Batch.State.OPEN] * 2
    assert set(states[2:]) == {Batch.State.WAITING}
    assert judging.empty_queue(campaign, one) == "others"
    brief = f"Batch 1 of round {row.number}: {sizes[0]} pairs want a label of somebody else."
    told = (
        f"{brief} Nobody has them in hand. At most one batch more is handed out before, so that "
        "the rule can still save some."
    )
    assert told in text(organizer.get(address("campaign-home", campaign)))
    found = organizer.get(f"/api/campaigns/{campaign.slug}/overview/").json()
    assert (found["next"]["state"], found["next"]["why"]) == ("others", brief)
    assert {"level": "warn", "text": told} in found["attention"]
    assert judge_all(campaign, other, sum(sizes)) == sum(sizes)
    assert batch_states(row)[:2] == [Batch.State.COMPLETE] * 2
    assert told not in text(organizer.get(address("campaign-home", campaign)))
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED
    dropped = row.draws.filter(batch_number__gt=2).count()
    assert row.stopping["saved"] == 2 * dropped > 0


@pytest.mark.slow
def test_an_earlier_round_that_waits_for_others_is_told_when_the_last_has_ended(
    campaign: Campaign, organizer: Client
) -> None:
    first = drawn(campaign, labels=2)
    last = evaluation.drawn(campaign, seed="last", extra_share=0.0, budget=30, batch_size=15)
    judge_all(campaign, two_of(campaign)[0])
    factories.run_due_jobs()
    last.refresh_from_db()
    assert last.state == Round.State.COMPLETE
    waits = Situation(campaign).others
    assert waits is not None
    assert (waits.number, waits.batch) == (first.number, 1)
    found = organizer.get(f"/api/campaigns/{campaign.slug}/overview/").json()
    assert {"level": "warn", "text": waits.text} in found["attention"]
    assert waits.text in text(organizer.get(address("campaign-home", campaign)))


@pytest.mark.slow
def test_a_pair_that_was_skipped_waits_for_others_too(campaign: Campaign) -> None:
    row, (one, _) = drawn(campaign, labels=2), two_of(campaign)
    held = assignments.claim_next(campaign=campaign, by=one)
    assert held is not None
    assignments.skip(assignment=held, by=one, reason="cannot read it")
    judge_all(campaign, one)
    assert set(batch_states(row)[2:]) == {Batch.State.WAITING}


@pytest.mark.slow
def test_who_can_go_on_with_an_open_batch_waits_for_nobody(campaign: Campaign) -> None:
    """One label a pair: who skips one leaves it to whoever comes, and goes on."""
    row, (one, _) = drawn(campaign), two_of(campaign)
    held = assignments.claim_next(campaign=campaign, by=one)
    assert held is not None
    assignments.skip(assignment=held, by=one, reason="cannot read it")
    assert judge_all(campaign, one) == row.draws.count() - 1


@pytest.mark.slow
def test_without_a_rule_one_person_has_all_of_the_first_labels(campaign: Campaign) -> None:
    """Nothing is to be saved, and they count as soon as the second ones come."""
    row, (one, _) = drawn(campaign, labels=2, stop_when=""), two_of(campaign)
    assert judge_all(campaign, one) == row.draws.count()
    assert Situation(campaign).others is None


@pytest.mark.slow
def test_where_the_next_batch_is_planned_of_two_labels_it_is_said_who_is_missing(
    campaign: Campaign,
) -> None:
    drawn(campaign, labels=2, stop_when="", method="adaptive")
    one, other = two_of(campaign)
    judge_all(campaign, one)
    waits = Situation(campaign).others
    assert waits is not None
    assert waits.text.endswith("The next batch is planned when it is complete.")
    assert assignments.claim_next(campaign=campaign, by=other) is not None
    assert Situation(campaign).others is None, "somebody is at it"


@pytest.mark.slow
def test_a_held_pair_of_a_round_without_a_rule_holds_nothing_back(campaign: Campaign) -> None:
    row = drawn(campaign, stop_when="")
    _, said = judged_while_one_is_held(campaign)
    assert len(said) == row.draws.count() - 1
