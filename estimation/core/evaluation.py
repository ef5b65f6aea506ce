"""From a sample and its judgments to estimates, intervals and a ranking: the one entry point."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    SparseMatrix,
    check_confidence,
    column_sums,
)
from estimation.core.designs import Design
from estimation.core.draws import Sample
from estimation.core.estimators import (
    Estimate,
    effective_sample_size,
    horvitz_thompson_iid,
    horvitz_thompson_poisson,
    importance_sampling,
    topic_contributions,
)
from estimation.core.intervals import degrees_of_freedom, student_intervals, zero_limit
from estimation.core.labels import LabelRows, PairLabels, pair_labels, select_rows
from estimation.core.measures import Measure
from estimation.core.pool import Pool
from estimation.core.ranks import Ranking, rank_runs


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
        ``ht`` (Horvitz-Thompson) always, ``is`` (importance sampling) for ``iid`` designs.
    primary : str
        The estimator that is shown and ranked by: ``is`` for ``iid``, ``ht`` for ``poisson``.
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
        ``iid``: number of draws in these batches, repetitions included.
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
        If pool, design and sample do not belong together, or a number is out of range.
    LabelError
        (A ValueError.) If a sampled pair of these batches has no row, a row belongs to no
        sampled pair, or a grade is off the scale.
    """
    used = design.batches if batches is None else batches
    _check_evaluation(pool, design, sample, measures, confidence)
    draws = sample.draws[: int(design.step(used))] if design.method == "iid" else None
    prefix = sample.prefix(used)
    rows = select_rows(labels, sampled=sample.pair, prefix=prefix, max_grade=max_grade)
    drawn = _Drawn.of(design, prefix, draws, used)
    results = tuple(
        _evaluate_measure(pool, drawn, rows, measure, max_grade, confidence) for measure in measures
    )
    return Evaluation(
        batches=used,
        judged_pairs=len(prefix),
        judgments=len(rows.pair),
        draws=None if draws is None else len(draws),
        confidence=confidence,
        results=results,
    )


@dataclass(frozen=True, eq=False)
class _Drawn:
    """A prefix of a sample with the probabilities that belong to it.

    `inclusion` and `expected`, how often the design expects to take a pair, are of all N pairs;
    `probability` and `counts` of the n sampled ones: for ``iid`` the probability of one draw and
    the number of draws, for ``poisson`` that of inclusion and None.
    """

    pair: IntArray
    inclusion: FloatArray
    expected: FloatArray
    probability: FloatArray
    counts: IntArray | None

    @classmethod
    def of(cls, design: Design, prefix: IntArray, draws: IntArray | None, used: int) -> "_Drawn":
        inclusion = design.inclusion(used)
        if draws is None:
            return cls(prefix, inclusion, inclusion, inclusion[prefix], None)
        counts = np.bincount(np.searchsorted(prefix, draws), minlength=len(prefix))
        chance = np.minimum(design.size, 1.0)
        return cls(prefix, inclusion, len(draws) * chance, chance[prefix], counts)

    @property
    def multiplier(self) -> FloatArray:
        """What the primary estimator multiplies w v of each sampled pair by."""
        if self.counts is None:
            return 1.0 / self.probability
        return np.asarray(self.counts / (self.counts.sum() * self.probability), dtype=np.float64)

    @property
    def draws(self) -> int | None:
        return None if self.counts is None else int(self.counts.sum())


def _check_evaluation(
    pool: Pool, design: Design, sample: Sample, measures: Sequence[Measure], confidence: float
) -> None:
    if not pool.digest == design.pool_digest == sample.pool_digest:
        raise ValueError("pool, design and sample do not belong together")
    if not measures:
        raise ValueError("there must be a measure to estimate")
    check_confidence(confidence)


