"""While somebody has a pair of an early batch in hand, a rule is left something to save."""

import pytest

from estimation.models import Round
from judging import selectors as judging
from judging.clock import seconds_from_now
from judging.models import Assignment, Batch, Campaign, Judgment, User
from judging.services import assignments, judgments
from tests.estimation.test_stopping import drawn
from tests.support import factories
from tests.support.evaluation import batch_states

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


@pytest.mark.slow
def test_for_pairs_in_nobody_s_hands_nobody_waits(campaign: Campaign) -> None:
    row = drawn(campaign, labels=2)
    among = User.objects.filter(memberships__campaign=campaign, memberships__role="assessor")
    judge = among.order_by("pk")[0]
    said = 0
    while (assignment := assignments.claim_next(campaign=campaign, by=judge)) is not None:
        saying = judgments.Saying(grade=1, key=f"{assignment.pk}")
        judgments.record(assignment=assignment, by=judge, saying=saying)
        said += 1
    assert said == row.draws.count(), "the second label of each is to come from somebody else"


@pytest.mark.slow
def test_a_held_pair_of_a_round_without_a_rule_holds_nothing_back(campaign: Campaign) -> None:
    row = drawn(campaign, stop_when="")
    _, said = judged_while_one_is_held(campaign)
    assert len(said) == row.draws.count() - 1
