"""Which run is the best, and when that will be known: futures, played with what is known now.

How far the best run is ahead of its rivals is not known to many digits after a few batches, and
what one expects of it counts. Half of the futures hold each of two beliefs:

- *Runs stand apart*: true values are normal and independent, about a mean and with a spread that
  fit what was observed of the better half of the runs.
- *Leading runs are alike*: true differences of the leading runs are as `shrinkage` says of those
  that were observed, in standard errors of now. So runs that return nearly the same are nearly as
  good, as copies of a good one are.

Where the two say different things, ranges are wide, and hold in either case. Given the estimates x,
of covariance C, true values are normal, with the prior covariance T about m,

    E[theta|x] = m + T (T + C)^-1 (x - m),    Cov[theta|x] = T - T (T + C)^-1 T,

where T is diagonal by the first belief, and w^2 C by the second, w being the width of a component.
So the lead of what looks best regresses to the mean, and its rivals may be ahead of it. Samples are
nested: what later estimates miss, e' of covariance C', is what is left of e = x - theta,

    E[e'|e] = C' C^-1 e,    Cov[e'|e] = C' C^-1 (C - C'),

and half way between two steps it is a bridge. A future ends at the first look at which one run is
ahead of every other one by more than the critical value.

Futures are drawn with normal numbers that are the same on every machine. None changes what is
drawn, weighted or estimated, so that they bias nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ..inference.intervals import ROUNDING, difference_variances
from ..inference.normal import normal_numbers, root
from ..upper import above
from .shrinkage import SURE, fit_spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..arrays import BoolArray, FloatArray, IntArray
    from .shrinkage import TrueSpread

MOST = 24  # runs that may be the best, those with the largest observed values
FUTURES = 400
LEADING = 12  # runs whose differences tell how far leading runs differ
ALIKE = FUTURES // 2  # futures in which leading runs are alike
AHEAD = 3  # leading runs of a future that may be as good as the best
NUGGET = 1e-9  # of the largest variance, so that it can be divided by
SMALLEST = 1e-150  # where there is none: far from what is too small to be divided by
LEAST_SPREAD = 0.05  # of the variance of errors: no two runs are taken to be exactly alike


@dataclass(frozen=True, eq=False)
class Horizon:
    """What estimates will be like at some later time.

    Attributes
    ----------
    covariance : ndarray of float64, shape (k, k)
        Of the estimates of then.
    critical : float
        From which size on differences have a verdict, in their standard errors.
    short : float
        Reach of intervals that say that a difference does not matter, in the same.
    """

    covariance: FloatArray
    critical: float
    short: float = 0.0

    def half_way(self, later: Horizon) -> Horizon:
        """Return what lies between this and a later step."""
        return Horizon(
            (self.covariance + later.covariance) / 2.0,
            (self.critical + later.critical) / 2.0,
            (self.short + later.short) / 2.0,
        )


@dataclass(frozen=True, eq=False)
class Contenders:
    """The runs that may be the best.

    Attributes
    ----------
    runs : ndarray of int64, shape (m,)
        Their positions among k.
    value : ndarray of float64, shape (m,)
        Observed, larger being better.
    covariance : ndarray of float64, shape (m, m)
        Of these.
    scale : ndarray of float64, shape (m,)
        What errors of every step are multiplied by.
    width : ndarray of float64, shape (n,)
        How far leading runs differ in each future in which they are alike, in standard errors.
    mean, spread : float
        Of true values where they stand apart: mean and variance.
    """

    runs: IntArray
    value: FloatArray
    covariance: FloatArray
    scale: FloatArray
    width: FloatArray
    mean: float
    spread: float

    @classmethod
    def of(
        cls, value: FloatArray, covariance: FloatArray, *, scale: FloatArray | None = None
    ) -> Contenders:
        """Choose among k runs; the spread is what the errors leave of that of the k values.

        Errors are those of this covariance and those of later steps, each times `scale`, (k,).
        """
        scale = np.ones(len(value)) if scale is None else scale
        covariance = covariance * np.multiply.outer(scale, scale)
        runs = np.argsort(-value, kind="stable")[:MOST]
        leading = runs[:LEADING]
        alike = fit_spread(_standardized(value[leading], covariance[np.ix_(leading, leading)]))
        mean, spread = _prior(value, covariance)
        return cls(
            runs,
            value[runs],
            covariance[np.ix_(runs, runs)],
            scale[runs],
            _widths(alike, ALIKE),
            mean,
            spread,
        )

    def decided(self, steps: Sequence[Horizon], *, near: float = 0.0) -> FloatArray:
        """Return with which chance one run has been surely better than all others by each step.

        With ``near``: or surely at most so much worse than any other one, where intervals that lie
        within plus and minus that much say so.

        Parameters
        ----------
        steps : sequence of Horizon
            Ascending.
        near : float
            Differences up to this one do not matter.

        Returns
        -------
        ndarray of float64, shape (s,)
            Never falling.
        """
        if len(self.runs) == 1 or not steps:
            return np.ones(len(steps))
        true, missed = self._drawn()
        before, ended = replace(steps[0], covariance=self.covariance), np.zeros(FUTURES, dtype=bool)
        found, some = np.empty(len(steps)), np.ix_(self.runs, self.runs)
        scale = np.multiply.outer(self.scale, self.scale)
        for place, step in enumerate(steps):
            then = replace(step, covariance=step.covariance[some] * scale)
            later, between = self._later(missed, before.covariance, then.covariance, place)
            ended |= self._ended(true + between, before.half_way(then), near)
            ended |= self._ended(true + later, then, near)
            found[place], missed, before = ended.mean(), later, then
        return found

    def _drawn(self) -> tuple[FloatArray, FloatArray]:
        """True values, and what now is missed of them."""
        normal, number = _normal(0, len(self.runs)), len(self.runs)
        kept = (self.width**2 / (1.0 + self.width**2))[:, None]
        alike = kept * (self.value - self.mean)
        alike = alike + np.sqrt(kept) * (normal[: len(kept)] @ root(self.covariance).T)
        prior = max(self.spread, self._least) * np.eye(number)
        gain = np.linalg.solve(prior + self.covariance, prior).T
        apart = gain @ (self.value - self.mean)
        apart = apart + normal[len(kept) :] @ root(prior - gain @ prior).T
        true = np.concatenate([alike, apart])
        return true, self.value - self.mean - true

    def _later(
        self, missed: FloatArray, before: FloatArray, then: FloatArray, place: int
    ) -> tuple[FloatArray, FloatArray]:
        """What is missed at a later step, and half way to it."""
        number = len(before)
        gain = np.linalg.solve(before + self._least * np.eye(number), then).T
        noise = _normal(2 * place + 1, number) @ root(then - gain @ then).T
        later = missed @ gain.T + noise
        bridge = _normal(2 * place + 2, number) @ root(before - then).T
        return later, (missed + later + bridge) / 2.0

    def _ended(self, value: FloatArray, step: Horizon, near: float) -> BoolArray:
        """Whether a run is decided the best, future by future."""
        error = np.sqrt(difference_variances(step.covariance))
        if not near > 0.0:
            return self._won(value, step.critical * error)
        return self._won_or_near(value, step.critical * error, near, step.short * error)

    def _won(self, value: FloatArray, needed: FloatArray) -> BoolArray:
        """Whether a run is ahead of all others by what is needed: nothing of what it is known to
        be ahead of.

        Only the first of the runs that are not behind where it is known can be: others are behind
        that one, or it is known to be behind them, and out.
        """
        able = self._able
        if not len(able):
            return np.zeros(len(value), dtype=bool)
        first = able[value[:, able].argmax(axis=1)]
        lead = value[np.arange(len(value)), first][:, None] - value
        open_ = np.where(self._known, -np.inf, needed)
        np.fill_diagonal(open_, -np.inf)
        return np.asarray((lead > open_[first]).all(axis=1))

    def _won_or_near(
        self, value: FloatArray, needed: FloatArray, near: float, short: FloatArray
    ) -> BoolArray:
        """The same, where runs at most `near` behind do not matter; several can be ahead so."""
        observed = np.subtract.outer(self.value, self.value)
        known = (observed > 0.0) | (np.abs(observed) <= near)
        first = np.argsort(-value, axis=1, kind="stable")[:, :AHEAD]
        lead = np.take_along_axis(value, first, axis=1)[:, :, None] - value[:, None, :]
        ahead = (lead > needed[first]) | (np.abs(lead) + short[first] <= near)
        ahead = np.where(self._known[first], known[first], ahead)
        return np.asarray(np.any(np.all(ahead, axis=2), axis=1))

    @property
    def _least(self) -> float:
        return max(NUGGET * float(np.diag(self.covariance).max()), SMALLEST)

    @cached_property
    def _able(self) -> IntArray:
        """Runs that are not known to be behind another one, or exactly as good."""
        ahead = np.subtract.outer(self.value, self.value) > 0.0
        return np.flatnonzero(np.all(ahead | ~self._known, axis=1))

    @cached_property
    def _known(self) -> BoolArray:
        """Which differences no further judgment changes: of runs that return the same, say."""
        single = np.diag(self.covariance)
        least = 2.0 * ROUNDING * np.add.outer(single, single)
        known = np.asarray(difference_variances(self.covariance) <= least)
        np.fill_diagonal(known, False)
        return known


def _prior(value: FloatArray, covariance: FloatArray) -> tuple[float, float]:
    """The median, and how far values above it spread, less the variance of their errors.

    Bad runs are often far worse than the middle one is than the best: they tell nothing of those.
    """
    runs = len(value)
    middle = float(np.median(value))
    above = value >= middle
    errors = difference_variances(covariance)[np.ix_(above, above)]
    number = len(errors)
    noise = errors.sum() / (2.0 * number * max(number - 1, 1))
    squares = np.square(value[above] - middle).sum() / max(number - (runs % 2), 1)
    return middle, max(float(squares - noise), LEAST_SPREAD * float(noise))


def _standardized(value: FloatArray, covariance: FloatArray) -> FloatArray:
    """Differences of every two values in standard errors, where there is an error."""
    variance = above(difference_variances(covariance))
    single = np.diag(covariance)
    some = variance > 2.0 * ROUNDING * above(np.add.outer(single, single))
    difference = above(np.subtract.outer(value, value))[some]
    return np.clip(difference / np.sqrt(variance[some]), -SURE, SURE)


def _widths(spread: TrueSpread, number: int) -> FloatArray:
    """A width for each of so many futures: of every component as many as its share says."""
    ends = np.floor(np.append(0.0, np.cumsum(spread.share)) * number + 0.5).astype(np.int64)
    ends[-1] = number
    return np.repeat(spread.width, np.diff(ends))


@lru_cache(maxsize=64)
def _normal(draw: int, runs: int) -> FloatArray:
    """The normal numbers of one draw for every future and run."""
    at = draw * FUTURES * MOST + np.arange(FUTURES * MOST).reshape(FUTURES, MOST)[:, :runs]
    return normal_numbers(at)
