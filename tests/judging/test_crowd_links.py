"""Crowd links: who comes in, how many, how much each judges, and that codes are given once."""

import threading
from dataclasses import replace
from typing import Any

import pytest
from django.db.models import F
from django.db.models.functions import Now

from judging import guests, selectors
from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import (
    Assignment,
    AuditEntry,
    Campaign,
    CrowdGuest,
    CrowdLink,
    Judgment,
    Membership,
    SignInTries,
    User,
)
from judging.services import (
    assignments,
    crowd_links,
    deletion,
    desk,
    entering,
    exclusions,
    judgments,
    members,
    rights,
)
from judging.services.crowd_links import LinkPlan
from tests.support import factories
from tests.support.races import at_once

pytestmark = pytest.mark.django_db(transaction=True)
PLAN = LinkPlan(name="Prolific, first wave", most_people=3, judgments=2, consent="I take part.")
QUESTION = {
    "question": "Do you read English every day?",
    "answers": [{"text": "Yes", "out": False}, {"text": "No", "out": True}],
}


def campaign_of(docnos: str = "abcdef", labels: int = 2) -> Campaign:
    made = factories.campaign(topics=1)
    factories.released_batch(made, docnos, labels=labels)
    made.refresh_from_db()
    return made


def link_of(made: Campaign, **values: Any) -> CrowdLink:
    return crowd_links.make(campaign=made, by=made.created_by, plan=replace(PLAN, **values))


def visitor(participant: str = "", device: str = "", **more: str) -> entering.Visitor:
    given = {"PROLIFIC_PID": participant} if participant else {}
    return entering.visitor((given | more).items(), device or f"device of {participant}")


def enter(link: CrowdLink, participant: str = "p1", answer: str = "", **more: str) -> CrowdGuest:
    now = CrowdLink.objects.select_related("campaign").get(pk=link.pk)
    who = visitor(participant, **more)
    return entering.enter(link=now, who=who, answer=answer, address="192.0.2.1")


def account(guest: CrowdGuest) -> User:
    assert guest.account is not None
    return guest.account


def refusal(work: Any, *args: Any, **kwargs: Any) -> tuple[str, int]:
    with pytest.raises(UserError) as refused:
        work(*args, **kwargs)
    return refused.value.code, refused.value.status


def taken(user: User) -> int:
    states = ["judged", "leased"]
    return Assignment.objects.filter(assessor=user, state__in=states).count()


def test_whoever_agrees_is_an_assessor_with_a_name_of_their_own() -> None:
    made = campaign_of()
    link = link_of(made)

    guest = enter(link, "p1", STUDY_ID="s9", SESSION_ID="x1")

    user = account(guest)
    assert user.is_guest
    assert user.username.startswith("guest-")
    assert not user.has_usable_password()
    assert list(user.memberships.values_list("campaign", "role")) == [(made.pk, "assessor")]
    assert guest.parameters == {"PROLIFIC_PID": "p1", "STUDY_ID": "s9", "SESSION_ID": "x1"}
    assert guest.submission == "x1"
    assert len(guest.consent) == 64
    assert guest.agreed is not None
    assert AuditEntry.objects.get(action="admit guest").actor == user
    link.refresh_from_db()
    assert link.people == 1


def test_the_same_person_comes_back_into_the_same_account() -> None:
    link = link_of(campaign_of())
    first = enter(link, "p1")

    assert enter(link, "p1", device="another one").pk == first.pk
    assert enter(link, "p2").pk != first.pk
    nameless = enter(link, "", device="a phone")
    assert enter(link, "", device="a phone").pk == nameless.pk
    assert CrowdGuest.objects.count() == User.objects.filter(is_guest=True).count() == 3
    assert refusal(enter, link, "p4") == ("link_full", 409)
    assert enter(link, "p1").pk == first.pk


def test_two_accounts_never_come_of_one_person_who_is_in_two_tabs() -> None:
    link = link_of(campaign_of())

    found = at_once([lambda: enter(link, "p1") for _ in range(6)])

    assert {guest.pk for guest in found} == {CrowdGuest.objects.get().pk}
    link.refresh_from_db()
    assert link.people == 1
    assert User.objects.filter(is_guest=True).count() == 1


def test_of_many_at_once_no_more_come_in_than_places() -> None:
    link = link_of(campaign_of(), most_people=3)

    found = at_once([lambda n=n: enter(link, f"p{n}") for n in range(9)])

    codes = [each.code for each in found if isinstance(each, UserError)]
    assert codes == ["link_full"] * 6
    link.refresh_from_db()
    assert link.people == CrowdGuest.objects.count() == 3
    assert User.objects.filter(is_guest=True).count() == 3


