"""Interval widths for Poisson samples that are guaranteed whatever the utilities are.

Utilities lie in [0, M], and an estimate is a sum over all pairs of w v / pi times "is in the
sample": independent bounded terms. Weights, pi and M are known; the v are not, and the bounds hold
whatever they are. `bernstein_half_widths` needs no labels and takes every v at its worst;
`chernoff_limits` uses the estimate instead, and of the design the largest term alone. Either can be
the narrower one. Both hold if assessors disagree, as long as labels are independent between pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .ranges import (
    BoundError,
    check_numbers,
    check_population,
    draw_ranges,
    largest_leads,
    largest_terms,
    lead_sums,
    log_error,
    square_sums,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..arrays import FloatArray, SparseMatrix
    from ..sampling.interval_kinds import IntervalKind
    from .basis import Basis, Found, Guaranteed
    from .intervals import Bound, Confidence

NEWTON_STEPS = 7  # each doubles the digits; the starts are close
NO_SHARE = 1e4  # -ln of what is nothing


def poisson_bernstein_scales(
    weights: SparseMatrix, *, probability: FloatArray, max_utility: float, differences: bool
) -> tuple[FloatArray, FloatArray]:
    """Return b and s of `bernstein_half_widths`, (k,) or (k, k) each.

    b is the largest deviation of one pair's term and s a limit for their variances' sum. Known:
    weights, pi, M. Unknown: every v; each is given its worst value, so that the bound holds before
    any label is seen, and is wide: b = max M w / pi, and s = sum M^2 w^2 (1 - pi) / pi, with
    1 / (4 pi^2) in the place of (1 - pi) / pi where pi > 1/2, because labels of random assessors
    vary where nothing else does. ValueError as `ranges.draw_ranges`.
    """
    check_population(weights, probability, max_utility, differences=differences)
    reached = probability > 0.0
    pi = np.where(reached, probability, 1.0)
    variance = np.where(pi > 0.5, 0.25 / pi**2, (1.0 - pi) / pi) * reached
    largest = max_utility * largest_terms(weights, reached / pi, differences)
    return largest, max_utility**2 * square_sums(weights, variance, differences)


def bernstein_half_widths(
    largest: FloatArray, variance: FloatArray, *, confidence: Confidence = 0.95
) -> FloatArray:
    """Return Bernstein's bound for Horvitz-Thompson estimates from a Poisson sample.

    b L / 3 + sqrt((b L / 3)^2 + 2 s L) with L = ln(2 / alpha), for given b and s >= 0.
    """
    log = log_error(confidence, 2.0)
    linear = largest * log / 3.0
    return np.asarray(linear + np.sqrt(linear**2 + 2.0 * variance * log))


def chernoff_limits(
    value: FloatArray, *, scale: FloatArray, confidence: Confidence = 0.95
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
    confidence : float or ndarray of float64
        1 - alpha; strictly between 0 and 1.

    Returns
    -------
    low, high : ndarray of float64, shape (k,)

    Raises
    ------
    ValueError
        If shapes differ, a number is negative or not finite, or the confidence is out of range.
    """
    check_numbers(value, "value", finite=True)
    check_numbers(scale, "scale", finite=True)
    if value.shape != scale.shape:
        raise BoundError(f"value has the shape {value.shape}, but scale {scale.shape}")
    log = log_error(confidence, 2.0)
    sums = np.divide(value, scale, out=np.zeros_like(value), where=scale > 0.0)
    low = np.where(scale > 0.0, value * _lowest_share(sums, log), value)
    return low, value + scale * _largest_step(sums, log)


def _lowest_share(sums: FloatArray, log: FloatArray) -> FloatArray:
    """x <= 1 with s (x - 1 - ln x) = log, by Newton's method for -ln x from above."""
    ratio = np.divide(log, sums, out=np.full(sums.shape, NO_SHARE), where=sums > log / NO_SHARE)
    depth = (ratio + np.sqrt(ratio**2 + 8.0 * ratio)) / 2.0
    for _ in range(NEWTON_STEPS):
        depth -= (depth + np.expm1(-depth) - ratio) / -np.expm1(-depth)
    return np.asarray(np.exp(-depth), dtype=np.float64)


