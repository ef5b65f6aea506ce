"""Work that is excluded: stored, shown, offered again, counted nowhere until it is taken back."""

import threading
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import Count, OuterRef, Q, Subquery

from judging import cards, selectors
from judging.errors import UserError
from judging.models import (
    Assignment,
    AuditEntry,
    Batch,
    Campaign,
    Decision,
    Exclusion,
    Judgment,
    Pair,
    User,
)
from judging.selectors import labels
from judging.services import assignments, decisions, desk, exclusions, judgments, members
from tests.support import factories
from tests.support.races import Other, at_once

pytestmark = pytest.mark.django_db(transaction=True)


def campaign_of(*docnos: str, wanted: int = 1) -> tuple[Campaign, User, User]:
    made = factories.campaign(topics=1)
    factories.released_batch(made, docnos or "abcd", labels=wanted)
    anna, ben = factories.assessors(made, "anna", "ben")
    made.refresh_from_db()
    return made, anna, ben


def judge_all(made: Campaign, by: User, grade: int = 1, most: int = 99) -> int:
    count = 0
    while count < most and factories.judge_next(made, by, grade):
        count += 1
    return count


def exclude(made: Campaign, user: User, ground: str = "time") -> Exclusion:
    by = made.created_by
    return exclusions.exclude(campaign=made, assessor=user, by=by, ground=ground, reason="too fast")


def take_back(row: Exclusion) -> int:
    return exclusions.take_back(exclusion=row, by=row.decided_by, reason="a mistake")


def given(made: Campaign) -> list[tuple[int, str, int]]:
    return sorted((row.pair, row.assessor, row.grade) for row in labels(made.pairs.values("pk")))


def counters(made: Campaign) -> None:
    """What pairs, batches and assignments tell is what there is."""
    said = Judgment.objects.filter(assignment=OuterRef("pk")).order_by("-revision")
    for row in Assignment.objects.annotate(said=Subquery(said.values("grade")[:1])):
        assert row.grade == row.said, row
    state = Assignment.State
    rows = made.pairs.annotate(
        j=Count("assignments", filter=Q(assignments__state=state.JUDGED)),
        h=Count("assignments", filter=Q(assignments__state__in=[state.JUDGED, state.LEASED])),
    )
    for pair in rows:
        assert (pair.judged, pair.held) == (pair.j, pair.h), pair
    for batch in made.batches.filter(state__in=["open", "complete"]):
        lacking = batch.batch_pairs.filter(pair__decided=False)
        left = sum(each.pair.judged < each.labels for each in lacking.select_related("pair"))
        assert batch.remaining == left
        assert (batch.state == "complete") == (left == 0)


@pytest.mark.slow
def test_excluded_work_is_stored_and_counts_nowhere() -> None:
    made, anna, ben = campaign_of()
    judge_all(made, anna, most=3)
    factories.judge_next(made, ben, 2)
    before = set(Judgment.objects.values_list("pk", flat=True))
    assert made.batches.get().state == "complete"
    row = exclude(made, anna)
    assert {who for _, who, _ in given(made)} == {"ben"}
    assert set(Judgment.objects.values_list("pk", flat=True)) == before
    shown = selectors.given_judgments().filter(assessor=anna).select_related("assignment")
    assert [each.is_excluded for each in shown] == [True] * 3
    assert made.batches.get().state == "open"
    assert AuditEntry.objects.get(action="exclude work").data["judgments"] == 3
    assert row.ended is None
    counters(made)


@pytest.mark.slow
def test_freed_places_are_offered_to_others_and_complete_the_batch_again() -> None:
    made, anna, ben = campaign_of()
    judge_all(made, anna)
    exclude(made, anna)
    assert judge_all(made, ben, 2) == 4
    assert made.batches.get().state == "complete"
    assert {who for _, who, _ in given(made)} == {"ben"}
    counters(made)


@pytest.mark.slow
def test_the_excluded_are_handed_nothing_and_are_told_why() -> None:
    made, anna, _ = campaign_of()
    judge_all(made, anna, most=1)
    exclude(made, anna)
    assert assignments.claim_next(campaign=made, by=anna) is None
    pair = made.pairs.order_by("-pk")[0]
    assert assignments.claim(pair=pair, by=anna) is None
    assert selectors.own_progress(made, anna).judged == 1, "their work is still theirs"
    assert len(selectors.own_judgments(made, anna)) == 1
    assert [card.judged for card in cards.home(anna)] == [1]


