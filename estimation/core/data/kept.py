"""What is worked out from a pool and not from judgments: kept with the pool for the next time.

Nothing that depends on a grade may be kept: every recompute reads all judgments anew, so that there
is no state which could disagree with them.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

Result = TypeVar("Result")
nbytes = attrgetter("nbytes")  # a `size`: what results take in memory


def kept(
    of_pool: dict[str, Any],
    kind: str,
    key: Hashable,
    work: Callable[[], Result],
    *,
    most: int = 1,
    size: Callable[[Any], int] = lambda _: 1,
) -> Result:
    """Return what was worked out before, or work it out now.

    Parameters
    ----------
    of_pool : dict
        `Pool.kept`.
    kind : str
        What is worked out; `key` says of what, apart from the pool.
    key : hashable
        Equal only for what has equal results.
    work : callable
    most : int
        Results of this kind that are kept: those that were asked for last.
    size : callable, optional
        For how many results each counts; by default one. The last one is always kept.
    """
    results = of_pool.setdefault(kind, {})
    found = results.pop(key) if key in results else work()
    results[key] = found  # at the end: the first one was not asked for for the longest time
    while len(results) > 1 and sum(map(size, results.values())) > most:
        del results[next(iter(results))]
    return found
