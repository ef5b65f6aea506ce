"""What the ranks of a pool say whatever is drawn from it; worked out once, kept with the pool."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import FloatArray, Int32Array, IntArray, column_sums, frozen
from .blocks import blocks
from .kept import kept

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..measures.table import Measure
    from .pool import Pool

# Sums by run and rank are taken where lists fill at least this share of topics, runs and ranks.
LEAST_FILLED = 0.1


def best_rank(pool: Pool) -> Int32Array:
    """Return the best rank of every pair, (N,), beyond the depth where no run returns it."""
    return kept(pool.kept, "best rank", None, lambda: _best_rank(pool))


def _best_rank(pool: Pool) -> Int32Array:
    best = np.full(len(pool), pool.depth + 1, dtype=np.int32)
    returned = np.flatnonzero(np.diff(pool.indptr))
    if len(returned):
        best[returned] = np.minimum.reduceat(pool.rank, pool.indptr[returned])
    return frozen(best)


def number_of_runs(pool: Pool) -> Int32Array:
    """Return how many runs return each pair, (N,)."""
    return kept(
        pool.kept, "number of runs", None, lambda: frozen(np.diff(pool.indptr).astype(np.int32))
    )


def number_by_rank(pool: Pool) -> FloatArray:
    """Return how many topics' lists of each run reach each rank, shape (k, depth + 1).

    Of a pool of documents, where every rank of a list is one entry.
    """
    return kept(pool.kept, "number by rank", None, lambda: _number_by_rank(pool))


def _number_by_rank(pool: Pool) -> FloatArray:
    runs = np.arange(len(pool.runs))
    lists = np.zeros((len(runs), pool.depth + 1))
    for block in blocks(pool):
        some = block.pool
        starts = np.flatnonzero(np.diff(some.topic, prepend=-1))
        for first, last in pairwise([*starts.tolist(), len(some)]):
            entries = slice(some.indptr[first], some.indptr[last])
            lists[runs, np.bincount(some.run[entries], minlength=len(runs))] += 1.0
    number = np.cumsum(lists[:, ::-1], axis=1)[:, ::-1]
    number[:, 0] = 0.0
    return frozen(number)


def total_weights(pool: Pool, measure: Measure) -> FloatArray:
    """Return every run's weight on all pairs, the sum of its w_ij, shape (k,)."""
    weights = weights_by_rank(pool, measure)
    if weights is None:
        return column_sums(pool.run, pool.entry_weights(measure), number=len(pool.runs))
    return np.asarray((number_by_rank(pool) * weights).sum(axis=1), dtype=np.float64)


def weights_by_rank(pool: Pool, measure: Measure) -> FloatArray | None:
    """Return the weights of the ranks, shape (depth + 1,), where they say all of full lists."""
    pool.check_measure(measure)
    weights = pool.rank_weights(measure)
    places = len(pool.topics) * len(pool.runs) * pool.depth
    return weights if len(pool.run) > LEAST_FILLED * places else None


def number_of_pairs(pool: Pool, pairs: IntArray) -> FloatArray:
    """Return how many of n pairs, ascending, each run has at each rank, (k, depth + 1)."""
    number = np.zeros((len(pool.runs), pool.depth + 1))
    for block in blocks(pool):
        first, last = np.searchsorted(pairs, (block.pairs.start, block.pairs.stop)).tolist()
        if first < last:
            some = pairs[first:last] - block.pairs.start
            number += rank_sums(block.pool, some, [np.ones(len(some))])[0]
    return number


def rank_sums(pool: Pool, pairs: IntArray, values: Sequence[FloatArray]) -> list[FloatArray]:
    """Add up each of c values that n pairs have by run and rank: c arrays of shape (k, depth + 1).

    The sums are over the pairs that the run returns at the rank; at rank 0 there are none.
    """
    entries, ranks = pool.by_pair(pool.rank)[pairs], pool.depth + 1
    places = len(pool.runs) * ranks
    cells = entries.indices.astype(sparse.get_index_dtype(maxval=places), copy=False)
    cells *= ranks
    cells += entries.data
    matrix = np.ones(len(cells)), cells, entries.indptr
    of_cells = sparse.csr_array(matrix, shape=(len(pairs), places)).T
    sums = of_cells @ np.stack(values, axis=1)  # in one pass
    return [np.ascontiguousarray(each).reshape(-1, ranks) for each in sums.T]
