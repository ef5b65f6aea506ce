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

Random numbers are permanent: pair i is judged after batch t if its number h_i is below the chance
1 - prod_{s<=t} (1 - p_s) of not being passed over. Given that it was not judged before, h_i is
uniform above the last such chance, whatever was judged; the same seed and the same judgments give
the same round on every machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import BoolArray, FloatArray, IntArray, array_hash, frozen
from ...data.kept import kept
from ...sampling.goals import effective_weights
from ...sampling.probabilities import poisson_thresholds
from .grades import Features, Finds, LearnedGrades, grade_levels
from .weights import Known, ratio_weights

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ...data.pool import Pool
    from ...measures.table import Measure
    from ...sampling.designs import Design

LATER = 0.5  # of the share of batch t, over t, is left to later ones, which know more
LEAST_PART = 0.25  # of a batch's budget is spent whatever was spent before
LEAST_VARIANCE = 0.1  # of a utility, as a share of its mean square
MORE_POWER, MANY_FOUND = 0.2, 10.0  # of a variance; documents of a topic, as `_spread` has it
LEAST_SIZE = 1e-30  # of the largest, as designs have it, so that powers of one over it are finite
MOST_KEPT = 4
MOST_SIZES = 8_000_000  # numbers: ten batches of 800 000 pairs


@dataclass(frozen=True, eq=False)
class AdaptiveStep:
    """How a batch was planned.

    Attributes
    ----------
    model : LearnedGrades or None
        What was learned from the batches before; None: nothing, sizes are those of the design.
    constants : ndarray of float64, shape (B - t + 1,)
        Of batch t of B: for each of t..B the constant that times the sizes gives the chance to be
        judged by the end of it. The first is that of the batch itself.
    """

    model: LearnedGrades | None
    constants: FloatArray


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
    """

    pool: Pool
    design: Design
    max_grade: int
    costs: FloatArray | None = None
    predicted: FloatArray | None = None

    @cached_property
    def features(self) -> Features:
        """What the model learns from."""
        key = None if self.predicted is None else array_hash(self.predicted)
        work = lambda: Features.of(self.pool, self.predicted)  # noqa: E731
        return kept(self.pool.kept, "features", key, work, most=MOST_KEPT)

    @cached_property
    def levels(self) -> IntArray:
        """The grades whose reach is modeled."""
        return grade_levels(self.max_grade)

    @cached_property
    def weights(self) -> FloatArray:
        """The weight of every pair for the goal, over the root of its cost, shape (N,)."""
        design = self.design
        weights = effective_weights(
            self.pool, design.goal, design.measure, max_grade=self.max_grade
        )
        return weights if self.costs is None else weights / np.sqrt(self.costs)

    def _weights_at(
        self, reached: FloatArray, found: Finds | None, judged: BoolArray
    ) -> FloatArray:
        design = self.design
        if design.measure.family != "ratio":
            return self.weights
        known = None if found is None else Known(judged, found.pair, found.reach)
        weights = ratio_weights(
            self.pool, design.goal, design.measure, levels=self.levels, reached=reached, known=known
        )
        return weights if self.costs is None else weights / np.sqrt(self.costs)

    def _spread(self, variance: FloatArray, found: Finds | None) -> FloatArray:
        """Standard deviations; of ratios less of small ones, the more was found by topic.

        A pair of a topic with few relevant documents moves a ratio most, and of the pairs that are
        surely useless the model expects most too much just there, where most were judged already.
        """
        largest = float(variance.max(initial=0.0))
        if found is None or not largest > 0.0:
            return np.asarray(np.sqrt(variance))
        squared = (len(found.pair) / max(1, len(self.pool.topics))) ** 2
        power = 0.5 + MORE_POWER * squared / (squared + MANY_FOUND**2)
        return np.asarray((variance / largest) ** power)

    def moments(self, measure: Measure, reached: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return what is expected of the utility of every pair, and of its square, (N,) each."""
        steps = utility_steps(measure, self.levels)
        squares = utility_steps(measure, self.levels, power=2)
        return np.asarray(steps @ reached), np.asarray(squares @ reached)

    def sizes(self, model: LearnedGrades | None, judged: BoolArray) -> FloatArray:
        """Return sizes of all pairs that sum to 1: weight times standard deviation, floored.

        `judged`, (N,), are the pairs of the batches before.

        Those of the batches of a round are kept: a function of the design and of the coefficients
        that are stored with each batch, which judgments that come later do not change.
        """
        if model is None:
            return self.design.size
        key = [self._key, model.coefficients.tobytes()]
        if model.found is not None:
            key += [judged.tobytes(), model.found.pair.tobytes(), model.found.reach.tobytes()]
        digest = hash(tuple(key))
        work = lambda: frozen(self._sizes(model, judged))  # noqa: E731
        return kept(self.pool.kept, "sizes", digest, work, most=MOST_SIZES, size=len)

    @cached_property
    def _key(self) -> Hashable:
        """What sizes hang on apart from the pool and the model."""
        given = (self.design.size, self.costs, self.predicted)
        return (
            self.design.goal,
            self.design.measure,
            self.design.floor,
            self.max_grade,
            *(None if each is None else array_hash(each) for each in given),
        )

    def _sizes(self, model: LearnedGrades, judged: BoolArray) -> FloatArray:
        design = self.design
        reached = model.reach(self.features)
        mean, square = self.moments(design.measure, reached)
        variance = np.maximum(square - mean**2, LEAST_VARIANCE * square)
        size = self._weights_at(reached, model.found, judged) * self._spread(variance, model.found)
        counted = ((size > 0.0) | (model.found is not None)) & design.eligible
        size = np.where(counted, np.maximum(size, LEAST_SIZE * size.max()), 0.0)
        even = design.eligible / np.count_nonzero(design.size)
        total = float(size.sum())
        if not total > 0.0:
            return design.size
        return np.asarray((1.0 - design.floor) * (size / total) + design.floor * even)


