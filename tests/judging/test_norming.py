"""Norming: judged alone, then discussed; nobody is told early, and nothing of it is a label."""

from collections.abc import Callable

import pytest
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, transaction
from django.http import Http404

from judging import access, norming
from judging.errors import UserError
from judging.models import (
    AuditEntry,
    Campaign,
    Judgment,
    NormingAnswer,
    NormingComment,
    NormingSession,
    Pair,
    User,
)
from judging.services import assignments, deletion, gold, judgments, members, training
from judging.services import norming as services
from judging.services.norming import SessionPlan
from tests.support import factories, norms
from tests.support.norms import comment, named, talk

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
State = NormingSession.State


@pytest.fixture
def made() -> Campaign:
    return norms.campaign("anna", "ben")


def refused(work: Callable[[], object]) -> tuple[str, int]:
    with pytest.raises(UserError) as error:
        work()
    return error.value.code, error.value.status


# ------------------------------------------------------------------------------- its states


def test_the_discussion_begins_by_itself_when_everybody_has_answered(made: Campaign) -> None:
    row = norms.session(made)
    anna, ben = named("anna"), named("ben")
    norms.answers(row, {anna: (0, 1, 2), ben: (0, 1)})
    assert row.state == State.JUDGING
    norms.answers(row, {ben: (0, 1, 3)})
    assert row.state == State.DISCUSSION
    assert AuditEntry.objects.get(action="discuss norming").actor == ben


def test_it_waits_for_the_organizer_where_it_shall(made: Campaign) -> None:
    row = norms.session(made, by_itself=False)
    by = made.created_by
    assert refused(lambda: services.discuss(session=row, by=by)) == ("norming_unanswered", 409)
    norms.answers(row, {named("anna"): (0, 1, 2), named("ben"): (0, 1, 2)})
    assert row.state == State.JUDGING
    assert refused(lambda: services.close(session=row, by=by)) == ("wrong_state", 409)
    services.discuss(session=row, by=by)
    services.close(session=row, by=by)
    row.refresh_from_db()
    assert row.state == State.CLOSED
    for act in (services.begin, services.discuss, services.close):
        assert refused(lambda a=act: a(session=row, by=by)) == ("wrong_state", 409)


def test_the_discussion_begins_when_the_last_who_was_waited_for_leaves(made: Campaign) -> None:
    row, waits = norms.session(made), norms.session(made, by_itself=False)
    for each in (row, waits):
        norms.answers(each, {named("anna"): (0, 1, 2)})
    ben = made.memberships.get(user__username="ben")
    members.remove(membership=ben, by=made.created_by)
    row.refresh_from_db()
    waits.refresh_from_db()
    assert (row.state, waits.state) == (State.DISCUSSION, State.JUDGING)
    assert AuditEntry.objects.get(action="discuss norming").actor == made.created_by


def test_who_left_is_not_waited_for(made: Campaign) -> None:
    row = norms.session(made)
    ben = made.memberships.get(user__username="ben")
    members.remove(membership=ben, by=made.created_by)
    norms.answers(row, {named("anna"): (0, 1, 2)})
    assert row.state == State.DISCUSSION


def test_a_session_goes_while_nobody_has_answered(made: Campaign) -> None:
    by = made.created_by
    draft, begun, answered = (
        norms.session(made, begin=False),
        norms.session(made),
        norms.session(made),
    )
    norms.answers(answered, {named("anna"): (1,)})
    for row in (draft, begun):
        services.delete(session=row, by=by)
    assert refused(lambda: services.delete(session=answered, by=by)) == ("norming_answered", 409)
    assert NormingSession.objects.get() == answered
    assert refused(lambda: services.begin(session=begun, by=by)) == ("gone", 404)


def test_it_begins_with_pairs_and_with_people_who_can_differ(made: Campaign) -> None:
    by = made.created_by
    empty = norms.session(made, lines="", begin=False)
    with pytest.raises(UserError, match="Add pairs first"):
        services.begin(session=empty, by=by)
    norms.bring(empty)
    services.set_people(session=empty, by=by, people=[named("anna")])
    with pytest.raises(UserError, match="two people"):
        services.begin(session=empty, by=by)


def test_pairs_stay_once_it_has_begun(made: Campaign) -> None:
    row = norms.session(made)
    pair = row.pairs.all()[0]
    assert refused(lambda: services.remove(pair=pair, by=made.created_by)) == ("wrong_state", 409)
    assert refused(lambda: norms.bring(row, "topic,docno\nt2,c\n")) == ("wrong_state", 409)


