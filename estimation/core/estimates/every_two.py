"""Products of every two entries of pairs that few runs return, one by one.

A dense block of such pairs is nearly all zeros. What is added up is the same without these, number
by number and in the same order, so that sums have the same bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray, Indices, IntArray, SparseMatrix

WORTH = 32  # products of a dense block that take as long as one of two entries


@dataclass(frozen=True, eq=False)
class EveryTwo:
    """Every two entries of each pair, one of them with itself, in the order of the pairs.

    Attributes
    ----------
    run : ndarray of int, shape (e,)
        Of each entry.
    behind : ndarray of int64, shape (e,)
        How many of their pair stand from each entry on, itself among them.
    second : ndarray of int64, shape (m,)
        The places of these.
    cell : ndarray of int64, shape (m,)
        The place of the runs of both in a matrix of runs: on its diagonal and above it.
    runs : int
    """

    run: Indices
    behind: IntArray
    second: IntArray
    cell: IntArray
    runs: int

    @classmethod
    def of(cls, run: Indices, bounds: Indices, runs: int) -> EveryTwo:
        """Find them, the entries of pair i being those from bounds[i] to bounds[i + 1]."""
        entry = np.arange(len(run))
        behind = np.repeat(bounds[1:].astype(np.int64), np.diff(bounds)) - entry
        second = np.repeat(entry - (np.cumsum(behind) - behind), behind)
        second += np.arange(len(second))
        one, other = np.repeat(run, behind), run[second]
        cell = np.minimum(one, other) * np.int64(runs)
        cell += np.maximum(one, other)
        return cls(run, behind, second, cell, runs)

    def upper_gram(self, data: FloatArray) -> FloatArray:
        """Return sum_i a_ij a_il of entries, (e,), for j <= l, and 0 below: shape (k, k)."""
        return _matrix(self.cell, self._products(data, data), self.runs)

    def products(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return sum_i a_ij b_il of two numbers of each entry, (e,), shape (k, k)."""
        one, other = np.repeat(self.run, self.behind), self.run[self.second]
        turned = self._products(right, left)
        turned[np.cumsum(self.behind) - self.behind] = 0.0  # one with itself is there once
        cell = np.concatenate(
            [one * np.int64(self.runs) + other, other * np.int64(self.runs) + one]
        )
        return _matrix(cell, np.concatenate([self._products(left, right), turned]), self.runs)

    def _products(self, first: FloatArray, second: FloatArray) -> FloatArray:
        products = np.repeat(first, self.behind)
        products *= second[self.second]
        return products


def _matrix(cell: IntArray, numbers: FloatArray, runs: int) -> FloatArray:
    sums = np.bincount(cell, numbers, runs**2).reshape(runs, runs)
    return np.asarray(sums, dtype=np.float64)


def products_of_two(rows: SparseMatrix) -> IntArray:
    """Return how many products of two entries each pair has, (n,)."""
    number = np.diff(rows.indptr).astype(np.int64)
    return np.asarray(number * (number - 1) // 2, dtype=np.int64)


def are_few(products: IntArray, entries: IntArray, runs: int) -> BoolArray:
    """Whether products of every two entries take less time than those of dense blocks: of each."""
    few: BoolArray = WORTH * products <= entries * runs
    return few
