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
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, check_fraction, check_whole, refuse
from .methods import LEAST_SHARE, MOST_FURTHER
from .random_numbers import label_numbers

if TYPE_CHECKING:
    from ..data.pool import Pool

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
    budget = (share + further - floor) * float(chance.sum())
    steps = np.arange(labels, labels + MOST_FURTHER)
    gain = (counts[:, None] ** 2) / (steps * (steps + 1.0))
    cost = np.broadcast_to(chance[:, None], gain.shape).copy()
    cost[:, 0] *= 1.0 - floor  # it would have had one by chance
    sure, margin, part = _affordable(gain, cost, budget)
    least = labels + sure.sum(axis=1)
    more = np.where(least == labels, floor, 0.0)
    more[margin] = np.where(least[margin] == labels, floor + (1.0 - floor) * part, part)
    return LabelPlan(least.astype(np.int64), more)


def _affordable(
    gain: FloatArray, cost: FloatArray, budget: float
) -> tuple[BoolArray, BoolArray, float]:
    """Which steps are surely taken, whose next one is just at the threshold, and with what chance.

    Gains fall from step to step of a pair, so that it takes its steps in their order.
    """
    nobody = np.zeros(len(gain), dtype=np.bool_)
    if budget <= 0.0:
        return np.zeros(gain.shape, dtype=np.bool_), nobody, 0.0
    useful = (gain > 0.0) & (cost > 0.0)
    gains, costs = gain[useful], cost[useful]
    if not len(gains) or float(costs.sum()) <= budget:
        return np.asarray(useful), nobody, 0.0
    last = _last_taken(gains, costs, budget)
    sure = (gain > last * (1.0 + SAME)) & (cost > 0.0)
    at_it = (gain <= last * (1.0 + SAME)) & (gain >= last * (1.0 - SAME)) & (cost > 0.0)
    left = budget - float(cost[sure].sum())
    part = min(1.0, max(0.0, left / float(cost[at_it].sum())))
    return np.asarray(sure), np.asarray(at_it.any(axis=1)), part


def _last_taken(gains: FloatArray, costs: FloatArray, budget: float) -> float:
    """The gain at which a budget below the sum of costs is spent, the largest gains first.

    A sample tells two gains between which it lies; what the larger ones cost proves it, and only
    those between are put in order. Where it proves nothing, all are.
    """
    some = slice(None, None, 1 + len(gains) // SAMPLED)
    high, low = _around(gains[some], costs[some], budget / float(costs.sum()))
    before = float(costs[gains > high].sum())
    between = np.flatnonzero((gains <= high) & (gains >= low))
    if not before < budget <= before + float(costs[between].sum()):
        before, between = 0.0, np.arange(len(gains))
    order = between[np.argsort(-gains[between], kind="stable")]
    place = int(np.searchsorted(before + np.cumsum(costs[order]), budget))
    return float(gains[order[min(place, len(order) - 1)]])


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
