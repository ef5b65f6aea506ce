"""From a sample and its judgments to estimates, intervals and a ranking: the one entry point."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from estimation.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    check_confidence,
    check_whole,
)
from estimation.core.designs import Design
from estimation.core.drawn import Drawn
from estimation.core.draws import Sample
from estimation.core.estimators import Estimate, topic_contributions
from estimation.core.intervals import degrees_of_freedom, student_intervals, zero_limit
from estimation.core.labels import LabelRows, select_rows
from estimation.core.measures import (
    MAX_GRADE,
    PREFERENCE_MAX_GRADE,
    Measure,
    MeasureError,
    check_measures,
)
from estimation.core.pool import Pool
from estimation.core.ranks import Ranking, rank_runs
from estimation.core.ratios import estimate_ratios
from estimation.core.reach import Reach
from estimation.core.terms import linear_terms


@dataclass(frozen=True, eq=False)
class EstimatorResult:
    """Estimates of the k runs' values by one estimator.

    Attributes
    ----------
    value, se, df, low, high : ndarray of float64, shape (k,)
        Estimate, standard error, degrees of freedom, ends of the confidence interval. No value
        can be negative, so `low` is cut at 0. For a run without any positive label on
        a pair that was not certain to be sampled, `se` says nothing and `zero_limit` is added
        to the value instead.
    covariance : ndarray of float64, shape (k, k)
        Estimated covariance of the values.
    difference_df : ndarray of float64, shape (k, k)
        Degrees of freedom of each difference.
    """

    value: FloatArray
    se: FloatArray
    df: FloatArray
    low: FloatArray
    high: FloatArray
    covariance: FloatArray
    difference_df: FloatArray


@dataclass(frozen=True, eq=False)
class MeasureResult:
    """Everything about one measure.

    Attributes
    ----------
    measure : Measure
    runs : tuple of str
        The k run tags, in the pool's order: the order of every vector and matrix.
    estimators : mapping of str to EstimatorResult
        ``is`` (importance sampling) for designs with replacement, ``ht`` (Horvitz-Thompson) for
        the others and for ``iid``.
    primary : str
        The estimator that is shown and ranked by: ``is`` where there is one, else ``ht``. Ratio
        measures have ``ht`` only, for every design.
    ranking : Ranking
        By the primary estimator.
    support : ndarray of float64, shape (k,)
        Share of the run's weight on pairs that could be sampled. Below 1 the estimate is of a
        lower bound only, and so are its interval and its place in the ranking.
    effective_sample_size : ndarray of float64, shape (k,)
        Number of equally weighted pairs that the sample is worth for the run.
    label_noise_measured : bool
        Whether any pair has two judgments, so that disagreement is part of the standard errors.
    by_topic : ndarray of float64, shape (T, k)
        What each topic of the pool contributes to the primary estimate of each run.
    ratio_bias : ndarray of float64, shape (k,), or None
        Ratio measures: what was taken off the value for the bias of a ratio, in the measure's
        unit. It is known to second order only: where it is not small against the standard error,
        as much again may be left.
    relevant_found : ndarray of int64, shape (T,), or None
        Ratio measures: sampled pairs of each topic with any utility. Where they are few, neither
        the bias is known nor the interval reliable.
    """

    measure: Measure
    runs: tuple[str, ...]
    estimators: Mapping[str, EstimatorResult]
    primary: str
    ranking: Ranking
    support: FloatArray
    effective_sample_size: FloatArray
    label_noise_measured: bool
    by_topic: FloatArray
    ratio_bias: FloatArray | None = None
    relevant_found: IntArray | None = None

    @property
    def estimate(self) -> EstimatorResult:
        """The result of the primary estimator."""
        return self.estimators[self.primary]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a prefix of batches says.

    Attributes
    ----------
    batches : int
        Number of batches used.
    judged_pairs, judgments : int
        Distinct sampled pairs of these batches, and their label rows.
    draws : int or None
        With replacement: number of draws in these batches, repetitions included.
    confidence : float
    results : tuple of MeasureResult
        In the order in which the measures were asked for.
    """

    batches: int
    judged_pairs: int
    judgments: int
    draws: int | None
    confidence: float
    results: tuple[MeasureResult, ...]


