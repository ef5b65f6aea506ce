"""Which workers are alive, and what waits because none of them serves its queue."""

from collections import Counter
from dataclasses import dataclass

from django.conf import settings
from django.db.models import QuerySet

from judging.clock import seconds_from_now
from judging.models import WorkerHeartbeat

WAITS = {
    settings.UPLOAD_QUEUE: "files are not read",
    settings.CELERY_TASK_DEFAULT_QUEUE: "nothing is drawn or computed",
}


@dataclass(frozen=True)
class Service:
    """The workers that are ``alive``, and how many of them serve a queue."""

    queue: str
    serving: int
    alive: int

    @property
    def missing(self) -> str:
        """How a sentence about it begins; empty while somebody serves the queue."""
        if self.serving:
            return ""
        if self.alive:
            return f"No worker serves the queue “{self.queue}”"
        return "No worker is alive"

    @property
    def mend(self) -> str:
        if not self.alive:
            return "“python manage.py up” starts one with the web server."
        queues = ",".join(dict.fromkeys([self.queue, settings.CELERY_TASK_DEFAULT_QUEUE]))
        return f"Start one with “celery -A evalsite worker --queues {queues}”."

    @property
    def waits(self) -> str:
        """What does not happen while nobody serves the queue."""
        return WAITS[self.queue]


def serving(kind: str) -> Service:
    """Of the queue that jobs of this kind are taken from."""
    return _services()[settings.JOB_QUEUES.get(kind, settings.CELERY_TASK_DEFAULT_QUEUE)]


def unserved() -> list[Service]:
    """The queues that nobody serves: all of them if no worker is alive."""
    return [each for each in _services().values() if not each.serving]


def alive() -> int:
    """Workers whose heartbeat was seen lately."""
    return len(_seen())


def _services() -> dict[str, Service]:
    """Of every queue. A worker that did not say what it serves serves all."""
    seen = _seen()
    serve = Counter(name for queues in seen for name in queues.split(",") if queues)
    silent = seen.count("")
    return {queue: Service(queue, serve[queue] + silent, len(seen)) for queue in WAITS}


def living() -> QuerySet[WorkerHeartbeat]:
    """Seen lately; one of the time to come was seen by a clock that has been set back since."""
    silent = settings.WORKER_SILENT_SECONDS
    lately = (seconds_from_now(-silent), seconds_from_now(silent))
    return WorkerHeartbeat.objects.filter(seen__range=lately)


def _seen() -> list[str]:
    return list(living().values_list("queues", flat=True))
