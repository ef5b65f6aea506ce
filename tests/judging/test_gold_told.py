"""Gold in use is neither taught nor talked about, in whatever order the two are asked for."""

from collections.abc import Callable

import pytest

from judging import norming
from judging.errors import UserError
from judging.models import Campaign, GoldPair, NormingPair, NormingSession, TrainingPair
from judging.services import gold, training
from judging.services import norming as sessions
from tests.judging.test_norming import judge
from tests.support import factories, norms
from tests.support.races import at_once

KNOWN = "topic,docno,grade\nt1,a,2\n"
Act = Callable[[Campaign], object]


@pytest.fixture
def made() -> Campaign:
    return norms.campaign("anna", "ben")


def make_gold(made: Campaign) -> GoldPair:
    found, problems = gold.read(made, KNOWN, "gold.csv")
    (row,) = gold.add(campaign=made, by=made.created_by, found=found, problems=problems)
    return row


def teach(made: Campaign) -> object:
    found, problems = gold.read(made, KNOWN, "t.csv")
    return training.add(campaign=made, by=made.created_by, found=found, problems=problems)


def talk(made: Campaign) -> object:
    return norms.bring(made.norming_sessions.all()[0], KNOWN)


def told(act: Act, made: Campaign) -> list[str]:
    with pytest.raises(UserError) as refused:
        act(made)
    errors = refused.value.data["errors"]
    return [f"{each['line']} {each['field']}: {each['message']}" for each in errors]


@pytest.mark.django_db
@pytest.mark.parametrize("act", [teach, talk])
def test_gold_is_neither_taught_nor_talked_about_until_it_is_retired(
    made: Campaign, act: Act
) -> None:
    norms.session(made, lines="", begin=False)
    row = make_gold(made)
    assert told(act, made) == ["2 docno: this pair is gold: retire it first"]
    gold.retire(gold=row, by=made.created_by)
    act(made)
    assert TrainingPair.objects.count() + NormingPair.objects.count() == 1
    with pytest.raises(UserError, match="people know its grade") as refused:
        gold.restore(gold=row, by=made.created_by)
    assert (refused.value.code, refused.value.status) == ("gold_told", 409)
    row.refresh_from_db()
    assert row.retired is not None


@pytest.mark.django_db
@pytest.mark.parametrize("act", [teach, talk])
def test_what_people_are_told_of_becomes_no_gold(made: Campaign, act: Act) -> None:
    norms.session(made, lines="", begin=False)
    act(made)
    assert told(make_gold, made) == ["2 docno: this pair is in the training or a norming session"]
    assert not GoldPair.objects.exists()
    factories.released_batch(made, "a")
    pair = made.pairs.get(topic__topic_id="t1", docno="a")
    with pytest.raises(UserError):
        gold.mark(campaign=made, by=made.created_by, pair=pair, grades=[1], reason="")


@pytest.mark.django_db
def test_gold_is_not_offered_to_be_talked_about(made: Campaign) -> None:
    row = norms.session(made, lines="", begin=False)
    factories.released_batch(made, "b", labels=2)
    for name, grade in (("anna", 0), ("ben", 2)):
        judge(made, norms.named(name), "t1b", grade)
    assert [each.docno for each in norming.offered_judged(row)] == ["b"]
    other = make_gold_of(made, "t1,b,1")
    assert norming.offered_judged(row) == []
    gold.retire(gold=other, by=made.created_by)
    assert [each.docno for each in norming.offered_judged(row)] == ["b"]
    gold.restore(gold=other, by=made.created_by)
    assert norming.offered_judged(row) == []


def make_gold_of(made: Campaign, line: str) -> GoldPair:
    found, problems = gold.read(made, f"topic,docno,grade\n{line}\n", "gold.csv")
    (row,) = gold.add(campaign=made, by=made.created_by, found=found, problems=problems)
    return row


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("act", [teach, talk])
def test_of_both_at_once_one_is_refused(made: Campaign, act: Act) -> None:
    sessions.create(
        campaign=made, by=made.created_by, plan=sessions.SessionPlan("A talk"), people=()
    )
    outcomes = at_once([lambda: make_gold(made), lambda: act(made)])
    assert sum(isinstance(each, UserError) for each in outcomes) == 1
    assert NormingSession.objects.count() == 1
    assert GoldPair.objects.count() + TrainingPair.objects.count() + norm_pairs() == 1


def norm_pairs() -> int:
    return NormingPair.objects.count()
