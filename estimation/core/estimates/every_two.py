"""Products of every two entries of pairs that few runs return, one by one.

A dense block of such pairs is nearly all zeros. What is added up is the same without these, number
by number and in the same order, so that sums have the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..arrays import FloatArray, Indices, IntArray

WORTH = 32  # products of a dense block that take as long as one of two entries


@dataclass(frozen=True, eq=False)
class EveryTwo:
    """Every two entries of each pair, in the order of the pairs.

    Attributes
    ----------
    run : ndarray of int, shape (e,)
        Of each entry.
    first : ndarray of int64, shape (f,)
        Places of the entries of pairs that have several.
    behind : ndarray of int64, shape (f,)
        How many of their pair stand behind each.
    second : ndarray of int64, shape (m,)
        The places of these.
    cell : ndarray of int64, shape (m,)
        The place of both runs in a matrix of runs, above its diagonal.
    runs : int
    """

    run: Indices
    first: IntArray
    behind: IntArray
    second: IntArray
    cell: IntArray
    runs: int

    @classmethod
    def of(cls, run: Indices, bounds: Indices, runs: int) -> EveryTwo:
        """Find them, the entries of pair i being those from bounds[i] to bounds[i + 1]."""
        number = np.diff(bounds)
        several = number > 1
        first = np.flatnonzero(np.repeat(several, number))
        behind = np.repeat(bounds[1:][several] - 1, number[several]) - first
        second = np.repeat(first + 1 - (np.cumsum(behind) - behind), behind)
        second += np.arange(len(second))
        cell = np.repeat(run[first] * np.int64(runs), behind)
        cell += run[second]
        return cls(run, first, behind, second, cell, runs)

    @property
    def nbytes(self) -> int:
        """What they take in memory."""
        return sum(each.nbytes for each in (self.first, self.behind, self.second, self.cell))

    def gram(self, data: FloatArray) -> FloatArray:
        """Return sum_i a_ij a_il of entries, (e,), shape (k, k), exactly symmetric."""
        above = self._above(data, data)
        total = above + above.T
        np.fill_diagonal(total, self._own(np.square(data)))
        return total

    def products(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return sum_i a_ij b_il of two numbers of each entry, (e,), shape (k, k)."""
        total = self._above(left, right) + self._above(right, left).T
        np.fill_diagonal(total, self._own(left * right))
        return total

    def _above(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """The sums for j < l; 0 elsewhere."""
        products = np.repeat(first[self.first], self.behind)
        products *= second[self.second]
        sums = np.bincount(self.cell, products, self.runs**2).reshape(self.runs, self.runs)
        return np.asarray(sums, dtype=np.float64)

    def _own(self, data: FloatArray) -> FloatArray:
        """Sums of numbers of the entries of each run."""
        return np.asarray(np.bincount(self.run, data, self.runs), dtype=np.float64)


def are_few(bounds: Indices, runs: int) -> bool:
    """Whether the products of every two entries take less time than those of a dense block."""
    number = np.diff(bounds).astype(np.int64)
    products = int((number * (number - 1)).sum()) // 2
    return WORTH * products < int(bounds[-1] - bounds[0]) * runs
