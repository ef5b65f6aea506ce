"""Judged collections that keep the ranked lists of the runs they were drawn for.

From pairs that were drawn one by one a run is told whatever other runs there were. Where topics are
judged whole, or batches are planned from judgments, it is not so: what was drawn, and how likely
that was, follows from the lists of all runs together.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from ..arrays import BytesArray, Int32Array, IntArray
from ..data.labels import LabelRows
from ..data.pool import Pool, RankedLists
from ..measures.table import Measure
from ..rounds.active.rounds import ActiveRound
from ..rounds.rounds import TopicRound
from .base import Collection, CollectionError, ordered_labels

Ranked: TypeAlias = TopicRound | ActiveRound


class Pooled(TypedDict):
    """What a collection has of its pool, and the judgments of its pairs."""

    topics: tuple[str, ...]
    depth: int
    topic: Int32Array
    docno: BytesArray
    pool: Pool
    labels: LabelRows


@dataclass(frozen=True, eq=False)
class RankedCollection(Collection):
    """The complete batches of a round over a pool, the pool, and the judgments.

    Attributes
    ----------
    pool : Pool
        With all runs, as it was when the round was drawn, but without scores.
    made_for : tuple of Measure
        At least one; tells where the collection comes from and has no influence.
    seed : str or None
        The seed of the draw, where it may be known.
    """

    pool: Pool
    made_for: tuple[Measure, ...]
    seed: str | None

    @property
    def pool_digest(self) -> str:
        """Digest of the pool that the sample was drawn from."""
        return self.pool.digest

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What the sample was drawn for; the first is the goal's."""
        return self.made_for

    @property
    @abstractmethod
    def drawn(self) -> Ranked:
        """The round of these batches."""

    @property
    def _sampled_pool(self) -> Pool:
        return self.pool

    @abstractmethod
    def _check_drawn(self) -> None:
        """Raise CollectionError unless what was drawn fits the pool, which is that of the round."""

    def _check_sample(self) -> None:
        pool = self.pool
        same = (pool.topics, pool.depth) == (self.topics, self.depth)
        if not same or not _equal((pool.topic, pool.docno), (self.topic, self.docno)):
            raise CollectionError("the pool must have the topics, the depth and the pairs")
        if pool.score is not None:
            raise CollectionError("the pool must be without scores")
        check_round(pool, self.drawn)
        if not self.made_for:
            raise CollectionError("made_for must hold a measure")
        self._check_drawn()


def check_round(pool: Pool, drawn: Ranked) -> None:
    """Raise CollectionError unless a round is over this pool, which is one of documents."""
    if not pool.digest == drawn.design.pool_digest == drawn.sample.pool_digest:
        raise CollectionError("pool, design and sample do not belong together")
    if pool.is_of_preferences:
        raise CollectionError("preferences between documents do not make a judged collection")


def pooled(pool: Pool, labels: LabelRows, *, sampled: IntArray) -> Pooled:
    """Return what a collection has of its pool, with the judgments of the sampled pairs alone."""
    kept = np.isin(labels.pair, sampled)
    return {
        "topics": pool.topics,
        "depth": pool.depth,
        "topic": pool.topic,
        "docno": pool.docno,
        "pool": pool,
        "labels": ordered_labels(LabelRows(labels.pair[kept], labels.grade[kept])),
    }


def without_scores(pool: Pool) -> Pool:
    """Return the pool without the scores of its runs, which these rounds have no use for."""
    return pool if pool.score is None else replace(pool, score=None)


def ranked_lists(pool: Pool, tag: str) -> RankedLists:
    """Return what a run of a pool of documents returns, down to the pool's depth, without scores.

    Raises
    ------
    PoolError
        If the pool has no such run.
    """
    pairs, rank = _entries(pool, tag)
    order = np.lexsort((rank, pool.topic[pairs]))
    bounds = np.searchsorted(pool.topic[pairs], np.arange(len(pool.topics) + 1))
    return RankedLists(pool.topics, bounds.astype(np.int64), pool.docno[pairs[order]])


def _entries(pool: Pool, tag: str) -> tuple[IntArray, IntArray]:
    """The pairs that a run returns, ascending, and their ranks."""
    at = np.flatnonzero(pool.run == pool.run_index(tag))
    pairs = np.searchsorted(pool.indptr, at, side="right") - 1
    return pairs.astype(np.int64), pool.rank[at].astype(np.int64)


def _equal(these: Sequence[NDArray[Any]], those: Sequence[NDArray[Any]]) -> bool:
    return all(map(np.array_equal, these, those))
