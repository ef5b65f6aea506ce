"""Long work as rows. The database is the queue of record; Celery only wakes a worker.

``request`` writes or renews the row of (kind, target) and sends a hint after the commit. A worker
claims the row by one conditional UPDATE, holds it under a lease that a thread of its own prolongs,
and writes results only while its token is the row's (``Running.fence``). A hint that gets lost
loses nothing: the steward of every worker sends again whatever is due.
"""

import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from celery import current_app
from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.models import F, Q
from django.db.models.functions import Greatest, Now
from django.utils.module_loading import autodiscover_modules

from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import Campaign, Job
from judging.services import job_rows, present
from judging.services.job_rows import (
    CLAIMED,
    FINISHED,
    HINTED,
    MAX_ATTEMPTS,
    NEVER_RUN,
    PROLONGED,
    RENEWED,
    UNTOLD,
    durations,
    times,
)
from judging.statements import row_of

log = logging.getLogger(__name__)

BROKER_PAUSE_SECONDS = 10.0


class LeaseLost(Exception):
    """Somebody else does this job now; whatever was not committed must be dropped."""


class NotYet(Exception):
    """Raised by a handler: the job must wait for something else and be tried again."""

    def __init__(self, seconds: float, note: str) -> None:
        super().__init__(note)
        self.seconds = seconds
        self.note = note


class Hindered(Exception):
    """Raised by a handler: what it needs is not there at the moment.

    The job is tried again like any that failed; what is told of it is the sentence alone.
    """


@dataclass(frozen=True)
class Running:
    """A claimed job, as its handler sees it."""

    id: int
    kind: str
    target: int
    token: str
    generation: int
    data: dict[str, Any]
    lost: threading.Event = field(default_factory=threading.Event, compare=False)
    """Set once it is known that the lease is gone, so that work can stop before its next write."""

    def report(self, progress: float, note: str = "") -> None:
        """Shows how far the work is (a share between 0 and 1); not inside a transaction."""
        self._update(progress=max(0, min(100, int(progress * 100))), note=note[:200])

    def prolong(self) -> None:
        if not PROLONGED.rows(pk=self.id, token=self.token, **durations()):
            raise self._gone()

    def fence(self) -> None:
        """Call first in the transaction that writes results: raises LeaseLost if it is not ours.

        The row stays locked until the commit, so nobody can take the job over in between.
        """
        self.prolong()

    def fence_progress(self) -> None:
        """``fence`` for a part of the work that will never be done again.

        Whoever goes on from it has all attempts before it: only a job that dies again and again
        at the same place is given up.
        """
        self._update(attempts=0)

    def _update(self, **values: object) -> None:
        mine = Job.objects.filter(pk=self.id, token=self.token)
        if not mine.update(lease_until=times().lease, **values):
            raise self._gone()

    def _gone(self) -> LeaseLost:
        return LeaseLost(f"job {self.id} ({self.kind} {self.target})")


Handler = Callable[[Running], None]
GiveUp = Callable[[int, str], None]
"""What a kind does when a job of it has failed for good: given the target and the error."""
Progress = Callable[[float, str], None]


def untold(_share: float, _note: str) -> None:
    """The progress of work that nobody watches."""


_handlers: dict[str, Handler] = {}
_give_up: dict[str, GiveUp] = {}


def handles(kind: str, *, give_up: GiveUp | None = None) -> Callable[[Handler], Handler]:
    """Registers a handler: ``@jobs.handles("recompute")``.

    ``give_up`` is called in the transaction in which a job fails for good, so that nothing waits
    for ever for what will not come.
    """

    def register(handler: Handler) -> Handler:
        _handlers[kind] = handler
        if give_up is not None:
            _give_up[kind] = give_up
        return handler

    return register


