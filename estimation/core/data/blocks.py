"""A pool block by block, each of some whole topics, so that nobody holds numbers of all entries.

Entries are many times as many as pairs, and stand in a file that is mapped: a block is a view of
it, and what was looked at is given back when the next one is asked for.

Why this changes no number: a block counts all topics of the pool, so that its weights have the bits
of the whole; what follows for a pair from its topic alone is put together in the order of pairs.
Sums over pairs are added up block by block, in an order that the pool alone decides.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray


class InColumns(Protocol):
    """A pool (`data.pool`)."""

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics."""

    @property
    def columns(self) -> Mapping[str, NDArray[Any]]:
        """What there is, by name."""


Pooled = TypeVar("Pooled", bound=InColumns)
OF_ENTRIES = "run", "rank", "score", "other_rank"  # columns; the others are of pairs
MOST_ENTRIES, MOST_PAIRS = 1 << 18, 1 << 15
"""Of a block, unless one topic has more: a few megabytes for each number of its entries."""


@dataclass(frozen=True, eq=False)
class PoolBlock(Generic[Pooled]):
    """Some topics of a pool.

    Attributes
    ----------
    pairs : slice
        Which pairs of the whole pool these are.
    pool : Pool
        The pool without the pairs of other topics, which it counts all the same.
    """

    pairs: slice
    pool: Pooled


def blocks(pool: Pooled, *, at_once: int = 0) -> Iterator[PoolBlock[Pooled]]:
    """Yield blocks of a pool, in its order; the pool itself if it is no larger than one, or has no
    more entries than may be looked at `at_once`.

    A block's columns are those of the pool, and are used before the next block is asked for.
    """
    pairs, entries = len(pool.columns["topic"]), len(pool.columns["run"])
    if (entries <= MOST_ENTRIES and pairs <= MOST_PAIRS) or entries <= at_once:
        yield PoolBlock(slice(0, pairs), pool)
        return
    for first, last in _bounds(pool):
        block = _block(pool, first, last)
        yield block
        for column in (*block.pool.columns.values(), pool.columns["indptr"][first:last]):
            let_go(column)


def by_block(pool: Pooled, work: Callable[[Pooled], NDArray[Any]]) -> NDArray[Any]:
    """Return numbers of all pairs, (N,), from what follows of each from its topic alone."""
    found = np.empty(0)
    for block in blocks(pool):
        part = work(block.pool)
        if block.pool is pool:
            return part
        if not len(found):
            found = np.empty(len(pool.columns["topic"]), dtype=part.dtype)
        found[block.pairs] = part
    return found


def let_go(part: NDArray[Any]) -> None:
    """Give back the memory of a part of a mapped array, of others nothing.

    Its pages are the file's: whoever looks at them again finds them there. Until somebody else
    wants the room they stay in the system's memory, but count no longer as that of the process.
    """
    whole: Any = part
    while isinstance(whole, np.ndarray):
        whole = whole.base
    if not isinstance(whole, mmap.mmap) or not part.size or not hasattr(mmap, "MADV_DONTNEED"):
        return
    begin = part.ctypes.data - np.frombuffer(whole, dtype=np.uint8).ctypes.data
    first = begin // mmap.PAGESIZE * mmap.PAGESIZE
    whole.madvise(mmap.MADV_DONTNEED, first, begin + part.nbytes - first)


def _bounds(pool: InColumns) -> Iterator[tuple[int, int]]:
    """Where the pairs of each block begin and end: as many whole topics as there is room for."""
    topic, indptr = pool.columns["topic"], pool.columns["indptr"]
    first, last = 0, 0
    for end in np.searchsorted(topic, np.arange(1, len(pool.topics) + 1)).tolist():
        pairs, entries = end - first, int(indptr[end] - indptr[first])
        if last > first and (pairs > MOST_PAIRS or entries > MOST_ENTRIES):
            yield first, last
            first = last
        last = end
    if last > first:
        yield first, last


def _block(pool: Pooled, first: int, last: int) -> PoolBlock[Pooled]:
    """The columns are views."""
    columns, pairs = dict(pool.columns), slice(first, last)
    ends = columns.pop("indptr")[first : last + 1]
    entries = slice(int(ends[0]), int(ends[-1]))
    cut = {name: each[entries if name in OF_ENTRIES else pairs] for name, each in columns.items()}
    indptr = ends - ends[0]
    indptr.flags.writeable = False
    return PoolBlock(pairs, cast("Pooled", replace(cast("Any", pool), indptr=indptr, **cut)))
