"""Interval widths for draws that are guaranteed for every number of them, not only nearly.

Utilities lie in [0, M]. Under ``iid`` an estimate is the mean of n independent draws z_t = v w / Q,
each between 0 and R. Hoeffding's and the empirical Bernstein bounds are for these alone: a Poisson
sample has no draws, and terms of all shapes; its bounds are in `poisson_bounds`.

Disagreeing assessors: a pair that is drawn twice brings the same label twice, so that draws are
independent only once the labels are fixed. The bounds for ``iid`` then hold for the value under
the labels that would have been given; to cover the mean over all assessors, take each at
confidence 1 - alpha / 2 and add `label_noise_half_widths`.
"""

from typing import Literal, TypeAlias

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, SparseMatrix
from ..data.labels import PairLabels
from ..estimates.estimators import BLOCK_ROWS, importance_sampling
from .bound_parts import (
    BoundError,
    OutOfReach,
    check_best,
    check_numbers,
    check_population,
    column_maxima,
    largest_leads,
    log_error,
    square_sums,
)
from .intervals import Confidence

HoeffdingForm: TypeAlias = Literal["corrected", "paper"]
BernsteinForm: TypeAlias = Literal["audibert", "maurer-pontil"]
HOEFFDING_FACTORS = {"corrected": 1.0, "paper": 2.0}
BERNSTEIN_FORMS: tuple[BernsteinForm, ...] = ("audibert", "maurer-pontil")


