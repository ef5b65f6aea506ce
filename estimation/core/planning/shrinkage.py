"""How large differences really are, given how large they look.

A difference that looks large is so in part because luck made it: what was observed regresses to the
mean, most of all where it was picked for being large, as that of the leader. How far follows from
all differences of a sample together. Let z be observed differences in standard errors, and true
ones, in the same unit, from a mixture of normal distributions about 0 whose spreads form a grid:

    z ~ sum_m share_m N(0, 1 + width_m^2).

Shares are fitted by maximum likelihood (expectation maximization), drawn towards the component that
is a point at 0 by a few differences more there, as in *adaptive shrinkage* (Stephens 2017, *False
discovery rates: a new deal*). Differences of runs depend on one another, so that shares are less
certain than their number says; they decide what is foretold, never an estimate or a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..arrays import refuse

if TYPE_CHECKING:
    from ..arrays import FloatArray

WIDTHS = np.concatenate([[0.0], 2.0 ** np.arange(-1.0, 6.5, 0.5)])
AT_ZERO = 0.1  # differences that are added to the point at 0
SWEEPS = 100
LEAST_SHARE = 1e-4  # of components that are looked at
LEAST_LEFT = 1e-12  # of a variance, where nothing is left
SURE = 40.0  # standard errors: as good as certain
NEAR = 6.0  # standard errors: what is larger does not change its sign any more
MOST_FITTED = 250  # differences that shares are fitted to, evenly spread among all


@dataclass(frozen=True, eq=False)
class TrueSpread:
    """What true differences may be, in standard errors of the observed ones.

    Attributes
    ----------
    share : ndarray of float64, shape (m,)
        Of each component; they sum to 1.
    width : ndarray of float64, shape (m,)
        Standard deviation of the true differences of each.
    """

    share: FloatArray
    width: FloatArray

    def given(self, z: FloatArray) -> FloatArray:
        """Return how likely each component is for observed differences, shape (m, n)."""
        with np.errstate(divide="ignore"):
            exponent = _log_densities(z, self.width) + np.log(self.share)[:, None]
        likely = np.exp(exponent - exponent.max(axis=0))
        return np.asarray(likely / likely.sum(axis=0))

    def of(self, z: FloatArray) -> Observed:
        """Return what observed differences, shape (n,), say of later ones."""
        some = self.share > LEAST_SHARE
        return Observed(z, self.given(z)[some], self.width[some, None] ** 2)


@dataclass(frozen=True, eq=False)
class Observed:
    """Observed differences, and of which components they may be.

    Samples are nested: what is observed later has the variance ``left`` of what is observed now,
    which errs about it. Of a component with the variance w = width^2

        E[z'|z] = z (w + left) / (w + 1) / sqrt(left),
        Var[z'|z] = (w + left) (1 - left) / ((w + 1) left).

    Attributes
    ----------
    z : ndarray of float64, shape (n,)
        In standard errors.
    share : ndarray of float64, shape (m, n)
        How likely each component is.
    square : ndarray of float64, shape (m, 1)
        Variance of the true differences of each.
    """

    z: FloatArray
    share: FloatArray
    square: FloatArray

    def later(self, left: FloatArray) -> Later:
        """Return what later differences may be; ``left`` in [0, 1], shape (n,)."""
        variance, kept = self._kept(left)
        error = np.sqrt(np.maximum(kept * (1.0 - variance), LEAST_LEFT**2))
        return Later(self.share, self.z * kept, error, np.sqrt(variance))

    def decided(self, left: FloatArray, critical: float) -> FloatArray:
        """Return the chance of each later difference to be beyond a critical value, (n,)."""
        return self.later(left).decided(critical)

    def expected(self, left: FloatArray) -> FloatArray:
        """Return the same on average, in standard errors of then, shape (n,)."""
        variance, kept = self._kept(left)
        return np.asarray(self.z * (self.share * kept).sum(axis=0) / np.sqrt(variance))

    def _kept(self, left: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Variances that are left, and how much of each difference every component keeps."""
        variance = np.maximum(left, LEAST_LEFT)
        return variance, (self.square + variance) / (self.square + 1.0)


@dataclass(frozen=True, eq=False)
class Later:
    """What n later differences may be: a mixture of m normal distributions for each.

    Attributes
    ----------
    share, mean, error : ndarray of float64, shape (m, n)
        In standard errors of now.
    unit : ndarray of float64, shape (n,)
        Their own standard errors, in the same unit.
    """

    share: FloatArray
    mean: FloatArray
    error: FloatArray
    unit: FloatArray

    def decided(self, critical: float) -> FloatArray:
        """Return the chance of each difference to be beyond a critical value, shape (n,).

        On either side of 0; in standard errors of then.
        """
        size, needed = np.abs(self.mean), critical * self.unit
        near = size.max(axis=0, initial=0.0) < NEAR
        chance = (self.share * special.ndtr((size - needed) / self.error)).sum(axis=0)
        other = special.ndtr((-size[:, near] - needed[near]) / self.error[:, near])
        chance[near] += (self.share[:, near] * other).sum(axis=0)
        return np.asarray(chance)

    def within(self, size: FloatArray) -> FloatArray:
        """Return the chance of each difference to be at most as large as a size, shape (n,).

        In standard errors of now; 0 where the size is negative.
        """
        reach = np.maximum(size, 0.0)
        chance = special.ndtr((reach - self.mean) / self.error)
        chance -= special.ndtr((-reach - self.mean) / self.error)
        return np.asarray(np.where(size >= 0.0, (self.share * chance).sum(axis=0), 0.0))


def fit_spread(z: FloatArray) -> TrueSpread:
    """Fit how far true differences spread to observed ones, in standard errors.

    Parameters
    ----------
    z : ndarray of float64, shape (n,)
        Finite; signs do not matter. Without any, true differences are taken to spread by 1.

    Raises
    ------
    ValueError
        If a difference is not finite.

    Examples
    --------
    >>> by_chance = fit_spread(np.linspace(-2.0, 2.0, 100))
    >>> bool(by_chance.given(np.array([2.0]))[by_chance.width < 1.0].sum() > 0.9)
    True
    """
    refuse(~np.isfinite(z), z, name="z", rule="be finite")
    if not len(z):
        return TrueSpread(np.ones(1), np.ones(1))
    some = np.sort(np.abs(z))
    some = some[:: max(1, -(-len(some) // MOST_FITTED))]
    density = _log_densities(some, WIDTHS)
    density = np.exp(density - density.max(axis=0))
    share = np.full(len(WIDTHS), 1.0 / len(WIDTHS))
    for _ in range(SWEEPS):
        likely = share[:, None] * density
        likely /= likely.sum(axis=0)
        count = likely.sum(axis=1)
        count[0] += AT_ZERO
        share = count / count.sum()
    return TrueSpread(share, WIDTHS)


def _log_densities(z: FloatArray, width: FloatArray) -> FloatArray:
    """Logarithms of the densities of differences under each component, but for a constant."""
    variance = 1.0 + width[:, None] ** 2
    return np.asarray(-(z[None, :] ** 2) / (2.0 * variance) - np.log(variance) / 2.0)
