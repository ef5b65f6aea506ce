"""PostgreSQL and Redis frozen for a while, or Redis gone, while people judge."""

import contextlib
import signal
import time
from collections.abc import Callable, Iterator

import psutil

from tests.at_length.ground import Ground, family, prepare, production
from tests.at_length.tally import Tally
from tests.support.redis import RedisServer

FROZEN_SECONDS = 20.0
ABSENT_SECONDS = 60.0
LONGEST_REQUEST = 11.5  # ten, and what a loaded machine adds
RECOVERY_SECONDS = 20.0
HINT_SECONDS = 5.0


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    """SIGSTOP of a server and all that it forked: connections stay open, nobody answers."""
    stopped = family(pid)
    for process in stopped:
        _send(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in stopped:
            _send(process, signal.SIGCONT)


def _send(process: psutil.Process, number: signal.Signals) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(number)


@contextlib.contextmanager
def absent(redis: RedisServer) -> Iterator[None]:
    redis.kill()
    try:
        yield
    finally:
        redis.start()


def postgres_frozen() -> Tally:
    with production() as site:
        server = site.postgres.process
        assert server is not None
        ground = prepare(site, "PostgreSQL frozen")
        through(ground, lambda: frozen(server.pid), FROZEN_SECONDS, limit=LONGEST_REQUEST)
        return ground.tally


def redis_frozen() -> Tally:
    with production() as site:
        assert site.broker is not None
        pid = site.broker.pid
        ground = prepare(site, "Redis frozen")
        through(ground, lambda: frozen(pid), FROZEN_SECONDS, limit=HINT_SECONDS)
        none_refused(ground)
        return ground.tally


def redis_absent() -> Tally:
    with production() as site:
        broker = site.broker
        assert broker is not None
        ground = prepare(site, "Redis absent")
        through(ground, lambda: absent(broker), ABSENT_SECONDS, limit=HINT_SECONDS)
        none_refused(ground)
        return ground.tally


def through(
    ground: Ground,
    trouble: Callable[[], contextlib.AbstractContextManager[None]],
    seconds: float,
    *,
    limit: float,
) -> None:
    """Judging before, in and after the trouble; nobody may wait longer than the limit."""
    tally = ground.tally
    with ground.judging():
        ground.go_on(10)
        began, before = time.monotonic(), ground.shift.acknowledged
        with trouble():
            tally.faults += 1
            ground.go_on(seconds)
        meanwhile = ground.shift.acknowledged - before
        waited = ground.wait_more(20, seconds=60)
        tally.notes.append(f"{meanwhile} judgments acknowledged meanwhile")
        tally.expect(waited < RECOVERY_SECONDS, f"20 more judgments {waited:.1f} s afterwards")
        ground.go_on(10)
    slowest = ground.slowest(since=began)
    tally.expect(slowest < limit, f"longest request {slowest:.1f} s (at most {limit:g})")


def none_refused(ground: Ground) -> None:
    """The broker only wakes workers: without it judgments are acknowledged as ever."""
    refused = sum(person.resent for person in ground.people)
    ground.tally.expect(refused == 0, f"{refused} requests refused or without an answer")