def request(
    kind: str,
    target: int,
    *,
    campaign: Campaign | int | None = None,
    data: dict[str, Any] | None = None,
) -> Job:
    """Makes (kind, target) due; asked again while it runs, it will run once more.

    A worker is woken once: of a job that runs, and of one that was told lately, nobody is told.
    """
    job = _renew(kind, target, data or {})
    if job is None:
        campaign_id = campaign.pk if isinstance(campaign, Campaign) else campaign
        try:
            with transaction.atomic():
                job = Job.objects.create(
                    kind=kind, target=target, campaign_id=campaign_id, data=data or {}
                )
        except IntegrityError:
            job = _renew(kind, target, data or {})
            if job is None:
                raise
    job_id = job.pk
    transaction.on_commit(lambda: _hint_untold(job_id), robust=True)
    return job


def _hint_untold(job_id: int) -> None:
    for job in UNTOLD.rows(pk=job_id, **durations()):
        hint(*job)


def _renew(kind: str, target: int, data: dict[str, Any]) -> Job | None:
    row = RENEWED.first(kind=kind, target=target, data=data)
    return None if row is None else row_of(Job, row)


_broker_pause_until = 0.0


def hint(job_id: int, kind: str) -> bool:
    """Wakes a worker for the job; after a failure the broker is left alone for a while.

    Kinds of a queue of their own (settings.JOB_QUEUES) are taken by the workers that serve it.

    Never raises: a hint is a convenience, and a committed judgment must not become an error page.
    """
    global _broker_pause_until  # noqa: PLW0603
    if time.monotonic() < _broker_pause_until:
        return False
    try:
        queue = settings.JOB_QUEUES.get(kind, settings.CELERY_TASK_DEFAULT_QUEUE)
        current_app.send_task(
            "judging.tasks.run_job", args=[job_id], queue=queue, ignore_result=True
        )
    except Exception as error:
        _broker_pause_until = time.monotonic() + BROKER_PAUSE_SECONDS
        log.warning("the broker does not take messages (%s); workers will find the work", error)
        return False
    HINTED.rows(pk=job_id)
    return True


def due() -> Q:
    """Queued and due, or running under a lapsed lease."""
    return job_rows.due(times())


def wake_due() -> int:
    """Sends hints for everything due that was not hinted lately; gives up what failed too often."""
    exhausted = Job.objects.filter(job_rows.lapsed(times()), attempts__gte=MAX_ATTEMPTS)
    for job_id in list(exhausted.values_list("pk", flat=True)):
        register_all()  # outside of the transaction: it takes a second, and others want to write
        try:
            with transaction.atomic():
                if job := exhausted.select_for_update().filter(pk=job_id).first():
                    _conclude_failed(job, f"The worker died {MAX_ATTEMPTS} times over this job.")
        except Exception:  # one that cannot be given up must not hold up all others
            log.exception("job %s could not be given up", job_id)
    waiting = job_rows.untold(times()).order_by("pk").values_list("pk", "kind")
    return sum(hint(*job) for job in waiting[:500])


def withdraw(kind: str, target: int) -> None:
    """Takes back what was asked for; a worker that is at it writes nothing more, and stops."""
    Job.objects.filter(kind=kind, target=target).update(
        state=Job.State.DONE, done=F("requested"), token="", finished=Now()
    )


def run(job_id: int) -> None:
    """Claims the job, if it is due, and does it. Safe to call any number of times."""
    running = claim(job_id)
    if running is None:
        return
    try:
        with _kept_alive(running):
            _handler(running.kind)(running)
        _finish(running)
    except LeaseLost as lost:
        log.warning("lost the lease of %s", lost)
    except NotYet as wait:
        _requeue(running, wait.seconds, note=wait.note, attempts=0)
    except UserError as error:
        _fail(running, error.message)
    except Hindered as error:
        log.warning("job %s (%s %s): %s", running.id, running.kind, running.target, error)
        _retry_or_fail(running, str(error))
    except SystemExit:
        _give_back(running)
        raise
    except Exception as error:
        log.exception("job %s (%s %s) failed", running.id, running.kind, running.target)
        _retry_or_fail(running, f"{type(error).__name__}: {error}")


