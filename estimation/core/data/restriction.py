"""The same pairs with some of the runs only: what was sampled stays."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import frozen
from .ranked_lists import PoolError

if TYPE_CHECKING:
    from collections.abc import Collection

    from .pool import Pool


def restricted(pool: Pool, runs: Collection[str]) -> Pool:
    """Return the pool with the entries of some of its runs, and with all of its pairs.

    Pairs that none of these runs returns stay: a sample was drawn from all of them, and ratio
    measures count them.

    Parameters
    ----------
    pool : Pool
    runs : collection of str
        Tags of the runs that stay; at least one.

    Raises
    ------
    PoolError
        If a tag is not that of a run of the pool, or there is none.

    Examples
    --------
    >>> from estimation.core import pool_runs, rank_scores
    >>> lists = {"a": rank_scores({"1": {"d1": 2.0}}), "b": rank_scores({"1": {"d2": 1.0}})}
    >>> one = restricted(pool_runs(lists, depth=1), ["a"])
    >>> one.runs, len(one)
    (('a',), 2)
    """
    unknown = set(runs) - set(pool.runs)
    if unknown or not runs:
        raise PoolError(f"no such run: {min(unknown)}" if unknown else "no run is left")
    stays = np.array([tag in set(runs) for tag in pool.runs])
    entry = stays[pool.run]
    number = np.cumsum(stays, dtype=np.int32) - 1
    counts = np.bincount(pool.entry_pair[entry], minlength=len(pool))
    return replace(
        pool,
        runs=tuple(tag for tag in pool.runs if tag in set(runs)),
        indptr=frozen(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)),
        run=frozen(number[pool.run[entry]].astype(np.int32)),
        rank=frozen(pool.rank[entry]),
        score=None if pool.score is None else frozen(pool.score[entry]),
        other_rank=None if pool.other_rank is None else frozen(pool.other_rank[entry]),
    )
