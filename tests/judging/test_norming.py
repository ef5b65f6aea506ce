"""Norming: judged alone, then discussed; nobody is told early, and nothing of it is a label."""

import csv
import io
from collections.abc import Callable

import pytest
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError, connection, transaction
from django.http import Http404
from django.test.utils import CaptureQueriesContext

from estimation.core.labels.alpha import alpha_of, coincidences
from judging import access, norming
from judging.errors import UserError
from judging.models import (
    AuditEntry,
    Campaign,
    Judgment,
    NormingAnswer,
    NormingComment,
    NormingPerson,
    NormingSession,
    Pair,
    User,
)
from judging.norm_scores import agreement, distances
from judging.services import deletion, gold, members, training
from judging.services import norming as services
from judging.services.norming import SessionPlan
from tests.support import factories, norms

pytestmark = pytest.mark.django_db
State = NormingSession.State


@pytest.fixture
def made() -> Campaign:
    return norms.campaign("anna", "ben")


def named(name: str) -> User:
    return User.objects.get(username=name)


def talk(
    made: Campaign, anna: tuple[int, ...], ben: tuple[int, ...], **plan: bool
) -> NormingSession:
    """A session in which both have answered all."""
    row = norms.session(made, **plan)
    norms.answers(row, {named("anna"): anna, named("ben"): ben})
    return row


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
    from judging.services import assignments, judgments

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


def comment(
    row: NormingSession, by: User, text: str, key: str = "k", **more: object
) -> NormingComment:
    asked = {"pair": row.pairs.all()[0].pk, "organizes": False, **more}
    return services.comment(session=row, by=by, text=text, key=key, **asked)  # type: ignore[arg-type]


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
def test_the_database_holds_state_and_times_together(
    made: Campaign, values: dict[str, object]
) -> None:
    talk(made, (0, 0, 0), (0, 0, 0))
    with pytest.raises(IntegrityError), transaction.atomic():
        NormingSession.objects.update(**values)


# ------------------------------------------------------------------------------- what is told


def looked_at(row: NormingSession) -> list[object]:
    """All that the selectors tell of what was said, to the organizer and to who takes part."""
    pairs = list(row.pairs.select_related("topic"))
    found: list[object] = [list(norming.by_spread(row)), list(norming.exported(row))]
    for seat in (norms.seat(row), norms.seat(row, named("anna"))):
        found += [each.said for each in norming.discussed(seat, pairs)]
        found.append(norming.findings(seat))
    found += [list(norming.thread(pair)) for pair in pairs]
    return [each for each in found if each]


def test_nobody_is_told_anything_while_it_is_blind(made: Campaign) -> None:
    row = norms.session(made, by_itself=False)
    norms.answers(row, {named("anna"): (0, 1, 2), named("ben"): (3, 1, 2)})
    assert looked_at(row) == []
    with pytest.raises(UserError, match="still judge alone"):
        norming.refuse_blind(row)
    services.discuss(session=row, by=made.created_by)
    row.refresh_from_db()
    assert len(looked_at(row)) == 10


