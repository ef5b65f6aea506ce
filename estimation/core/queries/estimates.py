"""Estimates of all runs from topics that were drawn and judged whole (Sawade et al. 2013, eq. 6).

The m topics that have documents to judge are a known share m/T of the campaign's T; the other
topics have the value 0 for every run, so that every estimate is the estimate over the m topics
(`queries.estimators`) times m/T. Intervals are for the campaign's own topics.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import BoolArray, FloatArray, IntArray
from estimation.core.intervals import (
    degrees_of_freedom,
    student_intervals,
    zero_limit,
)
from estimation.core.labels import LabelRows
from estimation.core.measures import Measure, check_measures
from estimation.core.pool import Pool
from estimation.core.queries.designs import (
    ESTIMATORS,
    QueryDesign,
    QueryError,
    QuerySample,
    judged_depth,
)
from estimation.core.queries.estimators import (
    Disagreement,
    QueryEstimate,
    census_estimate,
    ratio_estimate,
    unbiased_estimate,
)
from estimation.core.queries.moments import Estimator
from estimation.core.queries.values import JudgedTopics, judged_topics, needed_pairs


@dataclass(frozen=True, eq=False)
class QueryResult:
    """Estimates of all judged runs under one measure.

    Attributes
    ----------
    measure : Measure
    runs : tuple of str
        The k runs of the design.
    estimator : {"ratio", "unbiased"}
    value, se, df, low, high : ndarray of float64, shape (k,)
        Values, standard errors, degrees of freedom and ends of the intervals. `low` is cut at 0.
        For a run that has the value 0 on every drawn topic `se` says nothing, and `high` is
        `zero_limit`.
    covariance, difference_df : ndarray of float64, shape (k, k)
        Covariance of the values; degrees of freedom of the differences between runs.
    by_topic : ndarray of float64, shape (T, k)
        What each topic of the pool contributes to the values.
    noise_measured : bool
        Whether any document has two judgments, so that disagreement between assessors is part of
        the standard errors beyond what shows between draws.
    """

    measure: Measure
    runs: tuple[str, ...]
    estimator: Estimator
    value: FloatArray
    se: FloatArray
    df: FloatArray
    low: FloatArray
    high: FloatArray
    covariance: FloatArray
    difference_df: FloatArray
    by_topic: FloatArray
    noise_measured: bool


@dataclass(frozen=True, eq=False)
class QueryEvaluation:
    """What a number of batches says about the runs.

    Attributes
    ----------
    batches : int
    topics : int
        Distinct topics that were judged.
    draws : int or None
        Draws they come from; None for a census.
    judged_pairs : int
        Pairs that were judged.
    cost : float
        What judging them cost, in the design's unit.
    effective_sample_size : float
        (sum w)^2 / sum w^2 over the draws (Kish).
    confidence : float
    results : tuple of QueryResult
        One per measure.
    """

    batches: int
    topics: int
    draws: int | None
    judged_pairs: int
    cost: float
    effective_sample_size: float
    confidence: float
    results: tuple[QueryResult, ...]


def evaluate_queries(
    pool: Pool,
    design: QueryDesign,
    sample: QuerySample,
    *,
    labels: LabelRows,
    measures: Sequence[Measure],
    max_grade: int,
    batches: int | None = None,
    estimator: Estimator | None = None,
    confidence: float = 0.95,
    judged: BoolArray | None = None,
) -> QueryEvaluation:
    """Estimate the values of the design's runs from its first batches.

    Parameters
    ----------
    pool, design, sample : Pool, QueryDesign, QuerySample
    labels : LabelRows
        Judgments of all documents of the topics of these batches; others are left out.
    measures : sequence of Measure
        None may look deeper than the design's depth; for a ratio measure the design must have
        every pair of the pool judged.
    max_grade : int
        The best grade of the scale.
    batches : int, optional
        By default all.
    estimator : {"ratio", "unbiased"}, optional
        By default the one that the design is made for.
    confidence : float
    judged : ndarray of bool, shape (N,), optional
        Which pairs are judged where their topic is drawn; by default all that the design's runs
        need. The others count as useless, so that values are lower bounds but for ratio measures.

    Raises
    ------
    QueryError
        If design or sample belong to another pool, a measure looks too deep, or as
        `judged_topics`.
    MeasureError
        If topics that are judged whole do not tell a measure.
    """
    method = design.estimator if estimator is None else estimator
    _check_evaluation(pool, design, sample, measures, method, judged)
    used = design.batches if batches is None else batches
    design.step(used)
    drawn = _Drawn.of(design, sample, used)
    results = []
    for measure in measures:
        judged_values = judged_topics(
            pool,
            labels=labels,
            measure=measure,
            max_grade=max_grade,
            topics=drawn.topic,
            runs=design.runs,
            judged=judged,
        )
        largest = measure.largest_value(max_grade=max_grade, depth=design.depth or pool.depth)
        by_topic = np.zeros((len(pool.topics), len(design.runs)))
        by_topic[drawn.topic] = drawn.shares(method)[:, None] * judged_values.value
        results.append(
            _result(
                measure, design.runs, method, judged_values, by_topic, drawn, largest, confidence
            )
        )
    needed = needed_pairs(pool, runs=design.runs, depth=design.depth, judged=judged)
    return QueryEvaluation(
        batches=used,
        topics=len(drawn.topic),
        draws=drawn.draws,
        judged_pairs=int(np.count_nonzero(needed & np.isin(pool.topic, drawn.topic))),
        cost=float(design.cost[drawn.topic].sum()),
        effective_sample_size=drawn.effective_sample_size,
        confidence=confidence,
        results=tuple(results),
    )


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The distinct topics of some batches: weight p/q, number of draws, share of the topics."""

    topic: IntArray
    weight: FloatArray
    counts: IntArray
    draws: int | None
    share: float
    eligible: int
    rarest: float  # the largest p/q of all topics, drawn or not

    @classmethod
    def of(cls, design: QueryDesign, sample: QuerySample, used: int) -> "_Drawn":
        eligible = int(np.count_nonzero(design.eligible))
        share = eligible / len(design.probability)
        if design.is_census and used == design.batches:
            topic, ones = sample.prefix(used), np.ones(eligible, dtype=np.int64)
            return cls(topic, ones.astype(np.float64), ones, None, share, eligible, 0.0)
        topic, counts = np.unique(sample.drawn(used), return_counts=True)
        ratio = 1.0 / (eligible * design.probability[design.eligible].min())
        weight = 1.0 / (eligible * design.probability[topic])
        counts = counts.astype(np.int64)
        return cls(topic, weight, counts, int(counts.sum()), share, eligible, ratio)

    @property
    def effective_sample_size(self) -> float:
        total = np.sum(self.counts * self.weight)
        return float(total**2 / np.sum(self.counts * self.weight**2))

    def shares(self, method: Estimator) -> FloatArray:
        """What the estimator multiplies the values of each drawn topic by, before it adds them."""
        weighted = self.counts * self.weight
        number = weighted.sum() if method == "ratio" or self.draws is None else self.draws
        return np.asarray(self.share * weighted / number, dtype=np.float64)

    def limit(self, largest: float, confidence: float) -> float:
        """Upper limit for a run that has the value 0 on every drawn topic."""
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


