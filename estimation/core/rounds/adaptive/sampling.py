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
    topics. With a `topic_minimum` m a topic takes part in a batch that a model planned with chance
    q = n / m, n being the number of its pairs that the batch is expected to have, and never below
    the largest chance of one of them; where it does, its pairs enter with p / q, each on its own.
    So they still enter with p, and estimates are what they are without. Only pairs of a topic are
    drawn together, for which variances allow (`estimates`). What a model leaves of the grades of a
    topic's pairs hangs together so little that errors hardly grow; without one they do, so that a
    batch by the design alone takes all topics.

Random numbers are permanent: pair i is judged after batch t if its number h_i is below the chance
1 - prod_{s<=t} (1 - p_s) of not being passed over. Given that it was not judged before, h_i is
uniform above the last such chance, whatever was judged; the same seed and the same judgments give
the same round on every machine. With a `topic_minimum` every batch has numbers of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import (
    BoolArray,
    FloatArray,
    Int32Array,
    IntArray,
    array_hash,
    column_sums,
    frozen,
)
from ...data.kept import kept
from ...sampling.goals import effective_weights
from ...sampling.probabilities import poisson_thresholds
from .grades import Features, LearnedGrades, grade_levels
from .weights import ratio_weights

if TYPE_CHECKING:
    from ...data.pool import Pool
    from ...measures.table import Measure
    from ...sampling.designs import Design
    from ...sampling.goals import Race

