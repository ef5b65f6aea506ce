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
from estimation.core.interval_kinds import IntervalKind
from estimation.core.intervals import Bound, student_intervals
from estimation.core.labels import LabelRows, select_rows
from estimation.core.measure_estimates import Question, find
from estimation.core.measures import (
    MAX_GRADE,
    PREFERENCE_MAX_GRADE,
    Measure,
    check_measures,
)
from estimation.core.methods import check_interval, with_option
from estimation.core.out_of_reach import OutOfReach
from estimation.core.outlook import Outlook, fit_outlook
from estimation.core.pool import Pool
from estimation.core.ranks import Ranking, rank_runs
from estimation.core.ratio_knowledge import RatioKnowledge
from estimation.core.reach import Reach
from estimation.core.slack import slack
from estimation.core.uncertainty import (
    freedom,
    unknown_differences,
    unknown_values,
    value_limits,
    variances,
)
from estimation.core.unknown import Reasons, all_known
from estimation.core.unseen import Unseen


@dataclass(frozen=True, eq=False)
class EstimatorResult:
    """Estimates of the k runs' values by one estimator.

    Attributes
    ----------
    value, se, df, low, high : ndarray of float64, shape (k,)
        Estimate, standard error (`uncertainty.variances`), degrees of freedom, ends of the
        confidence interval (`uncertainty.value_limits`; Student's for ratios). No
        value can be negative or above `Measure.largest_value`, and intervals are cut there, unless
        the estimate itself lies above, where they end. With a guaranteed kind of interval `se`
        and `df` have no part in the ends.
    covariance : ndarray of float64, shape (k, k)
        Covariance of the values as the sample estimates it, without bias.
    difference_df : ndarray of float64, shape (k, k)
        Degrees of freedom of each difference. Of ``ht`` beside ``is``, by which runs are not
        compared, they are not worked out: they are 1, the least there can be.
    unknown : ndarray of int8, shape (k,)
        Why a value is not known, a `Reason`; 0 where it is known. What is not known has numbers
        all the same, unbiased ones, but nobody should read anything into them.
    difference_unknown : ndarray of int8, shape (k, k)
        The same of the differences.
    expected : ndarray of float64, shape (k, k), or None
        Covariance that is expected of what the sample may have missed; see `uncertainty`. None
        where there is no such model: variances are then by the sample alone.
    finds : ndarray of float64, shape (k, k), or None
        From how many finds values and differences come; see `uncertainty.variances`.
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
    difference_unknown: Reasons
    expected: FloatArray | None = None
    finds: FloatArray | None = None
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
    outlook: Outlook | None = None,
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
    outlook : Outlook, optional
        What to expect of the pairs of the pool; by default fitted to these labels.

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
        outlook=outlook,
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
    outlook: Outlook | None = None,
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
    outlook : Outlook, optional
        By default fitted.

    Other parameters are those of `evaluate`.
    """
    reach = Reach(pool, drawn.pair, drawn.inclusion)
    if outlook is None:
        outlook = fit_outlook(pool, drawn, rows, max_grade=max_grade)
    question = Question(max_grade, confidence, interval, predictions, fitted_runs, outlook)
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
    if method not in (able := with_option("predictions")):
        allowed = " or ".join(able)
        raise ValueError(f"predictions are for designs of the method {allowed}, not {method}")
    if interval != "student":
        given = f"interval {interval!r}"
        raise ValueError(f"predictions do not go with the guaranteed {given}, only with 'student'")
    check_predictions(predictions, pairs=len(pool), max_grade=max_grade)


def _evaluate_measure(
    reach: Reach, drawn: Drawn, rows: LabelRows, measure: Measure, question: Question
) -> MeasureResult:
    pool, confidence = reach.pool, question.confidence
    found = find(reach, drawn, rows, measure, question)
    highest = measure.largest_value(max_grade=question.max_grade, depth=pool.depth)
    estimators = {
        name: _with_intervals(
            estimate,
            found.unseen.get(name),
            confidence,
            highest,
            ratios=found.ratio_knowledge,
        )
        for name, estimate in found.estimates.items()
    }
    shown = estimators[found.primary]
    if found.guarantee is not None:
        most = reach.largest_values(measure, question.max_grade)
        shown = _guaranteed(shown, found.guarantee, confidence, most)
        estimators[found.primary] = shown
    stand_back = slack(reach.out, measure, max_grade=question.max_grade)
    return MeasureResult(
        measure=measure,
        runs=pool.runs,
        estimators=estimators,
        primary=found.primary,
        ranking=_ranking_of(measure, shown, pool.runs, confidence, stand_back),
        support=reach.out.support(measure),
        effective_sample_size=reach.effective_sample_size(measure),
        label_noise_measured=found.noise_measured,
        by_topic=found.by_topic,
        ratio_bias=found.ratio_bias,
        relevant_found=found.relevant_found,
        interval="student" if found.guarantee is None else question.interval,
    )


def rank_again(
    found: Evaluation, out: OutOfReach, *, added: BoolArray, max_grade: int
) -> Evaluation:
    """Rank runs whose numbers are of one sample, though not all of its pool.

    Parameters
    ----------
    found : Evaluation
        Of runs of the pool, in any order.
    out, added, max_grade
        As for `slack`.
    """

    def ranked(result: MeasureResult) -> MeasureResult:
        at = [out.pool.run_index(tag) for tag in result.runs]
        of_all = slack(out, result.measure, max_grade=max_grade, added=added)
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
        expected=shown.expected,
        finds=shown.finds,
        df=shown.difference_df,
        unknown=shown.difference_unknown,
        tags=runs,
        confidence=confidence,
        slack=stand_back,
        bound=shown.difference_bound,
    )
    return replace(ranking, difference=sign * ranking.difference)


def _with_intervals(
    estimate: Estimate,
    unseen: Unseen | None,
    confidence: float,
    highest: float,
    *,
    ratios: RatioKnowledge | None = None,
) -> EstimatorResult:
    runs, value = len(estimate.value), estimate.value
    expected = None if unseen is None else unseen.covariance + estimate.noise
    difference_df = freedom(estimate.contributions, expected)
    finds = None if ratios is not None or expected is None else estimate.contributions
    if ratios is not None:
        expected, difference_df = ratios.expected + estimate.noise, ratios.freedom
    variance = variances(estimate.covariance, expected, finds)
    student = student_intervals(
        value, variance=variance, df=np.diag(difference_df), confidence=confidence
    )
    low, high = student.low, student.high
    unknown, difference_unknown = all_known(runs), all_known(runs, runs)
    if ratios is not None:
        unknown, difference_unknown = ratios.unknown, ratios.difference_unknown
    elif unseen is not None and expected is not None:
        unknown = unknown_values(unseen.doubt)
        difference_unknown = unknown_differences(
            value, estimate.covariance, expected, estimate.contributions
        )
        low, high = value_limits(estimate, unseen, variance, confidence=confidence)
    low = np.maximum(low, 0.0)
    return EstimatorResult(
        value=value,
        se=student.se,
        df=student.df,
        low=low,
        high=np.maximum(np.minimum(high, np.maximum(value, highest)), low),
        covariance=estimate.covariance,
        difference_df=difference_df,
        unknown=unknown,
        difference_unknown=difference_unknown,
        expected=expected,
        finds=finds,
    )


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
    return OutOfReach.of(pool, eligible).support(measure)
