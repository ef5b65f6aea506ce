"""What the ranks of a pool say whatever is drawn from it; worked out once, kept with the pool."""

from dataclasses import dataclass
from itertools import pairwise
from weakref import WeakKeyDictionary

import numpy as np

from estimation.core.arrays import FloatArray, Int32Array
from estimation.core.pool import Pool

_OF_POOL: WeakKeyDictionary[Pool, "PoolRanks"] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class PoolRanks:
    """Sums over all entries of a pool.

    Attributes
    ----------
    best : ndarray of int32, shape (N,)
        The best rank of every pair, beyond the depth where no run returns it.
    number : ndarray of float64, shape (k, depth + 1)
        How many topics' lists of each run reach each rank.
    """

    best: Int32Array
    number: FloatArray


def pool_ranks(pool: Pool) -> PoolRanks:
    """Return what is known of a pool, the same object as long as the pool lives."""
    if pool not in _OF_POOL:
        _OF_POOL[pool] = PoolRanks(_best(pool), _number(pool))
    return _OF_POOL[pool]


def _best(pool: Pool) -> Int32Array:
    best = np.full(len(pool), pool.depth + 1, dtype=np.int32)
    returned = np.flatnonzero(np.diff(pool.indptr))
    if len(returned):
        best[returned] = np.minimum.reduceat(pool.rank, pool.indptr[returned])
    return best


def _number(pool: Pool) -> FloatArray:
    runs = np.arange(len(pool.runs))
    lists = np.zeros((len(runs), pool.depth + 1))
    for first, last in pairwise(np.searchsorted(pool.topic, np.arange(len(pool.topics) + 1))):
        entries = slice(pool.indptr[first], pool.indptr[last])
        lists[runs, np.bincount(pool.run[entries], minlength=len(runs))] += 1.0
    number = np.cumsum(lists[:, ::-1], axis=1)[:, ::-1]
    number[:, 0] = 0.0
    return np.asarray(number, dtype=np.float64)