def _give_back(running: Running) -> None:
    """The worker is told to end at once: another one begins anew, and nothing has failed."""
    if not connection.in_atomic_block:
        connection.close()  # it may have been in the middle of a statement
    _requeue(running, 0, attempts=Greatest(F("attempts") - 1, 0))  # asked for anew, it has all


def _handler(kind: str) -> Handler:
    register_all()
    return _handlers[kind]


@cache
def register_all() -> None:
    """Loads the modules ``handlers`` of all applications, and with them all that jobs need."""
    autodiscover_modules("handlers")


def claim(job_id: int) -> Running | None:
    row = CLAIMED.first(pk=job_id, token=uuid.uuid4().hex, **durations())
    if row is None:
        return None
    job = row_of(Job, row)
    return Running(job.pk, job.kind, job.target, job.token, job.requested, job.data)


@contextmanager
def _kept_alive(running: Running) -> Iterator[None]:
    """Prolongs the lease from a thread, so that long arithmetic needs no bookkeeping."""
    stop = threading.Event()

    def prolong() -> None:
        while not stop.wait(settings.JOB_LEASE_SECONDS / 4):
            try:
                running.prolong()
            except LeaseLost:
                running.lost.set()
                return
            except Exception:
                log.warning("could not prolong the lease of job %s", running.id, exc_info=True)
            finally:
                connection.close()

    thread = threading.Thread(target=prolong, name=f"lease-{running.id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _finish(running: Running) -> None:
    told = FINISHED.first(pk=running.id, token=running.token, generation=running.generation)
    if told == (Job.State.QUEUED,):
        hint(running.id, running.kind)


def _requeue(running: Running, seconds: float, **values: object) -> None:
    """Due at once is `Now`: SQLite writes sums of times longer, and compares them as text."""
    due = seconds_from_now(seconds) if seconds else Now()
    Job.objects.filter(pk=running.id, token=running.token).update(
        state=Job.State.QUEUED, token="", due=due, **values
    )


def _fail(running: Running, message: str) -> None:
    """Shows the error; what was asked for while this run failed is due all the same."""
    with transaction.atomic():
        mine = Job.objects.select_for_update().filter(pk=running.id, token=running.token)
        job = mine.first()
        if job is None:
            return
        if job.requested == running.generation:
            _conclude_failed(job, message)
            return
        mine.update(
            state=Job.State.QUEUED,
            done=running.generation,
            token="",
            attempts=0,
            due=Now(),
            **NEVER_RUN,
        )
        transaction.on_commit(lambda: hint(job.pk, job.kind), robust=True)


def _conclude_failed(job: Job, message: str) -> None:
    """Under the row's lock: everything that was asked for has been tried."""
    Job.objects.filter(pk=job.pk).update(
        state=Job.State.FAILED, done=job.requested, token="", error=message, finished=Now()
    )
    if job.kind in _give_up:
        _give_up[job.kind](job.target, message)


def retry(job: Job) -> Job:
    """Makes a failed job due once more, with what it was asked for: the job as it is then.

    Call in a transaction. Raises UserError ``not_failed`` (409), or ``gone`` (404) when it was
    removed with what it was for.
    """
    again = Job.objects.filter(pk=job.pk, state=Job.State.FAILED).update(
        state=Job.State.QUEUED,
        requested=F("requested") + 1,
        attempts=0,
        error="",
        due=Now(),
        **NEVER_RUN,
    )
    if not again:
        present.refuse_if_gone(Job.objects.filter(pk=job.pk), "What this work was for")
        message = "This work has not failed: it is done, or on its way."
        raise UserError("not_failed", message, status=409)
    transaction.on_commit(lambda: hint(job.pk, job.kind), robust=True)
    return Job.objects.get(pk=job.pk)


def _retry_or_fail(running: Running, message: str) -> None:
    """Nothing is left to do where the job was taken over, or removed with what it was for."""
    mine = Job.objects.filter(pk=running.id, token=running.token)
    attempts = mine.values_list("attempts", flat=True).first()
    if attempts is None:
        return
    if attempts >= MAX_ATTEMPTS:
        _fail(running, message)
    else:
        _requeue(running, 2.0**attempts, error=message)