# ------------------------------------------------------------------------------- pairs and people


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("topic,docno\nt1,c\nt1,a\n", [(3, "docno")]),
        ("topic,docno\nt9,c\nt1,z\n", [(2, "topic"), (3, "docno")]),
        ("topic,docno\nt1,c\nt1,c\n", [(3, "docno")]),
        ("topic,grade\nt1,1\n", [(1, "docno")]),
        ("topic,docno,grade\nt1,c,9\n", [(2, "grade")]),
        ('{"topic": "t1"}\n', [(1, "docno")]),
        ("", [(None, "")]),
    ],
)
def test_what_is_wrong_with_a_file_is_told_and_nothing_is_added(
    made: Campaign, lines: str, told: list[tuple[int | None, str]]
) -> None:
    row = norms.session(made, begin=False)
    with pytest.raises(UserError) as error:
        norms.bring(row, lines)
    assert error.value.code == "norming_invalid"
    assert [(each["line"], each["field"]) for each in error.value.data["errors"]] == told
    assert row.pairs.count() == 3


def test_a_file_of_gold_will_do_and_so_will_json_lines(made: Campaign) -> None:
    row = norms.session(made, lines="", begin=False)
    norms.bring(row, "topic,docno,grade,reason\nt1,a,2|3,Look.\nt1,b,,\n")
    norms.bring(row, '{"topic": "t2", "docno": "a"}\n{"topic": "t2", "docno": "b", "grade": 1}\n')
    assert row.pairs.count() == 4


def test_no_more_pairs_than_people_can_talk_about(
    made: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "MOST_PAIRS", 3)
    row = norms.session(made, begin=False)
    with pytest.raises(UserError, match="1 problem"):
        norms.bring(row, "topic,docno\nt2,d\n")


@pytest.mark.slow
@pytest.mark.on_both
def test_pairs_are_taken_over_from_training_and_from_judgments(made: Campaign) -> None:
    found, problems = gold.read(made, "topic,docno,grade\nt1,d,2\n", "t.csv")
    training.add(campaign=made, by=made.created_by, found=found, problems=problems)
    factories.released_batch(made, "ab", labels=2)
    for user, grades in ((named("anna"), (0, 0, 0, 0)), (named("ben"), (0, 3, 1, 0))):
        for docno, grade in zip(("t1a", "t1b", "t2a", "t2b"), grades, strict=True):
            judge(made, user, docno, grade)
    row = norms.session(made, lines="topic,docno\nt2,a\n", begin=False)
    (taught,), judged = norming.offered_training(row), norming.offered_judged(row)
    assert [(each.topic_id, each.docno, each.grades) for each in judged] == [("t1", "b", [0, 3])]

    made_of = services.take(
        session=row, by=made.created_by, training=[taught.pk], judged=[judged[0].pk]
    )

    assert {(pair.topic.topic_id, pair.docno) for pair in made_of} == {("t1", "d"), ("t1", "b")}
    assert (norming.offered_training(row), norming.offered_judged(row)) == ([], [])
    again = {"training": [taught.pk], "judged": []}
    with pytest.raises(UserError, match="not in the session yet"):
        services.take(session=row, by=made.created_by, **again)
    other = norms.campaign(slug="other")
    foreign = services.create(campaign=other, by=other.created_by, plan=SessionPlan("x"))
    with pytest.raises(UserError, match="Choose pairs"):
        services.take(session=foreign, by=other.created_by, **again)


def judge(made: Campaign, user: User, which: str, grade: int) -> None:
    pair = Pair.objects.get(campaign=made, topic__topic_id=which[:2], docno=which[2:])
    held = assignments.claim(pair=pair, by=user)
    assert held is not None
    judgments.record(assignment=held, by=user, saying=judgments.Saying(grade, which))


def test_assessors_are_asked_and_neither_guests_nor_organizers(made: Campaign) -> None:
    (guest,) = factories.assessors(made, "guest-1")
    User.objects.filter(pk=guest.pk).update(is_guest=True)
    row = norms.session(made, begin=False)
    assert {each.user.username for each in row.people.all()} == {"anna", "ben"}
    for nobody in (guest, made.created_by):
        with pytest.raises(UserError, match="crowd link"):
            services.set_people(session=row, by=made.created_by, people=[nobody])


