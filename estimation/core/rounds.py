"""A drawn round, whatever its method: what is to be judged in which batch, and what follows.

Pairs
    ``poisson``, ``priority``, ``iid``, ``per-query``: a design over the pairs of a pool.
Topics
    ``query``: whole topics, whose documents are all judged.
Active
    ``active``: each batch is planned from the judgments before it; see `active.rounds`.

The first two are frozen when they are drawn. All are stored as two files, a design and a sample.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from estimation.core.active.rounds import PLAN_FORMAT, ActivePlan, ActiveRound
from estimation.core.active.sampling import ActiveState
from estimation.core.archives import ArchiveFile, form_of
from estimation.core.arrays import BoolArray, FloatArray
from estimation.core.designs import FORMAT as PAIR_FORMAT
from estimation.core.designs import Design, drawn_probabilities
from estimation.core.draws import Sample, Served, draw
from estimation.core.evaluation import EstimatorResult, Evaluation, MeasureResult, evaluate
from estimation.core.interval_kinds import IntervalKind
from estimation.core.labels import LabelRows
from estimation.core.measures import Measure
from estimation.core.out_of_reach import OutOfReach
from estimation.core.pool import Pool
from estimation.core.queries.designs import QueryDesign, QuerySample, draw_queries, labeled_pairs
from estimation.core.queries.estimates import QueryResult, evaluate_queries
from estimation.core.ranks import rank_runs
from estimation.core.unknown import all_known

CODES = {"ratio": "sn", "unbiased": "is"}
"""Short names of the query estimators: self-normalized, importance sampling."""


@dataclass(frozen=True, eq=False)
class PairRound:
    """A round whose draws are pairs."""

    design: Design
    sample: Sample

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
        return Served(sample.pair, sample.batch, sample.probability, draws)

    def evaluate(
        self,
        pool: Pool,
        *,
        labels: LabelRows,
        measures: Sequence[Measure],
        max_grade: int,
        batches: int | None = None,
        confidence: float = 0.95,
        interval: IntervalKind = "student",
        predictions: FloatArray | None = None,
    ) -> Evaluation:
        """Estimate every measure for every run; see `evaluation.evaluate`."""
        return evaluate(
            pool,
            self.design,
            self.sample,
            labels=labels,
            measures=measures,
            max_grade=max_grade,
            batches=batches,
            confidence=confidence,
            interval=interval,
            predictions=predictions,
        )


@dataclass(frozen=True, eq=False)
class TopicRound:
    """A round whose draws are whole topics."""

    design: QueryDesign
    sample: QuerySample

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
        return Served(pair, sample.batch[topic], chance[topic], np.maximum(counts, 1)[topic])

    def evaluate(
        self,
        pool: Pool,
        *,
        labels: LabelRows,
        measures: Sequence[Measure],
        max_grade: int,
        batches: int | None = None,
        confidence: float = 0.95,
        judged: BoolArray | None = None,
    ) -> Evaluation:
        """Estimate every measure for the runs of the design; see `evaluate_queries`.

        If `judged` says which pairs alone are judged where their topic is drawn, the support of a
        run is the share of its weight on these.
        """
        used = self.batches if batches is None else batches
        found = evaluate_queries(
            pool,
            self.design,
            self.sample,
            labels=labels,
            measures=measures,
            max_grade=max_grade,
            batches=used,
            confidence=confidence,
            judged=judged,
        )
        everything = np.ones(len(pool), dtype=np.bool_)
        served, counted = self.served(pool), everything if judged is None else judged
        pairs = served.pair[(served.batch <= used) & counted[served.pair]]
        out = OutOfReach.of(pool, counted)
        columns = [pool.run_index(tag) for tag in self.design.runs]
        return Evaluation(
            batches=used,
            judged_pairs=found.judged_pairs,
            judgments=int(np.isin(labels.pair, pairs).sum()),
            draws=found.draws,
            confidence=confidence,
            results=tuple(
                _measure_result(
                    result,
                    out.support(result.measure)[columns],
                    found.effective_sample_size,
                    confidence,
                )
                for result in found.results
            ),
        )


Round: TypeAlias = PairRound | TopicRound | ActiveRound
AnyDesign: TypeAlias = Design | QueryDesign | ActivePlan


def draw_round(pool: Pool, design: AnyDesign, *, seed: str) -> Round:
    """Draw all batches of a design, or the first of an active round."""
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
    """
    form = form_of(design)
    if form == PAIR_FORMAT:
        return PairRound(Design.load(design), Sample.load(sample))
    if form == PLAN_FORMAT:
        return ActiveRound(ActivePlan.load(design), ActiveState.load(sample))
    return TopicRound(QueryDesign.load(design), QuerySample.load(sample))


def _measure_result(
    result: QueryResult, support: FloatArray, sample_size: float, confidence: float
) -> MeasureResult:
    code = CODES[result.estimator]
    estimator = EstimatorResult(
        value=result.value,
        se=result.se,
        df=result.df,
        low=result.low,
        high=result.high,
        covariance=result.covariance,
        difference_df=result.difference_df,
        unknown=all_known(len(result.runs)),
        difference_unknown=all_known(len(result.runs), len(result.runs)),
    )
    return MeasureResult(
        measure=result.measure,
        runs=result.runs,
        estimators={code: estimator},
        primary=code,
        ranking=rank_runs(
            result.value,
            covariance=result.covariance,
            df=result.difference_df,
            tags=result.runs,
            confidence=confidence,
        ),
        support=support,
        effective_sample_size=np.full(len(result.runs), sample_size),
        label_noise_measured=result.noise_measured,
        by_topic=result.by_topic,
    )
