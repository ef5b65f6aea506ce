"""What every worker does beside its tasks, in one thread of its main process, every few seconds.

Shows that the worker is alive, gives lapsed places back, and wakes whatever is due. All of it is
safe to do from any number of workers at once.
"""

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterable

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from judging.clock import seconds_from_now
from judging.models import AuditEntry, User, WorkerHeartbeat
from judging.services import assignments, jobs, quality

log = logging.getLogger(__name__)
_stop = threading.Event()


def nothing_more() -> None:
    """What most workers do after a turn."""


def start(queues: Iterable[str] = (), then: Callable[[], None] = nothing_more) -> None:
    """For a worker that takes work from these queues; from all, if none is named.

    ``then`` is done after every turn, while the thread may still use the database.
    """
    _stop.clear()
    args = (",".join(sorted(queues)), then)
    threading.Thread(target=_loop, args=args, name="steward", daemon=True).start()


def stop() -> None:
    _stop.set()


def _loop(queues: str, then: Callable[[], None]) -> None:
    name = f"{socket.gethostname()}:{os.getpid()}"
    while not _stop.is_set():
        try:
            beat(name, queues)
            sweep()
            then()
        except Exception:
            log.warning("the steward's turn failed; it will try again", exc_info=True)
        finally:
            connection.close()  # also so that no forked child inherits it
        _stop.wait(settings.SWEEP_SECONDS)
    WorkerHeartbeat.objects.filter(name=name).delete()
    connection.close()


def beat(name: str, queues: str = "") -> None:
    if not WorkerHeartbeat.objects.filter(name=name).update(seen=Now(), queues=queues):
        WorkerHeartbeat.objects.get_or_create(name=name, defaults={"queues": queues})
        lately = (seconds_from_now(-3600), seconds_from_now(3600))
        WorkerHeartbeat.objects.exclude(seen__range=lately).delete()


def forget_those_of_this_machine() -> None:
    """Of workers that were killed a moment ago; one that lives beats again within seconds."""
    WorkerHeartbeat.objects.filter(name__startswith=f"{socket.gethostname()}:").delete()


def sweep() -> None:
    assignments.release_lapsed()
    quality.wake()
    jobs.wake_due()


def people_at_work(seconds: float) -> bool:
    """Has anybody signed in, or done what the log tells of, within the last seconds?"""
    since = seconds_from_now(-seconds)
    last = AuditEntry.objects.order_by("-pk")[:1]
    done = AuditEntry.objects.filter(pk__in=last, created__gte=since)
    return done.exists() or User.objects.filter(last_login__gte=since).exists()
