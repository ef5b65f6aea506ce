"""Adaptive sampling: every batch is planned by a model that learned from the batches before it.

Before batch t everything that was judged is known. A model of grades (`grades`) says what to expect
of the utility u of a pair that was not judged, its mean m and its variance; every such pair then
enters batch t on its own, with a chance p that grows with its weight for the goal and with the
standard deviation of u. What the batch says of pair i is

    V_ti = u_i                                   if i was judged before,
           m_ti + [i in batch t] (u_i - m_ti) / p_ti   otherwise,

which is u_i on average, whatever the model says: chances and means were fixed before the batch, by
judgments of other pairs. After b batches the estimate of u_i is sum_t A_ti V_ti. The shares A_ti
are fixed before batch t as well, each a part of what the shares before it left, and the last takes
all that is left, so that they sum to 1: the errors A_ti (V_ti - u_i) are differences of a
martingale, the estimate is exactly unbiased, and the variances of the batches add up (Zrnic and
Candès 2024, *Active statistical inference*, for draws; here for samples without replacement).

Shares
    If the chances of all batches were known beforehand, the best shares would be in proportion to
    p_t / ((1 - p_t) prod_{s<t} (1 - p_s)), and the estimate would be as exact as that of
    Horvitz-Thompson from one sample with all chances together: the odds pi / (1 - pi) of the
    chances pi of the first t batches rise by just that. So A_t is what was left times the odds of
    p_t over those of the chance with which the pair would be judged by the end, if the model
    stayed as it is (`foreseen`), and a little less in the first batches, because later ones know
    more. A pair that will be judged for certain has no share before: it waits for its grade.

A sample of b batches is estimated with shares of its own, which end with batch b; the chances are
those of the whole round.

Topics
    Who reads a topic judges several of its documents with less work than one of each of many
    topics. With a `topic_minimum` m a topic takes part in a batch with chance q, about n / m, n
    being the number of its pairs that the batch is expected to have, and never below the largest
    chance of one of them; where it does, its pairs enter with p / q, each on its own. So they still
    enter with p, and estimates are what they are without. How topics are chosen, and that there
    are about as many as expected, is said in `topic_choice`. Pairs of a topic are drawn together,
    and topics of a class instead of each other, for which variances allow (`estimates`). What a
    model leaves of the grades of a topic's pairs hangs together so little that errors hardly grow.
    Without one they do where topics take part by coins, because how many take part varies, so that
    in rounds of earlier versions a batch by the design alone takes all topics.

Random numbers are permanent: pair i is judged after batch t if its number h_i is below the chance
1 - prod_{s<=t} (1 - p_s) of not being passed over. Given that it was not judged before, h_i is
uniform above the last such chance, whatever was judged; the same seed and the same judgments give
the same round on every machine. With a `topic_minimum` every batch has numbers of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import BoolArray, FloatArray, IntArray, at_most_one, frozen, pieces
from ...sampling.probabilities import poisson_thresholds

if TYPE_CHECKING:
    from ...sampling.goals import Race
    from .frame import AdaptiveFrame
    from .grades import LearnedGrades

LATER = 0.5  # of the share of batch t, over t, is left to later ones, which know more
LEAST_PART = 0.25  # of a batch's budget is spent whatever was spent before
MOST_PART = 4.0  # times what it was planned to spend, where the budget follows the pace (`hours`)


@dataclass(frozen=True, eq=False)
class AdaptiveStep:
    """How a batch was planned.

    Attributes
    ----------
    model : LearnedGrades or None
        What was learned from the batches before; None: nothing, sizes are those of the design.
    race : Race or None
        For the goal "winner": which differences mattered, by the batches before. None: all alike.
    constants : ndarray of float64, shape (B - t + 1,)
        Of batch t of B: for each of t..B the constant that times the sizes gives the chance to be
        judged by the end of it. The first is that of the batch itself.
    budget : float or None
        What the whole round was to spend by then, where that follows the measured pace (`hours`);
        kept as it was, whatever becomes of the times. None: what the design says.
    """

    model: LearnedGrades | None
    constants: FloatArray
    race: Race | None = None
    budget: float | None = None

    def is_as(self, other: AdaptiveStep) -> bool:
        """Whether another batch was planned in the same way."""
        mine, its = self._content(), other._content()
        same = all(np.array_equal(one, two) for one, two in zip(mine, its, strict=False))
        return same and len(mine) == len(its)

    def _content(self) -> list[FloatArray | IntArray]:
        model, race = self.model, self.race
        of_model = [] if model is None else model.content
        of_race = [] if race is None else [np.array([race.leader]), race.priority]
        of_budget = [] if self.budget is None else [np.array([self.budget])]
        numbers = np.array([len(of_model), len(of_race), len(of_budget)])
        return [numbers, self.constants, *of_model, *of_race, *of_budget]


@dataclass(frozen=True, eq=False)
class Openness:
    """Where the n pairs of a frame (`AdaptiveFrame.at`) stand before a batch.

    Attributes
    ----------
    open : ndarray of bool, shape (n,)
        Whether it can still be drawn, and was not judged.
    left : ndarray of float64, shape (n,)
        What the shares of the batches before left of 1.
    passed : ndarray of float64, shape (n,)
        The chance not to have been passed over by them.
    """

    open: BoolArray
    left: FloatArray
    passed: FloatArray

    @classmethod
    def of(cls, frame: AdaptiveFrame) -> Openness:
        """Before the first batch."""
        pairs = len(frame.at)
        left = np.ones(pairs) if frame.past is None else frame.past.left[frame.at]
        return cls(np.ones(pairs, dtype=np.bool_), left, np.zeros(pairs))


@dataclass(frozen=True, eq=False)
class Chances:
    """The chances of a batch, and of what follows.

    Attributes
    ----------
    size : ndarray of float64, shape (n,)
        Sizes of pairs that can still be drawn, times what is left of them; 0 of the others.
    constants : ndarray of float64
        As those of `AdaptiveStep`.
    """

    size: FloatArray
    constants: FloatArray

    def by(self, ahead: int) -> FloatArray:
        """Return the chance to be judged by the end of this batch, or of one that lies ahead."""
        return self._now if ahead == 0 else self.by_of(slice(None), ahead)

    @cached_property
    def _now(self) -> FloatArray:
        return frozen(self.by_of(slice(None), 0))

    def by_of(self, some: slice | IntArray, ahead: int) -> FloatArray:
        """Return the same of some pairs."""
        constant, size = self.constants[ahead], self.size[some]
        if not np.isfinite(constant):
            return np.where(size > 0.0, 1.0, 0.0)
        with np.errstate(over="ignore"):
            return at_most_one(constant * size)

    def share(self, number: int, left: FloatArray, ahead: int) -> FloatArray:
        """Return the shares A of batch `number`, counted from 1, of a sample that ends `ahead`."""
        found = np.empty_like(left)
        for piece in pieces(len(left)):
            now = self.by_of(piece, 0)
            found[piece] = self.share_of(piece, number, left[piece], ahead, now)
        return found

    def share_of(
        self, piece: slice, number: int, left: FloatArray, ahead: int, now: FloatArray
    ) -> FloatArray:
        """Return the same of some pairs; `left` is of these, and so are their chances `now`."""
        if ahead == 0:
            return np.where(self.size[piece] > 0.0, left, 0.0)
        foreseen = self.by_of(piece, ahead)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            part = 1.0 - foreseen
            part *= now
            of = 1.0 - now
            of *= foreseen
            part /= of
        at_most_one(part)  # of pairs that are certain now it is 0 over 0
        part *= left
        part *= 1.0 - LATER / number
        part *= foreseen > 0.0
        return part


def chances_of(frame: AdaptiveFrame, step: AdaptiveStep, standing: Openness) -> Chances:
    """Return the chances with which a planned batch was drawn."""
    return Chances(_open_sizes(frame, step.model, step.race, standing), step.constants)


def sizes_before(
    frame: AdaptiveFrame, model: LearnedGrades | None, race: Race | None, standing: Openness
) -> FloatArray:
    """Return the sizes of a batch, (n,), also of judged pairs, as if these were open."""
    if model is None or race is None:
        return frame.sizes(model, ~standing.open)
    left = np.where(standing.open, standing.left, 0.0)
    return frame.race_sizes(model, ~standing.open, race, left)


def _open_sizes(
    frame: AdaptiveFrame, model: LearnedGrades | None, race: Race | None, standing: Openness
) -> FloatArray:
    sizes = sizes_before(frame, model, race, standing)
    return np.where(standing.open, sizes * standing.left, 0.0)


def plan_chances(
    frame: AdaptiveFrame,
    model: LearnedGrades | None,
    standing: Openness,
    *,
    number: int,
    spent: float,
    race: Race | None = None,
    budget: float | None = None,
) -> Chances:
    """Plan a batch: find the constants that spend what is left of the budget.

    What was spent before is known, so that it may be made up for: the chances of a batch may hang
    on all that happened before it. So may the budget itself, as long as it is fixed before the
    batch is drawn and the number of batches is what it was: what a batch says of every pair is
    right on average whatever its chances are. (To end the round instead, because people were slow,
    would be biased: whether a batch is the last would hang on its own judgments.)

    Parameters
    ----------
    frame, model, standing : AdaptiveFrame, LearnedGrades or None, Openness
    number : int
        Of the batch, from 1.
    spent : float
        What was spent before.
    race : Race, optional
        As of `AdaptiveStep`.
    budget : float, optional
        What the round may spend in all, as `AdaptiveStep` has it; by default that of the design.
        What is left of it is spread over the batches that are left as the design spreads its own,
        so that a batch spends from `LEAST_PART` to `MOST_PART` times what was planned for it.
    """
    size = _open_sizes(frame, model, race, standing)
    planned = frame.design.spending
    if not size.any():
        return Chances(size, frozen(np.zeros(len(planned) - number + 1)))
    ahead, before = planned[number - 1 :], planned[number - 2] if number > 1 else 0.0
    wanted = np.maximum(ahead - spent, LEAST_PART * (ahead - before))
    if budget is not None:
        part = (budget - spent) / (planned[-1] - before)
        wanted = np.clip(part, LEAST_PART, MOST_PART) * (ahead - before)
    costs = None if frame.costs is None else frame.costs[frame.at]
    return Chances(size, frozen(poisson_thresholds(size, targets=wanted, costs=costs)))


@dataclass(frozen=True, eq=False)
class DrawnBatch:
    """A batch that was drawn: all that estimates need.

    Attributes
    ----------
    number : int
        From 1.
    step : AdaptiveStep
    chances : Chances
    drawn : ndarray of bool, shape (n,)
        The pairs of the batch.
    """

    number: int
    step: AdaptiveStep
    chances: Chances
    drawn: BoolArray

    @property
    def ahead(self) -> int:
        """How many batches of the round are behind it."""
        return len(self.step.constants) - 1

    def alone(self) -> DrawnBatch:
        """The same without what was worked out of it."""
        return DrawnBatch(self.number, self.step, replace(self.chances), self.drawn)


@dataclass(frozen=True, eq=False)
class Passed(DrawnBatch):
    """The same, with where pairs stood before it."""

    before: Openness

    @cached_property
    def share(self) -> FloatArray:
        """The shares A of a sample that ends with the round, shape (n,)."""
        return frozen(self.chances.share(self.number, self.before.left, self.ahead))


def passed_batch(
    frame: AdaptiveFrame, number: int, step: AdaptiveStep, standing: Openness, pairs: IntArray
) -> Passed:
    """Return a batch that was drawn, given where pairs stood before it."""
    taken = np.zeros(len(standing.open), dtype=np.bool_)
    taken[frame.place(pairs)] = True
    return Passed(number, step, chances_of(frame, step, standing), taken, standing)


def after(passed: Passed) -> Openness:
    """Where every pair stands after a batch: shares are those of the whole round."""
    before = passed.before
    return Openness(
        before.open & ~passed.drawn, before.left - passed.share, reached(before, passed.chances)
    )


def reached(before: Openness, chances: Chances) -> FloatArray:
    """Return the number below which the random number of a pair that a batch draws lies, (n,)."""
    return before.passed + (1.0 - before.passed) * chances.by(0)
