"""People who try to be somebody else, to know what is gold, or to look as if they had read."""

import itertools
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import F
from django.test import Client
from django.utils import timezone

from judging import golds, guests, selectors
from judging.conduct import LEAST_TIMES
from judging.manners import PAUSE, manners
from judging.models import Campaign, CrowdGuest, CrowdLink, Document, Judgment, User
from judging.person import look_at
from judging.services import (
    assignments,
    decisions,
    desk,
    exclusions,
    gold,
    judgments,
    training,
)
from judging.services.judgments import Saying
from judging.services.training import TrainingPlan
from tests.judging.test_crowd_links import (
    QUESTION,
    account,
    campaign_of,
    enter,
    link_of,
    refusal,
    visitor,
)
from tests.judging.test_crowd_pages import address, agree, guest_of, text
from tests.judging.test_crowd_payments import due
from tests.support import factories, norms

pytestmark = pytest.mark.django_db


# Who comes again as somebody else


def test_without_the_id_in_the_address_a_browser_is_who_it_was() -> None:
    """By the address alone nobody gets a second try at the question, or a second account."""
    link = link_of(campaign_of(), **QUESTION)
    out, anna = Client(), Client()
    agree(out, link, "No", PROLIFIC_PID="p1")
    agree(anna, link, "Yes", PROLIFIC_PID="p2")
    first = guest_of(anna)

    assert "another one" in text(out.get(address(link)))
    assert "another one" in text(agree(out, link, "Yes"))
    agree(anna, link, "Yes")

    assert "_auth_user_id" not in out.session
    assert guest_of(anna) == first
    anna.post("/sign-out/")
    assert first.account.username in text(anna.get(address(link)))
    assert CrowdGuest.objects.count() == 2
    link.refresh_from_db()
    assert link.people == 1


def test_who_is_out_by_their_device_is_out_under_any_id_from_it() -> None:
    link = link_of(campaign_of(), **QUESTION)
    enter(link, "", "No", device="one")

    assert refusal(enter, link, "p1", "Yes", device="one") == ("out_already", 409)
    assert enter(link, "p1", "Yes", device="two").account is not None


def test_who_was_excluded_is_out_by_another_link_without_their_id_too() -> None:
    made = campaign_of()
    first, second = link_of(made), link_of(made, name="second wave")
    guest = enter(first, "p1", device="one")
    factories.judge_next(made, account(guest), 1)
    exclusions.exclude(
        campaign=made, assessor=account(guest), by=made.created_by, ground="identity", reason="x"
    )

    assert refusal(enter, second, "", device="one") == ("out_already", 409)
    assert enter(second, "p2", device="one").account is not None  # people share devices


def test_a_parameter_of_spaces_is_no_id() -> None:
    assert visitor(PROLIFIC_PID=" ", workerId="w1").participant == "w1"


@pytest.mark.parametrize("placeholder", ["{{%PROLIFIC_PID%}}", "${workerId}"])
def test_what_the_platform_has_not_filled_in_is_nobody(placeholder: str) -> None:
    """Else all who open the address as it was copied would be one guest."""
    assert refusal(visitor, placeholder) == ("participant_invalid", 400)
    link = link_of(campaign_of())
    answer = Client().get(address(link), {"PROLIFIC_PID": placeholder})
    assert answer.status_code == 400
    assert "it was not filled in" in text(answer)
    assert "Open the link from the platform" in text(answer)


# Who would know what is gold


def with_gold(made: Campaign, docnos: list[str]) -> Campaign:
    """As often as it comes at most, in its only topic."""
    upload = made.uploads.get()
    Document.objects.bulk_create(
        Document(campaign=made, upload=upload, docno=docno, title=docno, text="Some text.")
        for docno in docnos
    )
    lines = "\n".join(["topic,docno,grade", *(f"t1,{docno},1" for docno in docnos)])
    found, problems = gold.read(made, lines, "gold.csv")
    gold.add(campaign=made, by=made.created_by, found=found, problems=problems)
    gold.mix(campaign=made, by=made.created_by, every=3)
    made.refresh_from_db()
    return made