LATER = 0.5  # of the share of batch t, over t, is left to later ones, which know more
LEAST_PART = 0.25  # of a batch's budget is spent whatever was spent before
LEAST_VARIANCE = 0.1  # of a utility, as a share of its mean square
LEAST_SIZE = 1e-30  # of the largest, as designs have it, so that powers of one over it are finite
MOST_KEPT, MOST_RACES = 4, 32


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
    """

    model: LearnedGrades | None
    constants: FloatArray
    race: Race | None = None


@dataclass(frozen=True, eq=False)
class AdaptiveFrame:
    """What stays the same in all batches of a round.

    Attributes
    ----------
    pool : Pool
    design : Design
        The sizes of the first batch, and those of the others while nothing is learned.
    max_grade : int
    costs : ndarray of float64, shape (N,), or None
    predicted : ndarray of float64, shape (N, S), or None
    topic_minimum : float
        Pairs of a topic in a batch that has any of it, as expected; up to 1: as it comes.
    """

    pool: Pool
    design: Design
    max_grade: int
    costs: FloatArray | None = None
    predicted: FloatArray | None = None
    topic_minimum: float = 0.0

    @cached_property
    def at(self) -> IntArray:
        """The n pairs that can be drawn, ascending: the others have neither chances nor shares."""
        return np.flatnonzero(self.design.eligible)

    def place(self, pairs: IntArray) -> IntArray:
        """Return where pairs that can be drawn stand in `at`."""
        return np.searchsorted(self.at, pairs)

    @cached_property
    def topic(self) -> Int32Array:
        """Of the pairs that can be drawn, shape (n,)."""
        return self.pool.topic[self.at]

    @cached_property
    def features(self) -> Features:
        """What the model learns from, of all pairs."""
        work = lambda: Features.of(self.pool, self.predicted)  # noqa: E731
        return kept(self.pool.kept, "features", self._learned_from, work, most=MOST_KEPT)

    @cached_property
    def _drawable(self) -> Features:
        """The same of the pairs that can be drawn."""
        key = self._learned_from, array_hash(self.at)
        work = lambda: self.features.of_pairs(self.at)  # noqa: E731
        return kept(self.pool.kept, "drawable", key, work, most=MOST_KEPT)

    @cached_property
    def _learned_from(self) -> int | None:
        return None if self.predicted is None else array_hash(self.predicted)

    @cached_property
    def levels(self) -> IntArray:
        """The grades whose reach is modeled."""
        return grade_levels(self.max_grade)

    @cached_property
    def weights(self) -> FloatArray:
        """The weight of every pair for the goal, over the root of its cost, shape (n,)."""
        return self._per_cost(self._weights_in(None))

    def _weights_in(self, race: Race | None) -> FloatArray:
        design = self.design
        weights = effective_weights(
            self.pool, design.goal, design.measure, max_grade=self.max_grade, race=race
        )
        return weights[self.at]

    def _weights_of(self, race: Race) -> FloatArray:
        """The weights in a race, which hang on nothing else, so that they may be kept."""
        key = self.design.measure, race.leader, race.priority.tobytes()
        work = lambda: frozen(self._weights_in(race))  # noqa: E731
        return kept(self.pool.kept, "race", key, work, most=MOST_RACES)

    def _per_cost(self, weights: FloatArray) -> FloatArray:
        return weights if self.costs is None else weights / np.sqrt(self.costs[self.at])

    def _weights_at(self, reached: FloatArray, race: Race | None) -> FloatArray:
        design = self.design
        if design.measure.family != "ratio":
            return self.weights if race is None else self._per_cost(self._weights_of(race))
        every = np.zeros((len(reached), len(self.pool)))
        every[:, self.at] = reached
        weights = ratio_weights(
            self.pool, design.goal, design.measure, levels=self.levels, reached=every, race=race
        )
        return self._per_cost(weights[self.at])

    def moments(self, measure: Measure, reached: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is expected of the utility of each pair, and of its square, (n,) each."""
        steps = utility_steps(measure, self.levels)
        squares = utility_steps(measure, self.levels, power=2)
        return np.asarray(steps @ reached), np.asarray(squares @ reached)

    def sizes(self, model: LearnedGrades | None) -> FloatArray:
        """Return sizes, (n,), that sum to 1: weight times standard deviation, floored."""
        if model is None:
            return self.design.size[self.at]
        size = self._unfloored(model, None)
        return self._floored(size, float(size.sum()), float(np.count_nonzero(self.design.size)))

    def race_sizes(self, model: LearnedGrades, race: Race, standing: Openness) -> FloatArray:
        """Return sizes in a race. What sums to 1 is what is open of them, times the shares left.

        So the few pairs that tell two runs apart do not lose to the floor when most are judged.
        """
        size, left = self._unfloored(model, race), np.where(standing.open, standing.left, 0.0)
        return self._floored(size, float((size * left).sum()), float(left.sum()))

    def _floored(self, size: FloatArray, total: float, pairs: float) -> FloatArray:
        if not total > 0.0:
            return self.design.size[self.at]
        floor = self.design.floor
        return np.asarray((1.0 - floor) * (size / total) + floor / pairs)

    def _unfloored(self, model: LearnedGrades, race: Race | None) -> FloatArray:
        """Weight times standard deviation, worked out once."""
        key = id(model), id(race)
        if key not in self._known:  # with what they are of, so that no other has the same id
            self._known[key] = model, race, self._weighted(model, race)
        return self._known[key][-1]

    @cached_property
    def _known(self) -> dict[tuple[int, int], tuple[LearnedGrades, Race | None, FloatArray]]:
        return {}

    def reached(self, model: LearnedGrades) -> FloatArray:
        """Return `LearnedGrades.reach`, (L, n); that of the last model is at hand."""
        if not self._last or self._last[0][0] is not model:
            self._last[:] = [(model, model.reach(self._drawable))]
        return self._last[0][1]

    @cached_property
    def _last(self) -> list[tuple[LearnedGrades, FloatArray]]:
        return []

    def _weighted(self, model: LearnedGrades, race: Race | None) -> FloatArray:
        design = self.design
        reached = self.reached(model)
        mean, square = self.moments(design.measure, reached)
        variance = np.maximum(square - mean**2, LEAST_VARIANCE * square)
        size = self._weights_at(reached, race) * np.sqrt(variance)
        return np.where(size > 0.0, np.maximum(size, LEAST_SIZE * size.max(initial=0.0)), 0.0)

    def topics_at(self, model: LearnedGrades | None, chance: FloatArray) -> FloatArray:
        """Return the chance of each topic to take part in a batch with chances (n,), shape (T,).

        It follows from these and so from the past alone, as they do.
        """
        topics = len(self.pool.topics)
        if self.topic_minimum <= 1.0 or model is None:
            return np.ones(topics)
        number = column_sums(self.topic, chance, number=topics)
        largest = np.zeros(topics)
        np.maximum.at(largest, self.topic, chance)
        return np.where(number > 0.0, np.clip(number / self.topic_minimum, largest, 1.0), 1.0)


