"""What precision a design promises before anything is judged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse, special

from ..arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    SparseMatrix,
    check_confidence,
    column_sums,
    refuse,
)
from ..data.pool_ranks import total_weights
from ..estimates.products import cross_product
from ..estimates.ratios import prior_slopes
from ..estimates.topic_sums import TopicSums
from ..inference.intervals import ROUNDING, difference_variances
from ..inference.out_of_reach import OutOfReach
from ..measures.kinds import PREFERENCE_MAX_GRADE
from ..sampling.allocation import refuse_costs
from ..sampling.methods import with_option
from ..tables import Columns, Tabled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..data.pool import Pool
    from ..measures.table import Measure
    from ..sampling.designs import Design
    from ..sampling.priors import Prior


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedPrecision(Tabled):
    """Half widths of intervals to be expected.

    Attributes
    ----------
    runs : tuple of str
        The k runs of the pool.
    half_width : ndarray of float64, shape (k,)
        Of the interval of each run's value, at most half of `largest_values`; infinite for a run
        with weight on pairs that the design cannot sample.
    difference_half_width : ndarray of float64, shape (k, k)
        Of the interval of each difference, at most half of what lies between the largest lead of
        either run; infinite where two runs differ in their weight on a pair that the design cannot
        sample.
    """

    runs: tuple[str, ...]
    half_width: FloatArray
    difference_half_width: FloatArray

    def columns(self) -> Columns:
        """Return the half width of every run's value, the smallest first."""
        order = np.argsort(self.half_width, kind="stable").tolist()
        return {
            "run": [self.runs[at] for at in order],
            "half width": self.half_width[order].tolist(),
        }


def expected_half_widths(
    pool: Pool,
    design: Design,
    *,
    measure: Measure,
    prior: Prior,
    max_grade: int | None = None,
    batches: int | None = None,
    confidence: float = 0.95,
) -> ExpectedPrecision:
    """Predict interval half widths from the prior, by the normal approximation.

    With prior moments p_i and s2_i, Cov(U^_j, U^_l) is sum_i (1 - pi_i)/pi_i w_ij w_il s2_i for
    ``poisson`` and ``priority``, and (sum_i w_ij w_il s2_i / Q_i - P_j P_l) / n with P_j = sum_i
    w_ij p_i for ``iid``; ``per-query`` is that within every topic. Where the utility depends on
    the run (predictions, preferences), w_ij w_il becomes the mean of y_ij y_il over the grades.

    Ratio measures are linearized where every pair has its expected utility, w_ij being the slope,
    and estimated from distinct pairs: s2 (1 - pi)/pi for draws too, and with t = n Q (1 - pi)/pi in
    P_j = sum_i w_ij t_i p_i. Their bias, and disagreement between assessors, are not included.

    No interval is longer than what values can be: half widths end at half of it.

    Parameters
    ----------
    pool, design, prior : Pool, Design, Prior
    measure : Measure
        Any measure, not only the design's own.
    max_grade : int, optional
        The best grade of the scale; needed for measures of predictions. Without it the largest
        gain is the one that the prior thinks of.
    batches : int, optional
        After so many batches; by default all.
    confidence : float
        Strictly between 0 and 1.

    Raises
    ------
    ValueError
        If design or prior belong to another pool, or a number is out of range.
    """
    _check_planning(pool, design, prior, confidence)
    step = design.step(batches)
    moves = _Moves.of(pool, measure, prior, max_grade)
    covariance = moves.products(_variance_factors(design, prior, step, moves.is_ratio))
    for total in _totals(moves, design, prior, step):
        covariance -= np.multiply.outer(total, total) / step
    quantile = special.ndtri(0.5 + confidence / 2.0)
    most = _most(pool, measure, prior, max_grade)
    single = np.minimum(quantile * np.sqrt(np.maximum(np.diag(covariance), 0.0)), most / 2.0)
    single[OutOfReach.of(pool, design.eligible).support(measure) < 1.0] = np.inf
    differences = quantile * np.sqrt(difference_variances(covariance))
    differences = np.minimum(differences, np.add.outer(most, most) / 2.0)
    differences[_differ_out_of_reach(moves, design)] = np.inf
    return ExpectedPrecision(pool.runs, single, differences)