@pytest.mark.on_both
def test_people_come_and_go_until_it_is_discussed_and_who_has_answered_stays(
    made: Campaign,
) -> None:
    row, by = norms.session(made), made.created_by
    anna, ben = named("anna"), named("ben")
    norms.answers(row, {anna: (1, 1, 1)})
    (cara,) = factories.assessors(made, "cara")
    with pytest.raises(UserError, match="anna has answered already"):
        services.set_people(session=row, by=by, people=[ben, cara])
    assert set(row.people.values_list("user", flat=True)) == {anna.pk, ben.pk}
    numbers = dict(row.people.values_list("user", "number"))
    services.set_people(session=row, by=by, people=[anna, ben, cara])
    assert row.people.get(user=cara).number == 3
    assert row.people.get(user=anna).number == numbers[anna.pk]
    services.set_people(session=row, by=by, people=[anna, cara])
    norms.answers(row, {cara: (1, 1, 1)})
    assert row.state == State.DISCUSSION
    assert refused(lambda: services.set_people(session=row, by=by, people=[])) == (
        "wrong_state", 409
    )  # fmt: skip


@pytest.mark.slow
def test_numbers_tell_nothing_of_names_or_of_who_came_first() -> None:
    made = norms.campaign(*(f"p{n:02}" for n in range(20)))
    orders = set()
    for _ in range(4):
        row = norms.session(made, begin=False)
        orders.add(tuple(row.people.order_by("number").values_list("user", flat=True)))
    assert len(orders) == 4


# ------------------------------------------------------------------------------- what is said


def test_the_first_answer_is_the_one_and_none_is_taken_once_people_talk(made: Campaign) -> None:
    row, anna = norms.session(made, by_itself=False), named("anna")
    one, two, _ = row.pairs.all()
    first = services.answer(session=row, by=anna, pair=one.pk, grade=0)
    again = services.answer(session=row, by=anna, pair=one.pk, grade=3)
    assert (again.pk, again.grade) == (first.pk, 0)
    services.discuss(session=row, by=made.created_by)
    late = services.answer(session=row, by=anna, pair=one.pk, grade=3)
    assert late.grade == 0, "sent again, it is what was stored"
    assert refused(lambda: services.answer(session=row, by=anna, pair=two.pk, grade=1)) == (
        "wrong_state", 409
    )  # fmt: skip
    assert refused(lambda: services.revise(session=row, by=anna, pair=two.pk, grade=1)) == (
        "no_answer", 409
    )  # fmt: skip


def test_what_is_no_answer_is_refused(made: Campaign) -> None:
    row, anna = norms.session(made), named("anna")
    pair = row.pairs.all()[0].pk
    (cara,) = factories.assessors(made, "cara")
    for grade in (-1, 4):
        said = {"session": row, "by": anna, "pair": pair, "grade": grade}
        assert refused(lambda s=said: services.answer(**s)) == ("grade_invalid", 400)
    assert refused(lambda: services.answer(session=row, by=cara, pair=pair, grade=1)) == (
        "no_part", 403
    )  # fmt: skip
    assert refused(lambda: services.answer(session=row, by=anna, pair=0, grade=1)) == ("gone", 404)
    draft = norms.session(made, begin=False)
    inner = draft.pairs.all()[0].pk
    assert refused(lambda: services.answer(session=draft, by=anna, pair=inner, grade=1)) == (
        "wrong_state", 409
    )  # fmt: skip


@pytest.mark.on_both
def test_a_revision_stands_beside_the_first_grade_and_can_be_taken_back(made: Campaign) -> None:
    row, anna = talk(made, (0, 1, 2), (3, 1, 2)), named("anna")
    pair = row.pairs.all()[0].pk
    said = services.revise(session=row, by=anna, pair=pair, grade=2)
    assert (said.grade, said.revised, said.now) == (0, 2, 2)
    assert said.revised_at is not None
    said = services.revise(session=row, by=anna, pair=pair, grade=0)
    assert (said.grade, said.revised, said.revised_at) == (0, None, None)
    told = AuditEntry.objects.filter(action="revise norming").order_by("pk")
    assert [(row.data["before"], row.data["after"]) for row in told] == [(0, 2), (2, 0)]
    services.close(session=row, by=made.created_by)
    assert refused(lambda: services.revise(session=row, by=anna, pair=pair, grade=3)) == (
        "wrong_state", 409
    )  # fmt: skip


