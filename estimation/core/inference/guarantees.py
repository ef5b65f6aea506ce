"""Guaranteed intervals of an estimate: a kind of interval, put together for what was drawn.

What holds is said in `bounds` (draws with replacement) and `poisson_bounds`. All of it is for the
mean over assessors, who may disagree: under ``iid`` part of the permitted error pays for that. A
pair that is never drawn has no part in a bound, as it has none in the estimate: the intervals are
then of the lower bound that the estimate is of.

Verdicts rest on the same bounds. A difference has the p-value p if the interval of the kind
excludes 0 at every confidence below 1 - p; p-values are then adjusted by Holm over all pairs of
runs, so that verdicts and possible ranks hold at once. No verdict is lost that each difference
alone at 1 - alpha / (number of pairs) would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .bounds import (
    draw_covariance,
    empirical_bernstein_half_widths,
    hoeffding_half_widths,
    label_noise_ranges,
)
from .intervals import Bound, Confidence, difference_variances
from .poisson_bounds import bernstein_half_widths, chernoff_limits, poisson_bernstein_scales
from .ranges import difference_ranges, draw_ranges, largest_leads, lead_sums

if TYPE_CHECKING:
    from ..arrays import FloatArray, SparseMatrix
    from ..data.pool import Pool
    from ..estimates.drawn import Drawn
    from ..estimates.terms import Terms
    from ..measures.table import Measure
    from ..sampling.interval_kinds import IntervalKind

# Of the permitted error of the empirical bound, the share for the draws: what is left is for the
# assessors, and both bounds then have the same logarithm.
DRAWS_SHARE = 0.6


@dataclass(frozen=True, eq=False)
class Guarantee:
    """Bounds for the values of k runs, and for all differences between them."""

    values: Bound
    differences: Bound


def guarantee(
    kind: IntervalKind,
    *,
    pool: Pool,
    drawn: Drawn,
    terms: Terms,
    value: FloatArray,
    measure: Measure,
    max_grade: int,
) -> Guarantee | None:
    """Put a kind of interval together.

    Parameters
    ----------
    kind : IntervalKind
        One that the sampling method allows.
    pool, drawn : Pool, Drawn
    terms : Terms
        What the drawn pairs contribute under the measure.
    value : ndarray of float64, shape (k,)
        The estimates: importance sampling under ``iid``, Horvitz-Thompson under ``poisson``.
    measure, max_grade

    Returns
    -------
    Guarantee or None
        None for ``student``, and for measures without a bound: all but those of gains.
    """
    if kind == "student" or measure.family != "gain":
        return None
    population = _Population.of(pool, drawn, measure, max_grade)
    if drawn.counts is not None:
        return _of_draws(kind, population, drawn, terms)
    return _of_poisson(kind, population, drawn, terms, value)


@dataclass(frozen=True, eq=False)
class _Population:
    """Weights (n, k) of the n pairs that can be drawn, and what goes with them.

    ``chance``: probability of one draw, or of inclusion, shape (n,); ``best``: M.
    """

    weights: SparseMatrix
    chance: FloatArray
    best: float

    @classmethod
    def of(cls, pool: Pool, drawn: Drawn, measure: Measure, max_grade: int) -> _Population:
        reached = np.flatnonzero(drawn.inclusion > 0.0)
        chance = drawn.inclusion if drawn.draws is None else drawn.expected / drawn.draws
        weights, best = pool.weights(measure, reached), measure.max_utility(max_grade)
        return cls(weights, np.minimum(chance[reached], 1.0), best)


@dataclass(frozen=True, eq=False)
class BoundOfDraws:
    """A bound for means of draws with replacement, plus what assessors may add.

    Hoeffding's, for ``hoeffding-paper`` at least what is printed; or with a variance the empirical
    one.
    """

    kind: IntervalKind
    ranges: FloatArray
    noise: FloatArray
    draws: int
    variance: FloatArray | None = None

    def below(self, confidence: Confidence) -> FloatArray:
        error = 1.0 - confidence
        if self.variance is not None:
            spread = empirical_bernstein_half_widths(
                self.ranges,
                variance=self.variance,
                draws=self.draws,
                confidence=1.0 - DRAWS_SHARE * error,
            )
            return spread + self._of_assessors(1.0 - (1.0 - DRAWS_SHARE) * error)
        half = 1.0 - error / 2.0
        width = hoeffding_half_widths(self.ranges, draws=self.draws, confidence=half)
        width = width + self._of_assessors(half)
        if self.kind == "hoeffding":
            return width
        printed = hoeffding_half_widths(
            self.ranges, draws=self.draws, confidence=confidence, form="paper"
        )
        return np.maximum(width, printed)

    def above(self, confidence: Confidence) -> FloatArray:
        return self.below(confidence)

    def _of_assessors(self, confidence: Confidence) -> FloatArray:
        return hoeffding_half_widths(self.noise, draws=1, confidence=confidence)


@dataclass(frozen=True, eq=False)
class _Bernstein:
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


def _of_draws(kind: IntervalKind, population: _Population, drawn: Drawn, terms: Terms) -> Guarantee:
    weights, chance, best = population.weights, population.chance, population.best
    ranges = [
        ranges_of(weights, probability=chance, max_utility=best)
        for ranges_of in (draw_ranges, difference_ranges)
    ]
    noise = [label_noise_ranges(weights, max_utility=best, differences=d) for d in (False, True)]
    variance: list[FloatArray] | list[None] = [None, None]
    if kind == "empirical-bernstein" and drawn.counts is not None:
        covariance = draw_covariance(
            terms.weights, terms.labels, probability=drawn.probability, counts=drawn.counts
        )
        variance = [np.diag(covariance), difference_variances(covariance)]
    each = zip(ranges, noise, variance, strict=True)
    return Guarantee(*(BoundOfDraws(kind, r, n, drawn.draws or 0, v) for r, n, v in each))


def _of_poisson(
    kind: IntervalKind, population: _Population, drawn: Drawn, terms: Terms, value: FloatArray
) -> Guarantee:
    weights, chance, best = population.weights, population.chance, population.best
    if kind == "bernstein":
        scales = [
            poisson_bernstein_scales(weights, probability=chance, max_utility=best, differences=d)
            for d in (False, True)
        ]
        return Guarantee(*(_Bernstein(*each) for each in scales))
    return Guarantee(
        _Chernoff(value, draw_ranges(weights, probability=chance, max_utility=best)),
        _ChernoffDifferences(
            gained=lead_sums(terms.weights, terms.labels.mean * drawn.multiplier),
            scale=best * largest_leads(weights, 1.0 / chance),
        ),
    )
