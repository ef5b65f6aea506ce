"""Interval widths that are guaranteed for every sample size, not only approximately.

Utilities lie in [0, M]. Two kinds of sums of independent bounded terms occur:

``iid``: the mean of n draws z_t = v w / Q, each between 0 and R. Hoeffding's and the empirical
Bernstein bounds are for these alone: a Poisson sample has no draws, and terms of all shapes.

``poisson``: a sum over all pairs of w v / pi times "is in the sample". Weights, pi and M are known;
the v are not, and the bounds below hold whatever they are. `poisson_bernstein_half_widths` needs
no labels; `chernoff_limits` uses the estimate and is much narrower.

Disagreeing assessors: a pair that is drawn twice brings the same label twice, so that draws are
independent only once the labels are fixed. The bounds for ``iid`` then hold for the value under
the labels that would have been given; to cover the mean over all assessors, take each at
confidence 1 - alpha / 2 and add `label_noise_half_widths`.
"""

import math
from typing import Literal, TypeAlias

import numpy as np

from estimation.core.arrays import BoolArray, FloatArray, IntArray, SparseMatrix, check_confidence
from estimation.core.estimators import BLOCK_ROWS, cross_product, importance_sampling
from estimation.core.intervals import difference_variances
from estimation.core.labels import PairLabels

HoeffdingForm: TypeAlias = Literal["corrected", "paper"]
BernsteinForm: TypeAlias = Literal["audibert", "maurer-pontil"]
OutOfReach: TypeAlias = Literal["refuse", "infinite"]
HOEFFDING_FACTORS = {"corrected": 1.0, "paper": 2.0}
BERNSTEIN_FORMS: tuple[BernsteinForm, ...] = ("audibert", "maurer-pontil")
OUT_OF_REACH: tuple[OutOfReach, ...] = ("refuse", "infinite")
BISECTIONS = 100