def test_nobody_new_comes_after_the_end_or_while_it_is_closed() -> None:
    made = campaign_of()
    link = link_of(made)
    guest = enter(link, "p1")
    crowd_links.close(link=link, by=made.created_by)

    assert refusal(enter, link, "p2") == ("link_closed", 410)
    assert enter(link, "p1").pk == guest.pk
    assert factories.judge_next(made, account(guest), 1)
    assert refusal(crowd_links.close, link=link, by=made.created_by) == ("wrong_state", 409)
    crowd_links.reopen(link=link, by=made.created_by)
    assert enter(link, "p2").pk != guest.pk
    assert refusal(crowd_links.reopen, link=link, by=made.created_by) == ("wrong_state", 409)
    CrowdLink.objects.update(expires=seconds_from_now(-1))
    assert refusal(enter, link, "p3") == ("link_expired", 410)
    CrowdLink.objects.update(expires=None)
    Campaign.objects.update(state="paused")
    assert refusal(enter, link, "p3") == ("campaign_not_open", 409)


def test_where_too_little_is_left_nobody_new_comes() -> None:
    made = campaign_of("abc", labels=1)
    link = link_of(made, least_left=3)
    assert guests.left_for_a_newcomer(made) == 3
    guest = enter(link, "p1")
    assert factories.judge_next(made, account(guest), 1)

    assert refusal(enter, link, "p2") == ("link_full", 409)


def test_an_answer_screens_out_and_cannot_be_taken_back() -> None:
    link = link_of(campaign_of(), out_code="OUT", **QUESTION)

    assert refusal(enter, link, "p1", "Perhaps") == ("answer_missing", 400)
    out = enter(link, "p1", "No")

    assert out.is_out
    assert out.told_code == "OUT"
    assert not entering.finish(guest=out)
    assert enter(link, "p1", "Yes").pk == out.pk
    assert not User.objects.filter(is_guest=True).exists()
    link.refresh_from_db()
    assert link.people == 0
    assert not enter(link, "p2", "Yes").is_out


def test_a_guest_judges_as_many_as_were_asked_for_and_no_more() -> None:
    made = campaign_of()
    guest = enter(link_of(made))
    user = account(guest)

    assert factories.judge_next(made, user, 1)
    assert not entering.finish(guest=guest)
    assert factories.judge_next(made, user, 1)

    assert assignments.claim_next(campaign=made, by=user) is None
    assert assignments.claim(pair=made.pairs.filter(judged=0)[0], by=user) is None
    assert selectors.empty_queue(made, user) == "enough"
    assert taken(user) == 2
    assert entering.finish(guest=guest)


def test_a_skipped_pair_does_not_count() -> None:
    made = campaign_of()
    user = account(enter(link_of(made)))
    held = assignments.claim_next(campaign=made, by=user)
    assert held is not None
    assignments.skip(assignment=held, by=user, reason="no text")

    assert factories.judge_next(made, user, 1)
    assert factories.judge_next(made, user, 1)
    assert factories.judge_next(made, user, 1) is None


def test_the_fast_way_stops_at_the_number_too() -> None:
    made = campaign_of()
    user = account(enter(link_of(made)))
    held = assignments.claim_next(campaign=made, by=user)
    for n in range(2):
        assert held is not None
        held.assessor, saying = user, judgments.Saying(1, f"k{n}")
        _, sheet = desk.judge(assignment=held, by=user, saying=saying)
        held = sheet.assignment if sheet else None

    assert held is None
    assert taken(user) == 2


def test_a_pair_whose_lease_had_run_out_does_not_come_on_top() -> None:
    made = campaign_of()
    user = account(enter(link_of(made, judgments=1)))
    late = assignments.claim_next(campaign=made, by=user)
    assert late is not None
    Assignment.objects.update(lease_until=seconds_from_now(-1))
    assignments.release_lapsed(made)
    factories.judge_next(made, user, 2)
    late.refresh_from_db()
    other = Assignment.objects.get(assessor=user, state="judged")
    if other.pk == late.pk:  # the same was handed out again
        other = Assignment.objects.create(
            campaign=made, pair=made.pairs.exclude(pk=late.pair_id)[0], assessor=user,
            lease_until=Now(), state="lapsed",
        )  # fmt: skip
        late = Assignment.objects.select_related("pair__campaign").get(pk=other.pk)

    saying = judgments.Saying(1, "late")
    found = refusal(judgments.record, assignment=late, by=user, saying=saying)

    assert found == ("enough", 409)
    assert Judgment.objects.count() == 1


