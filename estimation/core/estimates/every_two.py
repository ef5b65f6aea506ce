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
    cell : ndarray of int64, shape (e + m,)
        The place of the run of each entry, and then of both of every two, in a matrix of runs: on
        its diagonal and above it.
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
        one, other = np.repeat(run[first], behind), run[second]
        above = np.minimum(one, other) * np.int64(runs) + np.maximum(one, other)
        cell = np.concatenate([run * np.int64(runs + 1), above])
        return cls(run, first, behind, second, cell, runs)

    def upper_gram(self, data: FloatArray) -> FloatArray:
        """Return sum_i a_ij a_il of entries, (e,), for j <= l, and 0 below: shape (k, k)."""
        numbers = np.concatenate([np.square(data), self._products(data, data)])
        return _matrix(self.cell, numbers, self.runs)

    def products(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return sum_i a_ij b_il of two numbers of each entry, (e,), shape (k, k)."""
        one, other = np.repeat(self.run[self.first], self.behind), self.run[self.second]
        of_two = one * np.int64(self.runs) + other, other * np.int64(self.runs) + one
        cell = np.concatenate([self.run * np.int64(self.runs + 1), *of_two])
        products = self._products(left, right), self._products(right, left)
        return _matrix(cell, np.concatenate([left * right, *products]), self.runs)

    def _products(self, first: FloatArray, second: FloatArray) -> FloatArray:
        products = np.repeat(first[self.first], self.behind)
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
