"""Judged collections: what a round and its judgments say about runs that arrive later.

A collection holds what an estimate needs apart from the runs: the pairs of the pool, what was drawn
from them and how likely that was, and what was said of them. A run is then estimated exactly as one
that was there from the beginning. There is a kind of collection for every kind of round:
`pair_collection`, `topic_collection`, `active_collection`.

Why this is unbiased: what was drawn, and how likely it was, does not depend on the runs that are
estimated from it, and the expectation of sum_S w_i v_i / pi_i is sum_i w_i v_i whatever weights w a
run has (Horvitz and Thompson 1952; for draws with replacement Schnabel et al. 2016, eq. 3),
provided that

- the weights do not depend on which pairs were drawn or on how they were judged. So it holds for a
  run that had no part in the design and for one that had, but not for a run that was trained or
  tuned on these judgments, which will look better than it is;
- every document with a weight could be drawn. The others have probability 0 and are never seen: the
  expectation of a linear measure is then the part of the value that is within reach, a lower bound,
  and the result's support, the share of the weight within reach, is below 1. Under a ratio measure
  relevant documents are missing from the denominator as well, so that the estimate may be off in
  either direction.

Averaging over judged pairs alone, as if they had been drawn with equal chances, is not unbiased.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import (
    BytesArray,
    Int32Array,
    IntArray,
    frozen,
    index_array,
)
from ..data.labels import LabelRows
from ..data.pool import Pool, build_pool
from ..data.preferences import named, part_names, preference_pool, with_parts
from ..data.ranked_lists import RankedLists
from ..data.scope import Scope, find_pairs
from ..inference.outlook import Outlook
from ..measures.kinds import MeasureError
from ..measures.table import Measure
from ..rounds.active.lists import ActiveError
from ..rounds.evaluation import Judged, evaluate_scope
from ..rounds.results import Asked, Evaluation
from ..rounds.topics.designs import QueryError
from ..sampling.interval_kinds import IntervalKind


class CollectionError(ValueError):
    """Parts that do not make a judged collection; the message names the first one."""


@dataclass(frozen=True, eq=False)
class Collection(ABC):
    """The complete batches of a sample of a pool of N pairs, with their judgments.

    Attributes
    ----------
    topics : tuple of str
        All topics of the campaign, sorted, also those without any pair: values are means over
        them.
    depth : int
        Documents per topic and run that are looked at.
    topic : ndarray of int32, shape (N,)
        Topic of each pair, as a position in `topics`.
    docno : ndarray of bytes, shape (N,)
        UTF-8 docno of each pair; of preferences both docnos, as `part_names` has them. Pairs are
        sorted by (topic, docno).
    labels : LabelRows
        One row per judgment, without the assessor, by (pair, grade), of the pairs `sampled`.
    max_grade : int
        The best grade of the scale.
    version : str
        The evalsite that made it.

    What is read from a file is checked row by row by its reader (`estimation.formats.collections`).

    Raises
    ------
    CollectionError
        If the judgments are not those of the sampled pairs, or rounds do not go together.
    """

    topics: tuple[str, ...]
    depth: int
    topic: Int32Array
    docno: BytesArray
    labels: LabelRows
    max_grade: int
    version: str

    def __post_init__(self) -> None:
        self._check_sample()
        _check_labels(self)

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.docno)

    @property
    @abstractmethod
    def pool_digest(self) -> str:
        """Digest of the pool that the sample was drawn from."""

    @property
    @abstractmethod
    def measures(self) -> tuple[Measure, ...]:
        """What the sample was drawn for; the first is the goal's."""

    @property
    def is_of_preferences(self) -> bool:
        """Whether two documents at a time were judged."""
        return False

    @property
    @abstractmethod
    def sampled(self) -> IntArray:
        """The pairs that are judged, as positions among the N, ascending."""

    if TYPE_CHECKING:

        @property
        def drawn(self) -> Judged:
            """What was drawn, in one round or in several: a field, or made of fields."""

    @property
    def intervals(self) -> tuple[IntervalKind, ...]:
        """The kinds of intervals that there are, the usual one first."""
        return self.drawn.intervals

    def pool_for(self, runs: Mapping[str, RankedLists], *, scores: bool = False) -> Pool:
        """Pool runs over the collection's topics, with all pairs of the collection.

        A pair that no run returns has weight 0, but ratio measures count it.

        Parameters
        ----------
        runs : mapping of str to RankedLists
            At least one. Topics that are not the collection's are ignored.
        scores : bool
            Keep the runs' scores, for measures of predictions.

        Raises
        ------
        PoolError
            As `build_pool` and `preference_pool`.
        """
        if self.is_of_preferences:
            documents = build_pool(self.topics, runs, depth=self.depth)
            of_runs = preference_pool(documents, depth=self.depth)
            return with_parts(of_runs, topic=self.topic, names=self.docno)
        bounds = np.searchsorted(self.topic, np.arange(len(self.topics) + 1))
        extra = {
            topic: [docno.decode() for docno in self.docno[start:stop].tolist()]
            for topic, start, stop in zip(self.topics, bounds[:-1], bounds[1:], strict=True)
        }
        return build_pool(self.topics, runs, depth=self.depth, scores=scores, extra=extra)

    def evaluate(
        self,
        runs: Mapping[str, RankedLists],
        *,
        measures: Sequence[Measure],
        confidence: float = 0.95,
        interval: IntervalKind = "student",
    ) -> Evaluation:
        """Estimate any runs.

        See the module's text for when the estimates are unbiased. A run of the original pool gets
        the estimates and intervals that it had there. `MeasureResult.support` is below 1 where
        documents of a run could never be drawn, because no run of the pool returned them or the
        design left them out.

        Parameters
        ----------
        runs : mapping of str to RankedLists
            With scores if a measure is of predictions.
        measures : sequence of Measure
            At least one; not only those that the sample was drawn for.
        confidence : float
            Of the intervals, and of all verdicts of a measure together.
        interval : IntervalKind
            One of `intervals`.

        Raises
        ------
        PoolError, MeasureError
            (ValueErrors.) If the runs cannot be pooled, a measure needs what is not there, or this
            kind of collection has no estimate of it.
        ValueError
            If there is no measure, the confidence is out of range, or `interval` is not allowed.
        """
        if interval not in self.intervals:
            allowed = ", ".join(self.intervals)
            raise ValueError(f"interval must be one of {allowed}, not {interval!r}")
        needs_scores = any(measure.family == "prediction" for measure in measures)
        asked = Asked(
            self.labels,
            tuple(measures),
            self.max_grade,
            confidence=confidence,
            interval=interval,
            outlook=self._outlook,
        )
        scope = self._scope(self.pool_for(runs, scores=needs_scores))
        try:
            return evaluate_scope(scope, self.drawn, asked)
        except (QueryError, ActiveError) as error:  # the parts fit each other: it is a measure
            raise MeasureError(str(error)) from None

    def _scope(self, pool: Pool) -> Scope:
        """Runs that are estimated anew, whether the sampled pool has them or not."""
        place = find_pairs(
            self.topic, self.docno, among_topic=pool.topic, among_docno=part_names(pool)
        )
        return Scope(pool, place, self._sampled_pool, joins=False)

    @property
    def _sampled_pool(self) -> Pool | None:
        """The pool with its runs, where what was drawn follows from their lists."""
        return None

    @property
    def _outlook(self) -> Outlook | None:
        """What the judgments let one expect of the N pairs; None: it is fitted to the runs."""
        return None

    def _check_sample(self) -> None:  # noqa: B027 - most kinds have nothing to check
        """Raise CollectionError unless parts that were drawn go together."""

    def name_of(self, pair: int) -> str:
        """Name a pair for a message."""
        topic = self.topics[int(self.topic[pair])]
        return f"{named(self.docno[pair])} of topic {topic!r}"


def ordered_labels(labels: LabelRows) -> LabelRows:
    """Return judgments by (pair, grade), as a collection has them."""
    order = np.lexsort((labels.grade, labels.pair))
    return LabelRows(frozen(labels.pair[order]), frozen(labels.grade[order]))


# ---------------------------------------------------------------------------------- checks


def _check_labels(collection: Collection) -> None:
    labels, pair = collection.labels, collection.sampled
    index_array(labels.pair, below=len(collection), name="labels.pair", error=CollectionError)
    foreign = labels.pair[~np.isin(labels.pair, pair)]
    if len(foreign):
        name = collection.name_of(int(foreign[0]))
        raise CollectionError(f"{name} is judged but was not sampled")
    missing = pair[~np.isin(pair, labels.pair)]
    if len(missing):
        name = collection.name_of(int(missing[0]))
        raise CollectionError(f"{name} was sampled but is not judged")
    off = labels.grade[(labels.grade < 0) | (labels.grade > collection.max_grade)]
    if len(off):
        limit = collection.max_grade
        raise CollectionError(f"grade must lie between 0 and {limit}, not {int(off[0])}")
