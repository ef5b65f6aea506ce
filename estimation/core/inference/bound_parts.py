"""What guaranteed bounds have in common: extremes and sums over pairs, logarithms, checks."""

import math
from collections.abc import Iterator
from typing import Literal, TypeAlias

import numpy as np

from ..arrays import FloatArray, SparseMatrix, check_confidence, refuse
from ..estimates.estimators import BLOCK_ROWS, cross_product
from .intervals import Confidence, difference_variances

OutOfReach: TypeAlias = Literal["refuse", "infinite"]
OUT_OF_REACH: tuple[OutOfReach, ...] = ("refuse", "infinite")


class BoundError(ValueError):
    """Arguments for which there is no bound; the message names the first that is wrong."""


def largest_terms(weights: SparseMatrix, scale: FloatArray, differences: bool) -> FloatArray:
    """max_i scale_i w_ij, or max_i scale_i |w_ij - w_il|."""
    if differences:
        above = largest_leads(weights, scale)
        return np.asarray(np.maximum(above, above.T))
    scaled = weights.data * np.repeat(scale, np.diff(weights.indptr))
    return column_maxima(weights, scaled)


def column_maxima(weights: SparseMatrix, values: FloatArray) -> FloatArray:
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


def check_population(
    weights: SparseMatrix, probability: FloatArray, max_utility: float, out_of_reach: str
) -> None:
    """Raise BoundError unless these make a population to draw from."""
    if probability.shape != (weights.shape[0],):
        raise BoundError(f"probability has the shape {probability.shape}, weights {weights.shape}")
    if out_of_reach not in OUT_OF_REACH:
        allowed = ", ".join(OUT_OF_REACH)
        raise BoundError(f"out_of_reach must be one of {allowed}, not {out_of_reach!r}")
    check_numbers(weights.data, "weights", finite=True)
    check_numbers(probability, "probability", largest=1.0)
    check_best(max_utility)


def check_best(max_utility: float) -> None:
    """Raise BoundError unless M is finite and above 0."""
    if not (max_utility > 0.0 and math.isfinite(max_utility)):
        raise BoundError(f"max_utility must be a finite number above 0, not {max_utility!r}")


def check_numbers(
    values: FloatArray, name: str, *, largest: float = math.inf, finite: bool = False
) -> None:
    """Raise BoundError, naming the first item, unless all values are allowed."""
    fits = (values >= 0.0) & (values <= largest) & (np.isfinite(values) | (not finite))
    if not fits.all():
        at = int(np.argmin(fits.ravel()))
        limit = f"between 0 and {largest:g}" if largest < math.inf else "at least 0"
        kind = "finite and " if finite else ""
        raise BoundError(f"{name} must be {kind}{limit}, not {values.ravel()[at]} (item {at})")
