"""Senior grades: beside what assessors said, or in its place; nothing that was said is lost."""

import itertools
from typing import Any

import numpy as np
import pytest
from django.db import IntegrityError, transaction
from django.db.models import F
from django.test import Client

from judging import selectors
from judging.errors import UserError
from judging.labels import LabelColumns, PlacedPairs, label_columns
from judging.models import AuditEntry, Campaign, Decision, Judgment, Pair, SeniorGrade, User
from judging.queue import APART, queue
from judging.services import campaigns, decisions, exclusions, seniors
from tests.support import factories, rest
from tests.support.pages import address, text
from tests.support.races import at_once

database = pytest.mark.django_db
committed = pytest.mark.django_db(transaction=True)


def judged(*docnos: str, rule: str = "supersede") -> tuple[Campaign, User, User]:
    """Anna says 0 and Ben says 3 of every document, with the campaign's rule for senior grades."""
    made = factories.campaign(topics=1)
    factories.released_batch(made, docnos or "ab", labels=2)
    anna, ben = factories.assessors(made, "anna", "ben")
    for person, grade in ((anna, 0), (ben, 3)):
        while factories.judge_next(made, person, grade):
            pass
    campaigns.amend(campaign=made, by=made.created_by, chosen={"senior_grades": rule})
    made.refresh_from_db()
    return made, anna, ben


def pair_of(made: Campaign, docno: str) -> Pair:
    return made.pairs.select_related("campaign", "topic").get(docno=docno)


def give(made: Campaign, docno: str, grade: int, reason: str = "read twice") -> SeniorGrade:
    pair = pair_of(made, docno)
    return seniors.give(pair=pair, by=made.created_by, grade=grade, reason=reason)


def labels(made: Campaign) -> list[tuple[str, str, int, bool]]:
    """By both ways in which they are read, which say the same."""
    docnos = dict(made.pairs.values_list("pk", "docno"))
    rows = selectors.labels(made.pairs.values("pk"))
    found = sorted((docnos[row.pair], row.assessor, row.grade, row.decided) for row in rows)
    columns = label_columns(PlacedPairs.of(made.pairs.annotate(pair_id=F("pk")), "pair_id"))
    counting = columns.counting()
    told = zip(
        counting.places[0].tolist(), counting.assessor.tolist(), counting.grade.tolist(),
        counting.decided.tolist(), strict=True,
    )  # fmt: skip
    assert sorted((docnos[p], counting.names[a], g, d) for p, a, g, d in told) == found
    return found


OF_TWO = [("anna", 0, False), ("ben", 3, False)]


@pytest.mark.slow
@database
def test_it_is_the_only_label_of_its_pair_or_stands_beside() -> None:
    made, _, _ = judged()
    give(made, "a", 2)
    b = [("b", *each) for each in OF_TWO]
    assert labels(made) == [("a", "", 2, True), *b]
    campaigns.amend(campaign=made, by=made.created_by, chosen={"senior_grades": "beside"})
    assert labels(made) == [*(("a", *each) for each in OF_TWO), *b]
    campaigns.amend(campaign=made, by=made.created_by, chosen={"senior_grades": "supersede"})
    row = SeniorGrade.objects.get()
    seniors.take_back(senior=row, by=made.created_by, reason="a slip")
    assert labels(made) == [*(("a", *each) for each in OF_TWO), *b]
    assert Judgment.objects.count() == 4


@database
def test_without_senior_grades_a_round_counts_what_people_said_and_keeps_it_apart() -> None:
    made, _, _ = judged()
    drawn = made.pairs.annotate(pair_id=F("pk"))
    assert label_columns(PlacedPairs.of(drawn, "pair_id")).without_seniors() is None
    before = label_columns(PlacedPairs.of(drawn, "pair_id"))
    give(made, "a", 2)
    after = label_columns(PlacedPairs.of(drawn, "pair_id"))
    of_people = after.without_seniors()
    assert of_people is not None
    for one, two in zip(rows_of(before), rows_of(of_people), strict=True):
        assert one == two
    assert after.superseded.sum() == 2


def rows_of(columns: LabelColumns) -> list[Any]:
    told = (*columns.places, columns.assessor, columns.grade, columns.decided)
    return sorted(zip(*(each.tolist() for each in told), strict=True))