def half_width_curve(
    pool: Pool,
    design: Design,
    *,
    measure: Measure,
    prior: Prior,
    budgets: Sequence[float],
    costs: FloatArray | None = None,
    max_grade: int | None = None,
    confidence: float = 0.95,
) -> FloatArray:
    """Predict the half width of every run's interval for several budgets of one design.

    Parameters
    ----------
    budgets : sequence of float
        Numbers of draws with replacement, or expected numbers of pairs, each at least 1; with
        costs what they cost, as in `make_design`.
    costs : ndarray of float64, shape (N,), optional
        Those that the design was made with.

    Other parameters are those of `expected_half_widths`.

    Returns
    -------
    ndarray of float64, shape (len(budgets), k)
    """
    _check_planning(pool, design, prior, confidence)
    targets = np.asarray(budgets, dtype=np.float64)
    if targets.ndim != 1:
        raise ValueError(f"budgets must be a vector, not of the shape {targets.shape}")
    wrong = ~(np.isfinite(targets) & (targets >= 1))
    refuse(wrong, targets, name="budgets", rule="be finite and at least 1")
    _check_costs(pool, design, costs)
    steps = design.steps_for(budgets, costs=costs)
    out_of_reach = OutOfReach.of(pool, design.eligible).support(measure) < 1.0
    quantile = special.ndtri(0.5 + confidence / 2.0)
    moves = _Moves.of(pool, measure, prior, max_grade)
    highest = np.where(out_of_reach, np.inf, _most(pool, measure, prior, max_grade) / 2.0)
    curve = np.empty((len(steps), len(pool.runs)))
    for row, step in zip(curve, steps.tolist(), strict=True):
        variance = moves.squares(_variance_factors(design, prior, step, moves.is_ratio))
        variance -= np.square(_totals(moves, design, prior, step)).sum(axis=0) / step
        width = np.where(out_of_reach, np.inf, quantile * np.sqrt(np.maximum(variance, 0.0)))
        row[:] = np.minimum(width, highest)
    return curve