def utility_steps(measure: Measure, levels: IntArray, *, power: int = 1) -> FloatArray:
    """Return by how much a power of the utility rises at each level, shape (L,), from 0.

    Where levels stand for several grades, each for those up to the next one.
    """
    utility = measure.utilities(np.append(0, levels)) ** power
    return np.diff(utility)


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
        return cls(np.ones(pairs, dtype=np.bool_), np.ones(pairs), np.zeros(pairs))


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
        with np.errstate(invalid="ignore", over="ignore"):
            chance = np.minimum(1.0, self.constants[ahead] * self.size)
        return np.where(self.size > 0.0, chance, 0.0)

    def share(self, number: int, left: FloatArray, ahead: int) -> FloatArray:
        """Return the shares A of batch `number`, counted from 1, of a sample that ends `ahead`."""
        chance = self.by(0)
        if ahead == 0:
            return np.where(self.size > 0.0, left, 0.0)
        foreseen = self.by(ahead)
        certain = foreseen >= 1.0
        part = np.divide(
            chance * (1.0 - foreseen),
            foreseen * (1.0 - chance),
            out=np.where(chance >= 1.0, 1.0, 0.0),
            where=(foreseen > 0.0) & ~certain,
        )
        return left * np.minimum(part, 1.0) * (1.0 - LATER / number)


def chances_of(frame: AdaptiveFrame, step: AdaptiveStep, standing: Openness) -> Chances:
    """Return the chances with which a planned batch was drawn."""
    return Chances(_open_sizes(frame, step.model, step.race, standing), step.constants)


def _open_sizes(
    frame: AdaptiveFrame, model: LearnedGrades | None, race: Race | None, standing: Openness
) -> FloatArray:
    if model is None or race is None:
        return np.where(standing.open, frame.sizes(model) * standing.left, 0.0)
    return np.where(standing.open, frame.race_sizes(model, race, standing) * standing.left, 0.0)


def plan_chances(
    frame: AdaptiveFrame,
    model: LearnedGrades | None,
    standing: Openness,
    *,
    number: int,
    spent: float,
    race: Race | None = None,
) -> Chances:
    """Plan a batch: find the constants that spend what is left of the budget.

    What was spent before is known, so that it may be made up for: the chances of a batch may hang
    on all that happened before it.

    Parameters
    ----------
    frame, model, standing : AdaptiveFrame, LearnedGrades or None, Openness
    number : int
        Of the batch, from 1.
    spent : float
        What was spent before.
    race : Race, optional
        As of `AdaptiveStep`.
    """
    size = _open_sizes(frame, model, race, standing)
    planned = frame.design.spending
    if not size.any():
        return Chances(size, frozen(np.zeros(len(planned) - number + 1)))
    ahead, before = planned[number - 1 :], planned[number - 2] if number > 1 else 0.0
    wanted = np.maximum(ahead - spent, LEAST_PART * (ahead - before))
    costs = None if frame.costs is None else frame.costs[frame.at]
    return Chances(size, frozen(poisson_thresholds(size, targets=wanted, costs=costs)))


@dataclass(frozen=True, eq=False)
class Passed:
    """A batch that was drawn: all that its estimates need.

    Attributes
    ----------
    number : int
        From 1.
    step : AdaptiveStep
    before : Openness
    chances : Chances
    drawn : ndarray of bool, shape (n,)
        The pairs of the batch.
    """

    number: int
    step: AdaptiveStep
    before: Openness
    chances: Chances
    drawn: BoolArray


def passed_batch(
    frame: AdaptiveFrame, number: int, step: AdaptiveStep, standing: Openness, pairs: IntArray
) -> Passed:
    """Return a batch that was drawn, given where pairs stood before it."""
    taken = np.zeros(len(standing.open), dtype=np.bool_)
    taken[frame.place(pairs)] = True
    return Passed(number, step, standing, chances_of(frame, step, standing), taken)


def after(passed: Passed) -> Openness:
    """Where every pair stands after a batch: shares are those of the whole round."""
    before, ahead = passed.before, len(passed.step.constants) - 1
    share = passed.chances.share(passed.number, before.left, ahead)
    return Openness(
        before.open & ~passed.drawn, before.left - share, reached(before, passed.chances)
    )


def reached(before: Openness, chances: Chances) -> FloatArray:
    """Return the number below which the random number of a pair that a batch draws lies, (n,)."""
    return before.passed + (1.0 - before.passed) * chances.by(0)
