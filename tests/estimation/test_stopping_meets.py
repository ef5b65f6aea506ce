"""A round ends while others judge, recompute and plan; nobody waits in a circle, it ends once.

SQLite has one writer at a time; what these tests are there to find, PostgreSQL shows.
"""

from collections.abc import Callable

import pytest
from django.db import OperationalError, connection, transaction

from estimation.models import Round
from estimation.services import estimates, stopping
from judging.models import AuditEntry, Batch, Campaign, Job, Judgment, User
from judging.services import assignments, batches, jobs, judgments
from tests.support import evaluation
from tests.support.races import Other, at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite_only]


def about_to_end(batch_size: int = 15) -> tuple[Campaign, Round]:
    """A round whose rule came true after its first batch; the job that ends it is due."""
    campaign = evaluation.with_material()
    row = evaluation.drawn(
        campaign, budget=90, batch_size=batch_size, extra_share=0.0, stop_when="width",
        stop_width=13.5,
    )  # fmt: skip
    Round.objects.filter(pk=row.pk).update(
        state=Round.State.JUDGING,
        stopping={"rule": "width", "batch": 1, "batches": 6, "estimates": 1},
    )
    jobs.request(stopping.STOP, row.pk, campaign=campaign)
    row.refresh_from_db()
    return campaign, row


def ending(row: Round) -> Callable[[], None]:
    job = Job.objects.get(kind=stopping.STOP, target=row.pk)
    return lambda: jobs.run(job.pk)


def last_pair_of_a_batch(campaign: Campaign) -> Callable[[], object]:
    """The judgment that completes the open batch, and so asks for a recompute."""
    anna = User.objects.get(username="anna")
    while True:
        held = assignments.claim_next(campaign=campaign, by=anna)
        assert held is not None
        saying = judgments.Saying(grade=1, key=f"pair-{held.pk}")
        if Batch.objects.get(state=Batch.State.OPEN).remaining == 1:
            return lambda: judgments.record(assignment=held, by=anna, saying=saying)
        judgments.record(assignment=held, by=anna, saying=saying)


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 1])
def test_a_judgment_that_completes_a_batch_meets_the_end(first: int) -> None:
    campaign, row = about_to_end()
    works = [ending(row), last_pair_of_a_batch(campaign)]
    said = Judgment.objects.count()
    found = at_once(works[::-1] if first else works)
    assert not [each for each in found if isinstance(each, BaseException)]
    assert Judgment.objects.count() == said + 1, "no judgment is lost"
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED
    assert not Batch.objects.filter(state__in=[Batch.State.OPEN, Batch.State.WAITING]).exists()


@pytest.mark.slow
def test_two_workers_end_it_once() -> None:
    _, row = about_to_end()
    job = Job.objects.get(kind=stopping.STOP, target=row.pk)
    claimed = jobs.claim(job.pk)
    assert claimed is not None
    Job.objects.filter(pk=job.pk).update(lease_until="2000-01-01T00:00Z")
    at_once([lambda: stopping.stop(claimed), lambda: jobs.run(job.pk)])
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED
    assert row.stopping["saved"] == row.draws.count()
    assert AuditEntry.objects.filter(action="stop round").count() == 1


@pytest.mark.slow
def test_a_recompute_that_asks_for_the_end_meets_it() -> None:
    """Judged pairs were corrected when the end was due: the recompute asks for it once more."""
    campaign, row = about_to_end()
    last_pair_of_a_batch(campaign)()
    recompute = Job.objects.get(kind="recompute", target=row.pk)
    found = at_once([ending(row), lambda: jobs.run(recompute.pk)])
    assert not [each for each in found if isinstance(each, BaseException)]
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED
    assert row.estimate_sets.count() == 1


def end_within_the_recompute() -> Other:
    """The mistake: the recompute, which holds its job, drops the batches by itself, while a
    judgment holds its batch and asks for a recompute."""
    campaign, row = about_to_end()
    complete = last_pair_of_a_batch(campaign)
    jobs.request("recompute", row.pk, campaign=campaign)
    running = jobs.claim(Job.objects.get(kind="recompute", target=row.pk).pk)
    assert running is not None
    with transaction.atomic():
        running.fence()
        judging = Other(complete).until_it_waits()
        batches.drop(list(row.round_batches.values_list("batch", flat=True)))
    return judging


@pytest.mark.slow
def test_an_end_within_the_recompute_is_caught() -> None:
    try:
        end_within_the_recompute().outcome()
    except OperationalError as error:
        circle = "deadlock" in str(error)
    else:
        circle = False
    assert circle == (connection.vendor == "postgresql")


@pytest.mark.slow
def test_an_end_in_a_job_of_its_own_waits_for_nobody_in_a_circle() -> None:
    campaign, row = about_to_end()
    complete = last_pair_of_a_batch(campaign)
    running = jobs.claim(Job.objects.get(kind=stopping.STOP, target=row.pk).pk)
    assert running is not None
    with transaction.atomic():
        running.fence()
        judging = Other(complete).until_it_waits()
        batches.drop(list(row.round_batches.values_list("batch", flat=True)))
    judging.outcome()
    assert estimates.from_scratch(row) is None or row.round_batches.exists()