def _largest_step(sums: FloatArray, log: FloatArray) -> FloatArray:
    """d >= 0 with d - s ln(1 + d / s) = log, by Newton's method from above."""
    step = log + np.sqrt(log**2 + 2.0 * log * sums)
    for _ in range(NEWTON_STEPS):
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            gone = np.where(sums > 0.0, sums * np.log1p(step / sums), 0.0)
        step = step - (step - gone - log) * (sums + step) / step
    return np.asarray(step, dtype=np.float64)


# ----------------------------------------------------------------------------- kinds of intervals


@dataclass(frozen=True, eq=False)
class BernsteinBound:
    """Bernstein's bound for a Poisson sample; see `bernstein_half_widths`."""

    largest: FloatArray
    variance: FloatArray

    def below(self, confidence: Confidence) -> FloatArray:
        return bernstein_half_widths(self.largest, self.variance, confidence=confidence)

    def above(self, confidence: Confidence) -> FloatArray:
        return self.below(confidence)


@dataclass(frozen=True, eq=False)
class _Chernoff:
    """Chernoff's limits of values; see `chernoff_limits`."""

    value: FloatArray
    scale: FloatArray

    def below(self, confidence: Confidence) -> FloatArray:
        return self.value - chernoff_limits(self.value, scale=self.scale, confidence=confidence)[0]

    def above(self, confidence: Confidence) -> FloatArray:
        return chernoff_limits(self.value, scale=self.scale, confidence=confidence)[1] - self.value


@dataclass(frozen=True, eq=False)
class _ChernoffDifferences:
    """A difference is what the row's run gains where it has more weight, less the reverse.

    Attributes
    ----------
    gained : ndarray of float64, shape (k, k)
        Estimate of sum_i max(0, w_ij - w_il) v_i: the difference is gained - gained.T, both with
        Chernoff's limits at half the error.
    scale : ndarray of float64, shape (k, k)
        The largest term of `gained`.
    """

    gained: FloatArray
    scale: FloatArray

    def below(self, confidence: Confidence) -> FloatArray:
        half = 1.0 - (1.0 - confidence) / 2.0
        low, _ = chernoff_limits(self.gained, scale=self.scale, confidence=half)
        _, high = chernoff_limits(self.gained, scale=self.scale, confidence=_turned(half))
        return (self.gained - low) + (high - self.gained).T

    def above(self, confidence: Confidence) -> FloatArray:
        return self.below(_turned(confidence)).T


def _turned(confidence: Confidence) -> Confidence:
    """Confidences of the differences the other way round."""
    return confidence.T if isinstance(confidence, np.ndarray) else confidence


class Bernstein:
    """Bernstein's bound, known before judging."""

    def values(self, basis: Basis) -> Bound:
        """As `basis.Guaranteed`."""
        return self._bound(basis, differences=False)

    def differences(self, found: Found) -> Bound:
        """As `basis.Guaranteed`."""
        return self._bound(found, differences=True)

    @staticmethod
    def _bound(basis: Basis, *, differences: bool) -> BernsteinBound:
        scales = poisson_bernstein_scales(
            basis.weights,
            probability=basis.chance,
            max_utility=basis.best,
            differences=differences,
        )
        return BernsteinBound(*scales)


class Chernoff:
    """Chernoff's limits, which follow from the estimate."""

    def values(self, basis: Basis) -> Bound:
        """As `basis.Guaranteed`."""
        scale = draw_ranges(basis.weights, probability=basis.chance, max_utility=basis.best)
        return _Chernoff(np.asarray(basis.value), scale)

    def differences(self, found: Found) -> Bound:
        """As `basis.Guaranteed`."""
        terms = found.terms
        return _ChernoffDifferences(
            gained=lead_sums(terms.weights, terms.labels.mean * found.drawn.multiplier),
            scale=found.best * largest_leads(found.weights, 1.0 / found.chance),
        )


OF_POISSON: Mapping[IntervalKind, Guaranteed] = {"bernstein": Bernstein(), "chernoff": Chernoff()}
