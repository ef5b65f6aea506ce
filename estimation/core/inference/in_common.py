"""What every two runs have in common: summed over pairs, the smaller of their two weights.

max(0, a - b) = a - min(a, b), and min(a, b) is 0 unless both runs return the pair. So what one run
may gain over another on some pairs is its own weight there, less what both have in common.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.distance import pdist

from ..arrays import FloatArray, IntArray, SparseMatrix, column_sums

if TYPE_CHECKING:
    from collections.abc import Iterator

# Share of the runs that return a pair from which on comparing all runs there is faster.
LEAST_FILLED = 0.3
BLOCK = 1 << 15  # weights that are compared at a time: they stay in the processor's cache
_AT_ONCE = 1 << 18  # comparisons of two entries of one pair, to bound memory
_SIZES = np.array([each << power for power in range(30) for each in (2, 3)])


def in_common(rows: SparseMatrix) -> FloatArray:
    """Return sum_i min(w_ij, w_il) for every two runs, shape (k, k), exactly symmetric.

    Weights are >= 0, the runs of each pair in ascending order. Added up in a fixed order and
    without BLAS, so that threads have no influence. The diagonal, which nobody needs, is 0.
    """
    runs, counts = rows.shape[1], np.diff(rows.indptr)
    pairs = np.flatnonzero(counts > 1)
    filled = counts[pairs] >= LEAST_FILLED * runs
    total = np.zeros((runs, runs))
    for run, weight in _of_few_runs(rows, pairs[~filled]):
        total += _one_by_one(run, weight, runs)
    step, many = max(1, BLOCK // runs), pairs[filled]
    for start in range(0, len(many), step):
        total += _all_at_once(rows[many[start : start + step]].T.toarray())
    return total + total.T


def _of_few_runs(rows: SparseMatrix, pairs: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
    """Runs and weights of pairs that about as many runs return, in blocks (m, n).

    Pairs of fewer than m runs are filled up with what stands behind them, at the weight 0, so that
    blocks are few and large.
    """
    starts, ends = rows.indptr[:-1][pairs], rows.indptr[1:][pairs]
    sizes = _SIZES[np.searchsorted(_SIZES, ends - starts)]
    for size in np.unique(sizes).tolist():
        same = np.flatnonzero(sizes == size)
        for some in np.array_split(same, -(-len(same) * size**2 // _AT_ONCE)):
            places = starts[some] + np.arange(size)[:, None]
            inside = places < ends[some]
            np.minimum(places, len(rows.data) - 1, out=places)
            yield rows.indices[places], rows.data[places] * inside


def of_shared_pairs(starts: IntArray, counts: IntArray) -> Iterator[IntArray]:
    """Places of the entries of pairs that m runs return, for every m >= 2, in blocks (n, m)."""
    order = np.argsort(counts, kind="stable")
    starts, counts = starts[order], counts[order]
    for number in np.unique(counts[counts > 1]).tolist():
        first = starts[slice(*np.searchsorted(counts, [number, number + 1]))]
        for some in np.array_split(first, -(-len(first) * number**2 // _AT_ONCE)):
            yield some[:, None] + np.arange(number)


def _one_by_one(run: IntArray, weight: FloatArray, runs: int) -> FloatArray:
    """Of m runs that return each of n pairs, (m, n); above the diagonal, as runs ascend."""
    first, second = np.triu_indices(len(run), k=1)
    cells = run.astype(np.int64)[first] * runs + run[second]
    smaller = np.minimum(weight[first], weight[second])
    return column_sums(cells.ravel(), smaller.ravel(), number=runs**2).reshape(runs, runs)


def _all_at_once(weight: FloatArray) -> FloatArray:
    """Of all runs, weights (k, n), by 2 min(a, b) = a + b - |a - b|; above the diagonal."""
    own, above = weight.sum(axis=1), np.triu_indices(len(weight), k=1)
    total = np.zeros((len(weight), len(weight)))
    total[above] = (own[above[0]] + own[above[1]] - pdist(weight, "cityblock")) / 2.0
    return total
