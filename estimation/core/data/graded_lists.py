"""Ranked lists with grades: all that a value needs where everything is judged.

A document of grade 0 adds nothing to any sum of gains, count or ratio, and stops no reader. So only
the entries of the other documents are taken out of a pool, a few percent of those of deep runs, and
only down to the rank that the deepest measure looks at. They are sorted once, for all measures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import IntArray, column_sums

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray, Int32Array
    from .pool import Pool

GRADE_BITS = 6  # grades go up to `measures.kinds.MAX_GRADE`, 50


@dataclass(frozen=True, eq=False)
class GradedLists:
    """Where k runs return the graded documents of T topics, those that may count for a measure.

    Attributes
    ----------
    topics, runs : int
        T and k.
    cell : ndarray of int64, shape (e,)
        The list of each entry, topic * k + run, ascending.
    rank : ndarray of int64, shape (e,)
        From 1 on, ascending within a list.
    grade : ndarray of int64, shape (e,)
    topic, best : ndarray of int64, shape (m,)
        Topic and grade of every graded document, whether a run returns it or not.
    lengths : ndarray of int64, shape (T, k), or None
        Documents in each list, where a measure of whole lists wants to know.
    """

    topics: int
    runs: int
    cell: IntArray
    rank: IntArray
    grade: IntArray
    topic: IntArray
    best: IntArray
    lengths: IntArray | None = None

    def sums(self, cell: IntArray, values: FloatArray) -> FloatArray:
        """Add up values of entries by list, from the top down, shape (T, k)."""
        total = column_sums(cell, values, number=self.topics * self.runs)
        return total.reshape(self.topics, self.runs)


def lists_of_pool(
    pool: Pool, grades: IntArray, *, last: int, counted: BoolArray | None = None
) -> GradedLists:
    """Return the graded entries of a pool.

    Parameters
    ----------
    pool : Pool
        Of documents.
    grades : ndarray of int64, shape (N,)
    last : int
        The last rank that counts.
    counted : ndarray of bool, shape (N,), optional
        Pairs that count; by default those with a grade above 0.
    """
    pairs = np.flatnonzero(grades > 0 if counted is None else counted)
    topic, best = pool.topic[pairs].astype(np.int64), grades[pairs]
    entry, number = pool.entries_of(pairs)
    cell, grade = np.repeat(topic * len(pool.runs), number), np.repeat(best, number)
    rank = pool.rank[entry]
    if last < pool.depth:
        within = np.flatnonzero(rank <= last)
        entry, rank = entry[within], rank[within]
        cell, grade = cell[within], grade[within]
    cell += pool.run[entry]
    shape = len(pool.topics), len(pool.runs)
    return sorted_lists(shape, cell, rank, grade, topic=topic, best=best)


def sorted_lists(
    shape: tuple[int, int],
    cell: IntArray,
    rank: IntArray | Int32Array,
    grade: IntArray,
    *,
    topic: IntArray,
    best: IntArray,
) -> GradedLists:
    """Return entries in any order as `GradedLists` of T topics and k runs, `shape`.

    List, rank and grade are sorted as one number, which takes a fifth of sorting positions.
    """
    rank_bits = int(rank.max(initial=1)).bit_length()
    key = cell << rank_bits
    key |= rank
    key <<= GRADE_BITS
    key |= grade
    key.sort()
    grade = key & ((1 << GRADE_BITS) - 1)
    key >>= GRADE_BITS
    ranks = key & ((1 << rank_bits) - 1)
    key >>= rank_bits
    return GradedLists(*shape, key, ranks, grade, topic, best)
