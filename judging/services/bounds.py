"""Bounds of work on what strangers send: processor time, time and memory, and an end when told.

A signal of a timer interrupts the work itself, so that a reader without an end is stopped as well.
"""

import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

TICK_SECONDS = 0.25
_PROCESS = Path("/proc/self/statm")


class OutOfBounds(BaseException):
    """The work was stopped; the message says by what. Not an Exception, so that no reader of a
    file takes it for a mistake in the file and goes on.
    """


class Unwanted(BaseException):
    """The work was stopped because nobody wants it any more. Not an Exception, as above."""


@dataclass(frozen=True)
class WorkBounds:
    """What one piece of work may use; 0 stands for no bound."""

    cpu_seconds: float
    seconds: float
    memory_bytes: int


@contextmanager
def kept(bounds: WorkBounds, *, unwanted: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Ends the work inside with `OutOfBounds` when it goes beyond, `Unwanted` when it is that.

    `unwanted` is asked every `TICK_SECONDS` between two instructions of the work: it must not touch
    the database. Signals reach the main thread only: in another one nothing but memory is bounded.
    """
    with _little_memory(bounds.memory_bytes), _watched(bounds, unwanted):
        try:
            yield
        except MemoryError:
            message = f"needs more than {bounds.memory_bytes // 2**20} MB of memory"
            raise OutOfBounds(message) from None


@contextmanager
def _watched(bounds: WorkBounds, unwanted: Callable[[], bool]) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    cpu, started = time.process_time(), time.monotonic()

    def look(_number: int, _frame: FrameType | None) -> None:
        if unwanted():
            raise Unwanted
        if 0 < bounds.cpu_seconds < time.process_time() - cpu:
            raise OutOfBounds(f"takes more than {bounds.cpu_seconds:g} seconds of processor time")
        if 0 < bounds.seconds < time.monotonic() - started:
            raise OutOfBounds(f"takes longer than {bounds.seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, look)
    left, interval = signal.setitimer(signal.ITIMER_REAL, TICK_SECONDS, TICK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:  # whoever had set the timer before gets the rest of it
            signal.setitimer(
                signal.ITIMER_REAL, max(TICK_SECONDS, left + started - time.monotonic()), interval
            )


@contextmanager
def _little_memory(size: int) -> Iterator[None]:
    """Bounds what this process may take beyond what it has; where the kernel says what that is."""
    if not size or not _PROCESS.exists():
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    had = int(_PROCESS.read_text().split()[0]) * resource.getpagesize()
    wanted = [had + size, *(old for old in (soft, hard) if old != resource.RLIM_INFINITY)]
    resource.setrlimit(resource.RLIMIT_AS, (min(wanted), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
