"""A round goes on, or is ended by hand, while a worker recomputes it: nobody waits in a circle.

SQLite has one writer at a time; what these tests are there to find, PostgreSQL shows.
"""

import time
from collections.abc import Callable
from functools import partial

import pytest
from django.db import OperationalError, connection, transaction

from estimation.models import Round
from estimation.services import pausing, stopping
from judging.models import Batch, Campaign, Job, Judgment, User
from judging.services import assignments, batches, jobs, judgments
from tests.support import evaluation
from tests.support.races import Other

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def all_in_hand_is_judged() -> Round:
    """A round that pauses, and of whose open batch the last pair was judged meanwhile."""
    campaign = evaluation.with_material()
    row = evaluation.drawn(campaign, extra_share=0.0)
    last = last_of_a_batch(campaign)
    pausing.pause(row=row, by=row.created_by)
    last()
    jobs.request("recompute", row.pk, campaign=campaign)
    row.refresh_from_db()
    return row


def last_of_a_batch(campaign: Campaign) -> Callable[[], object]:
    """What saves the pair that an open batch waits for alone."""
    first = Batch.objects.order_by("number")[0]
    evaluation.judge(campaign, first.pair_count - 1)
    people = User.objects.filter(username__in=["anna", "ben"])
    found = (assignments.claim_next(campaign=campaign, by=by) for by in people)
    held = next(each for each in found if each is not None)
    saying = judgments.Saying(grade=1, key="last")
    return lambda: judgments.record(assignment=held, by=held.assessor, saying=saying)


def while_a_job_of_the_round_writes(row: Round, kind: str, act: Callable[[], object]) -> Other:
    """Somebody acts while a worker holds the job, and writes its row of the round then."""
    with transaction.atomic():
        Job.objects.select_for_update().get(kind=kind, target=row.pk)
        other = Other(act).until_it_waits()
        Round.objects.filter(pk=row.pk).update(state=Round.State.JUDGING)
    return other


def round_before_batches(row: Round) -> Callable[[], object]:
    """The mistake: the round is taken before its batches, and the job that they ask for."""

    def act() -> None:
        with transaction.atomic():
            Round.objects.filter(pk=row.pk).update(paused=None)
            batches.let_go(list(row.round_batches.values_list("batch", flat=True)))

    return act


def test_a_round_goes_on_while_it_is_recomputed() -> None:
    row = all_in_hand_is_judged()
    goes_on = partial(pausing.resume, row=row, by=row.created_by)

    while_a_job_of_the_round_writes(row, "recompute", goes_on).outcome()

    row.refresh_from_db()
    assert row.paused is None
    states = set(row.round_batches.values_list("batch__state", flat=True))
    assert Batch.State.COMPLETE in states
    assert Batch.State.HELD not in states


def test_a_round_that_is_taken_before_its_batches_is_caught() -> None:
    row = all_in_hand_is_judged()
    race = while_a_job_of_the_round_writes
    try:
        race(row, "recompute", round_before_batches(row)).outcome()
        circle = False
    except OperationalError as error:
        circle = "deadlock" in str(error)
    assert circle == (connection.vendor == "postgresql")


def pause_meets_the_last_judgment(pause: Callable[[Round], object]) -> Other:
    """A batch is completed, and its recompute waited for, while a worker writes the round."""
    campaign = evaluation.with_material()
    row = evaluation.drawn(campaign, extra_share=0.0)
    last = last_of_a_batch(campaign)
    jobs.request("recompute", row.pk, campaign=campaign)
    row.refresh_from_db()
    with transaction.atomic():
        Job.objects.select_for_update().get(kind="recompute", target=row.pk)
        judging = Other(last).until_it_waits()
        pausing_too = Other(lambda: pause(row)).until_it_waits()
        time.sleep(0.3)  # the first waits as well
        Round.objects.filter(pk=row.pk).update(state=Round.State.JUDGING)
    judging.outcome()
    return pausing_too


def test_a_round_pauses_while_its_batch_is_completed_and_recomputed() -> None:
    pause_meets_the_last_judgment(lambda row: pausing.pause(row=row, by=row.created_by)).outcome()

    row = Round.objects.get()
    assert row.paused is not None
    states = set(row.round_batches.values_list("batch__state", flat=True))
    assert Batch.State.HELD in states
    assert states <= {Batch.State.COMPLETE, Batch.State.HELD}  # whichever of the two came first
    assert Judgment.objects.filter(key="last").count() == 1


def test_a_round_is_ended_by_hand_while_its_rule_comes_true() -> None:
    campaign = evaluation.with_material()
    row = evaluation.drawn(campaign, extra_share=0.0)
    evaluation.judge(campaign, Batch.objects.order_by("number")[0].pair_count + 3)
    jobs.request(stopping.STOP, row.pk, campaign=campaign)
    row.refresh_from_db()
    ended = partial(stopping.by_hand, row=row, by=row.created_by)

    while_a_job_of_the_round_writes(row, stopping.STOP, ended).outcome()

    row.refresh_from_db()
    assert row.stopping["rule"] == stopping.HAND
