"""What is told of a norming session: nothing while it is blind, and then who is how far apart."""

import csv
import io
from collections.abc import Callable

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from estimation.core.labels.alpha import alpha_of, coincidences
from judging import norming
from judging.errors import UserError
from judging.formats.csvfile import csv_lines
from judging.models import Campaign, NormingComment, NormingPerson, NormingSession, User
from judging.norm_scores import agreement, distances
from judging.services import norming as services
from tests.support import norms
from tests.support.norms import comment, named, talk

pytestmark = pytest.mark.django_db


@pytest.fixture
def made() -> Campaign:
    return norms.campaign("anna", "ben")


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_file_has_every_answer_and_no_formula(made: Campaign) -> None:
    row = talk(made, (0, 1, 2), (3, 1, 2))
    services.revise(session=row, by=named("anna"), pair=row.pairs.all()[0].pk, grade=3)
    comment(row, named("anna"), "=1+1")
    lines = "".join(csv_lines(norming.EXPORTED, norming.exported(row)))
    rows = list(csv.DictReader(io.StringIO(lines)))
    assert len(rows) == 6
    (first,) = [r for r in rows if (r["topic"], r["docno"], r["assessor"]) == ("t1", "a", "anna")]
    assert (first["first"], first["revised"], first["comments"]) == ("0", "3", "1")
    assert first["revised_at"] > first["first_at"] > "2"


@pytest.mark.slow
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


@pytest.mark.slow
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
