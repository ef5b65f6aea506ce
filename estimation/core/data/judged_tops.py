"""How many of the first documents of lists are judged: what tells whether others may count as 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from .entries import entries_down_to

if TYPE_CHECKING:
    from ..arrays import BoolArray, IntArray
    from .pool import Pool


class JudgedTops(Protocol):
    """Lists of T topics and k runs whose documents are judged or not."""

    def counts(self, depth: int) -> tuple[IntArray, IntArray]:
        """Return how many of the first `depth` documents are judged, and how many there are.

        Each of shape (T, k).
        """


@dataclass(frozen=True, eq=False)
class PooledTops:
    """Lists of a pool; `judged`, (N,), says of every pair whether it is."""

    pool: Pool
    judged: BoolArray

    def counts(self, depth: int) -> tuple[IntArray, IntArray]:
        pool, shape = self.pool, (len(self.pool.topics), len(self.pool.runs))
        entries = entries_down_to(pool, depth)
        pair = np.repeat(np.arange(len(pool)), entries.numbers)
        cell = pool.topic[pair].astype(np.int64) * shape[1] + entries.run
        number = shape[0] * shape[1]
        judged = np.bincount(cell[self.judged[pair]], minlength=number)
        return judged.reshape(shape), np.bincount(cell, minlength=number).reshape(shape)


@dataclass(frozen=True, eq=False)
class ListedTops:
    """Lists one after another.

    Attributes
    ----------
    shape : tuple of int
        T, k.
    cell, start, stop : ndarray of int64, shape (l,)
        Of each list: topic * k + run, and where it stands.
    judged : ndarray of bool, shape (E,)
        Of every document, best first in each list.
    """

    shape: tuple[int, int]
    cell: IntArray
    start: IntArray
    stop: IntArray
    judged: BoolArray

    def counts(self, depth: int) -> tuple[IntArray, IntArray]:
        before = np.zeros(len(self.judged) + 1, dtype=np.int64)
        np.cumsum(self.judged, out=before[1:])
        stop = np.minimum(self.stop, self.start + depth)
        judged, there = np.zeros((2, self.shape[0] * self.shape[1]), dtype=np.int64)
        judged[self.cell] = before[stop] - before[self.start]
        there[self.cell] = stop - self.start
        return judged.reshape(self.shape), there.reshape(self.shape)
