"""Interval widths for draws that are guaranteed for every number of them, not only nearly.

Utilities lie in [0, M]. Under ``iid`` an estimate is the mean of n independent draws z_t = v w / Q,
each between 0 and R (`ranges`). Hoeffding's and the empirical Bernstein bounds are for these alone:
a Poisson sample has no draws, and terms of all shapes; its bounds are in `poisson_bounds`.

Disagreeing assessors: a pair that is drawn twice brings the same label twice, so that draws are
independent only once the labels are fixed. The bounds for ``iid`` then hold for the value under
the labels that would have been given; to cover the mean over all assessors, take each at
confidence 1 - alpha / 2 and add Hoeffding's bound for one draw of `label_noise_ranges`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from ..data.labels import PairLabels
from ..estimates.estimators import importance_sampling
from .ranges import BoundError, check_best, check_numbers, log_error, square_sums

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray, SparseMatrix
    from .intervals import Confidence

HoeffdingForm: TypeAlias = Literal["corrected", "paper"]
HOEFFDING_FACTORS = {"corrected": 1.0, "paper": 2.0}


def hoeffding_half_widths(
    ranges: FloatArray,
    *,
    draws: int,
    confidence: Confidence = 0.95,
    form: HoeffdingForm = "corrected",
) -> FloatArray:
    """Return R sqrt(ln(2 / alpha) / (2 n)): Hoeffding's bound for the mean of n draws.

    Schnabel, Swaminathan and Joachims, eq. 17, print twice that; their Table 9 used it.

    Parameters
    ----------
    ranges : ndarray of float64, any shape
        From `draw_ranges` or `difference_ranges`.
    draws : int
        Number n of draws with replacement, repetitions included. Not for Poisson samples.
    confidence : float or ndarray of float64
        1 - alpha, of each interval taken alone; strictly between 0 and 1.
    form : {"corrected", "paper"}
        ``paper`` has the further factor 2.

    Returns
    -------
    ndarray of float64, shape of `ranges`

    Raises
    ------
    ValueError
        If a range is negative or no number, draws < 1, or confidence or form is unknown.
    """
    _check_draws(ranges, draws, 1)
    if form not in HOEFFDING_FACTORS:
        raise BoundError(f"form must be one of {', '.join(HOEFFDING_FACTORS)}, not {form!r}")
    factor = HOEFFDING_FACTORS[form]
    return np.asarray(factor * np.sqrt(log_error(confidence, 2.0) / (2.0 * draws)) * ranges)


def draw_covariance(
    weights: SparseMatrix, labels: PairLabels, *, probability: FloatArray, counts: IntArray
) -> FloatArray:
    """Return the sample covariance (divisor n - 1) of the draws z_tj = v w_ij / Q_i, shape (k, k).

    Its diagonal is the V of `empirical_bernstein_half_widths`; `difference_variances` of it are
    those of the differences. Arguments are those of `importance_sampling`; ValueError as there, or
    if there are fewer than 2 draws.
    """
    draws = int(counts.sum())
    if draws < 2:
        raise BoundError(f"counts must add up to at least 2 draws, not {draws}")
    silent = PairLabels(labels.mean, labels.number, np.zeros_like(labels.mean), False)
    found = importance_sampling(weights, silent, probability=probability, counts=counts)
    return draws * found.covariance


def empirical_bernstein_half_widths(
    ranges: FloatArray,
    *,
    variance: FloatArray,
    draws: int,
    confidence: Confidence = 0.95,
) -> FloatArray:
    """Return a bound for the mean of n draws that shrinks with their sample variance V.

    sqrt(2 V ln(3 / alpha) / n) + 3 R ln(3 / alpha) / n (Audibert, Munos and Szepesvari 2009,
    theorem 1).

    Parameters
    ----------
    ranges, draws, confidence
        As in `hoeffding_half_widths`; at least 2 draws.
    variance : ndarray of float64, shape of `ranges`
        V >= 0: see `draw_covariance`.

    Returns
    -------
    ndarray of float64, shape of `ranges`

    Raises
    ------
    ValueError
        If shapes differ, a range or variance is negative or no number, draws < 2, or the
        confidence is out of range.
    """
    _check_draws(ranges, draws, 2)
    check_numbers(variance, "variance")
    if variance.shape != ranges.shape:
        raise BoundError(f"variance has the shape {variance.shape}, but ranges {ranges.shape}")
    log = log_error(confidence, 3.0)
    linear = 3.0 * log / draws
    return np.asarray(np.sqrt(2.0 * variance * log / draws) + linear * ranges)


def label_noise_ranges(
    weights: SparseMatrix, *, max_utility: float, differences: bool = False
) -> FloatArray:
    """Return M sqrt(sum_i w_ij^2), (k,): the disagreement of assessors as the range of one draw.

    `hoeffding_half_widths` of it, for one draw, say how far labels that are independent between
    pairs may lead away from the mean over assessors: see the module's text. Weights are of all
    pairs of the pool; of differences, (k, k), it is w_ij - w_il in the place of w_ij. ValueError if
    a weight is negative or not finite, or M not positive.
    """
    check_numbers(weights.data, "weights", finite=True)
    check_best(max_utility)
    sums = square_sums(weights, np.ones(weights.shape[0]), differences)
    return np.asarray(max_utility * np.sqrt(sums))


def _check_draws(ranges: FloatArray, draws: int, least: int) -> None:
    check_numbers(ranges, "ranges")
    if not draws >= least:
        raise BoundError(f"draws must be at least {least}, not {draws!r}")
