"""Some rows of sparse arrays, one a pair, or all of them in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from ..arrays import FloatArray, Indices, IntArray, SparseMatrix


FoundRows: TypeAlias = "tuple[SparseMatrix, IntArray]"


def found_rows(weights: SparseMatrix, labels: FloatArray) -> FoundRows:
    """Return the rows that add something, and which they are: with entries and a label, (n,).

    Most judged pairs have a label of 0: what they add is 0 in every sum.
    """
    some = np.flatnonzero((np.diff(weights.indptr) > 0) & (labels != 0.0))
    return taken(weights, some), some


def first_rows(rows: SparseMatrix, number: int) -> SparseMatrix:
    """Return the first rows of a csr_array, without a copy."""
    ends = rows.indptr[: number + 1]
    entries = rows.data[: ends[-1]], rows.indices[: ends[-1]], ends
    return sparse.csr_array(entries, shape=(number, rows.shape[1]))


def many_first(*alike: SparseMatrix, above: int) -> list[SparseMatrix]:
    """Return arrays with the same entries, pairs of many runs first, if they have more rows.

    Blocks of pairs are then filled, or few of their numbers are. Pairs of as many runs stay in
    their order. Which pairs are in a block decides in which order numbers are added up, and nothing
    else.
    """
    order = those_many_first(alike[0], np.arange(alike[0].shape[0]), above=above)
    return [taken(rows, order) for rows in alike]


def those_many_first(rows: SparseMatrix, some: IntArray, *, above: int) -> IntArray:
    """Return some rows of an array in the order of `many_first`, if they are more."""
    if len(some) <= above:
        return some
    number = np.diff(rows.indptr)[some]
    return some if np.all(number[1:] <= number[:-1]) else some[_many_first(number)]


def taken(rows: SparseMatrix, some: IntArray) -> SparseMatrix:
    """Return rows of a csr_array; all of them, in their order, without a copy."""
    number = rows.shape[0]
    every = len(some) == number and np.array_equal(some, np.arange(number))
    return rows if every else rows[some]


def _many_first(number: Indices) -> IntArray:
    """Numbers of two bytes are sorted ten times as fast."""
    fewer = number.max(initial=0) - number
    small = fewer.max(initial=0) < 1 << 16
    return np.argsort(fewer.astype(np.uint16) if small else fewer, kind="stable")
