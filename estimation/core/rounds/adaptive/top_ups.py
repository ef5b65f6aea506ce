"""Adaptive rounds that add to what is judged: what they draw, and what they start from (`past`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import divided, frozen
from ...sampling.probabilities import poisson_thresholds
from ...sampling.top_up import beside_judged, top_up
from .past import LEFT, EarlierSums, Past, number_of_products, products_of
from .sampled import planned_alone
from .sampling import Chances
from .state import walk

if TYPE_CHECKING:
    from ...arrays import FloatArray, IntArray
    from ...data.scope import Scope
    from ...sampling.designs import Design
    from .frame import AdaptiveFrame
    from .sampling import DrawnBatch
    from .state import AdaptivePlan, AdaptiveState

EXTENSIONS = 1.0625, 1.25, 2.0, 5.0
"""Times the budget of an earlier round that its shares are made for: a top-up of a sixteenth or a
quarter, as much again, or four times as much, whichever is nearest to what is asked for. With like
pairs errors are then at most 1.06 times those by shares for the very budget, from a sixteenth to
four times as much; shares for that would hang on what people were told."""
NOTHING = 1e-9  # of a budget that is overspent


def topped_up(plan: AdaptivePlan, past: Past) -> AdaptivePlan:
    """Return a plan as if nothing was judged as one whose budget is for new pairs.

    Raises
    ------
    DesignError
        If nothing is left to draw.
    """
    judged = np.zeros(len(plan.design.size))
    judged[past.judged] = 1.0
    design = top_up(plan.design, judged, costs=plan.costs).own(alone=False, costs=plan.costs)
    return replace(plan, design=design, past=past)


def unlearned(plan: AdaptivePlan) -> Design:
    """Return what is drawn if nothing is learned, together with what was there before."""
    if plan.past is None:
        return plan.design
    earlier = plan.past.planned.copy()
    earlier[plan.past.judged] = 1.0
    return beside_judged(plan.design, earlier)


def continued(
    scope: Scope, frame: AdaptiveFrame, state: AdaptiveState, judged: IntArray, *, budget: float
) -> Past:
    """Return what a round over a grown pool starts from that continues an adaptive one.

    Parameters
    ----------
    scope : Scope
        Of the grown pool, and the one that the earlier round was drawn from.
    frame, state : AdaptiveFrame, AdaptiveState
        Of the earlier round, its complete batches alone.
    judged : ndarray of int64, shape (n,)
        All judged pairs of the grown pool, ascending: those of the earlier round, and others.
    budget : float
        Of the round that continues it, as it was asked for; only which of `EXTENSIONS` it is near
        to has a part in the shares.

    Raises
    ------
    ValueError
        If the earlier round drew pairs of a topic together.
    """
    if frame.topic_minimum > 1.0:
        raise ValueError("rounds that draw pairs of a topic together are not continued")
    summed = _Summed(frame, extended(budget / frame.design.budget))
    for passed in walk(frame, state):
        summed.add(passed)
    left = scope.spread(summed.left, LEFT)
    planned = scope.spread(planned_alone(frame, state).inclusion)
    planned[judged[planned[judged] == 0.0]] = 1.0
    own = scope.marked(summed.drawn)[judged]
    on_label = np.where(own, scope.spread(summed.on_label)[judged], left[judged])
    sums = EarlierSums(
        spread=scope.spread(summed.spread),
        once=scope.spread(summed.once),
        cubes=scope.spread(summed.cubes),
        shared=_spread(scope, summed.shared),
        moved=_spread(scope, summed.moved),
        products=_spread(scope, summed.products),
        on_label=on_label,
        on_find=scope.spread(summed.on_find)[judged],
        chance=scope.spread(summed.chance, 1.0)[judged],
        reached=_spread(scope, summed.reached)[:, judged],
    )
    return Past(frozen(judged), frozen(left), frozen(planned), sums)


def extended(more: float) -> float:
    """Return how many times the budget shares are made for, if so many budgets more are asked for.

    >>> extended(0.1), extended(0.2), extended(0.7), extended(10.0)
    (1.0625, 1.25, 2.0, 5.0)
    """
    return min(EXTENSIONS, key=lambda each: abs(np.log((each - 1.0) / more)))


def _spread(scope: Scope, found: FloatArray) -> FloatArray:
    return np.stack([scope.spread(each) for each in found])


class _Summed:
    """What the batches of a round count each pair of its pool for, as part of a longer one."""

    def __init__(self, frame: AdaptiveFrame, ends: float) -> None:
        pairs, levels = len(frame.pool), len(frame.levels)
        self._frame, self._ends, self._spent = frame, ends * frame.design.budget, 0.0
        self.left = np.ones(pairs)
        self.spread, self.once, self.cubes, self.on_label, self.on_find = np.zeros((5, pairs))
        self.chance, self.drawn = np.ones(pairs), np.zeros(pairs, dtype=np.bool_)
        self.shared, self.moved, self.reached = np.zeros((3, levels, pairs))
        self.products = np.zeros((number_of_products(levels), pairs))
        if (before := frame.past) is not None:
            self._begin(before)

    def _begin(self, before: Past) -> None:
        at, sums = before.judged, before.sums_of(len(self._frame.levels))
        self.left[:] = before.left
        self.drawn[at] = True
        for name in ("spread", "once", "cubes", "shared", "moved", "products"):
            getattr(self, name)[...] = getattr(sums, name)
        for name in ("on_label", "on_find", "chance", "reached"):
            getattr(self, name)[..., at] = getattr(sums, name)

    def add(self, passed: DrawnBatch) -> None:
        """Add a batch, with the share that it has in a sample that is continued."""
        at, chances = self._frame.at, self._chances(passed)
        chance = chances.by(0)
        share = chances.share(passed.number, self.left[at], 1)
        self.left[at] -= share
        weight = divided(share, chance, chance > 0.0)
        once = share * (1.0 - chance)
        self.once[at] += once
        self.spread[at] += once * weight
        self.cubes[at] += once * weight**2
        drawn = at[passed.drawn]
        self.drawn[drawn] = True
        self.on_find[drawn] = weight[passed.drawn]
        self.on_label[drawn] = weight[passed.drawn] + self.left[drawn]
        self.chance[drawn] = chance[passed.drawn]
        if passed.step.model is not None:
            reached = self._frame.reached(passed.step.model)
            self.shared[:, at] += share * reached
            self.moved[:, at] += once * weight * reached
            self.products[:, at] += once * weight * products_of(reached)
            self.reached[:, drawn] = reached[:, passed.drawn]

    def _chances(self, passed: DrawnBatch) -> Chances:
        """Those of a batch, and with which more than the budget would be spent."""
        frame, size = self._frame, passed.chances.size
        now, *_, last = np.append(passed.chances.constants[:1], passed.chances.constants).tolist()
        if size.any():
            costs = None if frame.costs is None else frame.costs[frame.at]
            wanted = np.array([self._ends - self._spent])
            more = poisson_thresholds(size, targets=np.maximum(wanted, NOTHING), costs=costs)
            last = max(last, float(more[0]))
        self._spent += frame.cost_of(frame.at[passed.drawn])
        return Chances(size, frozen(np.array([now, last])))
