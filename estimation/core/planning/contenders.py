"""Which run is the best, and when that will be known: a game played often with what is known now.

True values are taken to be normal, independent for every run, about a mean and with a spread that
fit what was observed. The best of many observed values is so in part by luck; given the spread, it
regresses to the mean, and its rivals may be ahead of it. Later estimates err less, and those of now
err about them, as samples are nested. So with T the variance of true values, C the covariance of
estimates now and C' that of later ones, later estimates x' given those of now are normal with

    E[x'|x] = m + (T + C') (T + C)^-1 (x - m),
    Cov[x'|x] = (T + C') - (T + C') (T + C)^-1 (T + C').

They are drawn many times, with normal numbers that are the same on every machine, and a best run is
decided where it is ahead of every other one by more than the critical value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..arrays import mixed_bits
from ..inference.intervals import ROUNDING, difference_variances

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray, IntArray

MOST = 24  # runs that may be the best, those with the largest observed values
GAMES = 400
NUGGET = 1e-9  # of the largest variance, so that there always is a spread
LEAST_SPREAD = 0.05  # of the variance of errors: no two runs are taken to be exactly alike


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
    mean, spread : float
        Of true values: mean and variance.
    """

    runs: IntArray
    value: FloatArray
    covariance: FloatArray
    mean: float
    spread: float

    @classmethod
    def of(cls, value: FloatArray, covariance: FloatArray) -> Contenders:
        """Choose among k runs; the spread is what the errors leave of that of the k values."""
        runs = np.argsort(-value, kind="stable")[:MOST]
        mean, spread = _prior(value, covariance)
        return cls(runs, value[runs], covariance[np.ix_(runs, runs)], mean, spread)

    def best(
        self, covariance: FloatArray, critical: float, *, near: float = 0.0, short: float = 0.0
    ) -> float:
        """Return the chance that one of them is surely better than all others later.

        With ``near``: or surely at most so much worse than any other one, where later intervals
        that lie within plus and minus that much say so.

        Parameters
        ----------
        covariance : ndarray of float64, shape (k, k)
            Of later estimates of the k runs.
        critical : float
            In standard errors of differences.
        near : float
            Differences up to this one do not matter.
        short : float
            Reach of the intervals for that, in standard errors of differences.
        """
        number = len(self.runs)
        if number == 1:
            return 1.0
        then = covariance[np.ix_(self.runs, self.runs)]
        least = NUGGET * max(float(np.diag(self.covariance).max()), 1e-300)
        prior = max(self.spread, least) * np.eye(number)
        gain = np.linalg.solve(prior + self.covariance, prior + then).T
        mean = self.mean + gain @ (self.value - self.mean)
        rest = prior + then - gain @ (prior + then)
        played = mean + _normal(GAMES, number) @ _root(rest).T
        needed = critical * np.sqrt(difference_variances(then))
        if not near > 0.0:
            return float(self._won(played, needed).mean())
        short_of = short * np.sqrt(difference_variances(then))
        return float(self._won_or_near(played, needed, near, short_of).mean())

    def _won(self, played: FloatArray, needed: FloatArray) -> BoolArray:
        """Whether a run is ahead of all others by what is needed, game by game.

        Only the first of the runs that are not behind where it is known can be: others are behind
        that one, or it is known to be behind them, and out.
        """
        known, ahead = self._known, np.subtract.outer(self.value, self.value) > 0.0
        able = np.flatnonzero(np.all(ahead | ~known, axis=1))
        if not len(able):
            return np.zeros(len(played), dtype=bool)
        first = able[np.argmax(played[:, able], axis=1)]
        lead = played[np.arange(len(played)), first][:, None] - played
        itself = first[:, None] == np.arange(len(self.runs))
        return np.asarray(np.all((lead > needed[first]) | known[first] | itself, axis=1))

    def _won_or_near(
        self, played: FloatArray, needed: FloatArray, near: float, short: FloatArray
    ) -> BoolArray:
        """The same, where runs at most `near` behind do not matter; several can be ahead so."""
        difference = played[:, :, None] - played[:, None, :]
        ahead = (difference > needed) | (np.abs(difference) + short <= near)
        observed = np.subtract.outer(self.value, self.value)
        ahead[:, self._known] = ((observed > 0.0) | (np.abs(observed) <= near))[self._known]
        ahead[:, np.arange(len(self.runs)), np.arange(len(self.runs))] = True
        return np.asarray(np.any(np.all(ahead, axis=2), axis=1))

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


def _root(covariance: FloatArray) -> FloatArray:
    """A matrix whose product with its transpose is the covariance, which may lack full rank."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2.0)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


@lru_cache(maxsize=4)
def _normal(number: int, runs: int) -> FloatArray:
    mixed = mixed_bits(np.arange(1, number * runs + 1))
    uniform = ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(special.ndtri(uniform), dtype=np.float64).reshape(number, runs)