@pytest.mark.slow
def test_comments_are_text_of_some_length_and_one_each_however_often_sent(
    made: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    row, anna = talk(made, (0, 1, 2), (3, 1, 2)), named("anna")
    assert comment(row, anna, "<b>Why?</b>\r\nSo.").text == "<b>Why?</b>\nSo."
    assert comment(row, anna, "Something else", "k").text == "<b>Why?</b>\nSo."
    assert comment(row, made.created_by, "I see.", organizes=True).author == made.created_by
    assert NormingComment.objects.count() == 2
    for wrong in ("", "  \n", "x" * 2001, "\0"):
        assert refused(lambda w=wrong: comment(row, anna, w, "n")) == ("comment_invalid", 400)
    assert refused(lambda: comment(row, anna, "x", "k" * 65)) == ("comment_invalid", 400)
    (cara,) = factories.assessors(made, "cara")
    assert refused(lambda: comment(row, cara, "I?")) == ("no_part", 403)
    monkeypatch.setattr(services, "MOST_COMMENTS", 2)
    assert refused(lambda: comment(row, anna, "More", "n")) == ("comment_limit", 409)
    services.close(session=row, by=made.created_by)
    assert refused(lambda: comment(row, anna, "Late", "n")) == ("wrong_state", 409)


def test_nothing_that_is_said_is_a_label(made: Campaign) -> None:
    factories.released_batch(made, "ab")
    before = list(Pair.every.order_by("pk").values())
    row = talk(made, (0, 1, 2), (3, 1, 2))
    services.revise(session=row, by=named("anna"), pair=row.pairs.all()[0].pk, grade=3)
    assert list(Pair.every.order_by("pk").values()) == before
    assert Judgment.objects.count() == 0


@pytest.mark.parametrize(
    "values",
    [
        {"revised": 1, "revised_at": None},
        {"revised": 0, "revised_at": "2026-01-01T00:00Z"},
        {"revised": None, "revised_at": "2026-01-01T00:00Z"},
        {"grade": 21},
    ],
)
@pytest.mark.on_both
def test_the_database_refuses_answers_that_cannot_be(
    made: Campaign, values: dict[str, object]
) -> None:
    talk(made, (0, 0, 0), (0, 0, 0))
    with pytest.raises(IntegrityError), transaction.atomic():
        NormingAnswer.objects.update(**values)


@pytest.mark.parametrize(
    "values",
    [{"state": "judging"}, {"state": "closed"}, {"state": "discussion", "discussed": None}],
)
@pytest.mark.on_both
def test_the_database_holds_state_and_times_together(
    made: Campaign, values: dict[str, object]
) -> None:
    talk(made, (0, 0, 0), (0, 0, 0))
    with pytest.raises(IntegrityError), transaction.atomic():
        NormingSession.objects.update(**values)


# ------------------------------------------------------------------------------- whose it is


def test_who_may_see_a_session(made: Campaign) -> None:
    row, anna, by = norms.session(made), named("anna"), made.created_by
    draft = norms.session(made, begin=False)
    (cara,) = factories.assessors(made, "cara")
    assert access.norming_seat(by, made.slug, row.pk).organizes
    assert access.norming_seat(anna, made.slug, row.pk).person is not None
    assert access.norming_part(anna, made.slug, row.pk).user == anna
    for who, pk in ((cara, row.pk), (anna, draft.pk), (anna, 0), (anna, 2**70)):
        with pytest.raises(Http404):
            access.norming_seat(who, made.slug, pk)
        with pytest.raises(Http404):
            access.norming_part(who, made.slug, pk)
    with pytest.raises(PermissionDenied):
        access.norming_part(by, made.slug, row.pk)
    other = norms.campaign(slug="other")
    with pytest.raises(Http404):
        access.norming_seat(other.created_by, other.slug, row.pk)
    members.remove(membership=made.memberships.get(user=anna), by=by)
    with pytest.raises(Http404):
        access.norming_seat(anna, made.slug, row.pk)


@pytest.mark.slow
@pytest.mark.on_both
def test_a_campaign_goes_with_its_sessions(made: Campaign) -> None:
    row = talk(made, (0, 1, 2), (3, 1, 2))
    comment(row, named("anna"), "So.")
    deletion.request(campaign=made, by=made.created_by, name=made.name)
    factories.run_due_jobs()
    assert not Campaign.objects.filter(pk=made.pk).exists()
    assert not NormingSession.objects.exists()
