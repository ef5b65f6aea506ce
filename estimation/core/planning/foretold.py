"""What is foretold of a round, and what to make of it.

The rule in words, for the best run, for the ranking and for any two runs: *decided* when it is so
now; *equivalent* when it is so but for differences that do not matter; *go on* when it is foretold,
with even chances, to be one of these within the budget; else *out of reach* with this budget, with
the number of pairs that it would take where the pool has so many.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..tables import Columns, Tabled

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..arrays import FloatArray

SELDOM = 0.1  # chance below which something is not reckoned with
LIKELY = 0.5  # chance from which on something is foretold to be decided
MOST = 0.9  # share of the differences whose verdicts make a ranking decided
State = Literal["decided", "equivalent", "go on", "out of reach"]
NEVER = -1.0  # in place of a number of pairs: none that can be judged is foretold to do


@dataclass(frozen=True)
class Prospect:
    """Whether something is decided, or will be.

    Attributes
    ----------
    state : {"decided", "equivalent", "go on", "out of reach"}
    more : float or None
        Pairs that are to be judged until it is; None where no number of pairs is foretold to do.
    least, most : float or None
        The same with a chance of one in ten that fewer will do, and that more are needed. Of the
        best run only; None as before.
    chance : float or None
        That it is so within the budget. Of the best run only; None where no batch is left.
    """

    state: State
    more: float | None
    least: float | None = None
    most: float | None = None
    chance: float | None = None


@dataclass(frozen=True)
class Foretold:
    """What is expected after some more judgments.

    Attributes
    ----------
    batches : int or None
        Complete batches then; None beyond the budget.
    pairs : float
        Distinct pairs that are judged then, as expected.
    half_width : float
        Of the middle run, in the measure's unit: the longer side of an interval.
    decided : float
        Of the differences between two runs: how many have a verdict.
    best : float
        Chance that one run has surely been better than all others by then, at some look.
    settled : float or None
        How many differences have a verdict or do not matter; None where all differences do.
    enough : float or None
        Chance that one run has surely been at most negligibly worse than any other one; None as
        before.
    """

    batches: int | None
    pairs: float
    half_width: float
    decided: float
    best: float
    settled: float | None = None
    enough: float | None = None

    @property
    def known(self) -> float:
        """Chance that the best run is known by then, or one that is as good as the best."""
        return self.best if self.enough is None else self.enough


@dataclass(frozen=True, repr=False)
class Forecast(Tabled):
    """What later batches are expected to bring, under one measure.

    Attributes
    ----------
    batches : int
        Batches whose judgments it rests on.
    differences : int
        Between two runs.
    steps : tuple of Foretold
        The present first, then batch ends up to the budget, then budgets beyond it up to all that
        can be judged.
    until : ndarray of float64, shape (k, k), or None
        For every two runs, how many pairs are judged when they are told apart, or their difference
        does not matter, with even chances; `NEVER` where nothing that can be judged does it. It is
        none of the `facts`.
    """

    batches: int
    differences: int
    steps: tuple[Foretold, ...]
    until: FloatArray | None = field(default=None, compare=False)

    @property
    def caption(self) -> str:
        """What it rests on."""
        return f"foretold after batch {self.batches}"

    def columns(self) -> Columns:
        """Return a row for every step."""
        return {
            "pairs": [each.pairs for each in self.steps],
            "half width": [each.half_width for each in self.steps],
            "decided": [each.decided for each in self.steps],
            "best decided": [each.best for each in self.steps],
        }

    def facts(self) -> dict[str, Any]:
        """Return it in plain values; `of_facts` gives it back."""
        return {
            "batches": self.batches,
            "differences": self.differences,
            "steps": [dict(vars(each)) for each in self.steps],
        }

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> Forecast:
        """Read what `facts` gave."""
        steps = tuple(Foretold(**each) for each in facts["steps"])
        return cls(**{**facts, "steps": steps})

    def until_half_width(self, wanted: float) -> float | None:
        """Return how many pairs are judged when the middle run's half width is as wanted.

        None where nothing that can be judged brings it so far.
        """
        return crossing([(each.pairs, -each.half_width) for each in self.steps], -wanted)

    def until_best(self, chance: float = LIKELY) -> float | None:
        """Return how many pairs are judged when one run is decided the best with a chance.

        Where some differences do not matter: the best, or as good as the best.
        """
        return crossing([(each.pairs, each.known) for each in self.steps], chance)

    def until_decided(self, share: float) -> float | None:
        """Return how many pairs are judged when a share of the differences has a verdict.

        Where some differences do not matter: a verdict, or is one of these.
        """
        points = [
            (each.pairs, each.decided if each.settled is None else each.settled)
            for each in self.steps
        ]
        return crossing(points, share * self.differences)

    def half_width_at(self, pairs: float) -> float | None:
        """Return the half width with so many judged pairs; None outside of what is foretold."""
        for before, after in pairwise(self.steps):
            if before.pairs <= pairs <= after.pairs and before.pairs < after.pairs:
                part = math.log(pairs / before.pairs) / math.log(after.pairs / before.pairs)
                return before.half_width + part * (after.half_width - before.half_width)
        return None

    @property
    def end(self) -> float:
        """Pairs that are judged at the end of the budget, as expected."""
        return max(each.pairs for each in self.steps if each.batches is not None)

    def of_best(self) -> Prospect:
        """Say whether it is decided which run is the best, or will be."""
        now = self.steps[0]
        found = self._prospect(now.best >= 1.0, (now.enough or 0.0) >= 1.0, self.until_best())
        if found.more == 0.0:
            return found
        ends = [self.until_best(SELDOM), self.until_best(1.0 - SELDOM)]
        least, most = (None if each is None else each - self.steps[0].pairs for each in ends)
        within = [each.known for each in self.steps[1:] if each.batches is not None]
        return replace(found, least=least, most=most, chance=max(within, default=None))

    def of_ranking(self) -> Prospect:
        """Say the same of the ranking: of `MOST` of the differences between two runs."""
        now, wanted = self.steps[0], MOST * self.differences
        decided, settled = now.decided >= wanted, (now.settled or 0.0) >= wanted
        return self._prospect(decided, settled, self.until_decided(MOST))

    def of_pair(self, until: float) -> Prospect:
        """Say the same of two runs that are not told apart, from their entry of `until`."""
        return self._prospect(False, False, None if until == NEVER else until)

    def _prospect(self, decided: bool, equivalent: bool, until: float | None) -> Prospect:
        if decided or equivalent:
            return Prospect("decided" if decided else "equivalent", 0.0)
        more = None if until is None else max(until - self.steps[0].pairs, 1.0)
        within = until is not None and until <= self.end
        return Prospect("go on" if within else "out of reach", more)


def crossing(points: Sequence[tuple[float, float]], level: float) -> float | None:
    """Return where a line through points first reaches a level, None if it does not.

    Between two points as a straight line against the logarithm of x.

    Examples
    --------
    >>> crossing([(10.0, 0.0), (1000.0, 1.0)], 0.5)
    100.0
    >>> crossing([(10.0, 0.0), (1000.0, 1.0)], 2.0) is None
    True
    """
    before: tuple[float, float] | None = None
    for x, y in points:
        if y >= level:
            if before is None or y <= before[1]:
                return x
            part = (level - before[1]) / (y - before[1])
            return float(before[0] ** (1.0 - part) * x**part)
        before = (x, y)
    return None


def crossings(pairs: Sequence[float], chances: FloatArray, level: float = LIKELY) -> FloatArray:
    """Return where many lines first reach a level, shape (n,), as `crossing`; `NEVER` if not.

    Parameters
    ----------
    pairs : sequence of float
        Ascending: the x of s points.
    chances : ndarray of float64, shape (s, n)
        The y of each line.
    """
    there = chances >= level
    at = np.argmax(there, axis=0)
    before, lines = np.maximum(at - 1, 0), np.arange(chances.shape[1])
    low, high = chances[before, lines], chances[at, lines]
    rise = np.where(high > low, high - low, 1.0)
    part = np.where((at > 0) & (high > low), (level - low) / rise, 1.0)
    x = np.log(np.asarray(pairs, dtype=np.float64))
    found = np.exp(x[before] + part * (x[at] - x[before]))
    return np.where(there.any(axis=0), found, NEVER)
