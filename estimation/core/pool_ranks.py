"""What the ranks of a pool say whatever is drawn from it; worked out once, kept with the pool."""

from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np

from estimation.core.arrays import FloatArray, Int32Array, frozen
from estimation.core.pool import Pool

_BEST: WeakKeyDictionary[Pool, Int32Array] = WeakKeyDictionary()
_NUMBER: WeakKeyDictionary[Pool, FloatArray] = WeakKeyDictionary()


def best_rank(pool: Pool) -> Int32Array:
    """Return the best rank of every pair, (N,), beyond the depth where no run returns it."""
    if pool not in _BEST:
        best = np.full(len(pool), pool.depth + 1, dtype=np.int32)
        returned = np.flatnonzero(np.diff(pool.indptr))
        if len(returned):
            best[returned] = np.minimum.reduceat(pool.rank, pool.indptr[returned])
        _BEST[pool] = frozen(best)
    return _BEST[pool]


def number_by_rank(pool: Pool) -> FloatArray:
    """Return how many topics' lists of each run reach each rank, shape (k, depth + 1).

    Of a pool of documents, where every rank of a list is one entry.
    """
    if pool not in _NUMBER:
        runs = np.arange(len(pool.runs))
        lists = np.zeros((len(runs), pool.depth + 1))
        for first, last in pairwise(np.searchsorted(pool.topic, np.arange(len(pool.topics) + 1))):
            entries = slice(pool.indptr[first], pool.indptr[last])
            lists[runs, np.bincount(pool.run[entries], minlength=len(runs))] += 1.0
        number = np.cumsum(lists[:, ::-1], axis=1)[:, ::-1]
        number[:, 0] = 0.0
        _NUMBER[pool] = frozen(number)
    return _NUMBER[pool]
