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

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from .intervals import difference_variances
from .ranges import (
    BoundError,
    check_best,
    check_numbers,
    difference_ranges,
    draw_ranges,
    log_error,
    square_sums,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..arrays import FloatArray, SparseMatrix
    from ..sampling.interval_kinds import IntervalKind
    from .basis import Basis, Found, Guaranteed
    from .intervals import Bound, Confidence

HoeffdingForm: TypeAlias = Literal["corrected", "paper"]
HOEFFDING_FACTORS = {"corrected": 1.0, "paper": 2.0}
# Of the permitted error of the empirical bound, the share for the draws: what is left is for the
# assessors, and both bounds then have the same logarithm.
DRAWS_SHARE = 0.6


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
        V >= 0: see `basis.draw_covariance`.

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


# ----------------------------------------------------------------------------- kinds of intervals


@dataclass(frozen=True, eq=False)
class _OfDraws(ABC):
    """Ranges of draws and of labels, each (k,) or (k, k), and how many draws there are."""

    ranges: FloatArray
    noise: FloatArray
    draws: int

    def above(self, confidence: Confidence) -> FloatArray:
        return self.below(confidence)

    @abstractmethod
    def below(self, confidence: Confidence) -> FloatArray:
        """As `intervals.Bound`."""

    def of_assessors(self, confidence: Confidence) -> FloatArray:
        """What labels may lead away."""
        return hoeffding_half_widths(self.noise, draws=1, confidence=confidence)


@dataclass(frozen=True, eq=False)
class _HoeffdingBound(_OfDraws):
    form: HoeffdingForm

    def below(self, confidence: Confidence) -> FloatArray:
        half = 1.0 - (1.0 - confidence) / 2.0
        width = hoeffding_half_widths(self.ranges, draws=self.draws, confidence=half)
        width = width + self.of_assessors(half)
        if self.form == "corrected":
            return width
        printed = hoeffding_half_widths(
            self.ranges, draws=self.draws, confidence=confidence, form=self.form
        )
        return np.maximum(width, printed)


@dataclass(frozen=True, eq=False)
class _EmpiricalBound(_OfDraws):
    variance: FloatArray

    def below(self, confidence: Confidence) -> FloatArray:
        error = 1.0 - confidence
        spread = empirical_bernstein_half_widths(
            self.ranges,
            variance=self.variance,
            draws=self.draws,
            confidence=1.0 - DRAWS_SHARE * error,
        )
        return spread + self.of_assessors(1.0 - (1.0 - DRAWS_SHARE) * error)


def _scales(basis: Basis, *, differences: bool) -> tuple[FloatArray, FloatArray, int]:
    ranges_of = difference_ranges if differences else draw_ranges
    ranges = ranges_of(basis.weights, probability=basis.chance, max_utility=basis.best)
    noise = label_noise_ranges(basis.weights, max_utility=basis.best, differences=differences)
    return ranges, noise, basis.draws


@dataclass(frozen=True)
class Hoeffding:
    """Hoeffding's bound plus what assessors may add; ``paper``: at least what is printed."""

    form: HoeffdingForm = "corrected"

    def values(self, basis: Basis) -> Bound:
        """As `basis.Guaranteed`."""
        return _HoeffdingBound(*_scales(basis, differences=False), self.form)

    def differences(self, found: Found) -> Bound:
        """As `basis.Guaranteed`."""
        return _HoeffdingBound(*_scales(found, differences=True), self.form)


class EmpiricalBernstein:
    """The empirical Bernstein bound, plus what assessors may add."""

    def values(self, basis: Basis) -> Bound:
        """As `basis.Guaranteed`."""
        return _EmpiricalBound(*_scales(basis, differences=False), basis.spread)

    def differences(self, found: Found) -> Bound:
        """As `basis.Guaranteed`."""
        spread = difference_variances(found.covariance)
        return _EmpiricalBound(*_scales(found, differences=True), spread)


OF_DRAWS: Mapping[IntervalKind, Guaranteed] = {
    "hoeffding": Hoeffding(),
    "hoeffding-paper": Hoeffding("paper"),
    "empirical-bernstein": EmpiricalBernstein(),
}