def _result(
    measure: Measure,
    runs: tuple[str, ...],
    method: Estimator,
    judged: JudgedTopics,
    by_topic: FloatArray,
    drawn: _Drawn,
    largest: float,
    confidence: float,
) -> QueryResult:
    estimate = drawn.estimate(judged, method)
    limit = drawn.limit(largest, confidence)
    difference_df = degrees_of_freedom(estimate.contributions, draws=drawn.draws)
    df = np.diag(difference_df).copy()
    variance = np.diag(estimate.covariance)
    student = student_intervals(estimate.value, variance=variance, df=df, confidence=confidence)
    high = np.where(estimate.value > 0.0, student.high, limit)
    return QueryResult(
        measure=measure,
        runs=runs,
        estimator=method,
        value=estimate.value,
        se=student.se,
        df=df,
        low=np.maximum(student.low, 0.0),
        high=np.minimum(high, np.maximum(estimate.value, drawn.share * largest)),
        covariance=estimate.covariance,
        difference_df=difference_df,
        by_topic=by_topic,
        noise_measured=judged.noise_measured,
    )


def _check_evaluation(
    pool: Pool,
    design: QueryDesign,
    sample: QuerySample,
    measures: Sequence[Measure],
    method: str,
    judged: BoolArray | None,
) -> None:
    if not design.pool_digest == sample.pool_digest == pool.digest:
        raise QueryError("the design or the sample belongs to another pool")
    if method not in ESTIMATORS:
        raise QueryError(f"the estimator is one of {', '.join(ESTIMATORS)}, not {method!r}")
    check_measures(measures, name="measures")
    known = needed_pairs(pool, runs=design.runs, depth=design.depth, judged=judged)
    unknown = np.count_nonzero(~known if judged is None else judged & ~known)
    for measure in measures:
        deepest = judged_depth(pool, [measure])
        if deepest is None and unknown:
            rest = f"{unknown} documents of the pool are not"
            raise QueryError(f"{measure} needs every document of a topic judged; here {rest}")
        if deepest is not None and design.depth is not None and deepest > design.depth:
            raise QueryError(f"{measure} looks deeper than the {design.depth} judged ranks")