@pytest.mark.slow
def test_what_is_in_hand_is_stored_and_set_aside() -> None:
    made, anna, _ = campaign_of()
    held = assignments.claim_next(campaign=made, by=anna)
    assert held is not None
    row = exclude(made, anna)
    saying = judgments.Saying(grade=2, key="late")
    recorded, following = desk.judge(assignment=held, by=anna, saying=saying)
    assert recorded.created
    assert not recorded.counts
    assert following is None, "and nothing new is handed out with it"
    assert given(made) == []
    again = judgments.record(assignment=held, by=anna, saying=saying)
    assert not again.created
    assert again.judgment.pk == recorded.judgment.pk
    counters(made)
    take_back(row)
    assert [grade for _, _, grade in given(made)] == [2]
    counters(made)


@pytest.mark.slow
def test_corrections_of_the_excluded_are_kept_beside_what_counts() -> None:
    made, anna, _ = campaign_of("a")
    judge_all(made, anna)
    row = exclude(made, anna)
    held = Assignment.objects.get(assessor=anna)
    saying = judgments.Saying(grade=3, key="second thoughts")
    judgments.correct(assignment=held, by=anna, saying=saying, revision=1)
    assert given(made) == []
    counters(made)
    with pytest.raises(UserError) as refused:
        judgments.correct(
            assignment=held, by=anna, saying=judgments.Saying(grade=0, key="old"), revision=1
        )
    assert refused.value.code == "superseded"
    take_back(row)
    assert [grade for _, _, grade in given(made)] == [3]


@pytest.mark.slow
def test_taking_back_brings_everything_back() -> None:
    made, anna, ben = campaign_of(wanted=2)
    judge_all(made, anna, 2)
    judge_all(made, ben, 1, most=2)
    skipped = assignments.claim_next(campaign=made, by=ben)
    assert skipped is not None
    assignments.skip(assignment=skipped, by=ben, reason="no text")
    columns = ("pk", "state", "revision", "set_aside")
    rows = Assignment.objects.order_by("pk").values_list(*columns)
    before, labels_before = list(rows), given(made)
    row = exclude(made, ben)
    assert given(made) != labels_before
    assert take_back(row) == 2
    assert list(rows.all()) == before
    assert given(made) == labels_before
    counters(made)
    row.refresh_from_db()
    assert (row.ended_by, row.ended_reason) == (made.created_by, "a mistake")
    with pytest.raises(UserError) as refused:
        take_back(row)
    assert refused.value.code == "taken_back"


@pytest.mark.slow
def test_both_count_where_somebody_judged_in_their_place_meanwhile() -> None:
    made, anna, ben = campaign_of("a")
    judge_all(made, anna, 2)
    row = exclude(made, anna)
    judge_all(made, ben, 1)
    take_back(row)
    assert [(who, grade) for _, who, grade in given(made)] == [("anna", 2), ("ben", 1)]
    counters(made)


@pytest.mark.slow
def test_a_decision_that_rested_on_excluded_judgments_does_not_hold() -> None:
    made, anna, _ben = campaign_of("a", wanted=2)
    judge_all(made, anna)
    pair = made.pairs.get()
    decisions.decide(pair=pair, by=made.created_by, grade=None, reason="enough")
    assert made.batches.get().state == "complete"
    row = exclude(made, anna)
    assert made.batches.get().state == "open", "a drawn pair without a label is not complete"
    assert not selectors.decisions(made).exists()
    counters(made)
    take_back(row)
    assert made.batches.get().state == "complete"
    assert selectors.decisions(made).count() == 1
    row = exclude(made, anna)
    decisions.decide(pair=pair, by=made.created_by, grade=3, reason="nobody can")
    assert [grade for _, _, grade in given(made)] == [3]
    take_back(row)
    assert [(who, grade) for _, who, grade in given(made)] == [("anna", 1)]
    assert not Decision.objects.filter(kind="grade").exists()


def test_who_cannot_be_excluded() -> None:
    made, anna, _ = campaign_of()
    stranger = factories.user("stranger")

    def refused(user: User, **values: str) -> str:
        chosen: dict[str, Any] = {"ground": "time", "reason": "r"} | values
        with pytest.raises(UserError) as error:
            exclusions.exclude(campaign=made, assessor=user, by=made.created_by, **chosen)
        return error.value.code

    assert refused(stranger) == "no_assessor"
    assert refused(anna, ground="mood") == "ground_unknown"
    assert refused(anna, reason=" ") == "reason_missing"
    exclude(made, anna)
    assert refused(anna) == "excluded_already"
    assert Exclusion.objects.count() == 1


@pytest.mark.slow
def test_somebody_who_left_can_be_excluded_and_comes_back_excluded() -> None:
    made, anna, _ = campaign_of()
    judge_all(made, anna, most=2)
    members.remove(membership=made.memberships.get(user=anna), by=made.created_by)
    exclude(made, anna)
    assert given(made) == []
    factories.assessors(made, "anna")
    assert assignments.claim_next(campaign=made, by=anna) is None


