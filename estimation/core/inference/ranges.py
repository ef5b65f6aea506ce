"""The largest that a pair can add: ranges of draws, and other extremes that bounds are made of.

Utilities lie in [0, M]. Weights, probabilities and M are known before anything is drawn, and so is
all of this (Schnabel, Swaminathan and Joachims, section 6.2).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import BoolArray, FloatArray, SparseMatrix, check_confidence, refuse
from ..estimates.products import cross_product
from .intervals import Confidence, difference_variances

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK_ROWS = 2048  # pairs whose weights are held densely at a time


class BoundError(ValueError):
    """Arguments for which there is no bound; the message names the first that is wrong."""


def draw_ranges(
    weights: SparseMatrix, *, probability: FloatArray, max_utility: float
) -> FloatArray:
    """Return the range R_j = M max_i w_ij / Q_i of one draw with replacement, for every run.

    Parameters
    ----------
    weights : csr_array, shape (N, k)
        Of all pairs of the pool, not only of those that were drawn.
    probability : ndarray of float64, shape (N,)
        Q_i, the probability of one draw.
    max_utility : float
        M, the utility of the best grade.

    Returns
    -------
    ndarray of float64, shape (k,)

    Raises
    ------
    BoundError
        If a weight is negative or not finite, a probability outside [0, 1], M not positive, or a
        run has a weight on a pair that is never drawn.
    """
    check_population(weights, probability, max_utility, differences=False)
    chance = np.repeat(probability, np.diff(weights.indptr))
    weighty = weights.data > 0.0
    ratio = np.divide(weights.data, chance, out=np.zeros_like(weights.data), where=weighty)
    return max_utility * _column_maxima(weights, ratio)


def difference_ranges(
    weights: SparseMatrix, *, probability: FloatArray, max_utility: float
) -> FloatArray:
    """Return the range of one draw's v (w_ij - w_il) / Q_i, for every pair of runs, shape (k, k).

    R_jl = M (max(0, max_i d_i) - min(0, min_i d_i)), d_i = (w_ij - w_il) / Q_i. The zeros are
    needed because v may be 0: a run that dominates another has no negative d. Arguments and errors
    are those of `draw_ranges`, but of pairs that are never drawn all runs must have one weight.
    """
    check_population(weights, probability, max_utility, differences=True)
    drawn = probability > 0.0
    above = largest_leads(weights[drawn], 1.0 / probability[drawn])
    return np.asarray(max_utility * (above + above.T))


def largest_terms(weights: SparseMatrix, scale: FloatArray, differences: bool) -> FloatArray:
    """max_i scale_i w_ij, or max_i scale_i |w_ij - w_il|."""
    if differences:
        above = largest_leads(weights, scale)
        return np.asarray(np.maximum(above, above.T))
    scaled = weights.data * np.repeat(scale, np.diff(weights.indptr))
    return _column_maxima(weights, scaled)


def _column_maxima(weights: SparseMatrix, values: FloatArray) -> FloatArray:
    """The largest of the values of the stored entries, 0 at least, for every run."""
    maxima = np.zeros(weights.shape[1])
    np.maximum.at(maxima, weights.indices, values)
    return maxima


def square_sums(weights: SparseMatrix, scale: FloatArray, differences: bool) -> FloatArray:
    """sum_i scale_i w_ij^2, or sum_i scale_i (w_ij - w_il)^2."""
    products = cross_product(weights, scale)
    return difference_variances(products) if differences else np.diag(products).copy()


def largest_leads(weights: SparseMatrix, scale: FloatArray) -> FloatArray:
    """max(0, max_i scale_i (w_ij - w_il)) for all pairs of runs, by blocks of pairs."""
    leads = np.zeros((weights.shape[1], weights.shape[1]))
    for dense in _dense_blocks(weights, scale):
        for run, lead in enumerate(leads):
            rows = dense[dense[:, run] > 0.0]
            if len(rows):
                np.maximum(lead, (rows[:, run, None] - rows).max(axis=0), out=lead)
    return leads


def lead_sums(weights: SparseMatrix, scale: FloatArray) -> FloatArray:
    """sum_i scale_i max(0, w_ij - w_il) for all pairs of runs, by blocks of pairs."""
    sums = np.zeros((weights.shape[1], weights.shape[1]))
    for dense in _dense_blocks(weights, scale):
        for run in range(len(sums)):
            rows = dense[dense[:, run] > 0.0]
            sums[run] += np.maximum(rows[:, run, None] - rows, 0.0).sum(axis=0)
    return sums


def _dense_blocks(weights: SparseMatrix, scale: FloatArray) -> Iterator[FloatArray]:
    for start in range(0, weights.shape[0], BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        yield weights[block].toarray() * scale[block, None]


def log_error(confidence: Confidence, sides: float) -> FloatArray:
    """ln(sides / alpha)."""
    if not isinstance(confidence, np.ndarray):
        check_confidence(confidence)
    else:
        outside = ~((confidence > 0.0) & (confidence < 1.0))
        rule = "lie strictly between 0 and 1"
        refuse(outside, confidence.ravel(), name="confidence", rule=rule, error=BoundError)
    return np.asarray(np.log(sides / (1.0 - confidence)), dtype=np.float64)


# ----------------------------------------------------------------------------- what is refused


def check_population(
    weights: SparseMatrix, probability: FloatArray, max_utility: float, *, differences: bool
) -> None:
    """Raise BoundError unless these make a population to draw from: see `draw_ranges`."""
    if probability.shape != (weights.shape[0],):
        raise BoundError(f"probability has the shape {probability.shape}, weights {weights.shape}")
    check_numbers(weights.data, "weights", finite=True)
    check_numbers(probability, "probability", largest=1.0)
    check_best(max_utility)
    if differences:
        _refuse_differences(weights, probability == 0.0)
    else:
        _refuse_weights(weights, probability == 0.0)


def check_best(max_utility: float) -> None:
    """Raise BoundError unless M is finite and above 0."""
    if not (max_utility > 0.0 and math.isfinite(max_utility)):
        raise BoundError(f"max_utility must be a finite number above 0, not {max_utility!r}")


def check_numbers(
    values: FloatArray, name: str, *, largest: float = math.inf, finite: bool = False
) -> None:
    """Raise BoundError, naming the first item, unless all values are allowed."""
    fits = (values >= 0.0) & (values <= largest) & (np.isfinite(values) | (not finite))
    limit = f"between 0 and {largest:g}" if largest < math.inf else "at least 0"
    rule = f"be {'finite and ' if finite else ''}{limit}"
    refuse(~fits.ravel(), values, name=name, rule=rule, error=BoundError)


def _refuse_weights(weights: SparseMatrix, unreachable: BoolArray) -> None:
    out = np.repeat(unreachable, np.diff(weights.indptr)) & (weights.data > 0.0)
    if out.any():
        at = int(np.argmax(out))
        pair = int(np.searchsorted(weights.indptr, at, side="right")) - 1
        raise BoundError(
            f"probability is 0 for pair {pair}, "
            f"on which run {weights.indices[at]} has the weight {weights.data[at]:g}"
        )


def _refuse_differences(weights: SparseMatrix, unreachable: BoolArray) -> None:
    places = np.flatnonzero(unreachable)
    for start in range(0, len(places), BLOCK_ROWS):
        pairs = places[start : start + BLOCK_ROWS]
        dense = weights[pairs].toarray()
        differ = dense != dense[:, :1]
        if differ.any():
            row, run = (int(place[0]) for place in np.nonzero(differ))
            raise BoundError(
                f"probability is 0 for pair {pairs[row]}, on which the runs 0 and {run} "
                f"have the weights {dense[row, 0]:g} and {dense[row, run]:g}"
            )