def kinds_of_all(made: Campaign, by: User, *, fast: bool) -> list[tuple[bool, bool]]:
    """Whether each pair was gold, and a preference, in their order; by either way to the next."""
    found = []
    held = assignments.claim_next(campaign=made, by=by)
    while held is not None:
        found.append((held.gold, bool(held.pair.other)))
        held.pair.campaign = made
        saying = Saying(1, f"k{held.pk}")
        if fast:
            _, sheet = desk.judge(assignment=held, by=by, saying=saying)
            held = sheet.assignment if sheet else None
        else:
            judgments.record(assignment=held, by=by, saying=saying)
            held = assignments.claim_next(campaign=made, by=by)
    return found


@pytest.mark.parametrize("fast", [True, False])
def test_among_preferences_there_is_no_gold_which_is_a_single_document(
    fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where two documents are compared, one that is graded alone would be known for gold."""
    monkeypatch.setattr(golds, "is_due", lambda *_, **__: True)
    made = factories.campaign(topics=1)
    letters = "abcdefgh"
    factories.preference_batch(made, itertools.pairwise(letters))
    (anna,) = factories.assessors(made, "anna")

    found = kinds_of_all(with_gold(made, ["g1", "g2", "g3"]), anna, fast=fast)

    assert found == [(False, True)] * 7


@pytest.mark.parametrize("fast", [True, False])
def test_where_both_kinds_are_judged_gold_comes_in_the_place_of_a_single_document(
    fast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golds, "is_due", lambda *_, **__: True)
    made = factories.campaign(topics=1)
    factories.preference_batch(made, [("a", "b"), ("b", "c"), ("c", "d")])
    factories.released_batch(made, ["e", "f", "h"])
    (anna,) = factories.assessors(made, "anna")

    found = kinds_of_all(with_gold(made, ["g1", "g2"]), anna, fast=fast)

    assert sorted(found) == [(False, False)] * 3 + [(False, True)] * 3 + [(True, False)] * 2
    after = [found[n + 1] for n, kind in enumerate(found) if kind == (True, False)]
    assert set(after) <= {(True, False), (False, False)}


# Who would look as if they had read


def clicked_through(made: Campaign, by: User, *, corrected_after: float | None) -> None:
    """Everything within seconds, and corrected at once, without a word of how long that took."""
    at = timezone.now() - timedelta(days=1)
    while held := assignments.claim_next(campaign=made, by=by):
        said = judgments.record(
            assignment=held, by=by, saying=Saying(1, f"k{held.pk}", seconds=9.0)
        )
        at = _moved(said.judgment, at + timedelta(seconds=0.3))
        held.refresh_from_db()
        if corrected_after is not None:
            again = Saying(2, f"c{held.pk}")
            said = judgments.correct(assignment=held, by=by, saying=again, revision=1)
            at = _moved(said.judgment, at + timedelta(seconds=corrected_after))


def _moved(said: Judgment, at: Any) -> Any:
    Judgment.objects.filter(pk=said.pk).update(created=at)
    return at


def long_texts(labels: int = 2) -> tuple[Campaign, list[User]]:
    made = factories.campaign(topics=1)
    docnos = [f"d{n:02}" for n in range(2 * LEAST_TIMES)]
    factories.released_batch(made, docnos, labels=labels)
    made.refresh_from_db()
    upload = made.uploads.get()
    Document.objects.bulk_create(
        Document(campaign=made, upload=upload, docno=docno, title=docno, text="x" * 3000)
        for docno in docnos
    )
    return made, factories.assessors(made, "anna", "ben")


@pytest.mark.slow
def test_correcting_at_once_hides_no_haste() -> None:
    """A pair was read for as long as all that was said of it took."""
    made, (anna, ben) = long_texts()
    clicked_through(made, anna, corrected_after=0.3)
    clicked_through(made, ben, corrected_after=30.0)

    found = manners(made)

    assert found[anna.pk].is_hasty
    assert found[anna.pk].quick == found[anna.pk].timed - 1, "of the first only what was told"
    assert (found[ben.pk].timed, found[ben.pk].quick) == (2 * LEAST_TIMES, 0)
    for user in (anna, ben):
        shown = look_at(made, user)
        assert (shown.timed, shown.quick_count) == (found[user.pk].timed, found[user.pk].quick)


def test_whoever_comes_back_to_a_pair_after_a_pause_may_have_read_it() -> None:
    made, (anna, _) = long_texts()
    clicked_through(made, anna, corrected_after=PAUSE + 1)
    assert manners(made)[anna.pk].timed == 0
    assert not look_at(made, anna).tells_haste


# Who was out and would go on


def taught(*, tries: int) -> Campaign:
    """With a training of one pair that new people must pass, and pairs to judge."""
    made = norms.campaign()
    factories.released_batch(made, "abcd", labels=2)
    lines = "topic,docno,grade,reason\nt1,a,3,because\n"
    found, problems = gold.read(made, lines, "training.csv")
    training.add(campaign=made, by=made.created_by, found=found, problems=problems)
    ask(made, obligatory=True, tries=tries)
    made.refresh_from_db()
    return made


def ask(made: Campaign, *, obligatory: bool, tries: int) -> None:
    plan = TrainingPlan(obligatory=obligatory, threshold=1.0, tries=tries)
    training.set_plan(campaign=made, by=made.created_by, plan=plan)


def fail(made: Campaign, user: User) -> None:
    training.begin(campaign=made, by=user)
    pair = made.training_pairs.get().pk
    training.answer(campaign=made, by=user, pair=pair, grade=0)


def test_who_failed_the_training_stays_out_whatever_is_asked_of_others_later() -> None:
    """Their place is somebody else's by then, and they were told the code of who is out."""
    made = taught(tries=1)
    link = link_of(made, most_people=1)
    out = account(enter(link, "p1"))
    fail(made, out)
    assert CrowdGuest.objects.get(account=out).is_out
    waits = account(enter(link, "p2"))

    ask(made, obligatory=True, tries=2)
    assert refusal(training.begin, campaign=made, by=out) == ("training_over", 409)
    ask(made, obligatory=False, tries=2)

    assert assignments.claim_next(campaign=made, by=waits) is not None
    assert assignments.claim_next(campaign=made, by=out) is None
    membership = made.memberships.get(user=out)
    admit = {"membership": membership, "by": made.created_by}
    assert refusal(training.admit, **admit) == ("link_full", 409)
    CrowdLink.objects.update(most_people=2)
    training.admit(**admit)
    assert assignments.claim_next(campaign=made, by=out) is not None


# Organizers who exclude and take back


def test_who_is_excluded_is_due_what_they_were_due_before() -> None:
    """Also for the time of what they skipped."""
    made = campaign_of("abcdefgh")
    link = link_of(made, judgments=5, per_hour=Decimal(60))
    guest = enter(link, "p1")
    CrowdGuest.objects.update(agreed=F("agreed") - timedelta(minutes=20))
    factories.judge_next(made, account(guest), 1)
    Judgment.objects.update(created=F("created") - timedelta(minutes=15))
    held = assignments.claim_next(campaign=made, by=account(guest))
    assert held is not None
    assignments.skip(assignment=held, by=account(guest), reason="cannot")
    before = due(link).rows[0]
    assert (before.skipped, before.minutes, before.pay) == (1, Decimal(15), Decimal(15))

    by, ground = made.created_by, "identity"
    exclusions.exclude(
        campaign=made, assessor=account(guest), by=by, ground=ground, reason="a robot"
    )

    after = due(link).rows[0]
    assert after.excluded
    assert (after.skipped, after.minutes, after.pay) == (1, Decimal(15), Decimal(15))
    assert guests.progress(account(guest)) == guests.GuestProgress(
        1, 5, 1, link.token, None, "PROLIFIC_PID=p1"
    )
    assert selectors.own_progress(made, account(guest)).skipped == 1


def test_what_was_to_be_asked_again_is_so_after_an_exclusion_is_taken_back() -> None:
    made = campaign_of("a", labels=1)
    (anna,) = factories.assessors(made, "anna")
    held = assignments.claim_next(campaign=made, by=anna)
    assert held is not None
    assignments.skip(assignment=held, by=anna, reason="cannot")
    decisions.ask_again(pair=made.pairs.get(), by=made.created_by)

    row = exclusions.exclude(
        campaign=made, assessor=anna, by=made.created_by, ground="identity", reason="a robot"
    )
    exclusions.take_back(exclusion=row, by=made.created_by, reason="no robot")

    assert assignments.claim_next(campaign=made, by=anna) is not None