@database
def test_another_one_ends_the_first_and_the_same_one_is_stored_once() -> None:
    made, _, _ = judged()
    first = give(made, "a", 2)
    assert give(made, "a", 2).pk == first.pk
    second = give(made, "a", 1, "a third look")
    first.refresh_from_db()
    assert (first.counts, first.ended_by) == (False, made.created_by)
    assert first.ended is not None
    assert labels(made)[0] == ("a", "", 1, True)
    kinds = AuditEntry.objects.filter(action="give senior grade")
    assert [entry.data["grade"] for entry in kinds.order_by("pk")] == [2, 1]
    seniors.take_back(senior=second, by=made.created_by, reason="a slip")
    for row in (first, second):
        with pytest.raises(UserError, match="already") as refused:
            seniors.take_back(senior=row, by=made.created_by, reason="again")
        assert (refused.value.code, refused.value.status) == ("taken_back", 409)


@database
@pytest.mark.parametrize(
    ("grade", "reason", "code"),
    [(4, "r", "grade_out_of_scale"), (-1, "r", "grade_out_of_scale"), (1, "  ", "reason_missing")],
)
def test_what_is_refused_changes_nothing(grade: int, reason: str, code: str) -> None:
    made, _, _ = judged()
    with pytest.raises(UserError) as refused:
        give(made, "a", grade, reason)
    assert refused.value.code == code
    assert not SeniorGrade.objects.exists()
    assert not AuditEntry.objects.filter(action="give senior grade").exists()


@database
def test_a_pair_that_nobody_judged_is_decided_and_gets_no_senior_grade() -> None:
    made, anna, ben = judged("a")
    for person in (anna, ben):
        exclusions.exclude(
            campaign=made, assessor=person, by=made.created_by, ground="time", reason="r"
        )
    with pytest.raises(UserError) as refused:
        give(made, "a", 1)
    assert (refused.value.code, refused.value.status) == ("not_judged", 409)


@pytest.mark.slow
@database
def test_exclusions_leave_it_the_only_label_and_a_decision_beside_it_counts_not_twice() -> None:
    made, anna, ben = judged("a")
    give(made, "a", 2)
    rows = [
        exclusions.exclude(
            campaign=made, assessor=person, by=made.created_by, ground="time", reason="r"
        )
        for person in (anna, ben)
    ]
    assert labels(made) == [("a", "", 2, True)]
    decisions.decide(pair=pair_of(made, "a"), by=made.created_by, grade=0, reason="nobody left")
    assert Decision.objects.get().grade == 0
    assert labels(made) == [("a", "", 2, True)]
    for row in rows:
        exclusions.take_back(exclusion=row, by=made.created_by, reason="r")
    assert labels(made) == [("a", "", 2, True)]
    seniors.take_back(senior=SeniorGrade.objects.get(), by=made.created_by, reason="r")
    assert labels(made) == [("a", *each) for each in OF_TWO]


@pytest.mark.slow
@committed
def test_of_many_at_once_one_is_in_force() -> None:
    made, _, _ = judged()
    given = at_once([lambda g=grade: give(made, "a", g) for grade in (0, 1, 2, 3)])
    assert len({row.pk for row in given}) == 4
    assert SeniorGrade.objects.filter(ended=None).count() == 1
    assert len([row for row in labels(made) if row[0] == "a"]) == 1
    once = at_once([lambda: give(made, "b", 1)] * 4)
    assert len({row.pk for row in once}) == 1


@pytest.mark.slow
@committed
def test_given_while_the_rule_changes_it_counts_as_the_campaign_says() -> None:
    made, _, _ = judged(rule="beside")

    def change() -> None:
        campaigns.amend(campaign=made, by=made.created_by, chosen={"senior_grades": "supersede"})

    at_once([change, lambda: give(made, "a", 2), lambda: give(made, "b", 1)])
    assert set(SeniorGrade.objects.values_list("counts", flat=True)) == {True}


@database
def test_the_database_refuses_two_in_force_and_one_that_ended_and_counts() -> None:
    made, _, _ = judged()
    row = give(made, "a", 2)
    for values in ({"ended": None, "pk": None}, {"ended": row.created, "counts": True, "pk": None}):
        twin = SeniorGrade.objects.get(pk=row.pk)
        for name, value in values.items():
            setattr(twin, name, value)
        with pytest.raises(IntegrityError), transaction.atomic():
            twin.save(force_insert=True)


