"""Estimates from topics that were drawn and judged whole (Sawade et al. 2013, eq. 6).

Notation: x a drawn topic, L_j(x) the value of run j on it, p(x) = 1/m over the m topics that have
documents to judge, q(x) the design's probability, w(x) = p(x)/q(x), c(x) how often x was drawn,
n = sum c. The m topics are a known share m/T of the campaign's T; the other topics have the value
0 for every run, so that every estimate is the estimate over the m topics times m/T.

Intervals are for the campaign's own topics. The labels of a topic are taken as they are: where
assessors disagree, the estimates are unbiased for the mean over assessors, but a topic that is
drawn repeatedly brings the same labels again, and that part of their noise is not in the errors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import BoolArray, FloatArray, IntArray, column_sums, index_array, refuse
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
    labelled_pairs,
)
from estimation.core.queries.grade_models import document_gains
from estimation.core.queries.moments import Estimator, err_values, ranked_pairs


@dataclass(frozen=True, eq=False)
class QueryEstimate:
    """Estimated values of k runs.

    Attributes
    ----------
    value : ndarray of float64, shape (k,)
    covariance : ndarray of float64, shape (k, k)
        Estimated covariance of the values.
    contributions : ndarray of float64, shape (k, k)
        How many topics carry the variance of a difference, and on the diagonal that of a value
        (Kish); 0 if none.
    """

    value: FloatArray
    covariance: FloatArray
    contributions: FloatArray


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


def topic_values(
    pool: Pool,
    *,
    labels: LabelRows,
    measure: Measure,
    max_grade: int,
    topics: IntArray | None = None,
    runs: Sequence[str] | None = None,
) -> FloatArray:
    """Return the value of every run on topics whose documents are all judged.

    The gain of a pair with several judgments is the mean of its gains, never of its grades. ERR
    is then the expectation over assessors who judge documents independently.

    Parameters
    ----------
    pool : Pool
    labels : LabelRows
        Rows of any pairs in any order; those that no value depends on are left out.
    measure : Measure
    max_grade : int
        The best grade of the scale.
    topics : ndarray of int64, shape (u,), optional
        Positions in the pool's topics, each once; by default all.
    runs : sequence of str, optional
        By default all runs of the pool.

    Returns
    -------
    ndarray of float64, shape (u, k)

    Raises
    ------
    QueryError
        If a grade is off the scale, a pair is not in the pool, or a document within the
        measure's reach has no judgment; the message names the first.
    """
    chosen = np.arange(len(pool.topics)) if topics is None else _checked_topics(pool, topics)
    tags = pool.runs if runs is None else tuple(runs)
    gain = _mean_gains(pool, labels, measure, max_grade)
    wanted = np.isin(pool.topic, chosen)
    needed = labelled_pairs(pool, runs=tags, depth=measure.cutoff or pool.depth) & wanted
    _check_complete(pool, needed & np.isnan(gain[:-1]))
    gain[np.isnan(gain)] = 0.0
    if measure.family == "query":
        slots = (ranked_pairs(pool, tag, depth=measure.cutoff)[chosen] for tag in tags)
        return np.stack([err_values(each, gain) for each in slots], axis=1)
    values = [_linear_values(pool, tag, measure, gain) for tag in tags]
    return np.stack(values, axis=1)[chosen]


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
) -> QueryEvaluation:
    """Estimate the values of the design's runs from its first batches.

    Parameters
    ----------
    pool, design, sample : Pool, QueryDesign, QuerySample
    labels : LabelRows
        Judgments of all documents of the topics of these batches; others are left out.
    measures : sequence of Measure
        None may look deeper than the design's depth.
    max_grade : int
        The best grade of the scale.
    batches : int, optional
        By default all.
    estimator : {"ratio", "unbiased"}, optional
        By default the one that the design is made for.
    confidence : float

    Raises
    ------
    QueryError
        If design or sample belong to another pool, a measure looks too deep, or as
        `topic_values`.
    """
    method = design.estimator if estimator is None else estimator
    _check_evaluation(pool, design, sample, measures, method)
    used = design.batches if batches is None else batches
    design.step(used)
    drawn = _Drawn.of(design, sample, used)
    results = []
    for measure in measures:
        values = topic_values(
            pool,
            labels=labels,
            measure=measure,
            max_grade=max_grade,
            topics=drawn.topic,
            runs=design.runs,
        )
        largest = _largest_value(measure, max_grade, design.depth)
        by_topic = np.zeros((len(pool.topics), len(design.runs)))
        by_topic[drawn.topic] = drawn.shares(method)[:, None] * values
        results.append(
            _result(measure, design.runs, method, values, by_topic, drawn, largest, confidence)
        )
    judged = labelled_pairs(pool, runs=design.runs, depth=design.depth)
    return QueryEvaluation(
        batches=used,
        topics=len(drawn.topic),
        draws=drawn.draws,
        judged_pairs=int(np.count_nonzero(judged & np.isin(pool.topic, drawn.topic))),
        cost=float(design.cost[drawn.topic].sum()),
        effective_sample_size=drawn.effective_sample_size,
        confidence=confidence,
        results=tuple(results),
    )


def ratio_estimate(values: FloatArray, *, weight: FloatArray, counts: IntArray) -> QueryEstimate:
    """Estimate means by the self-normalized estimator (Sawade et al. 2013, eq. 6).

    R^_j = sum c w L_j / sum c w. Consistent, with a bias of order 1/n. By the delta method (Lemma
    1), with residuals e_j = w (L_j - R^_j):
    Cov^ = n/(n - 1) sum c e_j e_l / (sum c w)^2.

    Parameters
    ----------
    values : ndarray of float64, shape (u, k)
        L_j(x) of the distinct drawn topics.
    weight : ndarray of float64, shape (u,)
        p/q > 0, up to a common factor.
    counts : ndarray of int64, shape (u,)
        How often each topic was drawn, at least once; at least two draws in all.

    Raises
    ------
    ValueError
        If shapes differ, a weight is not positive, or there are fewer than two draws.
    """
    draws = _check_draws(values, weight, counts)
    total = float(np.sum(counts * weight))
    value = np.sum((counts * weight)[:, None] * values, axis=0) / total
    residual = weight[:, None] * (values - value)
    return _spread_of(value, residual, counts, draws / ((draws - 1.0) * total**2))


def unbiased_estimate(values: FloatArray, *, weight: FloatArray, counts: IntArray) -> QueryEstimate:
    """Estimate means by importance sampling without normalization.

    R^_j = (1/n) sum c w L_j: exactly unbiased, also for draws to a budget (see
    `queries.designs`), and so is Cov^ = sum c (w L_j - R^_j)(w L_l - R^_l) / (n (n - 1)). The
    better the grade model predicts the values of a design made for it, the more exact it is;
    otherwise the weights' own variation stays in it, which `ratio_estimate` takes out.

    Parameters
    ----------
    values, weight, counts
        As in `ratio_estimate`, but weight is exactly p/q.

    Raises
    ------
    ValueError
        As `ratio_estimate`.
    """
    draws = _check_draws(values, weight, counts)
    terms = weight[:, None] * values
    value = np.sum(counts[:, None] * terms, axis=0) / draws
    return _spread_of(value, terms - value, counts, 1.0 / (draws * (draws - 1.0)))


def _spread_of(
    value: FloatArray, residual: FloatArray, counts: IntArray, factor: float
) -> QueryEstimate:
    scaled = residual * np.sqrt(counts)[:, None]
    covariance = factor * np.einsum("uj,ul->jl", scaled, scaled)
    contributions = np.stack([_kish(scaled - each[:, None]) for each in scaled.T])
    np.fill_diagonal(contributions, _kish(scaled))
    return QueryEstimate(value, covariance, contributions)


def _kish(terms: FloatArray) -> FloatArray:
    """(sum t^2)^2 / sum t^4 of every column; 0 for columns of zeros."""
    squares = terms**2
    fourths = np.sum(squares**2, axis=0)
    total = np.sum(squares, axis=0) ** 2
    shares = np.divide(total, fourths, out=np.zeros_like(total), where=fourths > 0.0)
    return np.asarray(shares)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """The distinct topics of some batches: weight p/q, number of draws, share of the topics."""

    topic: IntArray
    weight: FloatArray
    counts: IntArray
    draws: int | None
    share: float
    rarest: float  # the largest p/q of all topics, drawn or not

    @classmethod
    def of(cls, design: QueryDesign, sample: QuerySample, used: int) -> "_Drawn":
        eligible = int(np.count_nonzero(design.eligible))
        share = eligible / len(design.probability)
        if design.is_census and used == design.batches:
            topic, ones = sample.prefix(used), np.ones(eligible, dtype=np.int64)
            return cls(topic, ones.astype(np.float64), ones, None, share, 0.0)
        topic, counts = np.unique(sample.drawn(used), return_counts=True)
        ratio = 1.0 / (eligible * design.probability[design.eligible].min())
        weight = 1.0 / (eligible * design.probability[topic])
        return cls(topic, weight, counts.astype(np.int64), int(counts.sum()), share, ratio)

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

    def estimate(self, values: FloatArray, method: Estimator) -> QueryEstimate:
        runs = values.shape[1]
        if self.draws is None:
            exact = np.full((runs, runs), float(len(self.topic)))
            return QueryEstimate(values.mean(axis=0) * self.share, np.zeros((runs, runs)), exact)
        function = ratio_estimate if method == "ratio" else unbiased_estimate
        found = function(values, weight=self.weight, counts=self.counts)
        covariance = found.covariance * self.share**2
        return QueryEstimate(found.value * self.share, covariance, found.contributions)


def _result(
    measure: Measure,
    runs: tuple[str, ...],
    method: Estimator,
    values: FloatArray,
    by_topic: FloatArray,
    drawn: _Drawn,
    largest: float,
    confidence: float,
) -> QueryResult:
    estimate = drawn.estimate(values, method)
    limit = drawn.limit(largest, confidence)
    difference_df = degrees_of_freedom(estimate.contributions, draws=drawn.draws)
    df = np.diag(difference_df).copy()
    variance = np.diag(estimate.covariance)
    student = student_intervals(estimate.value, variance=variance, df=df, confidence=confidence)
    return QueryResult(
        measure=measure,
        runs=runs,
        estimator=method,
        value=estimate.value,
        se=student.se,
        df=df,
        low=np.maximum(student.low, 0.0),
        high=np.where(estimate.value > 0.0, student.high, limit),
        covariance=estimate.covariance,
        difference_df=difference_df,
        by_topic=by_topic,
    )


def _largest_value(measure: Measure, max_grade: int, depth: int) -> float:
    if measure.family == "query":
        return 1.0
    weights = measure.weights(np.arange(1, depth + 1), lengths=depth)
    return float(weights.sum()) * measure.max_utility(max_grade)


def _linear_values(pool: Pool, tag: str, measure: Measure, gain: FloatArray) -> FloatArray:
    kept = pool.run == pool.run_index(tag)
    pairs = pool.entry_pair[kept]
    gained = pool.entry_weights(measure)[kept] * len(pool.topics) * gain[pairs]
    return column_sums(pool.topic[pairs], gained, number=len(pool.topics))


def _mean_gains(pool: Pool, labels: LabelRows, measure: Measure, max_grade: int) -> FloatArray:
    """Mean gain of every pair, nan without a judgment; 0 as the last entry, for no document."""
    try:
        pair = index_array(labels.pair, below=len(pool), name="pair")
        grade = index_array(labels.grade, below=max_grade + 1, name="grade")
    except ValueError as error:
        raise QueryError(f"labels: {error}") from error
    order = np.lexsort((grade, pair))
    pair, grade = pair[order], grade[order]
    number = np.bincount(pair, minlength=len(pool))
    gains = document_gains(measure, max_grade=max_grade)[grade]
    total = np.bincount(pair, weights=gains, minlength=len(pool))
    mean = np.where(number > 0, total / np.maximum(number, 1), np.nan)
    return np.asarray(np.concatenate([mean, [0.0]]), dtype=np.float64)


def _checked_topics(pool: Pool, topics: IntArray) -> IntArray:
    try:
        return index_array(topics, below=len(pool.topics), name="topics")
    except ValueError as error:
        raise QueryError(str(error)) from error


def _check_complete(pool: Pool, missing: BoolArray) -> None:
    if missing.any():
        pair = int(np.argmax(missing))
        topic, docno = pool.topics[pool.topic[pair]], pool.docno[pair].decode()
        raise QueryError(
            f"topic {topic!r}, docno {docno!r} has no judgment"
            f" ({np.count_nonzero(missing)} are missing)"
        )


def _check_draws(values: FloatArray, weight: FloatArray, counts: IntArray) -> int:
    if values.ndim != 2 or not len(values) == len(weight) == len(counts):
        found = f"not {values.shape}, {weight.shape} and {counts.shape}"
        raise ValueError(f"values, weight and counts must be of the same topics, {found}")
    refuse(~np.isfinite(values), values, name="values", rule="be finite")
    unlikely = ~((weight > 0.0) & np.isfinite(weight))
    refuse(unlikely, weight, name="weight", rule="be finite and above 0")
    refuse(~(counts >= 1), counts, name="counts", rule="be at least 1")
    if counts.sum() < 2:
        raise ValueError(f"counts must add up to at least 2 draws, not {counts.sum()}")
    return int(counts.sum())


def _check_evaluation(
    pool: Pool,
    design: QueryDesign,
    sample: QuerySample,
    measures: Sequence[Measure],
    method: str,
) -> None:
    if not design.pool_digest == sample.pool_digest == pool.digest:
        raise QueryError("the design or the sample belongs to another pool")
    if method not in ESTIMATORS:
        raise QueryError(f"the estimator is one of {', '.join(ESTIMATORS)}, not {method!r}")
    check_measures(measures, name="measures")
    for measure in measures:
        if min(measure.cutoff or pool.depth, pool.depth) > design.depth:
            raise QueryError(f"{measure} looks deeper than the {design.depth} judged ranks")
