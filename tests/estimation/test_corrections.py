"""A label changes after its batch is complete: the estimates follow, and nothing else does."""

import threading
from collections.abc import Callable

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from estimation import receivers, selectors
from estimation.models import Draw, EstimateSet, Round
from estimation.services import estimates
from judging.models import Assignment, Batch, BatchPair, Campaign, Job, Judgment, Pair
from judging.selectors import current_judgments
from judging.services import judgments
from judging.signals import batch_completed, judgment_corrected
from tests.support import evaluation, factories
from tests.support.kept import Kept

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.fixture
def complete(campaign: Campaign, kept: Kept) -> Round:
    """A round with one label per pair of which all batches are complete."""
    return kept("complete", lambda: _complete(campaign), campaign)


def _complete(campaign: Campaign) -> Round:
    row = evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, 1000)
    row.refresh_from_db()
    assert row.state == Round.State.COMPLETE
    return row


def judgment_of_batch(row: Round, number: int) -> Judgment:
    pairs = Draw.objects.filter(round=row, batch_number=number).values("pair")
    found = current_judgments().filter(assignment__pair__in=pairs, grade__gte=1)
    return found.select_related("assignment").order_by("pk")[0]


def correct(judgment: Judgment, grade: int, key: str = "corrected") -> Judgment:
    saying = judgments.Saying(grade, key)
    assignment = Assignment.objects.get(pk=judgment.assignment_id)
    recorded = judgments.correct(
        assignment=assignment, by=judgment.assessor, saying=saying, revision=judgment.revision
    )
    return recorded.judgment


def latest(row: Round) -> EstimateSet:
    found = selectors.latest_estimates(row)
    assert found is not None
    return found


def follows_from_its_labels(row: Round) -> bool:
    outcome = estimates.from_scratch(row)
    assert outcome is not None
    return outcome.digest == latest(row).digest


def recompute_job(row: Round) -> Job:
    return Job.objects.get(kind="recompute", target=row.pk)


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 3])
def test_a_correction_makes_new_estimates_of_a_complete_round(complete: Round, number: int) -> None:
    before = latest(complete)
    correct(judgment_of_batch(complete, number), 0)
    assert not follows_from_its_labels(complete)

    factories.run_due_jobs()

    assert latest(complete).number == before.number + 1
    assert latest(complete).batches == before.batches == 3
    assert follows_from_its_labels(complete)
    assert before.estimates.count() == latest(complete).estimates.count()


@pytest.mark.slow
def test_twin_without_the_signal_stays_on_the_old_grade(complete: Round) -> None:
    judgment_corrected.disconnect(dispatch_uid="recompute-after-correction", sender=Pair)
    try:
        correct(judgment_of_batch(complete, 3), 0)
    finally:
        judgment_corrected.connect(
            receivers.recompute_after_correction,
            sender=Pair,
            dispatch_uid="recompute-after-correction",
        )
    factories.run_due_jobs()
    assert not follows_from_its_labels(complete)


def test_a_correction_to_the_same_grade_stores_no_estimates(complete: Round) -> None:
    before, judgment = latest(complete), judgment_of_batch(complete, 2)
    correct(judgment, judgment.grade)
    assert recompute_job(complete).state == Job.State.QUEUED

    factories.run_due_jobs()

    assert latest(complete) == before
    assert recompute_job(complete).state == Job.State.DONE
    assert Judgment.objects.filter(assignment=judgment.assignment_id).count() == 2


@pytest.mark.slow
def test_many_corrections_are_one_recompute_of_the_last_grades(complete: Round) -> None:
    before, judgment = latest(complete), judgment_of_batch(complete, 1)
    for turn, grade in enumerate((0, 3, 2, 0)):
        judgment = correct(judgment, grade, key=f"corrected {turn}")

    factories.run_due_jobs()

    assert latest(complete).number == before.number + 1
    assert follows_from_its_labels(complete)


def test_the_recompute_is_due_in_the_commit_of_the_correction_or_not_at_all(
    complete: Round,
) -> None:
    judgment = judgment_of_batch(complete, 1)
    requested = recompute_job(complete).requested

    with transaction.atomic():
        correct(judgment, 0)
        assert recompute_job(complete).requested == requested + 1
        transaction.set_rollback(True)

    assert recompute_job(complete).requested == requested
    assert Judgment.objects.filter(assignment=judgment.assignment_id).count() == 1


@pytest.mark.slow
def test_a_correction_while_the_batch_is_open_waits_for_the_batch(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, 3)
    correct(Judgment.objects.select_related("assessor").order_by("pk")[0], 0)
    factories.run_due_jobs()
    assert selectors.latest_estimates(row) is None

    evaluation.judge(campaign, 1000)
    assert follows_from_its_labels(row)


def queries_of(change: Callable[[], object]) -> int:
    with CaptureQueriesContext(connection) as captured:
        change()
    return len(captured)


