"""The same pairs with some of the runs only: what was sampled stays. And some topics alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import frozen
from .ranked_lists import PoolError

if TYPE_CHECKING:
    from collections.abc import Collection

    from ..arrays import IntArray
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


def of_topics(pool: Pool, topics: IntArray) -> tuple[Pool, IntArray]:
    """Return the pool of some topics alone, and which pairs these have, ascending.

    Values are means over topics, so that they are those of these topics alone.

    Parameters
    ----------
    pool : Pool
    topics : ndarray of int64
        Places in `Pool.topics`, ascending.

    Examples
    --------
    >>> from estimation.core import pool_runs, rank_scores
    >>> lists = {"a": rank_scores({"1": {"d1": 2.0}, "2": {"d2": 1.0, "d3": 0.5}})}
    >>> some, pairs = of_topics(pool_runs(lists, depth=2), np.array([1]))
    >>> some.topics, some.docno.tolist(), pairs.tolist()
    (('2',), [b'd2', b'd3'], [1, 2])
    """
    stays = np.zeros(len(pool.topics), dtype=np.bool_)
    stays[topics] = True
    pairs = np.flatnonzero(stays[pool.topic])
    (entry, counts), number = pool.entries_of(pairs), np.cumsum(stays, dtype=np.int32) - 1
    some = replace(
        pool,
        topics=tuple(pool.topics[at] for at in topics.tolist()),
        topic=frozen(number[pool.topic[pairs]].astype(np.int32)),
        docno=frozen(pool.docno[pairs]),
        indptr=frozen(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)),
        run=frozen(pool.run[entry]),
        rank=frozen(pool.rank[entry]),
        score=None if pool.score is None else frozen(pool.score[entry]),
        other=None if pool.other is None else frozen(pool.other[pairs]),
        other_rank=None if pool.other_rank is None else frozen(pool.other_rank[entry]),
    )
    return some, pairs