class BoundError(ValueError):
    """Arguments for which there is no bound; the message names the first that is wrong."""


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
    _check_population(weights, probability, max_utility, out_of_reach)
    chance = np.repeat(probability, np.diff(weights.indptr))
    if out_of_reach == "refuse":
        _refuse_weights(weights, (chance == 0.0) & (weights.data > 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(weights.data > 0.0, weights.data / chance, 0.0)
    return max_utility * _column_maxima(weights, ratio)


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
    _check_population(weights, probability, max_utility, out_of_reach)
    reachable = probability > 0.0
    if out_of_reach == "refuse":
        _refuse_differences(weights, np.flatnonzero(~reachable))
    above = _largest_leads(weights[reachable], 1.0 / probability[reachable])
    lost = _largest_leads(weights[~reachable], np.ones(np.count_nonzero(~reachable)))
    above[lost > 0.0] = np.inf
    return np.asarray(max_utility * (above + above.T))


def hoeffding_half_widths(
    ranges: FloatArray,
    *,
    draws: int,
    confidence: float = 0.95,
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
    confidence : float
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
    return np.asarray(factor * math.sqrt(_log_error(confidence, 2.0) / (2.0 * draws)) * ranges)


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
    confidence: float = 0.95,
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
    _check_numbers(variance, "variance")
    if variance.shape != ranges.shape:
        raise BoundError(f"variance has the shape {variance.shape}, but ranges {ranges.shape}")
    if form not in BERNSTEIN_FORMS:
        raise BoundError(f"form must be one of {', '.join(BERNSTEIN_FORMS)}, not {form!r}")
    if form == "audibert":
        log = _log_error(confidence, 3.0)
        linear = 3.0 * log / draws
    else:
        log = _log_error(confidence, 4.0)
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
    weights : csr_array, shape (N, k)
        Of all pairs of the pool.
    max_utility : float
        M, the utility of the best grade.
    labels : int
        Smallest number r of independent labels of a pair.
    confidence : float
        Strictly between 0 and 1.
    differences : bool
        Bound w_ij - w_il for all pairs of runs.

    Returns
    -------
    ndarray of float64, shape (k,), or (k, k) for differences

    Raises
    ------
    ValueError
        If a weight is negative or not finite, M not positive, or labels < 1.
    """
    _check_numbers(weights.data, "weights", finite=True)
    _check_best(max_utility)
    if not labels >= 1:
        raise BoundError(f"labels must be at least 1, not {labels!r}")
    squares = _squares(weights, np.ones(weights.shape[0]), differences)
    return max_utility * np.sqrt(_log_error(confidence, 2.0) * squares / (2.0 * labels))


def poisson_bernstein_half_widths(
    weights: SparseMatrix,
    *,
    probability: FloatArray,
    max_utility: float,
    confidence: float = 0.95,
    noisy: bool = True,
    differences: bool = False,
    out_of_reach: OutOfReach = "refuse",
) -> FloatArray:
    """Return Bernstein's bound for Horvitz-Thompson estimates from a Poisson sample.

    b L / 3 + sqrt((b L / 3)^2 + 2 s L) with L = ln(2 / alpha), b the largest deviation of one
    pair's term and s a limit for their variances' sum. Known: weights, pi, M. Unknown: every v;
    each is given its worst value, so that the bound holds before any label is seen, and is wide.
    Certain labels: b = max M w max(pi, 1 - pi) / pi and s = sum M^2 w^2 (1 - pi) / pi over pairs
    with pi < 1. Labels of random assessors: b = max M w / pi, and (1 - pi) / pi is replaced by
    1 / (4 pi^2) where pi > 1/2.

    Parameters
    ----------
    weights : csr_array, shape (N, k)
        Of all pairs of the pool.
    probability : ndarray of float64, shape (N,)
        pi_i, the inclusion probabilities.
    max_utility : float
        M, the utility of the best grade.
    confidence : float
        1 - alpha, of each interval taken alone; strictly between 0 and 1.
    noisy : bool
        Whether assessors may disagree; their labels must be independent between pairs.
    differences : bool
        Bound w_ij - w_il for all pairs of runs.
    out_of_reach : {"refuse", "infinite"}
        As in `draw_ranges` and `difference_ranges`.

    Returns
    -------
    ndarray of float64, shape (k,), or (k, k) for differences

    Raises
    ------
    ValueError
        As `draw_ranges`; or if the confidence is out of range.
    """
    log = _log_error(confidence, 2.0)
    ranges_of = difference_ranges if differences else draw_ranges
    reach = ranges_of(
        weights, probability=probability, max_utility=max_utility, out_of_reach=out_of_reach
    )
    variance, deviation = _poisson_scales(probability, noisy)
    largest = _largest(weights, deviation, differences)
    squares = _squares(weights, variance, differences)
    linear = largest * log / 3.0
    width = max_utility * (linear + np.sqrt(linear**2 + 2.0 * squares * log))
    return np.where(np.isinf(reach), np.inf, width)


def chernoff_limits(
    value: FloatArray, *, scale: FloatArray, confidence: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Return guaranteed limits for a run's value from its estimate alone, without a variance.

    An estimate that is a sum of independent terms between 0 and b obeys, with m = U / b and
    s = U^ / b, P(sum beyond s) <= exp(-(m - s + s ln(s / m))) (Chernoff). The limits are the two
    U at which this is alpha / 2: for ``poisson``, noisy labels too, and for ``iid`` given the
    labels. An estimate of 0 gives high = b ln(2 / alpha), the same as `zero_limit`.

    Parameters
    ----------
    value : ndarray of float64, shape (k,)
        Unbiased estimates U^ >= 0. ``poisson`` with certain labels: the part from pairs with
        pi < 1 suffices, the rest being known.
    scale : ndarray of float64, shape (k,)
        b >= 0. ``poisson``: M max_i w_ij / pi_i over the same pairs of the pool. ``iid``: R_j / n.
    confidence : float
        1 - alpha; strictly between 0 and 1.

    Returns
    -------
    low, high : ndarray of float64, shape (k,)

    Raises
    ------
    ValueError
        If shapes differ, a number is negative or not finite, or the confidence is out of range.
    """
    _check_numbers(value, "value", finite=True)
    _check_numbers(scale, "scale", finite=True)
    if value.shape != scale.shape:
        raise BoundError(f"value has the shape {value.shape}, but scale {scale.shape}")
    log = _log_error(confidence, 2.0)
    sums = np.divide(value, scale, out=np.zeros_like(value), where=scale > 0.0)
    width = log + np.sqrt(log**2 + 2.0 * log * sums)
    low = value - scale * _chernoff_step(sums, -sums, log)
    return low, value + scale * _chernoff_step(sums, width, log)


def _chernoff_step(sums: FloatArray, furthest: FloatArray, log: float) -> FloatArray:
    """The |d| up to |furthest| with d - s ln(1 + d / s) = log, by bisection."""
    sign = np.where(furthest < 0.0, -1.0, 1.0)
    near, far = np.zeros_like(sums), np.abs(furthest)
    for _ in range(BISECTIONS):
        middle = (near + far) / 2.0
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(sums > 0.0, sign * middle / sums, 0.0)
            beyond = sign * middle - sums * np.log1p(share) > log
        near, far = np.where(beyond, near, middle), np.where(beyond, middle, far)
    return far


def _poisson_scales(probability: FloatArray, noisy: bool) -> tuple[FloatArray, FloatArray]:
    """What multiplies (M w)^2 in the variance and M w in the deviation of one pair's term."""
    reached = probability > 0.0
    pi = np.where(reached, probability, 1.0)
    variance, deviation = (1.0 - pi) / pi, np.maximum(pi, 1.0 - pi) / pi
    if noisy:
        variance = np.where(pi > 0.5, 0.25 / pi**2, variance)
        deviation = 1.0 / pi
    moves = reached if noisy else reached & (pi < 1.0)
    return np.where(moves, variance, 0.0), np.where(moves, deviation, 0.0)


def _largest(weights: SparseMatrix, scale: FloatArray, differences: bool) -> FloatArray:
    """max_i scale_i w_ij, or max_i scale_i |w_ij - w_il|."""
    if differences:
        above = _largest_leads(weights, scale)
        return np.asarray(np.maximum(above, above.T))
    scaled = weights.data * np.repeat(scale, np.diff(weights.indptr))
    return _column_maxima(weights, scaled)


def _column_maxima(weights: SparseMatrix, values: FloatArray) -> FloatArray:
    maxima = np.zeros(weights.shape[1])
    np.maximum.at(maxima, weights.indices, values)
    return maxima


def _squares(weights: SparseMatrix, scale: FloatArray, differences: bool) -> FloatArray:
    """sum_i scale_i w_ij^2, or sum_i scale_i (w_ij - w_il)^2."""
    products = cross_product(weights, scale)
    return difference_variances(products) if differences else np.diag(products).copy()


def _largest_leads(weights: SparseMatrix, scale: FloatArray) -> FloatArray:
    """max(0, max_i scale_i (w_ij - w_il)) for all pairs of runs, by blocks of pairs."""
    leads = np.zeros((weights.shape[1], weights.shape[1]))
    for start in range(0, weights.shape[0], BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        dense = weights[block].toarray() * scale[block, None]
        for run, lead in enumerate(leads):
            rows = dense[dense[:, run] > 0.0]
            if len(rows):
                np.maximum(lead, (rows[:, run, None] - rows).max(axis=0), out=lead)
    return leads


def _log_error(confidence: float, sides: float) -> float:
    check_confidence(confidence)
    return math.log(sides / (1.0 - confidence))


def _check_population(
    weights: SparseMatrix, probability: FloatArray, max_utility: float, out_of_reach: str
) -> None:
    if probability.shape != (weights.shape[0],):
        raise BoundError(f"probability has the shape {probability.shape}, weights {weights.shape}")
    if out_of_reach not in OUT_OF_REACH:
        allowed = ", ".join(OUT_OF_REACH)
        raise BoundError(f"out_of_reach must be one of {allowed}, not {out_of_reach!r}")
    _check_numbers(weights.data, "weights", finite=True)
    _check_numbers(probability, "probability", largest=1.0)
    _check_best(max_utility)


def _check_best(max_utility: float) -> None:
    if not (max_utility > 0.0 and math.isfinite(max_utility)):
        raise BoundError(f"max_utility must be a finite number above 0, not {max_utility!r}")


def _check_draws(ranges: FloatArray, draws: int, least: int) -> None:
    _check_numbers(ranges, "ranges")
    if not draws >= least:
        raise BoundError(f"draws must be at least {least}, not {draws!r}")


def _check_numbers(
    values: FloatArray, name: str, *, largest: float = math.inf, finite: bool = False
) -> None:
    fits = (values >= 0.0) & (values <= largest) & (np.isfinite(values) | (not finite))
    if not fits.all():
        at = int(np.argmin(fits.ravel()))
        limit = f"between 0 and {largest:g}" if largest < math.inf else "at least 0"
        kind = "finite and " if finite else ""
        raise BoundError(f"{name} must be {kind}{limit}, not {values.ravel()[at]} (item {at})")


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
