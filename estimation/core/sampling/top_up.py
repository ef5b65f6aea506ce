"""Top-ups: Poisson rounds that add to what was drawn before, where that says least.

Runs join a campaign after a round was drawn and judged. A further round that looks at the grown
pool as if nothing had been judged spends much of its budget where the old sample is as good as it
need be. A top-up knows the probability P_i with which every pair is in the sample so far, of the
union of earlier Poisson rounds, or 1 of pairs that are judged and 0 of all others. To judge a pair
again costs nothing, so that what is paid for pair i is cost_i (1 - P_i) p_i, if p_i is its
probability in the new round and that draws with random numbers of its own. Pair i is then in the
union with the probability pi_i = P_i + (1 - P_i) p_i, and is paid for with pi_i - P_i. So the least
sum_i a_i^2 s2_i / pi_i that a budget buys has

    pi_i = max(P_i, min(1, kappa a_i sqrt(s2_i / cost_i))),    p_i = (pi_i - P_i) / (1 - P_i),

kappa being what spends the budget (Lagrange): the sizes a_i sqrt(s2_i / cost_i) are those of any
design, and what is drawn fills up to them.

Why this biases nothing. P, p and kappa follow from earlier *designs*, from pool, prior and goal:
neither from grades nor from which pairs were drawn. So the union is a Poisson sample with the
probabilities pi, and Horvitz and Thompson's estimator is unbiased with its usual variance. Where P
is 1 for judged pairs and 0 for others, it does follow from what was drawn and found before, in
whatever way; but given all that, the new sample takes judged pairs with probability 1 and each
other one with its p_i, so that the estimate is unbiased given the past, whatever it was.

What would be biased: probabilities that follow from which pairs earlier rounds happened to draw,
used in a union with these rounds as if they had been fixed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import BoolArray, FloatArray, frozen, refuse
from .designs import Design, DesignError, cumulative
from .methods import with_option
from .probabilities import ROUNDING, poisson_probabilities, poisson_thresholds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..arrays import IntArray

NEXT_TO_NOTHING = 1e-9  # a chance that is not worth adding to one that there is
SURELY = 2.0  # times what makes a pair certain, so that rounding does not make it less


@dataclass(frozen=True, eq=False, repr=False)
class Union(Design):
    """What earlier Poisson rounds and a further one will be together: for planning alone.

    As in `Design`, but probabilities, `inclusion`, are those of the union, and what is new, and
    takes work, is what was not there before.

    Attributes
    ----------
    earlier : ndarray of float64, shape (N,)
        P_i, the probability of each pair to be in the sample so far.
    """

    earlier: FloatArray = field(default_factory=lambda: frozen(np.zeros(0)))

    @property
    def eligible(self) -> BoolArray:
        """Which pairs are, or can come, into the union, shape (N,)."""
        return np.asarray((self.size > 0.0) | (self.earlier > 0.0))

    def of(self, pairs: slice | IntArray) -> Design:
        """Return the same of some pairs alone, with their earlier chances."""
        return replace(self, size=self.size[pairs], belief=None, earlier=self.earlier[pairs])

    @property
    def payable(self) -> FloatArray:
        """1 for pairs that can be drawn: draws of pairs that are there are paid for, shape (N,)."""
        return (self.size > 0.0).astype(np.float64)

    @property
    def expected_pairs(self) -> float:
        """The number of pairs that are expected to be new."""
        return float(self.new_after(self.step()).sum())

    def inclusion_after(self, step: float) -> FloatArray:
        """Return P + (1 - P) min(1, c size), the probability to be in the union."""
        drawn = poisson_probabilities(self.size, constant=step)
        return self.earlier + (1.0 - self.earlier) * drawn

    def new_after(self, step: float) -> FloatArray:
        """Return the probability that each pair is drawn and was not before."""
        return self.inclusion_after(step) - self.earlier

    def own(self, *, alone: bool, costs: FloatArray | None = None) -> Design:
        """Return the design of the further round: here the one that the union was made of."""
        del alone, costs
        return Design(**_plain(self))


@dataclass(frozen=True, eq=False, repr=False)
class TopUp(Union):
    """The union of earlier rounds and a top-up: for planning; `own` is what is drawn.

    `size` are the sizes that probabilities are filled up to, and steps are the kappa of each
    batch's budget.
    """

    @property
    def payable(self) -> FloatArray:
        """How likely each pair is not to be there before, if it can be drawn, shape (N,)."""
        return np.where(self.size > 0.0, 1.0 - self.earlier, 0.0)

    def inclusion_after(self, step: float) -> FloatArray:
        """Return max(P, min(1, kappa size)), the probability to be in the union."""
        filled = poisson_probabilities(self.size, constant=step)
        return np.asarray(np.maximum(self.earlier, filled))

    def steps_for(self, budgets: Sequence[float], *, costs: FloatArray | None = None) -> FloatArray:
        """Return the kappa that budgets of new pairs pay for, shape (B,)."""
        targets = np.asarray(budgets, dtype=np.float64)
        return filling_constants(self.size, earlier=self.earlier, targets=targets, costs=costs)

    def own(self, *, alone: bool, costs: FloatArray | None = None) -> Design:
        """Return the design of the new round: Poisson sampling with the probabilities p.

        Every prefix of batches is a Poisson sample; p is reached with the last.

        Parameters
        ----------
        alone : bool
            Whether it is estimated without the earlier rounds. Pairs that these hold for certain
            are then in it for certain, from the first batch on, where they cost nothing.
            Otherwise they are left to them.
        costs : ndarray of float64, shape (N,), optional
            Those that the top-up was made with.
        """
        before = self.earlier
        size = self._own_sizes()
        each = 1.0 - before if costs is None else costs * (1.0 - before)
        steps = self._own_steps(size, each)
        if alone:
            size[before >= 1.0] = SURELY / min(steps[0], 1.0)
        total = size.sum()
        drawn = {"size": frozen(size / total), "steps": frozen(steps * total)}
        return Design(**_plain(self) | drawn)

    def _own_sizes(self) -> FloatArray:
        """The p themselves; above 1 for certain pairs, so that the more they matter, the sooner
        they come. Where all are certain, any sizes do: those of the design."""
        last, before = self.step(), self.earlier
        if np.isinf(last):
            return np.where(before < 1.0, self.size, 0.0)
        chance = np.where(before < 1.0, self.new_after(last) / np.maximum(1.0 - before, 1e-300), 0)
        chance[(before > 0.0) & (chance < NEXT_TO_NOTHING)] = 0.0
        return np.where(chance < 1.0, chance, np.maximum(self.size * last, 1.0))

    def _own_steps(self, size: FloatArray, costs: FloatArray) -> FloatArray:
        """Constants that spend what the batches may, the last being the one that gives p."""
        targets = self.spending[: self.batches]
        steps = poisson_thresholds(size, targets=targets, costs=costs)
        steps[-1] = np.inf if np.isinf(self.steps[-1]) else 1.0
        return steps


@dataclass(frozen=True, eq=False, repr=False)
class BesideJudged(Union):
    """The union of what was there before and a round that has it for certain: for planning alone.

    `earlier` is 1 of judged pairs, of which the round's design has no size. What is paid for are
    the others, as often as the round draws them.
    """

    def new_after(self, step: float) -> FloatArray:
        """Return the probability that each pair is drawn and was not judged before."""
        return poisson_probabilities(self.size, constant=step)


def beside_judged(design: Design, earlier: FloatArray) -> BesideJudged:
    """Say what a design makes of judged pairs, of which it has no size, and of earlier chances.

    Raises
    ------
    ValueError
        If `earlier` does not hold a probability for every pair.
    """
    return BesideJudged(**_plain(design), earlier=_checked(design, earlier))


def beside(design: Design, earlier: FloatArray) -> Union:
    """Say what a Poisson design makes of earlier rounds with random numbers of their own.

    Parameters and errors are those of `top_up`. The design is drawn as it is.
    """
    return Union(**_plain(design), earlier=_checked(design, earlier))


def top_up(design: Design, earlier: FloatArray, *, costs: FloatArray | None = None) -> TopUp:
    """Make a top-up of a Poisson design for the whole pool.

    Parameters
    ----------
    design : Design
        By ``poisson``, as if nothing had been drawn; its budget is now for new pairs.
    earlier : ndarray of float64, shape (N,)
        P_i from 0 to 1. It must not follow from which pairs were drawn, unless it is 1 for all
        that are judged and 0 for all others, and the round is estimated alone.
    costs : ndarray of float64, shape (N,), optional
        Those that the design was made with.

    Raises
    ------
    DesignError
        If the design is not by ``poisson``, or `earlier` leaves nothing to draw.
    ValueError
        If `earlier` does not hold a probability for every pair.
    """
    plan = TopUp(**_plain(design), earlier=_checked(design, earlier))
    whole = float(plan.payable.sum() if costs is None else (plan.payable * costs).sum())
    if whole <= 0.0:
        raise DesignError("Everything that can be sampled is judged already: nothing is left.")
    spent = cumulative(min(design.budget, whole), design.batch_size)
    return replace(plan, steps=frozen(plan.steps_for(spent.tolist(), costs=costs)))


def _plain(design: Design) -> dict[str, Any]:
    return {one.name: getattr(design, one.name) for one in fields(Design)}


def _checked(design: Design, earlier: FloatArray) -> FloatArray:
    if design.method not in (able := with_option("top_up")):
        listed = ", ".join(able)
        raise DesignError(f"Only rounds by {listed} add to earlier ones, not {design.method!r}.")
    if earlier.shape != design.size.shape:
        found = f"{earlier.shape}, not {design.size.shape}"
        raise ValueError(f"earlier must hold a probability for every pair: {found}")
    wrong = ~((earlier >= 0.0) & (earlier <= 1.0))
    refuse(wrong, earlier, name="earlier", rule="be a probability")
    return frozen(earlier)


def filling_constants(
    size: FloatArray,
    *,
    earlier: FloatArray,
    targets: FloatArray,
    costs: FloatArray | None = None,
) -> FloatArray:
    """Solve sum_i cost_i (max(P_i, min(1, kappa size_i)) - P_i) = target, for each of B targets.

    What is spent rises in straight lines: pair i takes part from kappa = P_i / size_i on, up to
    1 / size_i. Between the two nearest of these points, kappa is what spends the rest.

    Parameters
    ----------
    size : ndarray of float64, shape (N,)
        At least 0, at least one of them positive.
    earlier : ndarray of float64, shape (N,)
        P_i from 0 to 1.
    targets : ndarray of float64, shape (B,)
        Each > 0.
    costs : ndarray of float64, shape (N,), optional
        By default 1 each.

    Returns
    -------
    ndarray of float64, shape (B,)
        Infinite where a target reaches what all pairs with a size cost.
    """
    open_pairs = np.flatnonzero((size > 0.0) & (earlier < 1.0))
    size, before = size[open_pairs], earlier[open_pairs]
    cost = np.ones(len(size)) if costs is None else costs[open_pairs]
    points = np.concatenate([before / size, 1.0 / size])
    order = np.argsort(points, kind="stable")
    points, rates = points[order], np.concatenate([cost * size, -cost * size])[order]
    rate = np.maximum(np.cumsum(rates), 0.0)
    spent = np.concatenate([[0.0], np.cumsum(rate[:-1] * np.diff(points))])
    whole = float((cost * (1.0 - before)).sum()) * (1.0 - ROUNDING)
    found = np.empty(len(targets))
    for at, target in enumerate(targets.tolist()):
        place = int(np.searchsorted(spent[1:-1], target, side="right"))
        line = float(points[place]), float(points[place + 1])
        found[at] = np.inf if target >= whole else _on_line(size, before, cost, target, line)
    return found


def _on_line(
    size: FloatArray,
    before: FloatArray,
    cost: FloatArray,
    target: float,
    line: tuple[float, float],
) -> float:
    """The kappa that spends a target, between two points: sums over pairs, not over points."""
    low, high = line
    filled = (low + high) / 2.0 * size
    taking, sure = (filled > before) & (filled < 1.0), filled >= 1.0
    rate = float((cost * size)[taking].sum())
    if rate <= 0.0:
        return high
    rest = target - float((cost * (1.0 - before))[sure].sum())
    return min(max((rest + float((cost * before)[taking].sum())) / rate, low), high)
