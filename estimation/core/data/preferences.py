"""Pools of preferences: every two documents that some run returns for a topic.

A measure of swaps asks, for two documents of a ranking, whether the assessor prefers the one
ranked lower (Schnabel et al. 2016, table 1: #ofSwaps, wSwaps). What is judged is therefore a pair
of documents, shown side by side; which run ranks them in which order is never shown.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ..arrays import BytesArray, Int32Array, IntArray, check_whole, frozen, kind_of
from .pool import Pool
from .ranked_lists import PoolError

BETWEEN = b"\0"
"""Stands between two docnos; no docno has it, and it comes before all other bytes."""


def preference_pool(pool: Pool, *, depth: int) -> Pool:
    """Return the pool of all pairs of documents among the first `depth` of any run.

    Parameters
    ----------
    pool : Pool
        Of documents.
    depth : int
        At least 2, at most the depth of the pool. A list of L documents has L (L - 1) / 2 pairs.

    Returns
    -------
    Pool
        Parts sorted by (topic, docno, other), with docno < other as bytes. The number of parts in
        a run's list, to which the weights of #ofSwaps and wSwaps refer, is that of pairs.

    Raises
    ------
    PoolError
        If the pool is one of preferences already, or the depth is out of range.

    Examples
    --------
    >>> pool = pool_runs({"a": rank_scores({"1": {"d1": 2.0, "d2": 1.0, "d3": 0.5}})}, depth=3)
    >>> len(preference_pool(pool, depth=3))
    3
    """
    if not isinstance(pool, Pool):
        raise PoolError(f"pool must be Pool (see pool_runs), not {kind_of(pool)}")
    if pool.is_of_preferences:
        raise PoolError("the pool is one of pairs of documents already")
    check_whole(depth, name="depth", least=2, most=pool.depth, error=PoolError)
    bounds = np.searchsorted(pool.topic, np.arange(len(pool.topics) + 1))
    pairs = [_pairs_of_topic(pool, start, stop, depth) for start, stop in pairwise(bounds.tolist())]
    parts = [each.part for each in pairs]
    sizes = [len(part) for part in parts]
    entries = np.concatenate([each.entries for each in pairs])
    first, second = np.concatenate(parts).T
    return Pool(
        topics=pool.topics,
        runs=pool.runs,
        depth=depth,
        topic=frozen(np.repeat(np.arange(len(pool.topics), dtype=np.int32), sizes)),
        docno=frozen(pool.docno[first]),
        indptr=frozen(np.concatenate([[0], np.cumsum(entries)])),
        run=frozen(np.concatenate([each.run for each in pairs])),
        rank=frozen(np.concatenate([each.rank for each in pairs])),
        other=frozen(pool.docno[second]),
        other_rank=frozen(np.concatenate([each.other_rank for each in pairs])),
    )


def part_names(pool: Pool, parts: IntArray | None = None) -> BytesArray:
    """Return what tells the parts of a topic apart, (n,), in the same order as the parts.

    The docno; of preferences both docnos, with `BETWEEN` between them. By default of all N parts.
    """
    wanted = slice(None) if parts is None else parts
    if pool.other is None:
        return pool.docno[wanted]
    both = zip(pool.docno[wanted].tolist(), pool.other[wanted].tolist(), strict=True)
    return np.array([BETWEEN.join(each) for each in both], dtype=np.bytes_)


def with_parts(pool: Pool, *, topic: Int32Array, names: BytesArray) -> Pool:
    """Return a pool of preferences with further parts, which no run has.

    `topic` has the topics of the n parts, as positions among those of the pool; `names` what
    `part_names` calls them. Parts that the pool has already stay as they are.
    """
    topics, every = np.append(pool.topic, topic), np.append(part_names(pool), names)
    order = np.lexsort((every, topics))
    new = (np.diff(topics[order]) != 0) | (every[order][1:] != every[order][:-1])
    is_first = np.append(True, new)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.cumsum(is_first) - 1
    lengths = np.zeros(np.count_nonzero(is_first), dtype=np.int64)
    lengths[place[: len(pool)]] = np.diff(pool.indptr)
    kept = order[is_first]
    docno, other = zip(*(name.split(BETWEEN) for name in every[kept].tolist()), strict=True)
    return replace(
        pool,
        topic=frozen(topics[kept].astype(np.int32)),
        docno=frozen(np.array(docno, dtype=np.bytes_)),
        other=frozen(np.array(other, dtype=np.bytes_)),
        indptr=frozen(np.append(0, np.cumsum(lengths))),
    )


@dataclass(frozen=True, eq=False)
class _TopicPairs:
    """Pairs of documents of a topic, shape (n, 2), and their entries, sorted by (pair, run)."""

    part: IntArray
    entries: IntArray
    run: Int32Array
    rank: Int32Array
    other_rank: Int32Array


def _pairs_of_topic(pool: Pool, start: int, stop: int, depth: int) -> _TopicPairs:
    entry, number = pool.entries_of(np.arange(start, stop))
    within = pool.rank[entry] <= depth
    entry, document = entry[within], np.repeat(np.arange(start, stop), number)[within]
    # Within a run documents ascend, so that the first of two is the first in byte order.
    by_run = np.argsort(pool.run[entry], kind="stable")
    entry, document = entry[by_run], document[by_run]
    first, second = _two_of_each(np.bincount(pool.run[entry], minlength=len(pool.runs)))
    left, right = document[first], document[second]
    order = np.lexsort((pool.run[entry[first]], right, left))
    left, right, first, second = left[order], right[order], first[order], second[order]
    new = np.flatnonzero(np.append(True, (np.diff(left) != 0) | (np.diff(right) != 0)))
    new = new[: len(left)]
    return _TopicPairs(
        part=np.stack([left[new], right[new]], axis=1),
        entries=np.diff(np.append(new, len(left))),
        run=pool.run[entry[first]],
        rank=pool.rank[entry[first]],
        other_rank=pool.rank[entry[second]],
    )


def _two_of_each(lengths: IntArray) -> tuple[IntArray, IntArray]:
    """Positions of all (i, l), i < l, within consecutive lists of these lengths."""
    starts = np.cumsum(lengths) - lengths
    firsts, seconds = [np.array([], dtype=np.int64)], [np.array([], dtype=np.int64)]
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        first, second = np.triu_indices(length, k=1)
        firsts.append(start + first)
        seconds.append(start + second)
    return np.concatenate(firsts), np.concatenate(seconds)