def test_a_selector_that_forgets_the_blindness_is_caught(
    made: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = norms.session(made, by_itself=False)
    norms.answers(row, {named("anna"): (0, 1, 2)})
    monkeypatch.setattr(NormingSession, "is_blind", False)
    assert looked_at(row) != []


def test_pairs_come_by_their_spread_with_who_said_what(made: Campaign) -> None:
    row = talk(made, (0, 1, 2), (1, 1, 0))
    comment(row, named("ben"), "Because.")
    anna = norms.seat(row, named("anna"))
    found = norming.discussed(anna, norming.by_spread(row))
    assert [(each.spread, each.first) for each in found] == [(2, [0, 2]), (1, [0, 1]), (0, [1, 1])]
    assert [each.comments for each in found] == [0, 1, 0]
    assert found[0].own is not None
    assert found[0].own.grade == 2
    assert norming.beside(row, found[1].pair) == (found[0].pair.pk, found[2].pair.pk)
    assert norming.beside(row, found[0].pair)[0] is None
    assert norming.beside(row, found[2].pair)[1] is None


@pytest.mark.parametrize("shown", [False, True])
def test_names_are_numbers_to_others_unless_the_session_shows_them(
    made: Campaign, shown: bool
) -> None:
    row = talk(made, (0, 1, 2), (1, 1, 0), named=shown)
    comment(row, made.created_by, "Look at the title.", organizes=True)
    anna, ben = named("anna"), named("ben")
    number = row.people.get(user=ben).number
    called = norming.names(norms.seat(row, anna))
    assert called.of(anna.pk) == "You"
    assert called.of(ben.pk) == ("ben" if shown else f"Assessor {number}")
    told = norming.names(norms.seat(row)).of(ben.pk)
    assert told == ("ben" if shown else f"ben (Assessor {number})")
    (said,) = norming.comments_told(norms.seat(row, anna), NormingComment.objects.all())
    assert said.name == "Organizer"


def test_findings_tell_who_is_far_from_the_others_and_what_is_still_open() -> None:
    made = norms.campaign("anna", "ben", "cara")
    row = norms.session(made)
    norms.answers(
        row, {named("anna"): (0, 1, 2), named("ben"): (0, 1, 3), named("cara"): (3, 1, 3)}
    )
    one, _, three = row.pairs.all()
    services.revise(session=row, by=named("anna"), pair=three.pk, grade=3)
    found = norming.findings(norms.seat(row))
    assert found is not None
    assert (found.before.twos, found.before.equal, found.after.equal) == (9, 5, 7)
    assert (found.open_count, found.settled) == (1, 1)
    assert [each.pair for each in found.open] == [one]
    first = found.people[0]
    assert first.line.person.user == named("cara")
    assert first.before is not None
    assert (first.before.mean, first.before.above) == (1.0, 1.0)
    assert {each.line.person.user.username: each.revised for each in found.people} == {
        "anna": 1, "ben": 0, "cara": 0,
    }  # fmt: skip


GRADES = [
    [{1: 0, 2: 0, 3: 1}, {1: 2, 2: 3}, {1: 3, 2: 3, 3: 3, 4: 0}, {1: 1}, {}],
    [{1: 0, 2: 1}, {1: 1, 2: 0}],
    [{1: 0, 2: 20}, {1: 20, 2: 20, 3: 7}],
]


@pytest.mark.parametrize("said", GRADES)
def test_alpha_is_that_of_the_core(said: list[dict[int, int]]) -> None:
    import numpy as np

    counts = np.zeros((len(said), 21), dtype=np.int64)
    for row, grades in enumerate(said):
        for grade in grades.values():
            counts[row, grade] += 1
    expected = alpha_of(coincidences(counts), "ordinal")
    assert agreement(said).alpha == pytest.approx(expected, abs=1e-12)


def test_where_there_is_nothing_to_compare_no_number_is_told() -> None:
    for nothing in ([], [{}], [{1: 2}], [{1: 2}, {2: 3}]):
        found = agreement(nothing)
        assert (found.twos, found.share, found.alpha) == (0, None, None)
        assert distances(nothing) == {}
    alike = agreement([{1: 2, 2: 2}])
    assert (alike.share, alike.alpha) == (1.0, None)


def test_the_file_has_every_answer_and_no_formula(made: Campaign) -> None:
    from judging.formats.csvfile import csv_lines

    row = talk(made, (0, 1, 2), (3, 1, 2))
    services.revise(session=row, by=named("anna"), pair=row.pairs.all()[0].pk, grade=3)
    comment(row, named("anna"), "=1+1")
    lines = "".join(csv_lines(norming.EXPORTED, norming.exported(row)))
    rows = list(csv.DictReader(io.StringIO(lines)))
    assert len(rows) == 6
    (first,) = [r for r in rows if (r["topic"], r["docno"], r["assessor"]) == ("t1", "a", "anna")]
    assert (first["first"], first["revised"], first["comments"]) == ("0", "3", "1")
    assert first["revised_at"] > first["first_at"] > "2"


def test_so_many_statements_however_many_people_pairs_and_comments(made: Campaign) -> None:
    def counted(row: NormingSession, user: User) -> list[int]:
        seats = norms.seat(row), norms.seat(row, user)
        pair = row.pairs.all()[0]
        works: list[Callable[[], object]] = [
            lambda: list(norming.sessions(row.campaign)),
            lambda: norming.due(user),
            lambda: norming.people(row),
            lambda: norming.findings(seats[0]),
            lambda: norming.discussed(seats[1], norming.by_spread(row)[:20]),
            lambda: norming.comments_told(seats[1], norming.thread(pair)[:50]),
            lambda: norming.beside(row, pair),
            lambda: list(norming.exported(row)),
        ]
        found = []
        for work in works:
            with CaptureQueriesContext(connection) as captured:
                work()
            found.append(len(captured))
        return found

    few = talk(made, (0, 1, 2), (3, 1, 2))
    large = norms.campaign(*(f"p{n}" for n in range(8)), slug="large")
    people = list(User.objects.filter(username__startswith="p"))
    row = norms.session(large, lines="topic,docno\n" + "".join(
        f"{topic},{docno}\n" for topic in ("t1", "t2") for docno in "abcd"
    ))  # fmt: skip
    norms.answers(row, {user: [(n + k) % 4 for k in range(8)] for n, user in enumerate(people)})
    for n, user in enumerate(people):
        comment(row, user, f"said {n}")
    assert counted(row, people[0]) == counted(few, named("anna"))
    assert max(counted(row, people[0])) <= 7


def test_everybody_has_an_order_of_their_own_topic_by_topic() -> None:
    made = norms.campaign(*(f"p{n}" for n in range(12)))
    row = norms.session(made, lines="topic,docno\n" + "".join(
        f"{topic},{docno}\n" for topic in ("t1", "t2") for docno in "abcd"
    ))  # fmt: skip
    firsts = {norming.turn(person).pair for person in row.people.all()}
    assert len(firsts) > 2
    person = NormingPerson.objects.filter(session=row)[0]
    topics = []
    while (turn := norming.turn(person)).pair is not None:
        topics.append(turn.pair.topic_id)
        services.answer(session=row, by=person.user, pair=turn.pair.pk, grade=0)
    assert len(topics) == 8
    assert len({topics[n] for n in range(4)}) == 1


# ------------------------------------------------------------------------------- whose it is


def test_who_may_see_a_session(made: Campaign) -> None:
    row, anna, by = norms.session(made), named("anna"), made.created_by
    draft = norms.session(made, begin=False)
    (cara,) = factories.assessors(made, "cara")
    assert access.norming_seat(by, made.slug, row.pk).organizes
    assert access.norming_seat(anna, made.slug, row.pk).person is not None
    assert access.norming_part(anna, made.slug, row.pk).user == anna
    for who, pk in ((cara, row.pk), (anna, draft.pk), (anna, 0)):
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


def test_a_campaign_goes_with_its_sessions(made: Campaign) -> None:
    row = talk(made, (0, 1, 2), (3, 1, 2))
    comment(row, named("anna"), "So.")
    deletion.request(campaign=made, by=made.created_by, name=made.name)
    factories.run_due_jobs()
    assert not Campaign.objects.filter(pk=made.pk).exists()
    assert not NormingSession.objects.exists()
