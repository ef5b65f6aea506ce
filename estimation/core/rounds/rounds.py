"""A drawn round, whatever its method: what is to be judged in which batch, and what follows.

Pairs
    ``poisson``, ``priority``, ``iid``, ``per-query``: a design over the pairs of a pool.
Topics
    ``query``: whole topics, whose documents are all judged.
Batches
    ``active``, ``adaptive``: each is planned from the judgments before it; see `active.rounds` and
    `adaptive.rounds`.

The first two are frozen when they are drawn. All are stored as two files, a design and a sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..archives import ArchiveError, ArchiveFile, form_of
from ..arrays import Int32Array, IntArray, check_whole, frozen, kind_of
from ..estimates.drawn import Drawn, check_sample
from ..sampling.designs import FORMAT as PAIR_FORMAT
from ..sampling.designs import Design, DesignError
from ..sampling.draws import draw
from ..sampling.probabilities import drawn_probabilities
from ..sampling.samples import Sample, Served
from .active.rounds import PLAN_FORMAT, ActivePlan, ActiveRound
from .active.sampling import ActiveState
from .adaptive.rounds import AdaptiveRound
from .adaptive.state import PLAN_FORMAT as ADAPTIVE_FORMAT
from .adaptive.state import AdaptivePlan, AdaptiveState
from .pair_estimates import estimates_of_pairs
from .results import Asked, DrawnRound, Evaluation
from .topics.designs import FORMAT as TOPICS_FORMAT
from .topics.designs import QueryDesign, QueryError, labeled_pairs
from .topics.draws import QuerySample, draw_queries
from .topics.estimates import estimates_of_topics

if TYPE_CHECKING:
    from ..data.labels import LabelRows
    from ..data.pool import Pool
    from ..data.scope import Scope
    from ..measures.table import Measure


@dataclass(frozen=True, eq=False, repr=False)
class PairRound(DrawnRound):
    """A round whose draws are pairs, or its first batches.

    Attributes
    ----------
    design, sample : Design, Sample
    complete : int or None
        The batches from the first that are estimated from; None: all.
    numbers : str
        The seed that it was drawn with, or any other name of its random numbers: rounds with the
        same name share them. Empty: no other round has them.
    """

    design: Design
    sample: Sample
    complete: int | None = None
    numbers: str = ""

    @property
    def method(self) -> str:
        """The way of sampling."""
        return self.design.method

    @property
    def batches(self) -> int:
        """Number of batches."""
        return self.design.batches

    @property
    def used(self) -> int:
        """The number of batches that are estimated from."""
        return self.design.batches if self.complete is None else self.complete

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What it was drawn for, the goal's first."""
        return self.design.measure, *self.design.reported

    def served(self, pool: Pool) -> Served:
        """Return what is to be judged in all batches."""
        sample = self.sample
        draws = np.ones(len(sample.pair), dtype=np.int64)
        if len(sample.draws):
            draws = np.bincount(sample.draws, minlength=len(pool))[sample.pair]
        return Served(sample.pair, sample.batch, sample.probability, draws, pool)

    def pairs(self, pool: Pool) -> IntArray:
        """Return the pairs that are estimated from, ascending."""
        return self.sample.prefix(self.used)

    def prefix(self, pool: Pool, batches: int) -> PairRound:
        """Return the same round, to be estimated from by its first batches."""
        return replace(self, complete=batches)

    def drawn(self, topic: Int32Array) -> Drawn:
        """Return what was drawn; `topic` is that of each of the N pairs."""
        known = self._drawn[0][0] if self._drawn else None
        if known is not topic and (known is None or not np.array_equal(known, topic)):
            found = Drawn.of(self.design, self.sample, self.used, topic=topic)
            self._drawn[:] = [(topic, found)]
        return self._drawn[0][1]

    @cached_property
    def _drawn(self) -> list[tuple[Int32Array, Drawn]]:
        """What was drawn, as estimates and forecasts ask for it, and the topics it was asked of."""
        return []

    def answer(self, scope: Scope, asked: Asked) -> Evaluation:
        """Estimate the runs of a scope; see `evaluation.evaluate`."""
        if scope.sampled is not None:
            check_sample(scope.sampled, self.design, self.sample)
        drawn, every = self.drawn(scope.topic), self.sample.pair
        return estimates_of_pairs(scope, drawn, asked, sampled=every, batches=self.used)


