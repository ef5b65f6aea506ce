"""Which jobs are due, and how their rows change: statements that are compiled once.

Every judgment asks for a job, and every job is claimed, fenced and finished. How far moments lie
from now is given with each statement, so that it is what the settings say then.
"""

from dataclasses import dataclass, fields
from datetime import timedelta

from django.conf import settings
from django.db.models import Case, DurationField, Expression, F, Q, QuerySet, Value, When
from django.db.models.expressions import Combinable
from django.db.models.functions import Now

from judging.clock import from_now
from judging.models import Job
from judging.statements import Slot, changes, columns_of, reads

MAX_ATTEMPTS = 3
HINT_AGAIN_SECONDS = 15
LONGEST_WAIT_SECONDS = 3600
"""More than any handler asks for by `NotYet`, but for the sweep of files, which waits as long as a
job may take."""
NEVER_RUN = {"progress": 0, "note": "", "started": None, "finished": None}


@dataclass(frozen=True)
class JobTimes:
    """``lease`` is the end of one that begins now. No job waits until ``never``, and no lease
    reaches to ``beyond``. Whoever was told since ``lately`` is not told again."""

    lease: Combinable
    never: Combinable
    beyond: Combinable
    lately: Combinable


def durations() -> dict[str, timedelta]:
    """How far the moments lie from now, as the settings have it."""
    seconds = {
        "lease": settings.JOB_LEASE_SECONDS,
        "never": max(LONGEST_WAIT_SECONDS, settings.CELERY_TASK_TIME_LIMIT),
        "beyond": 10 * settings.JOB_LEASE_SECONDS,
        "lately": -HINT_AGAIN_SECONDS,
    }
    return {name: timedelta(seconds=number) for name, number in seconds.items()}


def times() -> JobTimes:
    return JobTimes(**{name: from_now(Value(far)) for name, far in durations().items()})


_GIVEN = JobTimes(
    **{each.name: from_now(Slot(each.name, DurationField())) for each in fields(JobTimes)}
)


def due(at: JobTimes) -> Q:
    """Queued and due, or running under a lapsed lease. What would be due later than any work waits
    was asked for under a clock that was ahead, and was set back."""
    now_or_never = Q(due__lte=Now()) | Q(due__gt=at.never)
    return Q(state=Job.State.QUEUED) & now_or_never | lapsed(at)


def lapsed(at: JobTimes) -> Q:
    """A lease that reaches much further than any does is of a clock that was ahead, and was set
    back; one that reaches somewhat further, of a worker with another JOB_LEASE_SECONDS."""
    over = Q(lease_until__lt=Now()) | Q(lease_until__gt=at.beyond)
    return Q(state=Job.State.RUNNING) & over


def untold(at: JobTimes) -> QuerySet[Job]:
    """What is due and was not hinted lately, since it is due.

    The hint of a job whose lease has lapsed was used up by the worker that took it. One of the time
    to come is of a clock that was ahead: it was long ago.
    """
    recent = Q(hinted__gte=at.lately, hinted__lte=Now())
    lately = recent & Q(hinted__gte=F("due"))
    unused = Q(state=Job.State.QUEUED) | Q(hinted__gte=F("lease_until"))
    return Job.objects.filter(due(at)).exclude(lately & unused)


def _anew(where: Q, **otherwise: Expression) -> dict[str, Case]:
    """Nothing of an earlier run, where the job waits for another one."""
    kinds = {each.name: each for each in Job._meta.concrete_fields}
    return {
        name: Case(
            When(where, then=Value(value)),
            default=otherwise.get(name, F(name)),
            output_field=kinds[name],
        )
        for name, value in NEVER_RUN.items()
    }


def _renewed() -> tuple[QuerySet[Job], dict[str, object]]:
    """Also while it runs, what is asked for has all its attempts before it."""
    running = When(state=Job.State.RUNNING, then=Value(Job.State.RUNNING))
    was_due = When(state=Job.State.QUEUED, due__lte=Now(), then=F("due"))
    return Job.objects.filter(kind=Slot("kind"), target=Slot("target")), {
        "requested": F("requested") + 1,
        "data": Slot("data", Job._meta.get_field("data")),
        "state": Case(running, default=Value(Job.State.QUEUED)),
        "attempts": 0,
        "due": Case(was_due, default=Now()),
        "error": "",
        **_anew(~Q(state=Job.State.RUNNING)),
    }


def _claimed() -> tuple[QuerySet[Job], dict[str, object]]:
    free = Job.objects.filter(due(_GIVEN), pk=Slot("pk"), attempts__lt=MAX_ATTEMPTS)
    return free, {
        "state": Job.State.RUNNING,
        "token": Slot("token"),
        "lease_until": _GIVEN.lease,
        "attempts": F("attempts") + 1,
        "started": Now(),
        "finished": None,
        "progress": 0,
        "note": "",
        "error": "",
    }


def _mine() -> QuerySet[Job]:
    return Job.objects.filter(pk=Slot("pk"), token=Slot("token"))


def _finished() -> tuple[QuerySet[Job], dict[str, object]]:
    """The hint of what was done is used up: what is asked for next may be due within the same
    millisecond."""
    asked = Q(requested__gt=Slot("generation"))
    again = When(asked, then=Value(Job.State.QUEUED))
    return _mine(), {
        "state": Case(again, default=Value(Job.State.DONE)),
        "done": Slot("generation"),
        "token": "",
        "attempts": 0,
        "hinted": None,
        "due": Case(When(asked, then=Now()), default=F("due")),
        **_anew(asked, progress=Value(100), finished=Now()),
    }


def _untold_one() -> QuerySet[Job, tuple[int, str]]:
    return untold(_GIVEN).filter(pk=Slot("pk")).values_list("pk", "kind")


RENEWED = changes(_renewed, returning=columns_of(Job))
CLAIMED = changes(_claimed, returning=columns_of(Job))
PROLONGED = changes(lambda: (_mine(), {"lease_until": _GIVEN.lease}))
FINISHED = changes(_finished, returning=("state",))
UNTOLD = reads(_untold_one)
HINTED = changes(lambda: (Job.objects.filter(pk=Slot("pk")), {"hinted": Now()}))