def late_and_leased(made: Campaign, user: User) -> list[Assignment]:
    """Two pairs in two tabs, of which one lease has run out: both may be answered."""
    first = assignments.claim_next(campaign=made, by=user)
    assert first is not None
    Assignment.objects.filter(pk=first.pk).update(state="lapsed")
    first.pair.__class__.objects.filter(pk=first.pair_id).update(held=F("held") - 1)
    free = made.pairs.exclude(pk=first.pair_id)[0]
    second = assignments.claim(pair=free, by=user)
    assert second is not None
    rows = Assignment.objects.select_related("pair__campaign", "pair__topic")
    return [rows.get(pk=first.pk), rows.get(pk=second.pk)]


def record(assignment: Assignment, user: User) -> Any:
    saying = judgments.Saying(1, f"k{assignment.pk}")
    return judgments.record(assignment=assignment, by=user, saying=saying)


def test_two_tabs_at_once_do_not_go_beyond_the_number() -> None:
    made = campaign_of()
    user = account(enter(link_of(made, judgments=1)))
    both = late_and_leased(made, user)

    found = at_once([lambda each=each: record(each, user) for each in both])

    refused = [each.code for each in found if isinstance(each, UserError)]
    assert refused == ["enough"]
    assert Judgment.objects.count() == taken(user) == 1


def test_a_judgment_sent_again_is_answered_alike_at_the_number() -> None:
    made = campaign_of()
    user = account(enter(link_of(made, judgments=1)))
    held = assignments.claim_next(campaign=made, by=user)
    assert held is not None

    first, second = record(held, user), record(held, user)

    assert first.judgment.pk == second.judgment.pk
    assert not second.created


def test_codes_are_given_once_and_told_again() -> None:
    made = campaign_of()
    each, one = link_of(made, code_kind="each", judgments=1), link_of(made, code="C0DE")
    guest, other = enter(each), enter(each, "p2")
    for user in (account(guest), account(other)):
        assert factories.judge_next(made, user, 1)
    assert guest.told_code == ""

    same = [CrowdGuest.objects.select_related("link__campaign", "account").get(pk=guest.pk)
            for _ in range(4)]  # fmt: skip
    at_once([lambda row=row: entering.finish(guest=row) for row in same])
    entering.finish(guest=other)

    codes = {row.told_code for row in same}
    assert len(codes) == 1
    assert codes != {other.told_code}
    assert len(codes.pop()) == crowd_links.CODE_SIGNS
    assert AuditEntry.objects.filter(action="finish guest").count() == 2
    third = enter(one)
    for _ in range(2):
        factories.judge_next(made, account(third), 1)
    assert entering.finish(guest=third)
    assert third.told_code == "C0DE"


def test_who_finds_nothing_left_is_done_if_they_have_judged() -> None:
    made = campaign_of("ab", labels=1)
    link = link_of(made, judgments=9)
    busy, late = enter(link, "p1"), enter(link, "p2")
    while factories.judge_next(made, account(busy), 1):
        pass

    assert entering.finish(guest=busy)
    assert not entering.finish(guest=late)


def test_who_skips_everything_is_not_done() -> None:
    made = campaign_of("abc", labels=1)
    guest = enter(link_of(made, judgments=9))
    assert factories.judge_next(made, account(guest), 1)
    while held := assignments.claim_next(campaign=made, by=account(guest)):
        assignments.skip(assignment=held, by=account(guest), reason="x")

    assert not entering.finish(guest=guest)


def test_a_guest_account_never_may_do_more() -> None:
    made = campaign_of()
    guest = enter(link_of(made))
    user, other = account(guest), factories.campaign(slug="other")
    admin = User.objects.create_superuser("admin")

    add = {"campaign": other, "by": other.created_by, "username": user.username}
    assert refusal(members.add, **add, role="organizer") == ("is_guest", 409)
    assert members.invitation(user, by=admin) is None
    more = rights.Rights(creates=True, admin=False, active=True)
    assert refusal(rights.change, user=user, by=admin, rights=more) == ("is_guest", 409)
    assert refusal(members.create_token, user=user, name="k") == ("is_guest", 409)
    User.objects.filter(pk=user.pk).update(is_superuser=True)
    assert refusal(enter, guest.link) == ("guest_barred", 403)


def test_guests_are_excluded_and_deleted_like_others() -> None:
    made = campaign_of("ab", labels=1)
    guest = enter(link_of(made))
    by = made.created_by
    assert factories.judge_next(made, account(guest), 1)
    exclusions.exclude(
        campaign=made, assessor=account(guest), by=by, ground="identity", reason="twice"
    )
    assert assignments.claim_next(campaign=made, by=account(guest)) is None
    assert made.pairs.filter(judged=0).count() == 2

    Campaign.objects.update(state="closed")
    deletion.request(campaign=made, by=by, name=made.name)
    factories.run_due_jobs()

    assert not CrowdLink.objects.exists()
    assert not CrowdGuest.objects.exists()
    assert not Campaign.objects.filter(pk=made.pk).exists()