def evaluate(
    pool: Pool,
    design: Design,
    sample: Sample,
    *,
    labels: LabelRows,
    measures: Sequence[Measure],
    max_grade: int,
    batches: int | None = None,
    confidence: float = 0.95,
) -> Evaluation:
    """Estimate every measure for every run of the pool from the first batches of a sample.

    The result is a function of its arguments to the last bit: the order of the label rows,
    the number of threads and the process have no influence.

    Parameters
    ----------
    pool, design, sample : Pool, Design, Sample
        As they were when the sample was drawn.
    labels : LabelRows
        One row per judgment of a sampled pair; an organizer's decision is a row like others.
        Rows of pairs that enter in later batches are not used.
    measures : sequence of Measure
        At least one.
    max_grade : int
        The best grade of the scale.
    batches : int, optional
        Use the first so many batches; by default all. Every prefix is an exact sample of the
        same design with a smaller budget.
    confidence : float
        Of the intervals, and of all verdicts of a measure together.

    Raises
    ------
    ValueError
        If pool, design and sample do not belong together, a sampled pair has the probability 0,
        or a number is out of range.
    MeasureError
        (A ValueError.) If one of `measures` is no `Measure`, or cannot be estimated.
    LabelError
        (A ValueError.) If a sampled pair of these batches has no row, a row belongs to no
        sampled pair, or a grade is off the scale; the message names topic and docno.
    """
    used = design.batches if batches is None else batches
    if not pool.digest == design.pool_digest == sample.pool_digest:
        raise ValueError("pool, design and sample do not belong together")
    check_question(measures, max_grade, confidence)
    best = PREFERENCE_MAX_GRADE if pool.is_of_preferences else max_grade
    drawn = Drawn.of(pool, design, sample, used)
    rows = select_rows(labels, sampled=sample.pair, prefix=drawn.pair, max_grade=best, pool=pool)
    return evaluate_drawn(
        pool,
        drawn,
        rows=rows,
        measures=measures,
        max_grade=best,
        batches=used,
        confidence=confidence,
    )


def evaluate_drawn(
    pool: Pool,
    drawn: Drawn,
    *,
    rows: LabelRows,
    measures: Sequence[Measure],
    max_grade: int,
    batches: int,
    confidence: float = 0.95,
) -> Evaluation:
    """Estimate every measure for every run from drawn pairs and their judgments.

    Parameters
    ----------
    pool, drawn : Pool, Drawn
    rows : LabelRows
        From `select_rows`: sorted, `pair` counting positions in `drawn.pair`.
    batches : int
        Number of batches that were drawn, as a fact for the result.

    Other parameters are those of `evaluate`.
    """
    reach = Reach(pool, drawn.pair, drawn.inclusion, drawn.expected)
    results = tuple(
        _evaluate_measure(reach, drawn, rows, measure, max_grade, confidence)
        for measure in measures
    )
    return Evaluation(
        batches=batches,
        judged_pairs=len(drawn.pair),
        judgments=len(rows.pair),
        draws=drawn.draws,
        confidence=confidence,
        results=results,
    )


def check_question(measures: Sequence[Measure], max_grade: int, confidence: float) -> None:
    """Raise ValueError unless these can be asked of some sample."""
    if not measures:
        raise ValueError("there must be a measure to estimate; measures holds none")
    check_measures(measures, name="measures")
    check_whole(max_grade, name="max_grade", most=MAX_GRADE)
    check_confidence(confidence)


def _evaluate_measure(
    reach: Reach,
    drawn: Drawn,
    rows: LabelRows,
    measure: Measure,
    max_grade: int,
    confidence: float,
) -> MeasureResult:
    if measure.family == "query":
        raise MeasureError(f"{measure} is estimated from rounds of whole topics only")
    pool, is_ratio = reach.pool, measure.family == "ratio"
    found = (_ratio if is_ratio else _linear)(pool, drawn, rows, measure)
    limit = _zero_limit(reach, drawn, found, measure, max_grade, confidence)
    estimators = {
        name: _with_intervals(estimate, drawn, limit, confidence, is_ratio)
        for name, estimate in found.estimates.items()
    }
    shown = estimators[found.primary]
    return MeasureResult(
        measure=measure,
        runs=pool.runs,
        estimators=estimators,
        primary=found.primary,
        ranking=ranking_of(measure, shown, pool.runs, confidence),
        support=reach.support(measure),
        effective_sample_size=reach.effective_sample_size(measure),
        label_noise_measured=found.noise_measured,
        by_topic=found.by_topic,
        ratio_bias=found.ratio_bias,
        relevant_found=found.relevant_found,
    )


