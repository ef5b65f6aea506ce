"""What precision a design promises before anything is judged."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from estimation.core.arrays import BoolArray, FloatArray, check_confidence, column_sums
from estimation.core.designs import Design, inclusion_probabilities, poisson_thresholds
from estimation.core.estimators import cross_product
from estimation.core.evaluation import support
from estimation.core.intervals import ROUNDING, difference_variances
from estimation.core.measures import Measure
from estimation.core.pool import Pool
from estimation.core.priors import Prior


@dataclass(frozen=True, eq=False)
class ExpectedPrecision:
    """Half widths of intervals to be expected.

    Attributes
    ----------
    runs : tuple of str
        The k runs of the pool.
    half_width : ndarray of float64, shape (k,)
        Of the interval of each run's value; infinite for a run with weight on pairs that the
        design cannot sample.
    difference_half_width : ndarray of float64, shape (k, k)
        Of the interval of each difference; infinite where two runs differ in
        their weight on a pair that the design cannot sample.
    """

    runs: tuple[str, ...]
    half_width: FloatArray
    difference_half_width: FloatArray


def expected_half_widths(
    pool: Pool,
    design: Design,
    *,
    measure: Measure,
    prior: Prior,
    batches: int | None = None,
    confidence: float = 0.95,
) -> ExpectedPrecision:
    """Predict interval half widths from the prior, by the normal approximation.

    With prior moments p_i and s2_i, Cov(U^_j, U^_l) is sum_i (1 - pi_i)/pi_i w_ij w_il s2_i for
    ``poisson`` and (sum_i w_ij w_il s2_i / Q_i - P_j P_l) / n with P_j = sum_i w_ij p_i for
    ``iid``. Disagreement between assessors is not included.

    Parameters
    ----------
    pool, design, prior : Pool, Design, Prior
    measure : Measure
        Any measure, not only the design's own.
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
    covariance = _expected_covariance(pool, measure, design, prior, step)
    quantile = special.ndtri(0.5 + confidence / 2.0)
    single = quantile * np.sqrt(np.maximum(np.diag(covariance), 0.0))
    single[support(pool, measure, design.eligible) < 1.0] = np.inf
    differences = quantile * np.sqrt(difference_variances(covariance))
    differences[_differ_out_of_reach(pool, measure, design)] = np.inf
    return ExpectedPrecision(pool.runs, single, differences)


def half_width_curve(
    pool: Pool,
    design: Design,
    *,
    measure: Measure,
    prior: Prior,
    budgets: Sequence[int],
    confidence: float = 0.95,
) -> FloatArray:
    """Predict the half width of every run's interval for several budgets of one design.

    Parameters
    ----------
    budgets : sequence of int
        Numbers of draws (``iid``) or expected numbers of pairs (``poisson``), each at least 1.

    Other parameters are those of `expected_half_widths`.

    Returns
    -------
    ndarray of float64, shape (len(budgets), k)
    """
    _check_planning(pool, design, prior, confidence)
    targets = np.asarray(budgets, dtype=np.float64)
    if targets.ndim != 1 or np.any(targets < 1):
        raise ValueError("budgets must be numbers of at least 1")
    steps = targets
    if design.method == "poisson":
        steps = poisson_thresholds(design.size, targets=targets)
    out_of_reach = support(pool, measure, design.eligible) < 1.0
    quantile = special.ndtri(0.5 + confidence / 2.0)
    squares = pool.entry_weights(measure) ** 2
    means = _prior_values(pool, measure, design, prior)
    curve = np.empty((len(steps), len(pool.runs)))
    for row, step in zip(curve, steps.tolist(), strict=True):
        factors = _variance_factors(design, prior, step)[pool.entry_pair]
        variance = column_sums(pool.run, squares * factors, number=len(pool.runs))
        if design.method == "iid":
            variance -= means**2 / step
        row[:] = np.where(out_of_reach, np.inf, quantile * np.sqrt(np.maximum(variance, 0.0)))
    return curve


def _check_planning(pool: Pool, design: Design, prior: Prior, confidence: float) -> None:
    if design.pool_digest != pool.digest or len(prior.expected) != len(pool):
        raise ValueError("the design or the prior belongs to another pool")
    check_confidence(confidence)


def _variance_factors(design: Design, prior: Prior, step: float) -> FloatArray:
    """What multiplies w_ij w_il in the covariance: s2 (1 - pi)/pi, or s2/(n Q) for ``iid``."""
    if design.method == "iid":
        numerator, expected = prior.second_moment, step * design.size
    else:
        expected = inclusion_probabilities(design.size, method="poisson", step=step)
        numerator = prior.second_moment * (1.0 - expected)
    return np.divide(numerator, expected, out=np.zeros_like(design.size), where=expected > 0.0)


def _prior_values(pool: Pool, measure: Measure, design: Design, prior: Prior) -> FloatArray:
    """sum_i w_ij p_i over eligible pairs, for every run."""
    believed = np.where(design.eligible, prior.expected, 0.0)[pool.entry_pair]
    return column_sums(pool.run, pool.entry_weights(measure) * believed, number=len(pool.runs))


def _expected_covariance(
    pool: Pool, measure: Measure, design: Design, prior: Prior, step: float
) -> FloatArray:
    covariance = cross_product(pool.weights(measure), _variance_factors(design, prior, step))
    if design.method == "iid":
        means = _prior_values(pool, measure, design, prior)
        covariance -= np.multiply.outer(means, means) / step
    return covariance


def _differ_out_of_reach(pool: Pool, measure: Measure, design: Design) -> BoolArray:
    """Whether two runs have different weights on some pair that cannot be sampled, (k, k)."""
    products = cross_product(pool.weights(measure), (~design.eligible).astype(np.float64))
    single = np.diag(products)
    both = np.add.outer(single, single)
    return np.asarray(both - 2.0 * products > ROUNDING * both)
