"""Estimates of all runs from topics that were drawn and judged whole (Sawade et al. 2013, eq. 6).

The m topics that have documents to judge are a known share m/T of the campaign's T; the other
topics have the value 0 for every run, so that every estimate is the estimate over the m topics
(`topics.estimators`) times m/T. Intervals are for the campaign's own topics.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...data.labels import judged_of
from ...inference.intervals import (
    ROUNDING,
    degrees_of_freedom,
    student_intervals,
    zero_limit,
)
from ...inference.knowledge import unvaried_differences
from ...inference.uncertainty import variances
from ...inference.unknown import all_known
from ...measures.table import document_gains
from ..comparison import Comparison
from ..results import Asked, EstimatorResult, Evaluation, MeasureResult
from .alike import Alike, JudgedGains, distances, least_spread
from .designs import (
    ESTIMATORS,
    QueryDesign,
    QueryError,
    judged_depth,
    labeled_pairs,
)
from .estimators import (
    Disagreement,
    QueryEstimate,
    census_estimate,
    ratio_estimate,
    unbiased_estimate,
)
from .values import JudgedTopics, judged_topics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...arrays import BoolArray, FloatArray, IntArray
    from ...data.pool import Pool
    from ...data.scope import Scope
    from ...inference.uncertainty import Pooled
    from ...measures.table import Measure
    from .designs import Estimator
    from .draws import QuerySample

CODES = {"ratio": "sn", "unbiased": "is"}
"""Short names of the estimators: self-normalized, importance sampling."""


def estimates_of_topics(
    scope: Scope, design: QueryDesign, sample: QuerySample, asked: Asked
) -> Evaluation:
    """Estimate the runs of a scope from the drawn topics.

    Those are the runs of the design, and all that the sampled pool does not have. Within reach are
    the documents that are judged where their topic is drawn; which these are was known before the
    draw. The others count as useless: the value of a run that returns them is a lower bound for
    sums of gains and for ERR.

    How far they may be off: by their own squares, and by what all runs of the design and their
    lists let one expect (`topics.alike`), which is the same whichever runs are in the scope. `low`
    is cut at 0. A run that has the same value on every drawn topic, 0 or another of which no run
    tells how it varies, may be off by `zero_limit`.

    Parameters
    ----------
    scope : Scope
        With the sampled pool.
    design, sample : QueryDesign, QuerySample
    asked : Asked
        No measure may look deeper than the design's depth; for a ratio measure the design must
        have every pair of the pool judged.

    Raises
    ------
    QueryError
        If design or sample belong to another pool, a measure looks too deep, or as
        `judged_topics`.
    MeasureError
        If topics that are judged whole do not tell a measure.
    """
    pool, sampled = scope.pool, scope.sampled
    if sampled is None:
        raise QueryError("topics can only be estimated from with the pool that they are of")
    within = labeled_pairs(sampled, runs=design.runs, depth=design.depth)
    for measure in asked.measures:
        document_gains(measure, max_grade=asked.max_grade)
    _check_evaluation(sampled, design, sample, asked.measures, within)
    drawn = _Drawn.of(design, sample)
    outside = set(sampled.runs) - set(design.runs) if scope.joins else set()
    runs = tuple(tag for tag in pool.runs if tag not in outside)
    judged, labels = scope.marked(within), scope.labels(asked.labels)
    counted = np.flatnonzero(within & np.isin(sampled.topic, drawn.topic))
    known, rows = judged_of(asked.labels, counted)
    comparison = Comparison.of(scope, asked, judged, judged=scope.place[known], rows=rows)
    results = []
    for measure in asked.measures:
        values = judged_topics(
            pool,
            labels=labels,
            measure=measure,
            max_grade=asked.max_grade,
            topics=drawn.topic,
            runs=runs,
            judged=judged,
            shared=scope.marked(_needed(sampled, design, measure)),
        )
        largest = measure.largest_value(max_grade=asked.max_grade, depth=design.depth or pool.depth)
        pooled = _pooled(scope, design, drawn, asked, measure, runs, within)
        results.append(
            _result(comparison, measure, runs, design.estimator, values, drawn, largest, pooled)
        )
    return Evaluation(
        batches=design.batches,
        judged_pairs=len(counted),
        judgments=len(rows.pair),
        draws=drawn.draws,
        confidence=asked.confidence,
        results=tuple(results),
        look=asked.look,
    )


def _pooled(
    scope: Scope,
    design: QueryDesign,
    drawn: _Drawn,
    asked: Asked,
    measure: Measure,
    runs: tuple[str, ...],
    within: BoolArray,
) -> Pooled | None:
    """What is expected of runs of a scope by all runs of the design; None in a census."""
    sampled = scope.sampled
    if drawn.draws is None or sampled is None:
        return None
    values = judged_topics(
        sampled,
        labels=asked.labels,
        measure=measure,
        max_grade=asked.max_grade,
        topics=drawn.topic,
        runs=design.runs,
        judged=within,
    )
    some = within & np.isin(sampled.topic, drawn.topic)
    gains = JudgedGains.of(asked.labels, some, measure, asked.max_grade)
    factor = drawn.factors(design.probability)

    def apart(pool: Pool, tags: Sequence[str], judged: BoolArray) -> FloatArray:
        columns = np.array([pool.run_index(tag) for tag in tags], dtype=np.int64)
        of_runs = {"measure": measure, "judged": judged, "factor": factor, "gains": gains}
        return distances(pool, columns, **of_runs)  # type: ignore[arg-type]

    covariance = drawn.estimate(values, design.estimator).covariance
    of_round = apart(sampled, design.runs, within)
    alike = Alike.of(covariance, of_round, least_spread(measure, gains))
    return alike.pooled(apart(scope.pool, runs, scope.marked(within)), drawn.freedom)


def _needed(pool: Pool, design: QueryDesign, measure: Measure) -> BoolArray:
    """The pairs that the design's own runs need for a measure."""
    return labeled_pairs(pool, runs=design.runs, depth=judged_depth(pool, [measure]))


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The distinct topics: weight p/q, number of draws, share of the topics."""

    topic: IntArray
    weight: FloatArray
    counts: IntArray
    draws: int | None
    share: float
    eligible: int
    topics: int
    rarest: float  # the largest p/q of all topics, drawn or not

    @classmethod
    def of(cls, design: QueryDesign, sample: QuerySample) -> _Drawn:
        eligible, topics = int(np.count_nonzero(design.eligible)), len(design.probability)
        share = eligible / topics
        if design.is_census:
            once = np.ones(eligible, dtype=np.int64)
            weight = once.astype(np.float64)
            return cls(sample.topic, weight, once, None, share, eligible, topics, 0.0)
        topic, counts = np.unique(sample.draws, return_counts=True)
        ratio = 1.0 / (eligible * design.probability[design.eligible].min())
        weight = 1.0 / (eligible * design.probability[topic])
        counts = counts.astype(np.int64)
        return cls(topic, weight, counts, int(counts.sum()), share, eligible, topics, ratio)

    @property
    def effective_sample_size(self) -> float:
        total = np.sum(self.counts * self.weight)
        return float(total**2 / np.sum(self.counts * self.weight**2))

    @property
    def freedom(self) -> float:
        """Topics, each counted as much as it weighs (Kish), less one; at least 1."""
        weighted = self.counts * self.weight
        return max(float(weighted.sum() ** 2 / np.sum(weighted**2)) - 1.0, 1.0)

    def factors(self, probability: FloatArray) -> FloatArray:
        """What the squares of each topic add to the variance of a mean of the draws, (T,)."""
        chance = self.eligible**2 * probability * (self.draws or 1)
        factor = np.divide(1.0, chance, out=np.zeros_like(chance), where=chance > 0.0)
        return np.asarray(self.share**2 * factor, dtype=np.float64)

    def shares(self, method: Estimator) -> FloatArray:
        """What the estimator multiplies the values of each drawn topic by, before it adds them."""
        weighted = self.counts * self.weight
        number = weighted.sum() if method == "ratio" or self.draws is None else self.draws
        return np.asarray(self.share * weighted / number, dtype=np.float64)

    def limit(self, largest: float, confidence: float) -> float:
        """How far a run may be off that has the same value on every drawn topic.

        That no other topic is drawn is as unlikely as that none with any value is (`zero_limit`).
        """
        if self.draws is None:
            return 0.0
        ratio = np.array([self.rarest / self.draws])
        limit = zero_limit(ratio, max_utility=largest, confidence=confidence)[0]
        return self.share * min(float(limit), largest)

    def estimate(self, judged: JudgedTopics, method: Estimator) -> QueryEstimate:
        noise = Disagreement(judged.deviation, judged.topic, 1.0 / self.eligible)
        if self.draws is None:
            found = census_estimate(judged.value, disagreement=noise)
        else:
            function = ratio_estimate if method == "ratio" else unbiased_estimate
            found = function(
                judged.value, weight=self.weight, counts=self.counts, disagreement=noise
            )
        covariance = found.covariance * self.share**2
        return QueryEstimate(found.value * self.share, covariance, found.contributions)

    def expected(self, judged: JudgedTopics) -> FloatArray | None:
        """What is expected of the covariance of a census, (k, k): disagreement, by grades."""
        if self.draws is not None or judged.likely is None:
            return None
        return np.asarray(judged.likely / self.topics**2, dtype=np.float64)


def _result(
    comparison: Comparison,
    measure: Measure,
    runs: tuple[str, ...],
    method: Estimator,
    judged: JudgedTopics,
    drawn: _Drawn,
    largest: float,
    pooled: Pooled | None,
) -> MeasureResult:
    estimate, confidence = drawn.estimate(judged, method), comparison.asked.at_this_look
    limit = drawn.limit(largest, confidence)
    difference_df = degrees_of_freedom(estimate.contributions, draws=drawn.draws)
    df = np.diag(difference_df).copy()
    expected, freedom = drawn.expected(judged), None
    if pooled is not None:
        expected, freedom = pooled.covariance, pooled.freedom
        df = pooled.freedom_of_values(df)
        difference_df = pooled.freedom_of_differences(difference_df)
    variance = variances(estimate.covariance, expected, freedom=freedom)
    differences = all_known(len(runs), len(runs))
    if pooled is not None:
        differences = unvaried_differences(estimate.covariance, pooled)
    student = student_intervals(estimate.value, variance=variance, df=df, confidence=confidence)
    alike = (estimate.value <= 0.0) | (variance <= (ROUNDING * largest) ** 2)
    low, high = (
        np.where(alike, estimate.value + way * limit, end)
        for way, end in ((-1.0, student.low), (1.0, student.high))
    )
    by_topic = np.zeros((drawn.topics, len(runs)))
    by_topic[drawn.topic] = drawn.shares(method)[:, None] * judged.value
    code = CODES[method]
    result = EstimatorResult(
        value=estimate.value,
        se=student.se,
        df=student.df,
        low=np.maximum(low, 0.0),
        high=np.minimum(high, np.maximum(estimate.value, drawn.share * largest)),
        covariance=estimate.covariance,
        difference_df=difference_df,
        unknown=all_known(len(runs)),
        difference_unknown=differences,
        expected=expected,
        freedom=freedom,
    )
    return comparison.result(
        measure,
        runs,
        {code: result},
        code,
        effective_sample_size=np.full(len(runs), drawn.effective_sample_size),
        label_noise_measured=judged.noise_measured,
        by_topic=by_topic,
    )


def _check_evaluation(
    pool: Pool,
    design: QueryDesign,
    sample: QuerySample,
    measures: Sequence[Measure],
    within: BoolArray,
) -> None:
    if not design.pool_digest == sample.pool_digest == pool.digest:
        raise QueryError("the design or the sample belongs to another pool")
    if design.estimator not in ESTIMATORS:
        listed = ", ".join(ESTIMATORS)
        raise QueryError(f"the estimator is one of {listed}, not {design.estimator!r}")
    unknown = np.count_nonzero(~within)
    for measure in measures:
        deepest = judged_depth(pool, [measure])
        if deepest is None and unknown:
            rest = f"{unknown} documents of the pool are not"
            raise QueryError(f"{measure} needs every document of a topic judged; here {rest}")
        if deepest is not None and design.depth is not None and deepest > design.depth:
            raise QueryError(f"{measure} looks deeper than the {design.depth} judged ranks")
