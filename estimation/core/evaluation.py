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
from estimation.core.difference import (
    check_predictions,
)
from estimation.core.drawn import Drawn
from estimation.core.draws import Sample
from estimation.core.estimators import Estimate
from estimation.core.guarantees import Guarantee
from estimation.core.interval_kinds import IntervalKind, check_interval
from estimation.core.intervals import Bound, degrees_of_freedom, student_intervals, zero_limit
from estimation.core.labels import LabelRows, select_rows
from estimation.core.measure_estimates import Found, Question, find
from estimation.core.measures import (
    MAX_GRADE,
    PREFERENCE_MAX_GRADE,
    Measure,
    check_measures,
)
from estimation.core.pool import Pool
from estimation.core.ranks import Ranking, rank_runs
from estimation.core.reach import Reach
from estimation.core.slack import slack
from estimation.core.unknown import Reasons, all_known


@dataclass(frozen=True, eq=False)
class EstimatorResult:
    """Estimates of the k runs' values by one estimator.

    Attributes
    ----------
    value, se, df, low, high : ndarray of float64, shape (k,)
        Estimate, standard error, degrees of freedom, ends of the confidence interval. No value
        can be negative or above `Measure.largest_value`, and intervals are cut there, unless the
        estimate itself lies above, where they end. For a run without any positive label on
        a pair that was not certain to be sampled, `se` says nothing and `zero_limit` is added
        to the value instead. With a guaranteed kind of interval `se` and `df` have no part in
        the ends.
    covariance : ndarray of float64, shape (k, k)
        Estimated covariance of the values.
    difference_df : ndarray of float64, shape (k, k)
        Degrees of freedom of each difference. Of ``ht`` beside ``is``, by which runs are not
        compared, they are not worked out: they are 1, the least there can be.
    unknown : ndarray of int8, shape (k,)
        Why a value is not known, a `Reason`; 0 where it is known. What is not known has numbers
        all the same, unbiased ones, but nobody should read anything into them.
    difference_bound : Bound or None
        With a guaranteed kind of interval: the guarantee for the differences.
    """

    value: FloatArray
    se: FloatArray
    df: FloatArray
    low: FloatArray
    high: FloatArray
    covariance: FloatArray
    difference_df: FloatArray
    unknown: Reasons
    difference_bound: Bound | None = None


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
        the others and for ``iid``; with predictions also ``di`` (difference).
    primary : str
        The estimator that is shown and ranked by: ``is`` or ``di`` where there is one, else
        ``ht``. Ratio measures have ``ht`` only, for every design.
    ranking : Ranking
        By the primary estimator.
    support : ndarray of float64, shape (k,)
        Share of the run's weight on pairs that could be sampled. Below 1 the estimate is of a
        lower bound only, and so is its interval; verdicts hold whatever the rest is (`slack`).
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
    interval : IntervalKind
        The kind of the primary estimator's intervals, verdicts and possible ranks: the one that
        was asked for, or ``student`` for a measure that has no other.
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
    interval: IntervalKind = "student"

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
    interval: IntervalKind = "student",
    predictions: FloatArray | None = None,
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
    interval : IntervalKind
        One of `interval_kinds` of the design's method; see `guarantees`. Measures without such a
        bound, ratios for one, keep ``student``: `MeasureResult.interval` says which it is.
        Estimators that are not the primary one always have ``student``.
    predictions : ndarray of float64, shape (N,), optional
        Designs of the method ``poisson``: the predicted (expected) grade of every pair, fixed
        before the sample was drawn, NaN where nothing is predicted. Measures of gains then have
        the estimator ``di`` as well, which is the primary one: see `difference`. It is unbiased
        whatever is predicted. Other measures are estimated as without.

    Raises
    ------
    ValueError
        If pool, design and sample do not belong together, a sampled pair has the probability 0,
        a number is out of range, the method does not allow the interval or predictions, or
        predictions come with a guaranteed interval.
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
    check_interval(interval, method=design.method)
    best = PREFERENCE_MAX_GRADE if pool.is_of_preferences else max_grade
    if predictions is not None:
        _check_help(predictions, pool, design.method, interval, best)
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
        interval=interval,
        predictions=predictions,
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
    interval: IntervalKind = "student",
    predictions: FloatArray | None = None,
    fitted_runs: IntArray | None = None,
) -> Evaluation:
    """Estimate every measure for every run from drawn pairs and their judgments.

    Parameters
    ----------
    pool, drawn : Pool, Drawn
    rows : LabelRows
        From `select_rows`: sorted, `pair` counting positions in `drawn.pair`.
    batches : int
        Number of batches that were drawn, as a fact for the result.
    interval, predictions
        Such as the sampling method allows.
    fitted_runs : ndarray of int64, optional
        Positions of the runs that the predictions are fitted to; by default all.

    Other parameters are those of `evaluate`.
    """
    reach = Reach(pool, drawn.pair, drawn.inclusion, drawn.expected)
    question = Question(max_grade, confidence, interval, predictions, fitted_runs)
    results = tuple(
        _evaluate_measure(reach, drawn, rows, measure, question) for measure in measures
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


def _check_help(
    predictions: FloatArray, pool: Pool, method: str, interval: IntervalKind, max_grade: int
) -> None:
    if method != "poisson":
        raise ValueError(f"predictions are for designs of the method poisson, not {method}")
    if interval != "student":
        given = f"interval {interval!r}"
        raise ValueError(f"predictions do not go with the guaranteed {given}, only with 'student'")
    check_predictions(predictions, pairs=len(pool), max_grade=max_grade)


def _evaluate_measure(
    reach: Reach, drawn: Drawn, rows: LabelRows, measure: Measure, question: Question
) -> MeasureResult:
    pool, confidence = reach.pool, question.confidence
    found = find(pool, drawn, rows, measure, question)
    limit = _zero_limit(reach, drawn, found, measure, question.max_grade, confidence)
    highest = measure.largest_value(max_grade=question.max_grade, depth=pool.depth)
    estimators = {
        name: _with_intervals(
            estimate, drawn, limit, confidence, _Unseen(_goes_both_ways(measure, name), highest)
        )
        for name, estimate in found.estimates.items()
    }
    shown = estimators[found.primary]
    if found.guarantee is not None:
        most = reach.largest_values(measure, question.max_grade)
        shown = _guaranteed(shown, found.guarantee, confidence, most)
        estimators[found.primary] = shown
    stand_back = slack(reach, measure, max_grade=question.max_grade)
    return MeasureResult(
        measure=measure,
        runs=pool.runs,
        estimators=estimators,
        primary=found.primary,
        ranking=_ranking_of(measure, shown, pool.runs, confidence, stand_back),
        support=reach.support(measure),
        effective_sample_size=reach.effective_sample_size(measure),
        label_noise_measured=found.noise_measured,
        by_topic=found.by_topic,
        ratio_bias=found.ratio_bias,
        relevant_found=found.relevant_found,
        interval="student" if found.guarantee is None else question.interval,
    )


def rank_again(found: Evaluation, reach: Reach, *, added: BoolArray, max_grade: int) -> Evaluation:
    """Rank runs whose numbers are of one sample, though not all of its pool.

    Parameters
    ----------
    found : Evaluation
        Of runs of the pool, in any order.
    reach, added, max_grade
        As for `slack`.
    """

    def ranked(result: MeasureResult) -> MeasureResult:
        at = [reach.pool.run_index(tag) for tag in result.runs]
        of_all = slack(reach, result.measure, max_grade=max_grade, added=added)
        stand_back = of_all[np.ix_(at, at)]
        shown = result.estimate
        ranking = _ranking_of(result.measure, shown, result.runs, found.confidence, stand_back)
        return replace(result, ranking=ranking)

    return replace(found, results=tuple(map(ranked, found.results)))


def _ranking_of(
    measure: Measure,
    shown: EstimatorResult,
    runs: tuple[str, ...],
    confidence: float,
    stand_back: FloatArray,
) -> Ranking:
    """Rank runs by one estimator, the best first whether large or small values are good."""
    sign = -1.0 if measure.lower_is_better else 1.0
    ranking = rank_runs(
        sign * shown.value,
        covariance=shown.covariance,
        df=shown.difference_df,
        tags=runs,
        confidence=confidence,
        slack=stand_back,
        bound=shown.difference_bound,
    )
    return replace(ranking, difference=sign * ranking.difference)


def _with_intervals(
    estimate: Estimate, drawn: Drawn, limit: FloatArray, confidence: float, unseen: "_Unseen"
) -> EstimatorResult:
    draws = drawn.degrees_of_draws
    difference_df = degrees_of_freedom(estimate.contributions, draws=draws)
    df = np.diag(difference_df) if draws is None else np.full(len(limit), max(1.0, draws - 1.0))
    student = student_intervals(
        estimate.value, variance=np.diag(estimate.covariance), df=df, confidence=confidence
    )
    # Only zeros, or nothing, on uncertain pairs: what certain pairs gave is sure, the rest open.
    is_open = ((student.se == 0.0) & (limit > 0.0)) | (estimate.value == 0.0)
    sure = estimate.value if draws is None else np.zeros_like(limit)
    if unseen.goes_both_ways:
        sure = estimate.value - limit
    low = np.maximum(np.where(is_open, sure, student.low), 0.0)
    high = np.where(is_open, np.maximum(student.high, estimate.value + limit), student.high)
    highest = np.maximum(estimate.value, unseen.highest)
    return EstimatorResult(
        value=estimate.value,
        se=student.se,
        df=student.df,
        low=low,
        high=np.maximum(np.minimum(high, highest), low),
        covariance=estimate.covariance,
        difference_df=difference_df,
        unknown=all_known(len(limit)),
    )


@dataclass(frozen=True)
class _Unseen:
    """What pairs that were not sampled can do to a value: move it down as well, and up to where."""

    goes_both_ways: bool
    highest: float


def _goes_both_ways(measure: Measure, estimator: str) -> bool:
    """A ratio has an open denominator, and a value that rests on predictions may lose as well."""
    return measure.family == "ratio" or estimator == "di"


def _guaranteed(
    student: EstimatorResult, guarantee: Guarantee, confidence: float, most: FloatArray
) -> EstimatorResult:
    """The same with the guarantee's intervals, as far as values can lie: between 0 and `most`.

    An estimate can come out above `most`; its interval then ends at the estimate.
    """
    values = guarantee.values
    return replace(
        student,
        low=np.maximum(student.value - values.below(confidence), 0.0),
        high=np.minimum(student.value + values.above(confidence), np.maximum(student.value, most)),
        difference_bound=guarantee.differences,
    )


def support(pool: Pool, measure: Measure, eligible: BoolArray) -> FloatArray:
    """Return the share of every run's weight on eligible pairs, shape (k,).

    Exactly 1 if all pairs with a weight are eligible, or the run has no weight at all. Under a
    ratio measure every pair of the pool counts, so that it is at most the share of these.
    """
    return Reach.of_design(pool, eligible).support(measure)


def _zero_limit(
    reach: Reach, drawn: Drawn, found: Found, measure: Measure, max_grade: int, confidence: float
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