def ranking_of(
    measure: Measure,
    shown: EstimatorResult,
    runs: tuple[str, ...],
    confidence: float,
    *,
    slack: FloatArray | None = None,
) -> Ranking:
    """Rank runs by one estimator, the best first whether large or small values are good.

    `slack` is that of `rank_runs`, of the differences by which one run is better than another.
    """
    sign = -1.0 if measure.lower_is_better else 1.0
    ranking = rank_runs(
        sign * shown.value,
        covariance=shown.covariance,
        df=shown.difference_df,
        tags=runs,
        confidence=confidence,
        slack=slack,
    )
    return replace(ranking, difference=sign * ranking.difference)


@dataclass(frozen=True, eq=False)
class _Found:
    """Estimates by estimator, and what else `MeasureResult` holds."""

    estimates: dict[str, Estimate]
    primary: str
    by_topic: FloatArray
    noise_measured: bool
    ratio_bias: FloatArray | None = None
    relevant_found: IntArray | None = None


def _linear(pool: Pool, drawn: Drawn, rows: LabelRows, measure: Measure) -> _Found:
    terms = linear_terms(pool, measure, pairs=drawn.pair, rows=rows)
    by_topic = topic_contributions(
        terms.weights,
        terms.labels.mean * drawn.multiplier,
        topic=pool.topic[drawn.pair].astype(np.int64),
        topics=len(pool.topics),
    )
    return _Found(drawn.estimates(terms), drawn.primary, by_topic, terms.noise_measured)


def _ratio(pool: Pool, drawn: Drawn, rows: LabelRows, measure: Measure) -> _Found:
    found = estimate_ratios(pool, measure, drawn=drawn, rows=rows)
    return _Found(
        estimates={"ht": found.estimate},
        primary="ht",
        by_topic=found.by_topic,
        noise_measured=found.noise_measured,
        ratio_bias=found.bias,
        relevant_found=found.found,
    )


def _with_intervals(
    estimate: Estimate, drawn: Drawn, limit: FloatArray, confidence: float, is_ratio: bool
) -> EstimatorResult:
    draws = drawn.degrees_of_draws
    difference_df = degrees_of_freedom(estimate.contributions, draws=draws)
    df = np.diag(difference_df) if draws is None else np.full(len(limit), max(1.0, draws - 1.0))
    student = student_intervals(
        estimate.value, variance=np.diag(estimate.covariance), df=df, confidence=confidence
    )
    # Only zeros, or nothing, on uncertain pairs: what certain pairs gave is sure, the rest open.
    # A ratio is sure of nothing, because the denominator is open as well; it is at most 1.
    unseen = ((student.se == 0.0) & (limit > 0.0)) | (estimate.value == 0.0)
    sure = estimate.value if draws is None else np.zeros_like(limit)
    if is_ratio:
        sure = estimate.value - limit
    highest = np.maximum(estimate.value, 1.0 if is_ratio else np.inf)
    high = np.where(unseen, np.maximum(student.high, estimate.value + limit), student.high)
    return EstimatorResult(
        value=estimate.value,
        se=student.se,
        df=student.df,
        low=np.maximum(np.where(unseen, sure, student.low), 0.0),
        high=np.minimum(high, highest),
        covariance=estimate.covariance,
        difference_df=difference_df,
    )


def support(pool: Pool, measure: Measure, eligible: BoolArray) -> FloatArray:
    """Return the share of every run's weight on eligible pairs, shape (k,).

    Exactly 1 if all pairs with a weight are eligible, or the run has no weight at all. Under a
    ratio measure every pair of the pool counts, so that it is at most the share of these.
    """
    return Reach.of_design(pool, eligible).support(measure)


def _zero_limit(
    reach: Reach, drawn: Drawn, found: "_Found", measure: Measure, max_grade: int, confidence: float
) -> FloatArray:
    """`zero_limit` of every run, and no more than it would have at the worst or best grades.

    0 throughout if every run has a value and a variance: nothing asks for it then.
    """
    pool, each = reach.pool, found.estimates.values()
    if all(np.all((one.value != 0.0) & (np.diag(one.covariance) > 0.0)) for one in each):
        return np.zeros(len(pool.runs))
    if measure.family == "ratio":
        uncertain = (drawn.inclusion > 0.0) & (drawn.inclusion < 1.0)
        open_topics = len(np.unique(pool.topic[uncertain]))
        return np.full(len(pool.runs), open_topics / len(pool.topics))
    largest, total = reach.largest_terms(measure, max_grade)
    return np.minimum(zero_limit(largest, max_utility=1.0, confidence=confidence), total)