def draw_ranges(
    weights: SparseMatrix,
    *,
    probability: FloatArray,
    max_utility: float,
    out_of_reach: OutOfReach = "refuse",
) -> FloatArray:
    """Return the range R_j = M max_i w_ij / Q_i of one draw with replacement, for every run.

    Known before anything is drawn (Schnabel, Swaminathan and Joachims, section 6.2).

    Parameters
    ----------
    weights : csr_array, shape (N, k)
        Of all pairs of the pool, not only of those that were drawn.
    probability : ndarray of float64, shape (N,)
        Q_i, the probability of one draw.
    max_utility : float
        M, the utility of the best grade.
    out_of_reach : {"refuse", "infinite"}
        What to do about a run with a weight on a pair that is never drawn: an error, or an
        infinite range.

    Returns
    -------
    ndarray of float64, shape (k,)

    Raises
    ------
    BoundError
        If a weight is negative or not finite, a probability outside [0, 1], M not positive, or a
        weight out of reach.
    """
    check_population(weights, probability, max_utility, out_of_reach)
    chance = np.repeat(probability, np.diff(weights.indptr))
    if out_of_reach == "refuse":
        _refuse_weights(weights, (chance == 0.0) & (weights.data > 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(weights.data > 0.0, weights.data / chance, 0.0)
    return max_utility * column_maxima(weights, ratio)


def difference_ranges(
    weights: SparseMatrix,
    *,
    probability: FloatArray,
    max_utility: float,
    out_of_reach: OutOfReach = "refuse",
) -> FloatArray:
    """Return the range of one draw's v (w_ij - w_il) / Q_i, for every pair of runs.

    R_jl = M (max(0, max_i d_i) - min(0, min_i d_i)), d_i = (w_ij - w_il) / Q_i. The zeros are
    needed because v may be 0: a run that dominates another has no negative d.

    Parameters
    ----------
    weights, probability, max_utility, out_of_reach
        As in `draw_ranges`; out of reach is a pair that is never drawn and on which the weights
        of the two runs differ.

    Returns
    -------
    ndarray of float64, shape (k, k)
        Symmetric; 0 on the diagonal.

    Raises
    ------
    BoundError
        As `draw_ranges`.
    """
    check_population(weights, probability, max_utility, out_of_reach)
    reachable = probability > 0.0
    if out_of_reach == "refuse":
        _refuse_differences(weights, np.flatnonzero(~reachable))
    above = largest_leads(weights[reachable], 1.0 / probability[reachable])
    lost = largest_leads(weights[~reachable], np.ones(np.count_nonzero(~reachable)))
    above[lost > 0.0] = np.inf
    return np.asarray(max_utility * (above + above.T))


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
    """Return the sample covariance (divisor n - 1) of the draws z_tj = v w_ij / Q_i.

    Its diagonal is the V of `empirical_bernstein_half_widths`; `difference_variances` of it are
    those of the differences.

    Parameters
    ----------
    weights, labels, probability, counts
        Of the distinct drawn pairs, as in `importance_sampling`.

    Returns
    -------
    ndarray of float64, shape (k, k)

    Raises
    ------
    ValueError
        As `importance_sampling`; or if there are fewer than 2 draws.
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
    form: BernsteinForm = "audibert",
) -> FloatArray:
    """Return a bound for the mean of n draws that shrinks with their sample variance V.

    ``audibert``: sqrt(2 V ln(3 / alpha) / n) + 3 R ln(3 / alpha) / n (Audibert, Munos and
    Szepesvari 2009, theorem 1). ``maurer-pontil``: sqrt(2 V ln(4 / alpha) / n) + 7 R ln(4 / alpha)
    / (3 (n - 1)) (Maurer and Pontil 2009, theorem 4, on both sides), narrower if V is small.
    Choose before looking: the smaller of the two covers less.

    Parameters
    ----------
    ranges, draws, confidence
        As in `hoeffding_half_widths`; at least 2 draws.
    variance : ndarray of float64, shape of `ranges`
        V >= 0: see `draw_covariance`.
    form : {"audibert", "maurer-pontil"}

    Returns
    -------
    ndarray of float64, shape of `ranges`

    Raises
    ------
    ValueError
        If shapes differ, a range or variance is negative or no number, draws < 2, or confidence
        or form is unknown.
    """
    _check_draws(ranges, draws, 2)
    check_numbers(variance, "variance")
    if variance.shape != ranges.shape:
        raise BoundError(f"variance has the shape {variance.shape}, but ranges {ranges.shape}")
    if form not in BERNSTEIN_FORMS:
        raise BoundError(f"form must be one of {', '.join(BERNSTEIN_FORMS)}, not {form!r}")
    if form == "audibert":
        log = log_error(confidence, 3.0)
        linear = 3.0 * log / draws
    else:
        log = log_error(confidence, 4.0)
        linear = 7.0 * log / (3.0 * (draws - 1))
    return np.asarray(np.sqrt(2.0 * variance * log / draws) + linear * ranges)


def label_noise_half_widths(
    weights: SparseMatrix,
    *,
    max_utility: float,
    labels: int = 1,
    confidence: float = 0.95,
    differences: bool = False,
) -> FloatArray:
    """Return how far the labels of a whole pool may lead away from the mean over assessors.

    M sqrt(ln(2 / alpha) sum_i w_ij^2 / (2 r)), Hoeffding's bound for labels that are independent
    between pairs: see the module's text.

    Parameters
    ----------
    confidence : float
        Strictly between 0 and 1.

    Other parameters are those of `label_noise_ranges`.

    Returns
    -------
    ndarray of float64, shape (k,), or (k, k) for differences

    Raises
    ------
    ValueError
        As `label_noise_ranges`; or if the confidence is out of range.
    """
    ranges = label_noise_ranges(
        weights, max_utility=max_utility, labels=labels, differences=differences
    )
    return hoeffding_half_widths(ranges, draws=1, confidence=confidence)


def label_noise_ranges(
    weights: SparseMatrix, *, max_utility: float, labels: int = 1, differences: bool = False
) -> FloatArray:
    """Return M sqrt(sum_i w_ij^2 / r): the disagreement of assessors as the range of one draw.

    `hoeffding_half_widths` of it, for one draw, are `label_noise_half_widths`.

    Parameters
    ----------
    weights : csr_array, shape (N, k)
        Of all pairs of the pool.
    max_utility : float
        M, the utility of the best grade.
    labels : int
        Smallest number r of independent labels of a pair.
    differences : bool
        Of w_ij - w_il for all pairs of runs.

    Returns
    -------
    ndarray of float64, shape (k,), or (k, k) for differences

    Raises
    ------
    ValueError
        If a weight is negative or not finite, M not positive, or labels < 1.
    """
    check_numbers(weights.data, "weights", finite=True)
    check_best(max_utility)
    if not labels >= 1:
        raise BoundError(f"labels must be at least 1, not {labels!r}")
    sums = square_sums(weights, np.ones(weights.shape[0]), differences)
    return np.asarray(max_utility * np.sqrt(sums / labels))


def _check_draws(ranges: FloatArray, draws: int, least: int) -> None:
    check_numbers(ranges, "ranges")
    if not draws >= least:
        raise BoundError(f"draws must be at least {least}, not {draws!r}")


def _refuse_weights(weights: SparseMatrix, out: BoolArray) -> None:
    if out.any():
        at = int(np.argmax(out))
        pair = int(np.searchsorted(weights.indptr, at, side="right")) - 1
        raise BoundError(
            f"probability is 0 for pair {pair}, "
            f"on which run {weights.indices[at]} has the weight {weights.data[at]:g}"
        )


def _refuse_differences(weights: SparseMatrix, unreachable: IntArray) -> None:
    for start in range(0, len(unreachable), BLOCK_ROWS):
        pairs = unreachable[start : start + BLOCK_ROWS]
        dense = weights[pairs].toarray()
        differ = dense != dense[:, :1]
        if differ.any():
            row, run = (int(place[0]) for place in np.nonzero(differ))
            raise BoundError(
                f"probability is 0 for pair {pairs[row]}, on which the runs 0 and {run} "
                f"have the weights {dense[row, 0]:g} and {dense[row, run]:g}"
            )
