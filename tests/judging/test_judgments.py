"""Saving judgments: once, within the scale, corrected by appending."""

import threading
from collections.abc import Callable

import pytest
from django.db import IntegrityError, connection, transaction

from judging.errors import UserError
from judging.models import (
    Assignment,
    AuditEntry,
    Batch,
    Campaign,
    Decision,
    Judgment,
    KnownGrade,
    Pair,
)
from judging.selectors import current_judgments
from judging.services import assignments, batches, campaigns, decisions, judgments, known_grades
from judging.services.judgments import Saying
from judging.signals import batch_completed, judgment_corrected
from tests.support import factories

pytestmark = pytest.mark.django_db


def held_pair(labels: int = 1) -> Assignment:
    campaign = factories.campaign(topics=1)
    (anna,) = factories.assessors(campaign, "anna")
    factories.released_batch(campaign, ["a"], labels=labels)
    assignment = assignments.claim_next(campaign=campaign, by=anna)
    assert assignment is not None
    return assignment


def record(assignment: Assignment, grade: int = 1, key: str = "k", comment: str = "") -> Judgment:
    saying = Saying(grade, key, comment)
    recorded = judgments.record(assignment=assignment, by=assignment.assessor, saying=saying)
    return recorded.judgment


def test_the_same_key_stores_once_and_answers_alike() -> None:
    assignment = held_pair()

    first = record(assignment, key="k")
    again = record(assignment, key="k")

    assert first == again
    assert Judgment.objects.count() == 1
    assert Pair.objects.get().judged == 1


@pytest.mark.parametrize(("grade", "comment"), [(2, ""), (1, "changed my mind")])
def test_another_content_under_the_same_key_is_refused(grade: int, comment: str) -> None:
    assignment = held_pair()
    record(assignment, grade=1, key="k")

    with pytest.raises(UserError) as refused:
        record(assignment, grade=grade, key="k", comment=comment)

    assert (refused.value.code, refused.value.status) == ("key_reused", 422)
    assert Judgment.objects.get().grade == 1


def test_a_second_judgment_of_the_pair_is_refused() -> None:
    assignment = held_pair(labels=2)
    record(assignment, key="one")

    with pytest.raises(UserError) as refused:
        record(assignment, key="two")

    assert (refused.value.code, refused.value.status) == ("already_judged", 409)
    assert Judgment.objects.count() == 1


@pytest.mark.parametrize("grade", [-1, 4, 10**30])
def test_a_grade_outside_the_scale_changes_nothing(grade: int) -> None:
    assignment = held_pair()

    with pytest.raises(UserError) as refused:
        record(assignment, grade=grade)

    assert refused.value.code == "grade_out_of_scale"
    assert "0 to 3" in refused.value.message
    assert Pair.objects.get().judged == 0


def test_somebody_elses_assignment_cannot_be_judged() -> None:
    assignment = held_pair()
    (ben,) = factories.assessors(assignment.pair.campaign, "ben")

    with pytest.raises(UserError) as refused:
        judgments.record(assignment=assignment, by=ben, saying=Saying(1, "k"))

    assert refused.value.status == 404


def test_nothing_is_saved_in_a_closed_campaign() -> None:
    assignment = held_pair()
    campaigns.close(campaign=assignment.pair.campaign, by=assignment.pair.campaign.created_by)

    with pytest.raises(UserError) as refused:
        record(assignment)

    assert refused.value.code == "campaign_not_open"


def test_a_retry_after_the_campaign_was_closed_is_answered_with_what_is_stored() -> None:
    assignment = held_pair()
    first = record(assignment, key="k")
    campaigns.close(campaign=assignment.pair.campaign, by=assignment.pair.campaign.created_by)

    assert record(assignment, key="k") == first


def test_a_pair_that_the_organizer_closed_takes_no_judgment() -> None:
    assignment = held_pair()
    pair = assignment.pair
    decisions.decide(pair=pair, by=pair.campaign.created_by, grade=0, reason="a duplicate")

    with pytest.raises(UserError) as refused:
        record(assignment)

    assert refused.value.code == "pair_closed"
    assert Judgment.objects.count() == 0


def test_a_correction_supersedes_and_keeps_the_old_grade() -> None:
    assignment = held_pair()
    record(assignment, grade=1, key="one")
    anna = assignment.assessor

    corrected = judgments.correct(
        assignment=assignment, by=anna, saying=Saying(3, "two"), revision=1
    )
    again = judgments.correct(assignment=assignment, by=anna, saying=Saying(3, "two"), revision=1)

    assert (corrected.created, again.created) == (True, False)
    assert list(Judgment.objects.order_by("pk").values_list("revision", "grade")) == [
        (1, 1),
        (2, 3),
    ]
    assert current_judgments().get().grade == 3
    assert Pair.objects.get().judged == 1
    with pytest.raises(UserError) as refused:
        judgments.correct(assignment=assignment, by=anna, saying=Saying(0, "three"), revision=1)
    assert refused.value.code == "superseded"


