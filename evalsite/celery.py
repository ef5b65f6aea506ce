"""The Celery application: ``celery -A evalsite worker``.

Every worker's main process also runs the steward (judging.services.steward): it shows that the
worker is alive, releases lapsed leases and wakes whatever is due. No beat process is needed.
"""

import gc
import os
from functools import cache
from multiprocessing import current_process, process
from typing import Any

from celery import Celery
from celery.signals import (
    celeryd_init,
    task_prerun,
    task_received,
    worker_process_init,
    worker_ready,
    worker_shutting_down,
)
from django.conf import settings
from kombu.entity import Exchange, Queue

from evalsite import allocator, broker

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
# Celery would have every worker load every address and its views, to look for mistakes in the code.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

_BEGAN = current_process()
broker.install()
app = Celery("evalsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = [
    Queue(name, Exchange(name), routing_key=name)  # type: ignore[no-untyped-call]
    for name in (settings.CELERY_TASK_DEFAULT_QUEUE, settings.UPLOAD_QUEUE)
]
app.autodiscover_tasks()


@celeryd_init.connect
def be_patient(conf: Any, **_kwargs: Any) -> None:
    """A worker asks its broker for seconds at a time; who sends a hint must not wait for that."""
    if not settings.EMBEDDED_BROKER:
        conf.broker_transport_options = {**conf.broker_transport_options, "socket_timeout": 5}


@worker_ready.connect
def start_steward(sender: Any, **_kwargs: Any) -> None:
    from evalsite import resting  # noqa: PLC0415  (needs the application registry)
    from judging.services import steward  # noqa: PLC0415

    queues = sender.app.amqp.queues.consume_from
    if settings.EMBEDDED_BROKER:
        rest = resting.PoolAtRest(sender, settings.REST_SECONDS, load=_load)
        task_received.connect(rest.message_came, weak=False)
        steward.start(queues, then=rest.look)
    else:
        steward.start(queues)


@worker_shutting_down.connect
def stop_steward(**_kwargs: Any) -> None:
    from judging.services import steward  # noqa: PLC0415

    steward.stop()


@worker_process_init.connect
def let_start_processes(**_kwargs: Any) -> None:
    """Celery's own library of processes says of this one, also to the standard library, that it
    may have no children. Jobs start some: of the process that Celery began with nothing is said."""
    vars(process)["_current_process"] = _BEGAN


@task_prerun.connect
def load_what_jobs_need(**_kwargs: Any) -> None:
    """By the process that does the first of them, or as soon as people are at work: a worker at
    rest has none of it, and its main process never does."""
    _load()


@cache
def _load() -> None:
    """What is loaded by now stays: looking through it again and again would cost a third of a job
    that makes many objects."""
    from judging.services import jobs  # noqa: PLC0415

    allocator.keep_small()
    jobs.register_all()
    gc.collect()
    gc.freeze()
