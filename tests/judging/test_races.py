"""Two people, or one person in many tabs, decide the same thing at the same moment."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import (
    Assignment,
    AuditEntry,
    Campaign,
    Decision,
    Job,
    Judgment,
    Membership,
    Pair,
    User,
)
from judging.services import assignments, audit, campaigns, decisions, members
from tests.support import factories
from tests.support.races import Other, at_once

pytestmark = pytest.mark.django_db(transaction=True)
ORGANIZER = Membership.Role.ORGANIZER


def refusals(outcomes: list[object]) -> list[str]:
    return [each.code for each in outcomes if isinstance(each, UserError)]


def ask_for_rest(campaign: Campaign, grade: int, reason: str = "outside the pool") -> Job:
    by = campaign.created_by
    return decisions.request_rest(campaign=campaign, by=by, grade=grade, reason=reason)


@pytest.mark.slow
def test_the_rest_is_decided_with_one_grade_and_whoever_asks_for_another_is_told() -> None:
    campaign = factories.campaign(topics=1)
    factories.released_batch(campaign, "abc")
    ask_for_rest(campaign, 0)

    with pytest.raises(UserError) as refused:
        ask_for_rest(campaign, 2)
    assert ask_for_rest(campaign, 0).data["grade"] == 0
    factories.run_due_jobs()

    assert (refused.value.code, refused.value.status) == ("rest_under_way", 409)
    assert "grade 0" in refused.value.message
    assert set(Decision.objects.values_list("grade", flat=True)) == {0}
    factories.released_batch(campaign, "d")
    ask_for_rest(campaign, 2)
    factories.run_due_jobs()
    assert Decision.objects.get(pair__docno="d").grade == 2


@pytest.mark.slow
def test_of_eight_who_ask_at_once_for_different_grades_one_is_told_yes() -> None:
    campaign = factories.campaign(topics=1, grades=8)
    factories.released_batch(campaign, "abc")

    outcomes = at_once([lambda g=grade: ask_for_rest(campaign, g) for grade in range(8)])

    assert refusals(outcomes) == ["rest_under_way"] * 7
    (told,) = [each for each in outcomes if isinstance(each, Job)]
    factories.run_due_jobs()
    assert set(Decision.objects.values_list("grade", flat=True)) == {told.data["grade"]}
    assert AuditEntry.objects.get(action="ask for rest").data["grade"] == told.data["grade"]


def without_the_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two who do not wait for each other both look before either of them writes."""
    gate, record = threading.Barrier(2), audit.record

    def both_here(*args: Any, **kwargs: Any) -> None:
        gate.wait(20)
        record(*args, **kwargs)

    monkeypatch.setattr(campaigns, "lock", lambda _campaign: None)
    monkeypatch.setattr(audit, "record", both_here)


def test_rests_that_are_asked_for_without_the_lock_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if connection.vendor != "postgresql":
        return  # SQLite has one writer at a time, whatever is locked
    campaign = factories.campaign(topics=1)
    without_the_lock(monkeypatch)

    outcomes = at_once([lambda: ask_for_rest(campaign, 0), lambda: ask_for_rest(campaign, 2)])

    assert refusals(outcomes) == []


def test_removals_without_the_lock_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "postgresql":
        return
    campaign, (anna, ben) = two_organizers()
    without_the_lock(monkeypatch)

    at_once(
        [
            lambda: members.remove(membership=ben, by=anna.user),
            lambda: members.remove(membership=anna, by=ben.user),
        ]
    )

    assert not campaign.memberships.filter(role=ORGANIZER).exists()


def two_organizers() -> tuple[Campaign, list[Membership]]:
    campaign = factories.campaign()
    members.add(campaign=campaign, by=campaign.created_by, username="ben", role=ORGANIZER)
    return campaign, list(campaign.memberships.select_related("user", "campaign").order_by("pk"))


def test_two_organizers_who_remove_each_other_leave_one() -> None:
    campaign, (anna, ben) = two_organizers()

    outcomes = at_once(
        [
            lambda: members.remove(membership=ben, by=anna.user),
            lambda: members.remove(membership=anna, by=ben.user),
        ]
    )

    assert refusals(outcomes) == ["last_organizer"]
    assert campaign.memberships.filter(role=ORGANIZER).count() == 1
    assert AuditEntry.objects.filter(action="remove member").count() == 1


def test_a_membership_ends_once() -> None:
    _, (anna, ben) = two_organizers()

    outcomes = at_once([lambda: members.remove(membership=ben, by=anna.user)] * 2)

    assert refusals(outcomes) == ["not_a_member"]
    assert AuditEntry.objects.filter(action="remove member").count() == 1


def invite() -> tuple[User, str, str]:
    campaign = factories.campaign()
    (anna,) = factories.assessors(campaign, "anna")
    uid, token = members.invitation(anna, by=campaign.created_by) or ("", "")
    return anna, uid, token