def expected_covariances(
    pool: Pool,
    design: Design,
    *,
    measure: Measure,
    prior: Prior,
    steps: Sequence[float],
    max_grade: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Predict the covariances of the k estimates, and what the values themselves vary by.

    Parameters
    ----------
    steps : sequence of float
        Constants or numbers of draws; see `Design.step`.

    Other parameters are those of `expected_half_widths`.

    Returns
    -------
    covariances : ndarray of float64, shape (len(steps), k, k)
    products : ndarray of float64, shape (k, k)
        sum_i s2_i w_ij w_il over all pairs, reachable or not.
    """
    _check_planning(pool, design, prior, 0.5)
    moves = _Moves.of(pool, measure, prior, max_grade)
    covariances = []
    for step in steps:
        covariance = moves.products(_variance_factors(design, prior, step, moves.is_ratio))
        for total in _totals(moves, design, prior, step):
            covariance -= np.multiply.outer(total, total) / step
        covariances.append(covariance)
    return np.stack(covariances), moves.products(prior.second_moment)


def value_products(
    pool: Pool, *, measure: Measure, prior: Prior, max_grade: int | None = None
) -> FloatArray:
    """Return sum_i s2_i w_ij w_il over all pairs, what values vary by, shape (k, k)."""
    return _Moves.of(pool, measure, prior, max_grade).products(prior.second_moment)


def largest_values(pool: Pool, measure: Measure, *, best: float) -> FloatArray:
    """Return the largest value that every run can have, whatever is found, shape (k,).

    Sums of gains: at the best grades throughout, `best` being the largest utility; errors: at the
    worst grades, `best` being the best grade of the scale. Ratio and query measures are at most 1
    in every topic for which the run returns anything.
    """
    if measure.family in ("ratio", "query"):
        return np.asarray(np.count_nonzero(pool.list_lengths, axis=0) / len(pool.topics))
    if measure.family == "gain":
        return total_weights(pool, measure) * best
    grades = PREFERENCE_MAX_GRADE if measure.family == "preference" else int(best)
    errors = [pool.entry_utilities(measure, grade) for grade in range(grades + 1)]
    worst = pool.entry_weights(measure) * np.max(errors, axis=0)
    return column_sums(pool.run, worst, number=len(pool.runs))


def _most(pool: Pool, measure: Measure, prior: Prior, max_grade: int | None) -> FloatArray:
    """`largest_values` on the scale, or as far as the prior thinks of without one."""
    if max_grade is None or measure.family != "gain":
        return largest_values(pool, measure, best=max_grade or _best_of(prior))
    return largest_values(pool, measure, best=measure.max_utility(max_grade))


def _best_of(prior: Prior) -> float:
    return float((prior.second_moment / prior.expected).max())


def _check_planning(pool: Pool, design: Design, prior: Prior, confidence: float) -> None:
    if design.pool_digest != pool.digest:
        raise ValueError("the design belongs to another pool")
    if len(prior.expected) != len(pool):
        described = f"it describes {len(prior.expected)} pairs, the pool has {len(pool)}"
        raise ValueError(f"the prior belongs to another pool: {described}")
    check_confidence(confidence)


def _check_costs(pool: Pool, design: Design, costs: FloatArray | None) -> None:
    if costs is None:
        return
    if design.method not in with_option("costs"):
        raise ValueError(f"costs must be None: a design by {design.method!r} is made without")
    if costs.shape != (len(pool),):
        raise ValueError(f"costs must hold one number per pair, {len(pool)}, not {costs.shape}")
    refuse_costs(costs, error=ValueError)


@dataclass(frozen=True, eq=False)
class _Moves:
    """By how much a unit of utility of each pair moves the value of each run."""

    topic: IntArray  # (N,)
    topics: int
    grades: tuple[SparseMatrix, ...]  # (N, k) each, one for every equally likely grade
    topic_slope: FloatArray | None  # (T, k), taken off for every pair of the topic: ratios

    @classmethod
    def of(cls, pool: Pool, measure: Measure, prior: Prior, max_grade: int | None) -> _Moves:
        topic, topics = pool.topic.astype(np.int64), len(pool.topics)
        if measure.family == "ratio":
            slopes = prior_slopes(pool, measure, expected=prior.expected, best=_best_of(prior))
            return cls(topic, topics, (slopes.slope,), slopes.topic_slope)
        if measure.family == "gain":
            return cls(topic, topics, (pool.weights(measure),), None)
        best_grade = PREFERENCE_MAX_GRADE if measure.family == "preference" else max_grade
        if best_grade is None:
            raise ValueError(f"max_grade is needed for {measure}, whose utility depends on the run")
        weights = pool.entry_weights(measure)
        grades = (
            pool.by_pair(weights * pool.entry_utilities(measure, grade))
            for grade in range(best_grade + 1)
        )
        return cls(topic, topics, tuple(grades), None)

    @property
    def is_ratio(self) -> bool:
        return self.topic_slope is not None

    def products(self, factors: FloatArray) -> FloatArray:
        """sum_i factor_i y_ij y_il, the mean over the grades, shape (k, k)."""
        total = sum(cross_product(each, factors) for each in self.grades) / len(self.grades)
        if self.topic_slope is not None:
            slopes = sparse.csr_array(self.topic_slope.T)  # not dense: BLAS depends on threads
            mixed = slopes @ self._by_topic(factors)
            both = slopes @ (self.topic_slope * self._topic_sums(factors))
            total += (both + both.T) / 2.0 - mixed - mixed.T
        return np.asarray(total, dtype=np.float64)

    @cached_property
    def _squared(self) -> list[SparseMatrix]:
        """For all budgets of a curve."""
        return [each.power(2) for each in self.grades]

    def squares(self, factors: FloatArray) -> FloatArray:
        """The diagonal of `products`, shape (k,)."""
        total = sum(_column_totals(each, factors) for each in self._squared) / len(self.grades)
        if self.topic_slope is not None:
            total += np.sum(
                self.topic_slope**2 * self._topic_sums(factors)
                - 2.0 * self.topic_slope * self._by_topic(factors),
                axis=0,
            )
        return np.asarray(total, dtype=np.float64)

    def totals(self, factors: FloatArray) -> FloatArray:
        """sum_i factor_i y_ij over the pairs of each topic, the mean over the grades, (T, k)."""
        total = self._by_topic(factors)
        if self.topic_slope is not None:
            total = total - self.topic_slope * self._topic_sums(factors)
        return total

    def _by_topic(self, factors: FloatArray) -> FloatArray:
        sums = sum(TopicSums(each, self.topic, self.topics).of(factors) for each in self.grades)
        return np.asarray(sums / len(self.grades), dtype=np.float64)

    def _topic_sums(self, factors: FloatArray) -> FloatArray:
        return column_sums(self.topic, factors, number=self.topics)[:, None]


def _column_totals(matrix: SparseMatrix, factors: FloatArray) -> FloatArray:
    scaled = matrix.data * np.repeat(factors, np.diff(matrix.indptr))
    return column_sums(matrix.indices, scaled, number=matrix.shape[1])


def _variance_factors(design: Design, prior: Prior, step: float, distinct: bool) -> FloatArray:
    """What multiplies w_ij w_il in the covariance: s2 (1 - pi)/pi, or s2/(n Q) for draws."""
    if design.with_replacement and not distinct:
        numerator, expected = prior.second_moment, step * design.strata * design.size
    else:
        expected = design.inclusion_after(step)
        numerator = prior.second_moment * (1.0 - expected)
    return np.divide(numerator, expected, out=np.zeros_like(design.size), where=expected > 0.0)


def _totals(moves: _Moves, design: Design, prior: Prior, step: float) -> FloatArray:
    """P_j over the eligible pairs of each stratum, shape (strata, k); none without replacement."""
    if not design.with_replacement:
        return np.zeros((0, moves.grades[0].shape[1]))
    believed = np.where(design.eligible, prior.expected, 0.0)
    if moves.is_ratio:
        expected = design.inclusion_after(step)
        drawn = step * design.strata * design.size * (1.0 - expected)
        believed *= np.divide(drawn, expected, out=np.zeros_like(drawn), where=expected > 0.0)
    totals = moves.totals(believed)
    return totals if design.by_topic else totals.sum(axis=0, keepdims=True)


def _differ_out_of_reach(moves: _Moves, design: Design) -> BoolArray:
    """Whether two runs have different weights on some pair that cannot be sampled, (k, k)."""
    products = moves.products((~design.eligible).astype(np.float64))
    single = np.diag(products)
    both = np.add.outer(single, single)
    return np.asarray(both - 2.0 * products > ROUNDING * both)