def _evaluate_measure(
    pool: Pool,
    drawn: _Drawn,
    rows: LabelRows,
    measure: Measure,
    max_grade: int,
    confidence: float,
) -> MeasureResult:
    weights = pool.weights(measure, drawn.pair)
    labels = pair_labels(rows, pairs=len(drawn.pair), measure=measure)
    limit = _zero_limit(pool, drawn, measure, measure.max_utility(max_grade), confidence)
    estimators = {
        name: _with_intervals(estimate, drawn.draws, limit, confidence)
        for name, estimate in _estimates(weights, labels, drawn).items()
    }
    primary = "ht" if drawn.draws is None else "is"
    shown = estimators[primary]
    return MeasureResult(
        measure=measure,
        runs=pool.runs,
        estimators=estimators,
        primary=primary,
        ranking=rank_runs(
            shown.value,
            covariance=shown.covariance,
            df=shown.difference_df,
            tags=pool.runs,
            confidence=confidence,
        ),
        support=support(pool, measure, drawn.inclusion > 0.0),
        effective_sample_size=effective_sample_size(
            weights, probability=drawn.inclusion[drawn.pair]
        ),
        label_noise_measured=labels.noise_measured,
        by_topic=topic_contributions(
            weights,
            labels.mean * drawn.multiplier,
            topic=pool.topic[drawn.pair].astype(np.int64),
            topics=len(pool.topics),
        ),
    )


def _estimates(weights: SparseMatrix, labels: PairLabels, drawn: _Drawn) -> dict[str, Estimate]:
    if drawn.counts is None:
        return {"ht": horvitz_thompson_poisson(weights, labels, probability=drawn.probability)}
    number = int(drawn.counts.sum())
    return {
        "is": importance_sampling(
            weights, labels, probability=drawn.probability, counts=drawn.counts
        ),
        "ht": horvitz_thompson_iid(weights, labels, probability=drawn.probability, draws=number),
    }


def _with_intervals(
    estimate: Estimate, draws: int | None, limit: FloatArray, confidence: float
) -> EstimatorResult:
    difference_df = degrees_of_freedom(estimate.contributions, draws=draws)
    df = np.diag(difference_df) if draws is None else np.full(len(limit), max(1.0, draws - 1.0))
    student = student_intervals(
        estimate.value, variance=np.diag(estimate.covariance), df=df, confidence=confidence
    )
    # Only zeros, or nothing, on uncertain pairs: what certain pairs gave is sure, the rest open.
    unseen = ((student.se == 0.0) & (limit > 0.0)) | (estimate.value == 0.0)
    sure = estimate.value if draws is None else np.zeros_like(limit)
    return EstimatorResult(
        value=estimate.value,
        se=student.se,
        df=student.df,
        low=np.where(unseen, sure, np.maximum(student.low, 0.0)),
        high=np.where(unseen, np.maximum(student.high, estimate.value + limit), student.high),
        covariance=estimate.covariance,
        difference_df=difference_df,
    )


def support(pool: Pool, measure: Measure, eligible: BoolArray) -> FloatArray:
    """Return the share of every run's weight on eligible pairs, shape (k,).

    Exactly 1 if all pairs with a weight are eligible, or the run has no weight at all.
    """
    entries = pool.entry_weights(measure)
    out_of_reach = np.where(eligible[pool.entry_pair], 0.0, entries)
    missing = column_sums(pool.run, out_of_reach, number=len(pool.runs))
    total = pool.total_weights(measure)
    return 1.0 - np.divide(missing, total, out=np.zeros_like(total), where=total > 0.0)


def _zero_limit(
    pool: Pool, drawn: _Drawn, measure: Measure, max_utility: float, confidence: float
) -> FloatArray:
    """`zero_limit` of every run, and no more than it would have with the best grade throughout."""
    uncertain = (drawn.inclusion > 0.0) & (drawn.inclusion < 1.0)
    factors = np.divide(1.0, drawn.expected, out=np.zeros(len(pool)), where=uncertain)
    largest = np.zeros(len(pool.runs))
    np.maximum.at(largest, pool.run, pool.entry_weights(measure) * factors[pool.entry_pair])
    limit = zero_limit(largest, max_utility=max_utility, confidence=confidence)
    return np.minimum(limit, max_utility * pool.total_weights(measure))