@pytest.mark.slow
@pytest.mark.parametrize("first", ["save", "exclusion"])
def test_whoever_is_excluded_while_they_save_is_stored_and_does_not_count(first: str) -> None:
    """The one that comes second waits for the other; what was acknowledged is there either way."""
    made, anna, _ = campaign_of()
    held = assignments.claim_next(campaign=made, by=anna)
    assert held is not None
    saying = judgments.Saying(grade=2, key="now")

    def save() -> Any:
        return desk.judge(assignment=held, by=anna, saying=saying)

    def leave_out() -> Any:
        return exclude(made, anna)

    one, two = (save, leave_out) if first == "save" else (leave_out, save)
    with transaction.atomic():
        one()
        other = Other(two).until_it_waits()
    other.outcome()

    assert Judgment.objects.filter(key="now").count() == 1
    assert given(made) == []
    assert not Assignment.objects.filter(assessor=anna).exclude(state="excluded").exists()
    counters(made)


def test_twin_that_locks_nothing_lets_a_label_through(monkeypatch: pytest.MonkeyPatch) -> None:
    if connection.vendor != "postgresql":
        return  # SQLite has one writer at a time, whatever is locked
    made, anna, _ = campaign_of()
    held = assignments.claim_next(campaign=made, by=anna)
    assert held is not None
    everything = Assignment.objects.filter(assessor=anna, pair__campaign=made)
    monkeypatch.setattr(exclusions, "_locked", lambda *_: everything.filter(state="judged"))
    with transaction.atomic():
        judgments.record(assignment=held, by=anna, saying=judgments.Saying(grade=2, key="now"))
        other = Other(lambda: exclude(made, anna)).until_it_waits()
        other._thread.join(1)
    other.outcome()
    assert given(made) != []


def test_work_that_is_taken_back_while_a_grade_is_saved_is_not_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The place is of excluded work when it is first asked for, and no more when that is asked."""
    made, anna, _ = campaign_of("a")
    held = assignments.claim_next(campaign=made, by=anna)
    assert held is not None
    row, replayed = exclude(made, anna), judgments._replayed

    def taken_back_meanwhile(*asked: Any) -> judgments.Recorded | None:
        if Exclusion.objects.filter(pk=row.pk, ended=None).exists():
            take_back(row)
        return replayed(*asked)

    monkeypatch.setattr(judgments, "_replayed", taken_back_meanwhile)
    saying = judgments.Saying(grade=1, key="once")
    assert judgments.record(assignment=held, by=anna, saying=saying).counts
    assert [(who, grade) for _, who, grade in given(made)] == [("anna", 1)]
    counters(made)
    with pytest.raises(UserError, match="already"):
        judgments.record(assignment=held, by=anna, saying=judgments.Saying(grade=1, key="twice"))


@pytest.mark.slow
def test_the_overlap_stays_exact_while_people_are_excluded_and_taken_back() -> None:
    """Six people judge pairs that want two labels each; two are excluded and one is taken back."""
    made = factories.campaign(topics=2)
    for _ in range(2):
        factories.released_batch(made, [f"d{n}" for n in range(8)], labels=2)
    factories.released_batch(made, [f"e{n}" for n in range(6)], labels=2)
    made.refresh_from_db()
    people = factories.assessors(made, *(f"p{n}" for n in range(6)))
    stored: list[str] = []
    guard = threading.Lock()

    def work(user: User) -> None:
        held = assignments.claim_next(campaign=made, by=user)
        while held is not None:
            saying = judgments.Saying(grade=user.pk % 4, key=f"{user.pk}-{held.pk}")
            recorded, sheet = desk.judge(assignment=held, by=user, saying=saying)
            with guard:
                stored.append(recorded.judgment.key)
            held = sheet.assignment if sheet else None

    def leave_out_two() -> None:
        exclude(made, people[0])
        row = exclude(made, people[1])
        take_back(row)

    outcomes = at_once([*(lambda u=user: work(u) for user in people), leave_out_two])
    assert outcomes == [None] * 7, outcomes
    for user in people[1:]:
        work(user)

    assert set(stored) == set(Judgment.objects.values_list("key", flat=True))
    assert len(stored) == len(set(stored))
    counters(made)
    assert {who for _, who, _ in given(made)} <= {user.username for user in people[1:]}
    over = made.pairs.filter(judged__gt=2)
    assert all(pair.assignments.filter(assessor=people[1]).exists() for pair in over)
    assert not Batch.objects.exclude(state="complete").exists()
    assert not Pair.objects.filter(judged__lt=2).exists()