@pytest.mark.slow
def test_a_correction_costs_the_same_however_much_there_is(campaign: Campaign) -> None:
    small = evaluation.drawn(campaign, extra_share=0.0, budget=10, batch_size=10)
    evaluation.judge(campaign, 1000)
    first = judgment_of_batch(small, 1)
    few = queries_of(lambda: correct(first, 0))
    large_campaign = evaluation.with_material(slug="large")
    large = evaluation.drawn(large_campaign, extra_share=0.0, budget=60, batch_size=6)
    evaluation.judge(large_campaign, 1000)
    many = judgment_of_batch(large, 5)

    assert queries_of(lambda: correct(many, 0, key="large")) == few <= 20


@pytest.mark.slow
def test_rounds_that_share_the_pair_are_all_due(complete: Round, campaign: Campaign) -> None:
    other = evaluation.drawn(campaign, extra_share=0.0, budget=100, batch_size=100)
    evaluation.judge(campaign, 1000)
    correct(judgment_of_batch(complete, 1), 0)
    factories.run_due_jobs()
    assert follows_from_its_labels(complete)
    assert follows_from_its_labels(other)


@pytest.mark.slow
def test_labels_that_a_later_round_brings_enter_when_its_batch_is_complete(
    complete: Round, campaign: Campaign
) -> None:
    before = latest(complete)
    evaluation.drawn(campaign, labels=2, extra_share=0.0, budget=100, batch_size=100)
    evaluation.judge(campaign, 1000)

    assert Pair.objects.filter(draws__round=complete, judged=2).exists()
    assert latest(complete).label_count > before.label_count
    assert follows_from_its_labels(complete)


def test_a_batch_without_pairs_makes_its_round_due(complete: Round) -> None:
    """A Poisson batch can be empty; the round's numbers rest on one batch more all the same."""
    link = complete.round_batches.get(number=3)
    requested = recompute_job(complete).requested
    Draw.objects.filter(round=complete, batch_number=3).delete()
    batch_completed.send(sender=Batch, batches=[link.batch])
    assert recompute_job(complete).requested == requested + 1


@pytest.mark.slow
def test_planned_batches_of_an_active_round_stay_as_they_are(campaign: Campaign) -> None:
    row = evaluation.drawn(
        campaign, method="active", measure="AP", reported=[], extra_share=0.0, budget=40,
        batch_size=10,
    )  # fmt: skip
    evaluation.judge(campaign, 15)
    before = latest(row)
    planned = set(Draw.objects.filter(round=row).values_list("pair", "batch_number"))
    served = set(BatchPair.objects.values_list("batch", "pair"))
    assert row.round_batches.count() > before.batches

    correct(judgment_of_batch(row, 1), 0)
    factories.run_due_jobs()

    assert latest(row).number == before.number + 1
    assert set(Draw.objects.filter(round=row).values_list("pair", "batch_number")) == planned
    assert set(BatchPair.objects.values_list("batch", "pair")) == served
    assert follows_from_its_labels(row)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.on_both
def test_corrections_at_the_same_moment_are_both_in_the_numbers(complete: Round) -> None:
    found = [judgment_of_batch(complete, number) for number in (1, 2, 3)]
    errors: list[Exception] = []

    def send(judgment: Judgment) -> None:
        try:
            correct(judgment, 0, key=f"corrected {judgment.pk}")
        except Exception as error:
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=send, args=[judgment]) for judgment in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    factories.run_due_jobs()

    assert errors == []
    ids = [judgment.assignment_id for judgment in found]
    now = current_judgments().filter(assignment__in=ids)
    assert list(now.values_list("grade", flat=True)) == [0, 0, 0]
    assert follows_from_its_labels(complete)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.on_both
def test_a_correction_that_overlaps_with_the_end_of_the_batch_is_in_the_numbers(
    campaign: Campaign,
) -> None:
    """The batch is complete before the correction is committed, and open when it is made."""
    row = evaluation.drawn(campaign, extra_share=0.0, budget=12, batch_size=12)
    batch = row.round_batches.get().batch
    while Batch.objects.get(pk=batch.pk).remaining != 1:
        assert evaluation.judge(campaign, 1)
    judgment = judgment_of_batch(row, 1)
    corrected, computed = threading.Event(), threading.Event()

    def hesitate() -> None:
        try:
            with transaction.atomic():
                correct(judgment, 0)
                corrected.set()
                computed.wait(1.0)
        finally:
            connection.close()

    thread = threading.Thread(target=hesitate)
    thread.start()
    assert corrected.wait(20.0)
    assert evaluation.judge(campaign, 1)
    computed.set()
    thread.join()
    factories.run_due_jobs()

    assert Batch.objects.get(pk=batch.pk).state == Batch.State.COMPLETE
    assert follows_from_its_labels(row)
