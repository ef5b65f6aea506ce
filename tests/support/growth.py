"""How work grows with its size, for tests of complexity: a loaded machine changes no ratio."""

import gc
import time
from collections.abc import Callable

LINEAR = 9.0
"""Four times the size takes 4 times where work is linear, and 16 where it is quadratic."""


def growth(work: Callable[[int], object], size: int) -> float:
    """Processor time for four times the size over that for the size, each the least of five.

    They take turns, and the collector of garbage rests: neighbors on the machine and objects of
    other tests, which it would visit, would count for the larger size only.
    """
    small, large = zip(
        *((_seconds(work, size), _seconds(work, 4 * size)) for _ in range(5)), strict=True
    )
    return min(large) / max(min(small), 1e-4)


def _seconds(work: Callable[[int], object], size: int) -> float:
    gc.collect()
    gc.disable()
    try:
        started = time.thread_time()
        work(size)
        return time.thread_time() - started
    finally:
        gc.enable()
