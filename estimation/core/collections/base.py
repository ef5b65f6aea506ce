"""Judged collections: what estimates rest on, of a round's own runs and of runs that arrive later.

A collection holds what an estimate needs: the pairs of a pool, what was drawn from them and how
likely that was, and what was said of them. The server makes that of a round and asks it after
every batch; a report publishes it (`published`), and ``score`` asks what was published. A run is
estimated exactly as one that was there from the beginning.

From pairs that were drawn one by one a run is told whatever other runs there were, so that what is
published of them has no lists. Where topics are judged whole, or batches are planned from
judgments, what was drawn, and how likely that was, follows from the lists of all runs together, so
that they are published as well.

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

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..data.pool import Pool, build_pool
from ..data.preferences import part_names, preference_pool, with_parts
from ..data.scope import Scope, find_pairs
from ..inference.equivalence import Negligible
from ..measures.kinds import MeasureError
from ..rounds.active.lists import ActiveError
from ..rounds.combining import RoundsTogether
from ..rounds.evaluation import evaluate_scope
from ..rounds.results import Asked, DrawnRound, Evaluation
from ..rounds.rounds import PairRound
from ..rounds.topics.designs import QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..arrays import BoolArray, BytesArray, FloatArray, Int32Array, IntArray
    from ..data.labels import LabelRows
    from ..data.ranked_lists import RankedLists
    from ..inference.looks import Look
    from ..inference.outlook import KnownOutlook
    from ..measures.table import Measure
    from ..sampling.interval_kinds import IntervalKind


class CollectionError(ValueError):
    """Parts that do not make a judged collection; the message names the first one."""


@dataclass(frozen=True, eq=False)
class RoundCollection:
    """A pool of N pairs, what was drawn from it, and the judgments of that.

    Attributes
    ----------
    pool : Pool
        As it was when the sample was drawn. Without runs where these are not known.
    drawn : DrawnRound
        A round, or several that are estimated together.
    labels : LabelRows
        One row per judgment of the pairs `sampled`, as positions among the N.
    max_grade : int
        The best grade of the scale.
    made_for : tuple of Measure
        What the sample was drawn for, the goal's first; by default what the round says. It tells
        where the collection comes from and has no influence.
    predictions : ndarray of float64, shape (N,), or None
        See `evaluation.evaluate`. They are not published.
    outlook : KnownOutlook or None
        What the judgments let one expect of the N pairs, which intervals and verdicts take into
        account. None: it is fitted to the runs of the pool, or if these are not known to those
        that are to be estimated.
    version : str
        The evalsite that published it.
    seeds : tuple of (str or None)
        The seed of each round, where it may be known.
    look : Look or None
        Which of the planned looks its estimates are, where more are to come; see
        `evaluation.evaluate`. None: they are those of a round that has ended as planned.
    negligible : float or None
        Differences under the first of `measures` that do not matter, if any; see
        `evaluation.evaluate`.
    """

    pool: Pool
    drawn: DrawnRound
    labels: LabelRows
    max_grade: int
    made_for: tuple[Measure, ...] = ()
    predictions: FloatArray | None = None
    outlook: KnownOutlook | None = None
    version: str = ""
    seeds: tuple[str | None, ...] = ()
    look: Look | None = None
    negligible: float | None = None

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.pool)

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics of the campaign, also those without any pair: values are means over them."""
        return self.pool.topics

    @property
    def depth(self) -> int:
        """Documents per topic and run that are looked at."""
        return self.pool.depth

    @property
    def topic(self) -> Int32Array:
        """Topic of each pair, as a position in `topics`."""
        return self.pool.topic

    @cached_property
    def docno(self) -> BytesArray:
        """UTF-8 docno of each pair; of preferences both docnos, as `part_names` has them."""
        return part_names(self.pool)

    @property
    def is_of_preferences(self) -> bool:
        """Whether two documents at a time were judged."""
        return self.pool.is_of_preferences

    @property
    def parts(self) -> tuple[PairRound, ...]:
        """The rounds of pairs, in their order, the last being the one that asks; or none."""
        if isinstance(self.drawn, RoundsTogether):
            return self.drawn.parts
        return (self.drawn,) if isinstance(self.drawn, PairRound) else ()

    @property
    def pool_digest(self) -> str:
        """Digest of the pool that the sample was drawn from."""
        return self.parts[-1].design.pool_digest if self.parts else self.pool.digest

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What the sample was drawn for; the first is the goal's."""
        return self.made_for or self.drawn.measures

    @property
    def sampled(self) -> IntArray:
        """The pairs that are judged, as positions among the N, ascending."""
        return self.drawn.pairs(self.pool)

    @property
    def within_reach(self) -> BoolArray:
        """Whether any round of pairs could draw each pair, shape (N,)."""
        eligible = [part.design.eligible for part in self.parts]
        return np.asarray(np.any(eligible, axis=0), dtype=np.bool_)

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
        runs: Mapping[str, RankedLists] | Pool,
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
        runs : mapping of str to RankedLists, or Pool
            Any runs, with scores if a measure is of predictions; or a pool with all pairs of the
            collection's pool, which may be that pool, and with all of its runs, or some of them.
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
            If there is no measure, the confidence is out of range, `interval` is not allowed, or a
            pool lacks a pair.
        """
        asked = Asked(
            self.labels,
            tuple(measures),
            self.max_grade,
            confidence=confidence,
            interval=interval,
            predictions=self.predictions,
            outlook=self.outlook,
            look=self.look,
            negligible=Negligible(self.measures[0], self.negligible) if self.negligible else None,
        )
        try:
            return evaluate_scope(self.scope_of(runs, asked.measures), self.drawn, asked)
        except (QueryError, ActiveError) as error:  # the parts fit each other: it is a measure
            raise MeasureError(str(error)) from None

    def scope_of(
        self, runs: Mapping[str, RankedLists] | Pool, measures: Sequence[Measure]
    ) -> Scope:
        """Return what is estimated, as for `evaluate`.

        Runs of a mapping are estimated anew, whether the sampled pool has them or not, and so are
        those of a pool that lacks some of the sampled pool's.
        """
        if isinstance(runs, Pool) and set(self.pool.runs) <= set(runs.runs):
            return Scope.of(self.pool, runs)
        predicts = any(each.family == "prediction" for each in measures)
        pool = runs if isinstance(runs, Pool) else self.pool_for(runs, scores=predicts)
        place = find_pairs(
            self.topic, self.docno, among_topic=pool.topic, among_docno=part_names(pool)
        )
        if (place < 0).any():
            raise ValueError("the pool lacks pairs of the collection")
        return Scope(pool, place, self.pool if self.pool.runs else None, joins=False)
