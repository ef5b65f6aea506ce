"""Norming while several people, or one person in many tabs, act at the same moment."""

from collections.abc import Callable
from threading import Barrier

import pytest
from django.db import transaction
from django.db.models import QuerySet

from judging import norming
from judging.errors import UserError
from judging.models import (
    AuditEntry,
    NormingAnswer,
    NormingComment,
    NormingPerson,
    NormingSession,
    User,
)
from judging.services import norming as services
from tests.support import norms
from tests.support.races import Other, at_once

pytestmark = pytest.mark.django_db(transaction=True)
State = NormingSession.State


def answering(row: NormingSession, user: User, pair: int, grade: int) -> Callable[[], object]:
    return lambda: services.answer(session=row, by=user, pair=pair, grade=grade)


def begun(*names: str) -> tuple[NormingSession, list[User], int]:
    """A session of one pair."""
    made = norms.campaign(*names)
    row = norms.session(made, lines="topic,docno\nt1,a\n")
    users = [User.objects.get(username=name) for name in names]
    return row, users, row.pairs.get().pk


@pytest.mark.slow
def test_of_eight_answers_of_one_person_at_once_one_is_stored() -> None:
    row, (anna, _), pair = begun("anna", "ben")
    outcomes = at_once([answering(row, anna, pair, n % 4) for n in range(8)])
    stored = NormingAnswer.objects.get()
    assert [(said.pk, said.grade) for said in outcomes] == [(stored.pk, stored.grade)] * 8


@pytest.mark.slow
def test_the_last_answers_of_several_people_at_once_begin_the_discussion_once() -> None:
    row, users, pair = begun("anna", "ben", "cara", "dora")
    outcomes = at_once([answering(row, user, pair, 1) for user in users])
    assert not [each for each in outcomes if isinstance(each, Exception)]
    row.refresh_from_db()
    assert row.state == State.DISCUSSION
    assert AuditEntry.objects.filter(action="discuss norming").count() == 1


@pytest.mark.slow
def test_an_answer_that_comes_as_the_discussion_begins_is_blind_or_refused() -> None:
    """Whoever has waited for the session finds that people talk by now."""
    row, (anna, ben), pair = begun("anna", "ben")
    services.answer(session=row, by=anna, pair=pair, grade=0)
    with transaction.atomic():
        NormingSession.objects.select_for_update().get(pk=row.pk)
        late = Other(answering(row, ben, pair, 3)).until_it_waits()
        services.discuss(session=row, by=row.created_by)
    with pytest.raises(UserError) as refused:
        late.outcome()
    assert refused.value.code == "wrong_state"
    assert NormingAnswer.objects.count() == 1


@pytest.mark.postgres_only
def test_a_service_that_does_not_lock_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two last answers look whether all have answered before either is there for the other.

    SQLite has one writer at a time.
    """

    def unlocked(session: NormingSession, *allowed: State) -> NormingSession:
        return NormingSession.objects.select_related("campaign").get(pk=session.pk)

    monkeypatch.setattr(services, "_locked", unlocked)
    row, (anna, ben), pair = begun("anna", "ben")
    gate, look = Barrier(2), norming.waits_for

    def both_looked(session: NormingSession) -> QuerySet[NormingPerson]:
        """A query looks when it is asked, so that it is asked before they meet."""
        waiting = [each.pk for each in look(session)]
        gate.wait(20)
        return NormingPerson.objects.filter(pk__in=waiting)

    monkeypatch.setattr(norming, "waits_for", both_looked)
    at_once([answering(row, anna, pair, 1), answering(row, ben, pair, 2)])
    row.refresh_from_db()
    assert row.state == State.JUDGING, "nobody found that all have answered"


@pytest.mark.slow
def test_a_comment_that_is_sent_eight_times_at_once_is_one() -> None:
    row, (anna, ben), pair = begun("anna", "ben")
    norms.answers(row, {anna: [0], ben: [1]})
    said = {"session": row, "by": anna, "pair": pair, "text": "So.", "key": "k"}
    outcomes = at_once([lambda: services.comment(**said, organizes=False)] * 8)  # type: ignore[arg-type]
    assert {each.pk for each in outcomes} == {NormingComment.objects.get().pk}


@pytest.mark.slow
def test_a_session_is_begun_discussed_and_closed_once() -> None:
    made = norms.campaign("anna", "ben")
    row = norms.session(made, begin=False)
    by = made.created_by
    for act in (services.begin, services.discuss, services.close):
        outcomes = at_once([lambda a=act: a(session=row, by=by)] * 4)
        codes = [each.code for each in outcomes if isinstance(each, UserError)]
        assert codes == ["wrong_state"] * 3, act
        if act is services.begin:
            pair = row.pairs.all()[0].pk
            services.answer(session=row, by=row.people.all()[0].user, pair=pair, grade=0)


def test_deleting_and_answering_at_once_leaves_all_or_nothing() -> None:
    row, (anna, _), pair = begun("anna", "ben")
    delete, answer = at_once([
        lambda: services.delete(session=row, by=row.created_by), answering(row, anna, pair, 1)
    ])  # fmt: skip
    if delete is None:
        assert isinstance(answer, UserError)
        assert answer.code == "gone"
        assert not NormingSession.objects.exists()
    else:
        assert delete.code == "norming_answered"
        assert NormingAnswer.objects.count() == 1