def utility_steps(measure: Measure, levels: IntArray, *, power: int = 1) -> FloatArray:
    """Return by how much a power of the utility rises at each level, shape (L,), from 0.

    Where levels stand for several grades, each for those up to the next one.
    """
    utility = measure.utilities(np.append(0, levels)) ** power
    return np.diff(utility)


@dataclass(frozen=True, eq=False)
class Openness:
    """Where every pair stands before a batch.

    Attributes
    ----------
    open : ndarray of bool, shape (N,)
        Whether it can still be drawn: it has a size, and was not judged.
    left : ndarray of float64, shape (N,)
        What the shares of the batches before left of 1.
    passed : ndarray of float64, shape (N,)
        The chance not to have been passed over by them.
    """

    open: BoolArray
    left: FloatArray
    passed: FloatArray

    @classmethod
    def of(cls, design: Design) -> Openness:
        """Before the first batch."""
        return cls(design.eligible, np.ones(len(design.size)), np.zeros(len(design.size)))


@dataclass(frozen=True, eq=False)
class Chances:
    """The chances of a batch, and of what follows.

    Attributes
    ----------
    size : ndarray of float64, shape (N,)
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
    return Chances(_open_sizes(frame, step.model, standing), step.constants)


def _open_sizes(
    frame: AdaptiveFrame, model: LearnedGrades | None, standing: Openness
) -> FloatArray:
    judged = frame.design.eligible & ~standing.open
    return np.where(standing.open, frame.sizes(model, judged) * standing.left, 0.0)


def plan_chances(
    frame: AdaptiveFrame,
    model: LearnedGrades | None,
    standing: Openness,
    *,
    number: int,
    spent: float,
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
    """
    size = _open_sizes(frame, model, standing)
    planned = frame.design.spending
    if not size.any():
        return Chances(size, frozen(np.zeros(len(planned) - number + 1)))
    ahead, before = planned[number - 1 :], planned[number - 2] if number > 1 else 0.0
    wanted = np.maximum(ahead - spent, LEAST_PART * (ahead - before))
    return Chances(size, frozen(poisson_thresholds(size, targets=wanted, costs=frame.costs)))


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
    drawn : ndarray of bool, shape (N,)
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
    taken[pairs] = True
    return Passed(number, step, standing, chances_of(frame, step, standing), taken)


def after(passed: Passed) -> Openness:
    """Where every pair stands after a batch: shares are those of the whole round."""
    before, ahead = passed.before, len(passed.step.constants) - 1
    share = passed.chances.share(passed.number, before.left, ahead)
    return Openness(
        before.open & ~passed.drawn, before.left - share, reached(before, passed.chances)
    )


def reached(before: Openness, chances: Chances) -> FloatArray:
    """Return the number below which the random number of a pair that a batch draws lies, (N,)."""
    return before.passed + (1.0 - before.passed) * chances.by(0)
