"""Sums over the pairs of each topic: what topics contribute to estimates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import FloatArray, IntArray, SparseMatrix, array_digest, column_sums
from ..data.entries import ROUNDING, entries_down_to, last_of, weights_of
from ..data.kept import kept
from .products import BLOCK_PAIRS
from .rows import taken, those_many_first

if TYPE_CHECKING:
    from ..data.pool import Pool
    from ..measures.table import Measure
    from .rows import FoundRows

MOST_ENTRIES = 3_000_000  # of judged pairs that are kept with a pool: 96 MB, most of past batches
MOST_RANKS = 8_000_000  # of entries that are kept with a pool, 64 MB
_entries, _number = attrgetter("weights.nnz"), attrgetter("nnz")


@dataclass(frozen=True, eq=False)
class TopicSums:
    """Sums by topic over n sampled pairs, whose topics are from 0 on, (n,).

    With the factors that an estimator multiplies weights by, they are what each topic contributes
    to the estimated values: columns sum to these, but for rounding.
    """

    weights: SparseMatrix
    topic: IntArray
    topics: int

    @classmethod
    def of_found(cls, found: FoundRows, topic: IntArray, topics: int) -> TopicSums:
        """Return sums whose factors are 0 but for some rows, as from `rows.found_rows`."""
        rows, some = found
        return OfSome(rows, topic[some], topics, some)

    def of(self, factors: FloatArray, *, power: int = 1) -> FloatArray:
        """Return the sum of factors, (n,), times weights to a power, shape (topics, k).

        Of few pairs, if the factors of most are 0, as the labels of most are.
        """
        counted = np.flatnonzero(factors)
        if len(counted) < len(factors) / 2:
            few = TopicSums(self.weights[counted], self.topic[counted], self.topics)
            return few._sums(factors[counted], power)
        return self._sums(factors, power)

    def _sums(self, factors: FloatArray, power: int) -> FloatArray:
        some, number = self._filled
        entries = self.weights.data**power * np.repeat(factors[some], number)
        runs = self.weights.shape[1]
        sums = column_sums(self._cells, entries, number=self.topics * runs)
        return sums.reshape(self.topics, runs)

    def work_ahead(self) -> None:
        """Work out what sums take beside the factors, where that is kept."""

    def many_first(self) -> tuple[IntArray, SparseMatrix]:
        """Return the pairs, those of many runs first, and their weights, for sums of products.

        A copy, which is not kept with the pool.
        """
        order = those_many_first(self.weights, np.arange(len(self.topic)), above=BLOCK_PAIRS)
        return order, taken(self.weights, order)

    @cached_property
    def _filled(self) -> tuple[IntArray, IntArray]:
        """The pairs with entries, and their numbers: most have a label of 0, and none."""
        number = np.diff(self.weights.indptr)
        some = np.flatnonzero(number)
        return some, number[some]

    @cached_property
    def _cells(self) -> IntArray:
        some, number = self._filled
        first = np.repeat(self.topic[some] * self.weights.shape[1], number)
        return np.asarray(first + self.weights.indices, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class OfSome(TopicSums):
    """The same, of which rows are those of some of the n pairs: the factors of others are 0."""

    some: IntArray

    def of(self, factors: FloatArray, *, power: int = 1) -> FloatArray:
        """Return the same, from factors of all n pairs."""
        return self._sums(factors[self.some], power)


@dataclass(frozen=True, eq=False)
class JudgedSums(TopicSums):
    """The same where they are kept and asked for often, of factors of which few are 0."""

    def of(self, factors: FloatArray, *, power: int = 1) -> FloatArray:
        """Return the same; the terms of a sum stand beside one another."""
        rows = self.by_cell
        if power != 1:
            rows = sparse.csr_array((rows.data**power, rows.indices, rows.indptr), rows.shape)
        return np.asarray(rows @ factors, dtype=np.float64).reshape(self.topics, -1)

    def work_ahead(self) -> None:
        """Turn the weights round."""
        _ = self.by_cell

    @cached_property
    def by_cell(self) -> SparseMatrix:
        """The weights turned round, a row for each topic and run, (topics k, n)."""
        runs = self.weights.shape[1]
        place, shape = (self._cells, self.weights.indptr), (len(self.topic), self.topics * runs)
        cells = sparse.csr_array((self.weights.data, *place), shape=shape)
        return cells.T.tocsr()


def judged_sums(pool: Pool, measure: Measure, pairs: IntArray) -> TopicSums:
    """Return sums of the weights of all judged pairs, in which no label is: they are kept."""

    def work() -> TopicSums:
        weights = weights_of(pool, measure, pairs, wanted=np.ones(len(pairs), dtype=np.bool_))
        sums = JudgedSums if weights.nnz <= MOST_ENTRIES else TopicSums
        return sums(weights, pool.topic[pairs].astype(np.int64), len(pool.topics))

    key = measure, array_digest(pairs)
    return kept(pool.kept, "judged sums", key, work, most=MOST_ENTRIES, size=_entries)


def totals_by_topic(pool: Pool, measure: Measure, labels: FloatArray) -> FloatArray:
    """Add up w_ij times the label of every pair, (N,), over the pairs of each topic, (T, k).

    Ranks that are less than rounding together do not count, as in `weights_of`.
    """
    pool.check_measure(measure)
    runs, topics, table = len(pool.runs), len(pool.topics), pool.rank_weights(measure)
    if table is None:
        entries = pool.entry_weights(measure) * np.repeat(labels, np.diff(pool.indptr))
        return column_sums(pool.entry_cell, entries, number=topics * runs).reshape(topics, runs)
    ranks = _turned(pool, last_of(table, share=ROUNDING))
    place = ranks.indices, ranks.indptr
    weights = sparse.csr_array((table[ranks.data], *place), shape=ranks.shape)
    return np.asarray(weights @ labels, dtype=np.float64).reshape(topics, runs)


def _turned(pool: Pool, last: int) -> SparseMatrix:
    """Ranks down to a last one, a row for each topic and run: sums over pairs take a third of the
    time from these, with their terms in the same order."""

    def work() -> SparseMatrix:
        found = entries_down_to(pool, last)
        cells = np.repeat(pool.topic.astype(np.int64) * len(pool.runs), found.numbers)
        cells += found.run
        shape = len(pool), len(pool.topics) * len(pool.runs)
        narrow = sparse.get_index_dtype(maxval=max(shape[1], len(cells)))
        place = cells.astype(narrow), found.ends.astype(narrow)
        return sparse.csr_array((found.rank, *place), shape=shape).T.tocsr()

    return kept(pool.kept, "ranks by topic", last, work, most=MOST_RANKS, size=_number)
