"""Confidence intervals for values of runs and for differences between them."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.polynomial import chebyshev
from scipy import special

from ..arrays import FloatArray, check_confidence, refuse

# Below this share of the variances of both runs, the variance of a difference is rounding.
ROUNDING = 1e-12
LEAST_OF_SERIES, SERIES_DEGREE = 4.0, 20  # degrees of freedom; of the polynomial in one over them

Confidence: TypeAlias = float | FloatArray


class Bound(Protocol):
    """A guarantee for estimated values, or for the differences between them.

    Both methods take confidences, 1 - alpha, of intervals taken alone, and return arrays of the
    shape of what they are about, (k,) or (k, k), >= 0. Of differences ``below`` is the transpose
    of ``above``.
    """

    def below(self, confidence: Confidence) -> FloatArray:
        """Return by how much the true value may be smaller than the estimate."""
        ...

    def above(self, confidence: Confidence) -> FloatArray:
        """Return by how much it may be larger."""
        ...


@dataclass(frozen=True, eq=False)
class Intervals:
    """Two-sided Student intervals, all of one shape.

    Attributes
    ----------
    se : ndarray of float64
        Standard errors, >= 0.
    df : ndarray of float64
        Degrees of freedom, >= 1.
    low, high : ndarray of float64
        Ends of the intervals.
    """

    se: FloatArray
    df: FloatArray
    low: FloatArray
    high: FloatArray


def student_intervals(
    value: FloatArray, *, variance: FloatArray, df: FloatArray, confidence: float = 0.95
) -> Intervals:
    """Return value +- t * se (Schnabel et al. 2016, eq. 6, with Student's t).

    Parameters
    ----------
    value, variance, df : ndarray of float64, one shape
        A negative variance, which some unbiased estimators produce, counts as 0.
    confidence : float
        Strictly between 0 and 1.

    Raises
    ------
    ValueError
        If the confidence is out of range or df < 1 somewhere.
    """
    check_confidence(confidence)
    refuse(~(df >= 1.0), df, name="df", rule="be at least 1")
    se = np.sqrt(np.maximum(variance, 0.0))
    margin = student_quantile(df, confidence=confidence) * se
    return Intervals(se, df, value - margin, value + margin)


def gamma_limits(
    found: FloatArray, *, variance: FloatArray, step: FloatArray, confidence: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return the ends of intervals for sums of few, unequal, positive terms, (k,) each.

    A Horvitz-Thompson estimate is a sum over the pairs that were found, as a count is, each with
    its weight, and skewed as a count is: what was found by luck raises it by much, what was missed
    lowers it by little. Its limits are those of Fay and Feuer (1997, *Confidence intervals for
    directly standardized rates*) for weighted sums of Poisson counts: quantiles of gamma
    distributions with the estimate's mean and variance, for the upper limit with one find more.
    With equal weights they are the exact limits of a Poisson count (Garwood 1936).

    Parameters
    ----------
    found, variance : ndarray of float64, shape (k,)
        Estimates of what uncertain pairs add, and their variances; >= 0.
    step : ndarray of float64, shape (k,)
        What a find adds: the find more; >= 0. Fay and Feuer take the largest, which covers always,
        Tiwari, Clegg and Zou (2006) the average, which is too little where few finds have most of
        the weight; the root mean square (`Unseen.find`) lies between them.
    confidence : float
        Strictly between 0 and 1.

    Raises
    ------
    ValueError
        If the confidence is out of range.
    """
    check_confidence(confidence)
    error = (1.0 - confidence) / 2.0
    low = _gamma_quantile(found, variance, error)
    return low, _gamma_quantile(found + step, variance + step**2, 1.0 - error)


def _gamma_quantile(mean: FloatArray, variance: FloatArray, share: float) -> FloatArray:
    """Of gamma distributions; without variance their mean."""
    spread = (variance > 0.0) & (mean > 0.0)
    scale = np.divide(variance, mean, out=np.ones_like(mean), where=spread)
    shape = np.where(spread, mean / scale, 1.0)
    return np.where(spread, scale * special.gammaincinv(shape, share), mean)


def normal_quantile(*, confidence: float) -> float:
    """Return the two-sided critical value of the standard normal distribution."""
    return float(special.ndtri(0.5 + confidence / 2.0))


def student_quantile(df: FloatArray, *, confidence: float) -> FloatArray:
    """Return the two-sided critical value t of Student's distribution."""
    if df.size and np.all(df == df.flat[0]):  # often one number for all, which need no order
        different, place = df.ravel()[:1], np.zeros(df.size, dtype=np.int64)
    else:
        different, place = np.unique(df, return_inverse=True)
    quantiles, share = np.empty(len(different)), 0.5 + confidence / 2.0
    by_series = different >= LEAST_OF_SERIES
    quantiles[~by_series] = special.stdtrit(different[~by_series], share)
    x = 2.0 * LEAST_OF_SERIES / different[by_series] - 1.0
    quantiles[by_series] = chebyshev.chebval(x, _quantile_series(share))
    return quantiles[place].reshape(np.shape(df))


@lru_cache(maxsize=64)
def _quantile_series(share: float) -> FloatArray:
    """Coefficients of Chebyshev's polynomials in 2 `LEAST_OF_SERIES` / df - 1.

    Quantiles are so smooth in 1 / df that these are as near to them as the function that finds
    them, for a fifteenth of its time.
    """

    def quantile(x: Any) -> Any:
        return special.stdtrit(2.0 * LEAST_OF_SERIES / (x + 1.0), share)

    return np.asarray(chebyshev.chebinterpolate(quantile, SERIES_DEGREE))


def degrees_of_freedom(contributions: FloatArray, *, draws: int | None = None) -> FloatArray:
    """Choose degrees of freedom from the number of contributions to a variance.

    A variance estimate that rests on few, unequal contributions (`Totals.contributions`) is
    itself uncertain, and its error goes with that of the value. A Poisson sample is treated as
    having max(1, contributions - 1) degrees of freedom: for equal contributions of a fixed number
    of pairs this is the textbook's n - 1. With draws there are at most draws - 1. This is the rule
    of all rounds; of active ones the relevant documents found are what contributes. More is known
    where something is expected of variances: `uncertainty.freedom`, `uncertainty.Pooled`.
    """
    df = np.maximum(1.0, contributions - 1.0)
    return df if draws is None else np.minimum(df, max(1.0, draws - 1.0))


def difference_variances(covariance: FloatArray) -> FloatArray:
    """Return Var(U^_j - U^_l) for all pairs of runs, shape (k, k).

    What cannot be told from rounding of the two variances is set to that rounding, so that a
    tiny difference between near-duplicates is never called certain.
    """
    single = np.maximum(np.diag(covariance), 0.0)
    both, variances = np.add.outer(single, single), 2.0 * covariance
    np.subtract(both, variances, out=variances)
    both *= ROUNDING
    np.maximum(variances, both, out=variances)
    np.fill_diagonal(variances, 0.0)
    return variances


def zero_limit(
    largest_ratio: FloatArray, *, max_utility: float, confidence: float = 0.95
) -> FloatArray:
    """Return an upper limit for what a run gains on pairs of which no sampled one had a gain.

    If all labels of a run's uncertain pairs are 0, the estimated variance is 0 as well, which
    says nothing. But such a sample has probability at most exp(-sum_i pi_i v_i / M), so that with
    the confidence's one-sided error alpha / 2, U <= M * ln(2 / alpha) * max_i w_i / pi_i (for
    ``iid`` with n Q_i in place of pi_i): the "rule of three" for unequal probabilities.

    Parameters
    ----------
    largest_ratio : ndarray of float64, shape (k,)
        max_i w_ij / pi_i over the pairs of each run that are not certain to be sampled.
    max_utility : float
        M, the utility of the best grade.
    """
    check_confidence(confidence)
    return np.asarray(max_utility * math.log(2.0 / (1.0 - confidence)) * largest_ratio)
