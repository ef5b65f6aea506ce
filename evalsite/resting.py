"""Memory of a site that has worked goes back while nobody is there and nothing is to do.

A process of a worker that has done a job keeps what it loaded for it, and what it grew to. After
`REST_SECONDS` a worker has no such process any more, only the one that takes messages. It forks
another for the next job, and lets it load all that jobs need as soon as somebody is at work, so
that nobody waits for that.

No job hangs on it: what is due stands in the database, and processes end only while their worker
has taken no message that it has not done. It is its consumer that takes them and hands them on, so
that it happens in the consumer's thread. With Redis a worker keeps its processes: each has a pipe
of its own there, in which a message may lie that is in no list yet.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from celery.worker import state

from evalsite import allocator
from judging.services import steward


@dataclass
class PoolAtRest:
    """Of the processes of one worker, whose ``consumer`` is Celery's; each does ``load`` first."""

    consumer: Any
    seconds: float
    load: Callable[[], None]
    _busy: float = field(default_factory=time.monotonic)
    _loaded: bool = False

    def look(self) -> None:
        """By the thread of the steward."""
        self.consumer.call_soon(self._decide, steward.people_at_work(self.seconds))

    def message_came(self, **_kwargs: Any) -> None:
        """It is handed to a process next."""
        self._busy, self._loaded = time.monotonic(), True
        self._fork()

    def _decide(self, at_work: bool) -> None:
        if state.reserved_requests or at_work:
            self._busy = time.monotonic()
        if at_work and not self._loaded:
            self._get_ready()
        elif time.monotonic() - self._busy >= self.seconds:
            self._rest()

    def _fork(self) -> None:
        pool = self.consumer.pool
        if missing := pool.limit - pool.num_processes:
            pool.grow(missing)

    def _get_ready(self) -> None:
        self._loaded = True
        self._fork()
        for _ in range(self.consumer.pool.num_processes):
            self.consumer.pool.apply_async(self.load)

    def _rest(self) -> None:
        pool = self.consumer.pool
        if pool.num_processes:
            self._loaded = False
            with suppress(ValueError):  # one has not said yet that it is done
                pool.shrink(pool.num_processes)
            allocator.give_back()
