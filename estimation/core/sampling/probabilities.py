"""From sizes to probabilities: of being drawn, and the constant with which sizes make a budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import pieces

if TYPE_CHECKING:
    from ..arrays import FloatArray

APART = 1 << 12  # sizes in order, between sums that are kept
ROUNDING = 1e-9  # share by which a budget may exceed a sum of costs


def poisson_probabilities(size: FloatArray, *, constant: float) -> FloatArray:
    """Return min(1, c * size); 0 exactly where the size is 0, also for an infinite c.

    Sizes are at least 0.
    """
    if np.isfinite(constant):
        chance = constant * size
        return np.minimum(1.0, chance, out=chance)
    with np.errstate(invalid="ignore"):
        return np.where(size > 0.0, np.minimum(1.0, constant * size), 0.0)


def drawn_probabilities(chance: FloatArray, *, draws: float) -> FloatArray:
    """Return 1 - (1 - Q)^n, the probability to be among n draws with replacement."""
    possible = np.flatnonzero((chance > 0.0) & (draws > 0.0))  # what is certain is not in 0 draws
    absent = -np.minimum(chance[possible], 1.0)
    with np.errstate(divide="ignore"):
        np.log1p(absent, out=absent)
    absent *= draws
    probability = np.zeros_like(chance)
    probability[possible] = -np.expm1(absent, out=absent)
    return probability


def poisson_thresholds(
    size: FloatArray, *, targets: FloatArray, costs: FloatArray | None = None
) -> FloatArray:
    """Solve sum_i cost_i min(1, c * size_i) = target for c, for each of B targets > 0.

    Sizes are relative, at least one of them positive; by default every pair costs 1. A constant is
    infinite where its target reaches the cost of all positive sizes.
    """
    return FallingSizes.of(size, costs).constants(targets)


@dataclass(frozen=True, eq=False)
class FallingSizes:
    """The n positive sizes in order, and what constants follow from: for many targets.

    Attributes
    ----------
    falling : ndarray of float64, shape (n,)
        From the largest down.
    reached : ndarray of float64, shape (n,)
        The expected cost at which each becomes certain.
    cost, certain : ndarray of float64, shape (n,), or None
        What each costs, and what those before it do; None where every pair costs 1.
    rests : ndarray of float64
        Sums of cost times size from the smallest up, after every `APART` of them.
    whole : float
        What all cost.
    """

    falling: FloatArray
    reached: FloatArray
    cost: FloatArray | None
    certain: FloatArray | None
    rests: FloatArray
    whole: float

    @classmethod
    def of(cls, size: FloatArray, costs: FloatArray | None) -> FallingSizes:
        """Put sizes, (N,), in order; `costs`, (N,), are by default 1."""
        rising, cost, certain = size[size > 0.0], None, None
        whole = float(len(rising))
        if costs is None:  # sorting numbers is many times as fast as finding their order
            rising.sort()
            rest = np.cumsum(rising)
        else:
            order = np.argsort(rising, kind="stable")
            rising, cost = rising[order], costs[size > 0.0][order][::-1]
            rest = np.cumsum(cost[::-1] * rising)
            spent = np.cumsum(cost)
            certain, whole = np.append(0.0, spent[:-1]), float(spent[-1])
        falling, rests = rising[::-1], rest[APART - 1 :: APART].copy()
        reached = np.divide(rest[::-1], falling, out=rest[::-1])
        if certain is None:
            for piece in pieces(len(reached)):
                reached[piece] += np.arange(piece.start, min(piece.stop, len(reached)))
        else:
            reached += certain
        return cls(falling, np.ascontiguousarray(reached), cost, certain, rests, whole)

    def constants(self, targets: FloatArray) -> FloatArray:
        """Return the constant of each of B targets; see `poisson_thresholds`."""
        saturated = np.searchsorted(self.reached, targets, side="right")
        inside = np.minimum(saturated, len(self.falling) - 1)
        certain = inside if self.certain is None else self.certain[inside]
        constants = (targets - certain) / np.array([self._rest(at) for at in inside.tolist()])
        # Rounding must not pull the constant below the one that makes the certain pairs certain.
        least = np.where(inside > 0, 1.0 / self.falling[np.maximum(inside - 1, 0)], 0.0)
        whole = self.whole * (1.0 - ROUNDING)  # costs may sum to a little less in another order
        return np.where(targets >= whole, np.inf, np.maximum(constants, least))

    def _rest(self, first: int) -> float:
        """The sum of cost times size from one pair on, from the smallest up: what c multiplies when
        those before it are certain."""
        known = (len(self.falling) - first) // APART
        some = slice(first, len(self.falling) - known * APART)
        sizes = self.falling[some] if self.cost is None else self.cost[some] * self.falling[some]
        before = [self.rests[known - 1]] if known else []
        return float(np.cumsum(np.append(before, sizes[::-1]))[-1])