def test_completing_a_batch_and_correcting_send_their_signals_in_the_transaction() -> None:
    assignment = held_pair()
    heard: list[tuple[str, int, bool]] = []

    def completed(batches: list[Batch], **_kwargs: object) -> None:
        heard.extend(("completed", each.pk, connection.in_atomic_block) for each in batches)

    def corrected(pair: int, **_kwargs: object) -> None:
        heard.append(("corrected", pair, connection.in_atomic_block))

    batch_completed.connect(completed, sender=Batch)
    judgment_corrected.connect(corrected, sender=Pair)
    try:
        record(assignment, key="one")
        judgments.correct(
            assignment=assignment, by=assignment.assessor, saying=Saying(0, "two"), revision=1
        )
    finally:
        batch_completed.disconnect(completed, sender=Batch)
        judgment_corrected.disconnect(corrected, sender=Pair)

    batch, pair = Batch.objects.get(), Pair.objects.get()
    assert heard == [("completed", batch.pk, True), ("corrected", pair.pk, True)]


def test_every_judgment_has_its_audit_entry() -> None:
    assignment = held_pair()
    judgment = record(assignment, grade=2)

    entry = AuditEntry.objects.get(action="judge")

    assert entry.actor == assignment.assessor
    assert entry.target == f"judgment {judgment.pk}"
    assert entry.data == {"grade": 2}
    entry.action = "nothing"
    with pytest.raises(TypeError):
        entry.save()


def rejected_by_the_database(change: Callable[[], object]) -> bool:
    try:
        with transaction.atomic():
            change()
    except IntegrityError:
        return True
    return False


def test_the_database_itself_holds_the_invariants() -> None:
    assignment = held_pair()
    record(assignment, grade=2)
    judgment, pair = Judgment.objects.get(), Pair.objects.get()

    def second_row(**values: object) -> Callable[[], object]:
        row = {"assignment": assignment, "assessor": assignment.assessor, "grade": 1, "key": "x"}
        return lambda: Judgment.objects.create(**{**row, "max_grade": 3, "revision": 9, **values})

    assert rejected_by_the_database(second_row(revision=1))
    assert rejected_by_the_database(second_row(key=judgment.key))
    assert rejected_by_the_database(second_row(grade=4))
    assert rejected_by_the_database(second_row(max_grade=100))
    assert not rejected_by_the_database(second_row())
    held = Assignment.objects.filter(pk=assignment.pk)
    assert rejected_by_the_database(lambda: held.update(grade=None))  # a label that says nothing
    pairs = Pair.objects.filter(pk=pair.pk)
    assert rejected_by_the_database(lambda: pairs.update(held=2))
    assert rejected_by_the_database(lambda: pairs.update(held=0))
    assert rejected_by_the_database(
        lambda: Assignment.objects.create(
            campaign=pair.campaign,
            pair=pair,
            assessor=assignment.assessor,
            lease_until=assignment.lease_until,
        )
    )
    assert rejected_by_the_database(
        lambda: Decision.objects.create(
            pair=pair, kind="grade", grade=None, reason="", decided_by=assignment.assessor
        )
    )


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_same_judgment_sent_fifty_times_at_once_is_stored_once() -> None:
    assignment = held_pair(labels=2)
    answers: list[object] = []

    def send() -> None:
        try:
            answers.append(record(assignment, grade=2, key="same").pk)
        except UserError as error:
            answers.append(error.code)
        finally:
            connection.close()

    threads = [threading.Thread(target=send) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert answers == [Judgment.objects.get().pk] * 50
    assert Pair.objects.values_list("held", "judged").get() == (1, 1)


def test_known_grades_judge_the_pairs_they_know_and_no_others() -> None:
    campaign = factories.campaign(topics=1)
    factories.released_batch(campaign, ["a", "b", "c"])
    topic = campaign.topics.get()
    upload = topic.upload
    for docno, grade in (("a", 3), ("c", 0), ("z", 2)):
        KnownGrade.objects.create(
            campaign=campaign, upload=upload, topic=topic, docno=docno, grade=grade
        )

    assert known_grades.answer(campaign=campaign, by=campaign.created_by) == 2
    assert known_grades.answer(campaign=campaign, by=campaign.created_by) == 0

    grades = current_judgments().values_list("assignment__pair__docno", "grade")
    assert sorted(grades) == [("a", 3), ("c", 0)]
    assert Batch.objects.get().remaining == 1
    done = decisions.decide_rest(
        campaign=campaign, by=campaign.created_by, grade=0, reason="not in the qrels"
    )
    assert done == 1
    assert Batch.objects.get().state == Batch.State.COMPLETE


def test_a_campaign_moves_only_along_its_states() -> None:
    campaign = factories.campaign()
    by = campaign.created_by
    batches.release([batches.new_batch(campaign).pk])

    with pytest.raises(UserError):
        campaigns.close(campaign=campaign, by=by)
    campaigns.open_for_judging(campaign=campaign, by=by)
    with pytest.raises(UserError):
        campaigns.open_for_judging(campaign=campaign, by=by)
    campaigns.close(campaign=campaign, by=by)

    assert Campaign.objects.get().state == Campaign.State.CLOSED


def test_nobody_becomes_a_member_under_the_name_of_imported_grades() -> None:
    campaign = factories.campaign()

    with pytest.raises(UserError) as refused:
        factories.assessors(campaign, "Qrels")

    assert refused.value.field == "username"
