"""From sizes to probabilities: of being drawn, and the constant with which sizes make a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..arrays import FloatArray

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
    falling, cost = _falling(size, costs)
    spent = np.concatenate([[0.0], np.cumsum(cost)])
    certain = spent[:-1]  # cost of the pairs larger than the s-th
    rest = np.cumsum((cost * falling)[::-1])[::-1]  # what c multiplies when those are certain
    reached = certain + rest / falling  # the expected cost at which the s-th becomes certain
    saturated = np.searchsorted(reached, targets, side="right")
    inside = np.minimum(saturated, len(falling) - 1)
    constants = (targets - certain[inside]) / rest[inside]
    # Rounding must not pull the constant below the one that makes the certain pairs certain.
    constants = np.maximum(constants, np.append(0.0, 1.0 / falling)[inside])
    whole = spent[-1] * (1.0 - ROUNDING)  # costs may sum to a little less in another order
    return np.where(targets >= whole, np.inf, constants)


def _falling(size: FloatArray, costs: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the positive sizes from the largest down, and their costs."""
    positive = size[size > 0.0]
    if costs is None:  # sorting numbers is many times as fast as finding their order
        return np.sort(positive)[::-1], np.ones(len(positive))
    order = np.argsort(positive, kind="stable")[::-1]
    return positive[order], costs[size > 0.0][order]
