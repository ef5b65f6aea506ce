"""Further labels where they pay: how many assessors judge each pair, fixed before it is judged.

With r labels the mean of a pair has the variance s2 / r, and a sum over the sample counts it with
(w / pi)^2: an (r + 1)-th label takes c^2 / (r (r + 1)) off, c = w s / pi. So a budget of further
labels goes, one by one, to where that is largest; the rule takes all above a threshold, and where
several are just at it, chance decides. What s is before anybody has said anything follows from the
weight, or from a model that learned from *other* pairs (`rounds.overlap`).

Why this does not bias: the number of labels of a pair is fixed before its first label, from weights
and chances to be sampled, a model of other pairs, and random numbers of its own. Given all that,
labels are those of assessors at random, and E[mean of r labels] = v whatever r is; so sums of
w mean / pi are unbiased, as with the same r for all. A rule that looks at the pair's own labels
does not have that: where a second label is asked for only if the first is low, or a third only
where two disagree, E[mean | r] is no longer v, and the plain mean is biased. It can be made
unbiased, but hardly pays (docs/decisions/0076): with grades 0 and 1 and a third label where two
disagree, the only unbiased function of the counts is the mean of the first two.

Why the variance is known: s2_i is seen where a pair has two labels or more, with a known chance
q_i. With r labels then, and one otherwise, the mean has the variance s2 (q / r + 1 - q) on average,
and [two or more] s2_i (1 / r + (1 - q_i) / q_i) estimates just that (`labels.PairLabels.noise`);
what a grade lets one expect of pairs with one weighs s2_i by (1 - q_i) / q_i (`with_expected`). So
q must be above 0 everywhere: with one label for most pairs, a share of them gets another one by
chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    check_fraction,
    check_whole,
    pieces,
    refuse,
)
from .methods import LEAST_SHARE, MOST_FURTHER
from .random_numbers import label_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..data.pool import Pool

    Useful: TypeAlias = Callable[[], Iterable[tuple[FloatArray, FloatArray]]]
    """Gains and costs of further labels, as often as they are asked for, a piece after another."""

SAMPLED, AROUND = 10_000, 400  # gains of a sample, and places: four standard deviations of one
SAME = 1e-9  # gains that differ by less, relatively, are equal


@dataclass(frozen=True, eq=False)
class LabelPlan:
    """How many labels each of n pairs gets if it is sampled.

    Attributes
    ----------
    least : ndarray of int64, shape (n,)
        So many for certain, at least 1.
    more : ndarray of float64, shape (n,)
        The chance of one more.
    """

    least: IntArray
    more: FloatArray

    @property
    def expected(self) -> FloatArray:
        """Labels of each pair, on average, (n,)."""
        return self.least + self.more

    @property
    def repeated(self) -> FloatArray:
        """The chance of each pair to get two labels or more, (n,)."""
        return np.where(self.least >= 2, 1.0, self.more)

    def of(self, chosen: IntArray) -> LabelPlan:
        """Return the plan of some of the pairs."""
        return LabelPlan(self.least[chosen], self.more[chosen])

    def drawn(self, pool: Pool, *, seed: str, pairs: IntArray) -> IntArray:
        """Return the number of labels of n pairs of a pool, (n,); the same seed gives the same.

        The random numbers are independent of those that pairs are drawn by.
        """
        if len(pairs) != len(self.least):
            raise ValueError(f"pairs must be as many as in the plan, {len(self.least)}")
        numbers = label_numbers(pool, seed=seed, pairs=pairs)
        return self.least + (numbers < self.more).astype(np.int64)


def plan_labels(
    counts: FloatArray, chance: FloatArray, *, labels: int, share: float, further: float
) -> LabelPlan:
    """Spend further labels where they take most off the variance.

    Parameters
    ----------
    counts : ndarray of float64, shape (n,)
        For how much the error of a single label counts: w s / pi, in any unit, at least 0.
    chance : ndarray of float64, shape (n,)
        Of each pair to be sampled, from 0 to 1.
    labels : int
        That every pair gets.
    share : float
        Of pairs that get one more, from 0 to 1, on average. If `labels` is 1, it goes to pairs
        that get no further one otherwise, by chance, so that disagreement is seen everywhere.
    further : float
        Labels beyond these for each sampled pair, on average. With `labels` 1 and `further` above
        0, `share` is `LEAST_SHARE` at least.

    Returns
    -------
    LabelPlan
        Together sum chance (labels + share + further) labels are expected, or less, where no pair
        can have more.

    Raises
    ------
    ValueError
        If a number is out of range, or shapes differ.
    """
    _check(counts, chance, labels, share, further)
    floor = share if labels == 1 else 0.0
    steps = _Steps(counts, chance, labels, floor)
    sure, margin, part = steps.affordable((share + further - floor) * float(chance.sum()))
    least = sure
    least += labels
    more = np.where(least == labels, floor, 0.0)
    more[margin] = np.where(least[margin] == labels, floor + (1.0 - floor) * part, part)
    return LabelPlan(least, more)


@dataclass(frozen=True, eq=False)
class _Steps:
    """The further labels of n pairs, one after another: what each takes off the variance, and what
    it costs. Both are worked out piece by piece, as often as they are looked at.

    Gains fall from step to step of a pair, so that it takes its steps in their order.
    """

    counts: FloatArray
    chance: FloatArray
    labels: int
    floor: float

    def pieces(self) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Yield gains and costs, (pairs, steps) each, of some pairs after others."""
        steps = np.arange(self.labels, self.labels + MOST_FURTHER)
        for piece in pieces(len(self.counts)):
            gain = (self.counts[piece, None] ** 2) / (steps * (steps + 1.0))
            cost = np.broadcast_to(self.chance[piece, None], gain.shape).copy()
            cost[:, 0] *= 1.0 - self.floor  # it would have had one by chance
            yield piece, gain, cost

    def useful(self) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Yield gains and costs of the steps that gain something, (m,) each."""
        for _, gain, cost in self.pieces():
            some = (gain > 0.0) & (cost > 0.0)
            yield gain[some], cost[some]

    def affordable(self, budget: float) -> tuple[IntArray, BoolArray, float]:
        """How many steps each pair surely takes, whose next one is just at the threshold, and with
        what chance."""
        pairs = len(self.counts)
        number, margin = np.zeros(pairs, dtype=np.int64), np.zeros(pairs, dtype=np.bool_)
        if budget <= 0.0:
            return number, margin, 0.0
        if (last := _last_taken(self.useful, budget, most=pairs * MOST_FURTHER)) is None:
            for piece, gain, cost in self.pieces():
                number[piece] = ((gain > 0.0) & (cost > 0.0)).sum(axis=1)
            return number, margin, 0.0
        of_sure, of_margin = _Filled(pairs * MOST_FURTHER), _Filled(pairs * MOST_FURTHER)
        for piece, gain, cost in self.pieces():
            sure = (gain > last * (1.0 + SAME)) & (cost > 0.0)
            at_it = (gain <= last * (1.0 + SAME)) & (gain >= last * (1.0 - SAME)) & (cost > 0.0)
            number[piece], margin[piece] = sure.sum(axis=1), at_it.any(axis=1)
            of_sure.append(cost[sure])
            of_margin.append(cost[at_it])
        left = budget - float(of_sure.array.sum())
        return number, margin, min(1.0, max(0.0, left / float(of_margin.array.sum())))


class _Filled:
    """An array that is filled from the first to the last: of what is not, no memory is taken."""

    def __init__(self, most: int) -> None:
        self._room, self._end = np.empty(most), 0

    def append(self, numbers: FloatArray) -> None:
        """Put more numbers behind those that are there."""
        self._room[self._end : self._end + len(numbers)] = numbers
        self._end += len(numbers)

    @property
    def array(self) -> FloatArray:
        """All numbers; summed up in one go, so that the bits do not depend on pieces."""
        return self._room[: self._end]


def _last_taken(useful: Useful, budget: float, *, most: int) -> float | None:
    """The gain at which a budget is spent, the largest gains first; None if it pays for all of at
    most so many.

    A sample tells two gains between which it lies; what the larger ones cost proves it, and
    only those between are put in order. Where it proves nothing, all are.
    """
    gains, costs, whole = _looked_at(useful, budget, most, every=1 + most // SAMPLED)
    if not len(gains) or whole <= budget:
        return None
    high, low = _around(gains, costs, budget / whole)
    before, gains, costs = _between(useful, low, high, most)
    if not before < budget <= before + float(costs.sum()):
        before, gains, costs = _between(useful, -np.inf, np.inf, most)
    order = np.argsort(-gains, kind="stable")
    place = int(np.searchsorted(before + np.cumsum(costs[order]), budget))
    return float(gains[order[min(place, len(order) - 1)]])


def _looked_at(
    useful: Useful, budget: float, most: int, *, every: int
) -> tuple[FloatArray, FloatArray, float]:
    """Gains and costs of the first step, and of every so many after it; and what all cost, in one
    sum where that is near the budget."""
    gains, costs, ahead, whole = _Filled(most), _Filled(most), 0, 0.0
    for gain, cost in useful():
        gains.append(gain[ahead::every])
        costs.append(cost[ahead::every])
        ahead = (ahead - len(gain)) % every
        whole += float(cost.sum())
    if abs(whole - budget) <= SAME * budget:
        whole, _, _ = _between(useful, -np.inf, -np.inf, most)  # all have larger gains
    return gains.array, costs.array, whole


def _between(
    useful: Useful, low: float, high: float, most: int
) -> tuple[float, FloatArray, FloatArray]:
    """What steps of larger gains cost, and the gains and costs of those between."""
    before, gains, costs = _Filled(most), _Filled(most), _Filled(most)
    for gain, cost in useful():
        before.append(cost[gain > high])
        some = (gain <= high) & (gain >= low)
        gains.append(gain[some])
        costs.append(cost[some])
    return float(before.array.sum()), gains.array, costs.array


def _around(gains: FloatArray, costs: FloatArray, share: float) -> tuple[float, float]:
    """Two gains of a sample, some places before and after where it has spent this share."""
    order = np.argsort(-gains, kind="stable")
    spent = np.cumsum(costs[order])
    place = int(np.searchsorted(spent, share * spent[-1]))
    first, last = max(0, place - AROUND), min(len(order) - 1, place + AROUND)
    high = np.inf if place < AROUND else float(gains[order[first]])
    low = 0.0 if place + AROUND >= len(order) else float(gains[order[last]])
    return high, low


def _check(
    counts: FloatArray, chance: FloatArray, labels: int, share: float, further: float
) -> None:
    check_whole(labels, name="labels")
    check_fraction(share, name="share")
    if not 0.0 <= further <= MOST_FURTHER:
        raise ValueError(f"further must be from 0 to {MOST_FURTHER}, not {further!r}")
    if labels == 1 and further > 0.0 and share < LEAST_SHARE:
        raise ValueError(f"share must be at least {LEAST_SHARE} with further labels, not {share!r}")
    if counts.shape != chance.shape or counts.ndim != 1:
        raise ValueError(f"counts and chance have the shapes {counts.shape} and {chance.shape}")
    wrong = ~(np.isfinite(counts) & (counts >= 0.0))
    refuse(wrong, counts, name="counts", rule="be finite and at least 0")
    refuse(~((chance >= 0.0) & (chance <= 1.0)), chance, name="chance", rule="lie in [0, 1]")