@dataclass(frozen=True, eq=False, repr=False)
class TopicRound(DrawnRound):
    """A round whose draws are whole topics."""

    design: QueryDesign
    sample: QuerySample

    method = "query"

    @property
    def batches(self) -> int:
        """Number of batches."""
        return self.design.batches

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What it was drawn for."""
        return (self.design.measure,)

    def pairs(self, pool: Pool) -> IntArray:
        """Return all documents of the drawn topics, as far as they are judged, ascending."""
        needed = labeled_pairs(pool, runs=self.design.runs, depth=self.design.depth)
        return np.flatnonzero(needed & np.isin(pool.topic, self.sample.topic))

    def served(self, pool: Pool) -> Served:
        """Return what is to be judged."""
        design, sample = self.design, self.sample
        pair = self.pairs(pool)
        topic = np.searchsorted(sample.topic, pool.topic[pair])
        counts = np.bincount(sample.draws, minlength=len(pool.topics))[sample.topic]
        chance = np.ones(len(sample.topic))
        if not design.is_census:
            drawn = design.probability[sample.topic]
            chance = drawn_probabilities(drawn, draws=len(sample.draws))
        often = np.maximum(counts, 1)[topic]
        return Served(pair, sample.batch[topic], chance[topic], often, pool)

    def prefix(self, pool: Pool, batches: int) -> TopicRound:
        """Return the first batches of the round, draws sorted within each.

        Raises
        ------
        QueryError
            If `batches` is not between 1 and the number of the design's batches.
        """
        design, sample = self.design, self.sample
        check_whole(batches, name="batches", most=design.batches, error=QueryError)
        taken, drawn = sample.batch <= batches, sample.draw_batch <= batches
        draws, draw_batch = sample.draws[drawn], sample.draw_batch[drawn]
        order = np.lexsort((draws, draw_batch))
        return TopicRound(
            replace(design, steps=frozen(design.steps[:batches])),
            replace(
                sample,
                topic=frozen(sample.topic[taken]),
                batch=frozen(sample.batch[taken]),
                draws=frozen(draws[order]),
                draw_batch=frozen(draw_batch[order]),
            ),
        )

    def answer(self, scope: Scope, asked: Asked) -> Evaluation:
        """Estimate the runs of a scope; see `evaluation.evaluate`."""
        return estimates_of_topics(scope, self.design, self.sample, asked)


Round: TypeAlias = PairRound | TopicRound | ActiveRound | AdaptiveRound
PlannedRound: TypeAlias = ActiveRound | AdaptiveRound
"""Rounds whose batches are planned one by one, from the judgments of those before."""
AnyDesign: TypeAlias = Design | QueryDesign | ActivePlan | AdaptivePlan


def draw_round(
    pool: Pool, design: AnyDesign, *, seed: str, labels: LabelRows | None = None
) -> Round:
    """Draw all batches of a design, or the first of a round that is planned batch by batch.

    `labels` are those of the pairs that an adaptive top-up takes as judged.

    Examples
    --------
    >>> pool = pool_runs({"a": rank_scores({"1": {"d1": 2.0, "d2": 1.0}})}, depth=2)
    >>> design = make_design(pool, measure="P@2", budget=2, batch_size=2, goal="absolute")
    >>> draw_round(pool, design, seed="any text").served(pool).columns()["docno"]
    ['d1', 'd2']
    """
    if isinstance(design, QueryDesign):
        return TopicRound(design, draw_queries(pool, design, seed=seed))
    if isinstance(design, ActivePlan):
        return ActiveRound.begin(pool, design, seed=seed)
    if isinstance(design, AdaptivePlan):
        return AdaptiveRound.begin(pool, design, seed=seed, labels=labels)
    if not isinstance(design, Design):
        raise DesignError(f"design must be what make_design returned, not {kind_of(design)}")
    return PairRound(design, draw(pool, design, seed=seed))


def load_round(design: ArchiveFile, sample: ArchiveFile) -> Round:
    """Read a round from the files of its design and its sample.

    Raises
    ------
    ValueError
        If a file is damaged or something else.

    Examples
    --------
    >>> pool = pool_runs({"a": rank_scores({"1": {"d1": 2.0, "d2": 1.0}})}, depth=2)
    >>> design = make_design(pool, measure="P@2", budget=2, goal="absolute")
    >>> drawn = draw_round(pool, design, seed="any text")
    >>> drawn.design.save("design.npz"), drawn.sample.save("sample.npz")
    (None, None)
    >>> load_round("design.npz", "sample.npz").method
    'poisson'
    """
    form = form_of(design)
    if form == PAIR_FORMAT:
        return PairRound(Design.load(design), Sample.load(sample))
    if form == PLAN_FORMAT:
        return ActiveRound(ActivePlan.load(design), ActiveState.load(sample))
    if form == ADAPTIVE_FORMAT:
        return AdaptiveRound(AdaptivePlan.load(design), AdaptiveState.load(sample))
    if form == TOPICS_FORMAT:
        return TopicRound(QueryDesign.load(design), QuerySample.load(sample))
    raise ArchiveError(f"expected the file of a design, found one of the form {form}")
