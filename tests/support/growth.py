"""How work grows with its size, for tests of complexity: a loaded machine changes no ratio."""

import time
from collections.abc import Callable

LINEAR = 9.0
"""Four times the size takes 4 times where work is linear, and 16 where it is quadratic."""


def growth(work: Callable[[int], object], size: int) -> float:
    """Processor time for four times the size over that for the size, each the least of three."""
    return _least(work, 4 * size) / max(_least(work, size), 1e-4)


def _least(work: Callable[[int], object], size: int) -> float:
    return min(_seconds(work, size) for _ in range(3))


def _seconds(work: Callable[[int], object], size: int) -> float:
    started = time.thread_time()
    work(size)
    return time.thread_time() - started