def test_parameters_are_few_short_and_plain() -> None:
    many = {f"n{n}": "v" for n in range(50)}
    odd = {"a": "x" * 201, "b" * 41: "x", "c": "nul\x00", "d": "<script>"}
    who = visitor("p1", **odd, **many)

    assert len(who.parameters) == entering.MOST_PARAMETERS
    assert "a" not in who.parameters
    assert "c" not in who.parameters
    assert who.parameters["d"] == "<script>"
    assert refusal(visitor, "p" * 101) == ("participant_invalid", 400)
    assert refusal(visitor, "p\x00") == ("participant_invalid", 400)
    assert visitor(assignmentId="ASSIGNMENT_ID_NOT_AVAILABLE", hitId="h").is_preview
    assert visitor(workerId="w", assignmentId="a").participant == "w"
    assert "device" not in visitor(device="my device").device


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", " "),
        ("name", "x" * 101),
        ("name", "a\nb"),
        ("name", "a\u202eb"),
        ("consent", ""),
        ("consent", "a\x00"),
        ("most_people", 0),
        ("judgments", 0),
        ("least_left", 0),
        ("per_hour", -1),
        ("currency", "usd"),
        ("code_kind", "none"),
        ("code", "has spaces"),
        ("question", "Without answers?"),
        ("return_address", "http://app.prolific.com/"),
        ("return_address", "javascript:alert(1)"),
        ("return_address", "https://a@b.org/"),
        ("return_address", "https://{code}.org/"),
        ("return_address", "https://a.org/{0.code}"),
        ("return_address", "https://a.org/\\x"),
        ("return_address", 'https://a.org/"'),
    ],
)
def test_what_a_link_cannot_be_made_of(name: str, value: Any) -> None:
    made = factories.campaign(topics=1)

    assert refusal(link_of, made, **{name: value}) == ("link_invalid", 400)
    assert not CrowdLink.objects.exists()


def test_a_question_needs_an_answer_that_lets_in() -> None:
    made = factories.campaign(topics=1)
    out = [{"text": text, "out": True} for text in ("Yes", "No")]

    assert refusal(link_of, made, question="Why?", answers=out) == ("link_invalid", 400)
    for text in ("Yes,\nof course", "Yes\u202e"):  # no browser sends a line break back as it was
        answers = [*out, {"text": text, "out": False}]
        assert refusal(link_of, made, question="Why?", answers=answers) == ("link_invalid", 400)
    assert refusal(link_of, made, answers=QUESTION["answers"]) == ("link_invalid", 400)


def test_the_way_back_has_the_code_in_it() -> None:
    address = "https://app.prolific.com/submissions/complete?cc={code}"
    link = link_of(factories.campaign(topics=1), return_address=address, code="C9")

    assert entering.way_back(link, "C9") == address.replace("{code}", "C9")
    assert entering.way_back(link, "") == ""


def test_one_address_makes_a_bounded_number_of_guests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entering, "GUESTS_PER_ADDRESS", 2)
    link = link_of(campaign_of())
    enter(link, "p1"), enter(link, "p2")

    assert refusal(enter, link, "p3") == ("too_many_tries", 429)
    assert SignInTries.objects.count() == 1
    assert Membership.objects.filter(user__is_guest=True).count() == 2


def test_rooms_that_are_looked_up_before_they_are_taken_are_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without the lock of the guest's row both tabs find room."""
    made = campaign_of()
    user = account(enter(link_of(made, judgments=1)))
    both = late_and_leased(made, user)
    Assignment.objects.update(state="lapsed")
    made.pairs.update(held=0)
    gate = threading.Barrier(2)

    def looked_up(user: User, *, beside: int | None = None) -> bool:
        return guests._has_room(user, beside, CrowdGuest.objects.all())

    def both_looked(each: Assignment) -> Any:
        assert looked_up(user, beside=each.pk)
        gate.wait(20)
        return record(each, user)

    monkeypatch.setattr(judgments, "has_room", lambda *_, **__: True)
    at_once([lambda each=each: both_looked(each) for each in both])

    assert taken(user) == 2


def test_who_was_done_early_is_handed_nothing_that_comes_later() -> None:
    made = campaign_of("a", labels=1)
    guest = enter(link_of(made, judgments=9))
    assert factories.judge_next(made, account(guest), 1)
    assert entering.finish(guest=guest)
    factories.released_batch(made, "bc")

    assert assignments.claim_next(campaign=made, by=account(guest)) is None
    assert selectors.empty_queue(made, account(guest)) == "enough"
