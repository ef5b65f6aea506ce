"""Products of every two runs of pairs, held so that sums of them for any weights are one pass."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import pieces
from ..data.entries import counted_entries, weights_of
from ..data.kept import Last, kept, nbytes
from ..upper import with_below
from .products import BLOCK_PAIRS, cross_product, cross_products
from .rows import first_rows, those_many_first

if TYPE_CHECKING:
    from ..arrays import FloatArray, Indices, IntArray, SparseMatrix
    from ..data.pool import Pool
    from ..measures.table import Measure

# Runs of a pair whose products are held one by one, and how many products are: 18 MB.
MOST_COUPLED, MOST_COUPLES = 21, 1_500_000
PIECE = 2_000  # pairs whose products are multiplied at once
# Weights of whole pools: of how many entries they are held, in how many bytes with a pool, and
# for how many times as many as are asked for.
MOST_ENTRIES, MOST_BYTES, HELD = 1_500_000, 64_000_000, 1.5


def few_runs(number: Indices) -> int:
    """Return the most runs of pairs whose products are held one by one.

    From the number of runs that return each pair.
    """
    runs = np.arange(MOST_COUPLED + 1)
    pairs = np.bincount(np.minimum(number, MOST_COUPLED + 1), minlength=MOST_COUPLED + 2)[:-1]
    held = np.cumsum(pairs * runs * (runs + 1) // 2)
    return int(np.count_nonzero(held <= MOST_COUPLES)) - 1


@dataclass(frozen=True, eq=False)
class Couples:
    """The products of every two runs of some pairs: sums of them for any weights are one pass.

    Attributes
    ----------
    first : int
        The position of the first of the pairs; all behind it are among them.
    head : csr_array, shape (first, k)
        a_ij of the pairs before it.
    cells : csr_array, shape (k k, pairs)
        a_ij a_il for j <= l: sums for any weights take less time than from the array turned round.
    """

    first: int
    head: SparseMatrix
    cells: SparseMatrix

    @classmethod
    def of(cls, rows: SparseMatrix, first: int) -> Couples:
        """Multiply out the last pairs.

        Parameters
        ----------
        rows : csr_array, shape (n, k)
            a_ij, columns ascending; of pairs of few runs (`few_runs`) behind the first ones.
        first : int
        """
        bounds, runs = rows.indptr[first:].astype(np.int64), rows.shape[1]
        number = np.diff(bounds)
        ends = np.append(0, np.cumsum(number * (number + 1) // 2))
        shape = len(number), runs**2
        narrow = sparse.get_index_dtype(maxval=max(shape[1], int(ends[-1])))
        cells, data = np.empty(ends[-1], dtype=narrow), np.empty(ends[-1])
        for piece in pieces(len(number), PIECE):
            pairs = slice(piece.start, min(piece.stop, len(number)))
            entry = np.arange(bounds[pairs.start], bounds[pairs.stop])
            behind = np.repeat(bounds[1:][pairs], number[pairs]) - entry  # with itself
            other = np.repeat(entry - (np.cumsum(behind) - behind), behind)
            other += np.arange(len(other))
            here = slice(ends[pairs.start], ends[pairs.stop])
            cells[here] = np.repeat(rows.indices[entry] * runs, behind) + rows.indices[other]
            data[here] = np.repeat(rows.data[entry], behind) * rows.data[other]
        by_pair = sparse.csr_array((data, cells, ends.astype(narrow)), shape=shape)
        return cls(first, first_rows(rows, first), sparse.csr_array(by_pair.T))

    def gram(self, weights: FloatArray) -> FloatArray:
        """Return sum_i weight_i a_ij a_il over these pairs, of weights of all n, shape (k, k)."""
        found: FloatArray = self.grams(weights[self.first :, None])[0]
        return found

    def grams(self, weights: FloatArray) -> FloatArray:
        """Return the same for several weights of these pairs alone, (pairs, n): (n, k, k)."""
        total = np.asarray(self.cells @ weights, dtype=np.float64).T
        runs = math.isqrt(total.shape[1])
        return with_below(total.reshape(-1, runs, runs))

    @property
    def nbytes(self) -> int:
        """What they take in memory."""
        held = (self.head.data, self.head.indices, self.cells.data, self.cells.indices)
        return sum(each.nbytes for each in held)


@dataclass(frozen=True, eq=False)
class HeldWeights:
    """The weights of all N pairs of a pool, held so that sums of products are one pass.

    Attributes
    ----------
    pair : ndarray of int64, shape (m,)
        The pairs with an entry, those of many runs first.
    couples : Couples
        Of the others.
    """

    pair: IntArray
    couples: Couples

    @classmethod
    def of(cls, pool: Pool, measure: Measure) -> HeldWeights:
        """Work out those of a measure of gains."""
        every = np.arange(len(pool))
        weights = weights_of(pool, measure, every, wanted=np.ones(len(pool), dtype=np.bool_))
        number = np.diff(weights.indptr)
        many = number > few_runs(number)
        first = those_many_first(weights, np.flatnonzero(many), above=0)
        pair = np.concatenate([first, np.flatnonzero(~many & (number > 0))])
        return cls(pair, Couples.of(weights[pair], len(first)))

    def gram(self, scale: FloatArray) -> FloatArray:
        """Return sum_i scale_i w_ij w_il with a scale >= 0 of every pair, (N,): shape (k, k)."""
        ordered = scale[self.pair]
        of_many = cross_products(self.couples.head, ordered[None, : self.couples.first])[0]
        return np.asarray(of_many + self.couples.gram(ordered), dtype=np.float64)

    @property
    def nbytes(self) -> int:
        """What they take in memory, about."""
        return self.couples.nbytes + int(8 * len(self.pair))


@dataclass(frozen=True, eq=False)
class JudgedProducts:
    """Sums over n judged pairs of products of what they count for in two runs.

    Attributes
    ----------
    weights : csr_array, shape (n, k)
        Rows of pairs whose scale will be 0 may be empty.
    pairs : ndarray of int64, shape (n,)
    held : HeldWeights or None
        Of all N pairs of the pool, if nearly all are judged.
    every : int
        N.
    """

    weights: SparseMatrix
    pairs: IntArray
    held: HeldWeights | None
    every: int

    @classmethod
    def of(
        cls, pool: Pool, measure: Measure, pairs: IntArray, weights: SparseMatrix
    ) -> JudgedProducts:
        """Look whether the pairs are a good part of a pool whose weights can be held.

        No judgment is in these, so that they are kept for the next one. Sums over few pairs are
        those of `products.cross_product`, with the same bits whatever other runs there are.
        """
        entries = len(counted_entries(pool, measure).run)
        worth = len(pairs) > BLOCK_PAIRS and entries <= min(MOST_ENTRIES, HELD * weights.nnz)
        if not worth:
            return cls(weights, pairs, None, len(pool))
        work = lambda: HeldWeights.of(pool, measure)  # noqa: E731
        held = kept(pool.kept, "held weights", measure, work, most=MOST_BYTES, size=nbytes)
        return cls(weights, pairs, held, len(pool))

    def gram(self, scale: FloatArray) -> FloatArray:
        """Return sum_i scale_i w_ij w_il of numbers >= 0, (n,), shape (k, k), symmetric.

        What was asked for last is told again: two estimators have the same disagreement.
        """
        return self._last.of(scale, lambda: self._gram(scale))

    def _gram(self, scale: FloatArray) -> FloatArray:
        if self.held is None:
            return cross_product(self.weights, scale)
        spread = np.zeros(self.every)
        spread[self.pairs] = scale
        return self.held.gram(spread)

    @cached_property
    def _last(self) -> Last[FloatArray]:
        return Last()
