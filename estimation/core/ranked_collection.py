"""Judged collections that keep the ranked lists of the runs they were drawn for.

From pairs that were drawn one by one a run is told whatever other runs there were. Where topics are
judged whole, or batches are planned from judgments, it is not so: what was drawn follows from the
lists of all runs together, and so do the numbers of every run, to the last bit. With these lists a
run of the pool has exactly the numbers that it had there, and another one those that it would have
had as a later run of the round (`later_runs`).
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

from estimation.core.active.lists import ActiveError
from estimation.core.active.rounds import ActiveRound
from estimation.core.arrays import BytesArray, Int32Array, IntArray
from estimation.core.collection import Collection, CollectionError, ordered_labels
from estimation.core.evaluation import (
    EstimatorResult,
    Evaluation,
    MeasureResult,
    check_question,
)
from estimation.core.interval_kinds import IntervalKind
from estimation.core.labels import LabelRows
from estimation.core.measures import Measure, MeasureError
from estimation.core.pool import Pool, RankedLists
from estimation.core.queries.designs import QueryError
from estimation.core.rounds import TopicRound

Ranked: TypeAlias = TopicRound | ActiveRound


class Asked(TypedDict):
    """What is asked of a round, whoever it estimates."""

    labels: LabelRows
    measures: Sequence[Measure]
    max_grade: int
    confidence: float


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
    @abstractmethod
    def estimated_runs(self) -> tuple[str, ...]:
        """The runs of the pool that the round itself can estimate."""

    @abstractmethod
    def _evaluate_joined(self, joined: Pool, asked: Asked) -> Evaluation:
        """Estimate `estimated_runs`, and those that only `joined` has."""

    @abstractmethod
    def _check_drawn(self) -> None:
        """Raise CollectionError unless what was drawn fits the pool, which is that of the round."""

    def _check_measures(self, measures: Sequence[Measure]) -> None:
        """Raise MeasureError for a measure of which it is known at once that it has no estimate."""

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

    def _evaluate(
        self,
        pool: Pool,
        place: IntArray,
        *,
        measures: Sequence[Measure],
        confidence: float,
        interval: IntervalKind,
    ) -> Evaluation:
        check_question(measures, self.max_grade, confidence)
        self._check_measures(measures)
        names = [self._name_of_run(tag, pool, place) for tag in pool.runs]
        later = {
            name: ranked_lists(pool, tag)
            for name, tag in zip(names, pool.runs, strict=True)
            if name not in self.pool.runs
        }
        of_pool = {tag: ranked_lists(self.pool, tag) for tag in self.pool.runs} if later else {}
        asked: Asked = {
            "labels": self.labels,
            "measures": measures,
            "max_grade": self.max_grade,
            "confidence": confidence,
        }
        try:
            if later:
                found = self._evaluate_joined(self.pool_for(of_pool | later), asked)
            else:
                found = self.drawn.evaluate(self.pool, **asked)
        except (QueryError, ActiveError) as error:  # the parts fit each other: it is a measure
            raise MeasureError(str(error)) from None
        results = (_of_asked_runs(result, names, pool.runs) for result in found.results)
        return replace(found, results=tuple(results))

    def _name_of_run(self, tag: str, pool: Pool, place: IntArray) -> str:
        """The run's own tag, unless the pool has another run, or one without estimate, by it."""
        if tag not in self.pool.runs:
            return tag
        there, here = _entries(self.pool, tag), _entries(pool, tag)
        if tag in self.estimated_runs and _equal((place[there[0]], there[1]), here):
            return tag
        while tag in self.pool.runs or tag in pool.runs:
            tag += "\0"
        return tag


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


def _of_asked_runs(
    result: MeasureResult, names: Sequence[str], tags: tuple[str, ...]
) -> MeasureResult:
    """The result with the runs of these names alone, under their tags; not ranked."""
    at = np.array([result.runs.index(name) for name in names], dtype=np.int64)
    return replace(
        result,
        runs=tags,
        estimators={name: _of_runs(each, at) for name, each in result.estimators.items()},
        support=result.support[at],
        effective_sample_size=result.effective_sample_size[at],
        by_topic=result.by_topic[:, at],
    )


def _equal(these: Sequence[NDArray[Any]], those: Sequence[NDArray[Any]]) -> bool:
    return all(map(np.array_equal, these, those))


def _of_runs(found: EstimatorResult, at: IntArray) -> EstimatorResult:
    square = np.ix_(at, at)
    return replace(
        found,
        value=found.value[at],
        se=found.se[at],
        df=found.df[at],
        low=found.low[at],
        high=found.high[at],
        covariance=found.covariance[square],
        difference_df=found.difference_df[square],
        unknown=found.unknown[at],
        difference_unknown=found.difference_unknown[square],
        expected=None if found.expected is None else found.expected[square],
        finds=None if found.finds is None else found.finds[square],
    )