@pytest.mark.slow
@database
def test_a_disagreement_that_has_one_is_settled_and_stands_under_done() -> None:
    made, _, _ = judged()
    client = Client()
    client.force_login(made.created_by)
    page = text(client.get(f"{address('queue', made)}?kind=apart"))
    assert page.count("Let it count instead") == 2
    given = {"grade": "2", "reason": "the title says it", "from": "queue"}
    answer = client.post(address("senior-give", made, pair_of(made, "a").pk), given, follow=True)
    assert "counts in place of what assessors said" in text(answer)
    assert [key.pair for key in queue(made).of(APART)] == [pair_of(made, "b").pk]
    done = text(client.get(f"{address('queue', made)}?kind=done"))
    assert "the title says it" in done
    shown = text(client.get(address("pair-detail", made, pair_of(made, "a").pk)))
    assert "It counts in place of what assessors said." in shown
    back = address("senior-back", made, SeniorGrade.objects.get().pk)
    assert client.post(back, {"reason": ""}).status_code == 400
    client.post(back, {"reason": "<i>a slip</i>"})
    shown = client.get(address("pair-detail", made, pair_of(made, "a").pk)).content.decode()
    assert "&lt;i&gt;a slip&lt;/i&gt;" in shown
    assert len(queue(made).of(APART)) == 2


@pytest.mark.slow
@database
def test_by_rest() -> None:
    made, _, _ = judged(rule="beside")
    client = rest.client_of(made.created_by)
    base = f"/api/campaigns/{made.slug}/"
    body = {"pair": pair_of(made, "a").pk, "grade": 2, "reason": "read twice"}
    row = client.post(f"{base}senior-grades/", body).json()
    assert (row["docno"], row["grade"], row["counts"], row["ended"]) == ("a", 2, False, None)
    changed = client.patch(base, {"senior_grades": "supersede"}).json()
    assert changed["senior_grades"] == "supersede"
    (listed,) = client.get(f"{base}senior-grades/").json()["results"]
    assert listed == row | {"counts": True}
    back = client.post(f"{base}senior-grades/{row['id']}/back/", {"reason": "a slip"}).json()
    assert (back["counts"], back["ended_reason"], back["ended_by"]) == (
        False, "a slip", made.created_by.username,
    )  # fmt: skip
    refused = client.patch(base, {"senior_grades": "first"})
    assert refused.status_code == 400


# What is estimated


def enumerated(adjudicated: Any) -> tuple[float, float]:
    """The mean of the estimate over all samples, and the sum over the pool that it is of."""
    chance = np.array([0.3, 0.5, 0.8, 0.6])
    said = np.array([[0, 3], [1, 1], [3, 0], [2, 3]])
    senior = np.array([3.0, 0.0, 2.0, 2.0])
    mean = said.mean(axis=1)
    total = 0.0
    for drawn in itertools.product([False, True], repeat=4):
        sample = np.array(drawn)
        probability = np.prod(np.where(sample, chance, 1.0 - chance))
        final = np.where(adjudicated(said, sample, chance), senior, mean)
        total += probability * (final * sample / chance).sum()
    ends_with = np.where(adjudicated(said, np.ones(4, dtype=bool), chance), senior, mean)
    return float(total), float(ends_with.sum())


def test_where_a_pair_is_settled_by_its_own_labels_the_sums_are_unbiased() -> None:
    def apart(said: np.ndarray, _sample: np.ndarray, _chance: np.ndarray) -> np.ndarray:
        return np.asarray(np.ptp(said, axis=1) >= 2)

    estimated, true = enumerated(apart)
    assert estimated == pytest.approx(true, abs=1e-12)


def test_twin_that_settles_the_worst_of_what_was_drawn_is_caught() -> None:
    """Which pairs get one hangs on what was drawn beside them: no pair has one value any more."""

    def worst(said: np.ndarray, sample: np.ndarray, chance: np.ndarray) -> np.ndarray:
        far = np.where(sample, np.ptp(said, axis=1) / chance, -1.0)
        return np.arange(4) == far.argmax()

    estimated, true = enumerated(worst)
    assert abs(estimated - true) > 0.1
