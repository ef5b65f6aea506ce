"""Judged collections that keep the ranked lists of the runs they were drawn for.

From pairs that were drawn one by one a run is told whatever other runs there were. Where topics are
judged whole, or batches are planned from judgments, it is not so: what was drawn, and how likely
that was, follows from the lists of all runs together.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TypeAlias, TypedDict

import numpy as np

from ..arrays import BytesArray, Int32Array, IntArray
from ..data.labels import LabelRows
from ..data.pool import Pool
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