@pytest.mark.slow
def test_an_invitation_accepted_eight_times_at_once_sets_one_password() -> None:
    anna, uid, token = invite()
    words = [f"correct horse {n} battery" for n in range(8)]

    outcomes = at_once(
        [lambda w=word: members.accept(uid=uid, token=token, password=w) for word in words]
    )

    assert refusals(outcomes) == ["invitation_invalid"] * 7
    anna.refresh_from_db()
    (chosen,) = [word for word, each in zip(words, outcomes, strict=True) if isinstance(each, User)]
    assert anna.check_password(chosen)
    assert AuditEntry.objects.filter(action="accept invitation").count() == 1


def accept_while_another_does() -> Other:
    """The second acceptance has looked at the link when the first one sets its password."""
    anna, uid, token = invite()
    with transaction.atomic():
        mine = User.objects.select_for_update().get(pk=anna.pk)
        second = Other(
            lambda: members.accept(uid=uid, token=token, password="the later words")
        ).until_it_waits()
        mine.set_password("the first words")
        mine.save(update_fields=["password"])
    return second


def test_the_link_is_looked_at_under_the_lock_of_its_account() -> None:
    with pytest.raises(UserError, match="used or is out of date"):
        accept_while_another_does().outcome()


def test_a_link_looked_at_without_the_lock_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "_locked", members.invited)

    if connection.vendor == "postgresql":
        assert isinstance(accept_while_another_does().outcome(), User)


@pytest.mark.parametrize("right", ["is_superuser", "is_staff", "is_organizer"])
def test_a_link_is_void_once_its_account_may_do_more(right: str) -> None:
    anna, uid, token = invite()
    User.objects.filter(pk=anna.pk).update(**{right: True})

    with pytest.raises(UserError) as refused:
        members.accept(uid=uid, token=token, password="correct horse battery")

    assert refused.value.code == "invitation_invalid"


@pytest.mark.parametrize("right", ["is_superuser", "is_staff"])
def test_nobody_hands_out_the_account_of_an_admin(right: str) -> None:
    anna, _, _ = invite()
    User.objects.filter(pk=anna.pk).update(**{right: True})
    anna.refresh_from_db()

    assert members.invitation(anna, by=anna.invited_by) is None
    assert members.invitation(anna, by=User.objects.create_superuser("root")) is None


@contextmanager
def before_it_is_prolonged(do: Callable[[], object]) -> Iterator[None]:
    """Somebody else does this after a lease was looked up and before it is prolonged."""
    due = [do]

    def between(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if due and sql.startswith('UPDATE "judging_assignment" SET "lease_until"'):
            Other(due.pop()).outcome()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(between):
        yield
    assert not due, "no lease was prolonged"


def test_a_lease_that_is_swept_at_this_moment_is_not_shown_as_held() -> None:
    campaign = factories.campaign(topics=1)
    anna, ben = factories.assessors(campaign, "anna", "ben")
    factories.released_batch(campaign, ["a"])
    held = assignments.claim_next(campaign=campaign, by=anna)
    assert held is not None
    Assignment.objects.update(lease_until=seconds_from_now(-1))

    with before_it_is_prolonged(lambda: factories.judge_next(campaign, ben, grade=3)):
        assert assignments.claim_next(campaign=campaign, by=anna) is None

    assert Assignment.objects.get(pk=held.pk).state == Assignment.State.LAPSED
    assert Judgment.objects.get().assessor == ben


def test_whoever_lost_a_lease_at_this_moment_gets_another_at_once() -> None:
    campaign = factories.campaign(topics=1)
    (anna,) = factories.assessors(campaign, "anna")
    factories.released_batch(campaign, ["a"])
    assignments.claim_next(campaign=campaign, by=anna)
    Assignment.objects.update(lease_until=seconds_from_now(-1))

    with before_it_is_prolonged(assignments.release_lapsed):
        held = assignments.claim_next(campaign=campaign, by=anna)

    assert held is not None
    live = Assignment.objects.filter(state=Assignment.State.LEASED, lease_until__gt=Now())
    assert live.get() == held
    assert Pair.objects.get().held == 1


def test_who_leaves_while_asking_for_a_pair_takes_none_along() -> None:
    """Nobody would give it back before the lease runs out."""
    campaign = factories.campaign(topics=1)
    (anna,) = factories.assessors(campaign, "anna")
    factories.released_batch(campaign, ["a"])
    factories.released_batch(campaign, ["b"])
    membership = Membership.objects.select_related("user", "campaign").get(user=anna)

    with transaction.atomic():
        members.remove(membership=membership, by=campaign.created_by)
        claim = Other(lambda: assignments.claim_next(campaign=campaign, by=anna)).until_it_waits()

    assert claim.outcome() is None
    assert not Assignment.objects.exists()
    assert list(campaign.batches.values_list("state", flat=True)) == ["waiting", "waiting"]
