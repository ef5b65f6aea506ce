"""A drawn round, whatever its method: what is to be judged in which batch, and what follows.

Pairs
    ``poisson``, ``priority``, ``iid``, ``per-query``: a design over the pairs of a pool.
Topics
    ``query``: whole topics, whose documents are all judged.
Active
    ``active``: each batch is planned from the judgments before it; see `active.rounds`.

The first two are frozen when they are drawn. All are stored as two files, a design and a sample.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, TypeAlias

import numpy as np

from ..archives import ArchiveFile, form_of
from ..arrays import Int32Array, frozen
from ..data.pool import Pool
from ..data.scope import Scope
from ..estimates.drawn import Drawn, check_sample
from ..measures.table import Measure
from ..sampling.designs import FORMAT as PAIR_FORMAT
from ..sampling.designs import Design
from ..sampling.draws import draw
from ..sampling.interval_kinds import IntervalKind
from ..sampling.methods import interval_kinds
from ..sampling.probabilities import drawn_probabilities
from ..sampling.samples import Sample, Served
from ..tables import FactSheet
from .active.rounds import PLAN_FORMAT, ActivePlan, ActiveRound
from .active.sampling import ActiveState
from .pair_estimates import estimates_of_pairs
from .results import Answer, Asked
from .topics.designs import QueryDesign, QuerySample, draw_queries, labeled_pairs
from .topics.estimates import estimates_of_topics


@dataclass(frozen=True, eq=False, repr=False)
class PairRound(FactSheet):
    """A round whose draws are pairs."""

    design: Design
    sample: Sample
    FACTS: ClassVar = ("method", "batches", "intervals")

    @property
    def batches(self) -> int:
        """Number of batches."""
        return self.design.batches

    def served(self, pool: Pool) -> Served:
        """Return what is to be judged."""
        sample = self.sample
        draws = np.ones(len(sample.pair), dtype=np.int64)
        if len(sample.draws):
            draws = np.bincount(sample.draws, minlength=len(pool))[sample.pair]
        return Served(sample.pair, sample.batch, sample.probability, draws, pool)

    @property
    def method(self) -> str:
        """The way of sampling."""
        return self.design.method

    @property
    def intervals(self) -> tuple[IntervalKind, ...]:
        """The kinds of intervals that there are, the usual one first."""
        return interval_kinds(self.method)

    def drawn(self, topic: Int32Array, batches: int | None = None) -> Drawn:
        """Return what the first batches hold; `topic` is that of each of the N pairs."""
        used = self.batches if batches is None else batches
        return Drawn.of(self.design, self.sample, used, topic=topic)

    def answer(self, scope: Scope, asked: Asked) -> Answer:
        """Estimate the runs of a scope; see `evaluation.evaluate`."""
        design, sample = self.design, self.sample
        used = self.batches if asked.batches is None else asked.batches
        if scope.sampled is not None:
            check_sample(scope.sampled, design, sample)
        drawn = self.drawn(scope.pool.topic[scope.place], used)
        return estimates_of_pairs(scope, drawn, asked, sampled=sample.pair, batches=used)


@dataclass(frozen=True, eq=False, repr=False)
class TopicRound(FactSheet):
    """A round whose draws are whole topics."""

    design: QueryDesign
    sample: QuerySample
    FACTS: ClassVar = ("method", "batches", "intervals")

    @property
    def batches(self) -> int:
        """Number of batches."""
        return self.design.batches

    def served(self, pool: Pool) -> Served:
        """Return what is to be judged: all documents of the drawn topics."""
        design, sample = self.design, self.sample
        needed = labeled_pairs(pool, runs=design.runs, depth=design.depth)
        pair = np.flatnonzero(needed & np.isin(pool.topic, sample.topic))
        topic = np.searchsorted(sample.topic, pool.topic[pair])
        counts = np.bincount(sample.draws, minlength=len(pool.topics))[sample.topic]
        chance = np.ones(len(sample.topic))
        if not design.is_census:
            drawn = design.probability[sample.topic]
            chance = drawn_probabilities(drawn, draws=len(sample.draws))
        often = np.maximum(counts, 1)[topic]
        return Served(pair, sample.batch[topic], chance[topic], often, pool)

    @property
    def method(self) -> str:
        """The way of sampling."""
        return "query"

    @property
    def intervals(self) -> tuple[IntervalKind, ...]:
        """The kinds of intervals that there are."""
        return interval_kinds(self.method)

    def prefix(self, pool: Pool, batches: int) -> "TopicRound":
        """Return the first batches of the round of a pool, draws sorted within each.

        Raises
        ------
        ValueError
            If `batches` is not between 1 and the number of the design's batches.
        """
        design, sample = self.design, self.sample
        design.step(batches)
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

    def is_whole(self, batches: int) -> bool:
        """Whether these are all batches."""
        return batches == self.batches

    @property
    def measure(self) -> Measure:
        """What it was drawn for."""
        return self.design.measure

    def answer(self, scope: Scope, asked: Asked) -> Answer:
        """Estimate the runs of a scope; see `evaluation.evaluate`."""
        return estimates_of_topics(scope, self.design, self.sample, asked)


Round: TypeAlias = PairRound | TopicRound | ActiveRound
AnyDesign: TypeAlias = Design | QueryDesign | ActivePlan


def draw_round(pool: Pool, design: AnyDesign, *, seed: str) -> Round:
    """Draw all batches of a design, or the first of an active round.

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
    return TopicRound(QueryDesign.load(design), QuerySample.load(sample))
