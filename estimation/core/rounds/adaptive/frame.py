"""What stays the same in all batches of an adaptive round, and what a model makes of it: sizes."""

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
    array_digest,
    frozen,
)
from ...data.kept import kept
from ...measures.kinds import MAX_GRADE
from ...sampling.goals import absolute, effective_weights, goal_weights
from .grades import Features, LearnedGrades, grade_levels
from .run_utilities import added_by_grade, expected_entries, possible_shares
from .topic_choice import TopicChoice, choice_of
from .weights import Known, ratio_weights

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ...data.pool import Pool
    from ...measures.table import Measure
    from ...sampling.designs import Design
    from ...sampling.goals import Goal, Race
    from .finds import Finds
    from .past import Past

LEAST_VARIANCE = 0.1  # of a utility, as a share of its mean square
MORE_POWER, MANY_FOUND = 0.2, 10.0  # of a variance; documents of a topic, as `_spread` has it
LEAST_SIZE = 1e-30  # of the largest, as designs have it, so that powers of one over it are finite
MOST_KEPT, MOST_RACES = 4, 32
MOST_SIZES = 2_000_000  # numbers: two batches of a million pairs; `state` keeps those of all
# Ten batches of 800 000 pairs at two levels, 128 MB: with less room none is found again.
MOST_REACHED = 16_000_000


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
    past : Past or None
        What was judged before the round began; None where nothing counts that was.
    even_topics : bool
        Whether topics take part by classes (`topic_choice`), else each by a coin of its own.
    """

    pool: Pool
    design: Design
    max_grade: int
    costs: FloatArray | None = None
    predicted: FloatArray | None = None
    topic_minimum: float = 0.0
    past: Past | None = None
    even_topics: bool = False

    @cached_property
    def at(self) -> IntArray:
        """The n pairs that can be drawn, ascending: the others have neither chances nor shares."""
        return np.flatnonzero(self.design.eligible)

    def place(self, pairs: IntArray) -> IntArray:
        """Return where pairs that can be drawn stand in `at`."""
        return np.searchsorted(self.at, pairs)

    def cost_of(self, pairs: IntArray) -> float:
        """Return what judging pairs costs."""
        return float(len(pairs)) if self.costs is None else float(self.costs[pairs].sum())

    @cached_property
    def topic(self) -> Int32Array:
        """Of the pairs that can be drawn, shape (n,)."""
        return self.pool.topic[self.at]

    @cached_property
    def features(self) -> Features:
        """What the model learns from, of all pairs."""
        scores = self.design.measure.family == "prediction"
        work = lambda: Features.of(self.pool, self.predicted, scores=scores)  # noqa: E731
        return kept(self.pool.kept, "features", self._learned_from, work, most=MOST_KEPT)

    @cached_property
    def _drawable(self) -> Features:
        """The same of the pairs that can be drawn."""
        work = lambda: self.features.of_pairs(self.at)  # noqa: E731
        return kept(self.pool.kept, "drawable", self._drawable_key, work, most=MOST_KEPT)

    @cached_property
    def _drawable_key(self) -> Hashable:
        return self._learned_from, array_digest(self.at)

    @cached_property
    def _learned_from(self) -> Hashable:
        predicted = None if self.predicted is None else array_digest(self.predicted)
        return predicted, self.design.measure.family == "prediction"

    @cached_property
    def levels(self) -> IntArray:
        """The grades whose reach is modeled: all, where errors of one of them are no others'."""
        if self.design.measure.family == "prediction":
            return grade_levels(self.max_grade, most=MAX_GRADE)
        return grade_levels(self.max_grade)

    @cached_property
    def weights(self) -> FloatArray:
        """The weight of every pair for the goal, over the root of its cost, shape (n,)."""
        return self._per_cost(self._weights_in(self.design.goal, None))

    def goal_weights(self, race: Race | None) -> FloatArray:
        """Return the weight of every pair for a goal of sums of gains, (n,), whatever it costs."""
        if race is not None:
            return self._weights_of(race)
        return self.weights if self.costs is None else self._weights_in(self.design.goal, None)

    def spread_of_labels(self, model: LearnedGrades) -> FloatArray:
        """Return how far labels of each pair are expected to be apart, in some unit, (n,).

        A model tells the variance of the grade of somebody for some pair like it, of which the
        disagreement of people is a part.
        """
        mean, square = self.moments(self.design.measure, self.reached(model))
        return np.asarray(np.sqrt(np.maximum(square - mean**2, LEAST_VARIANCE * square)))

    def _weights_in(self, goal: Goal, race: Race | None) -> FloatArray:
        weights = effective_weights(
            self.pool, goal, self.design.measure, max_grade=self.max_grade, race=race
        )
        return weights[self.at]

    def _weights_of(self, race: Race) -> FloatArray:
        """The weights in a race, which hang on nothing else, so that they may be kept."""
        key = self.design.measure, race.leader, race.priority.tobytes()
        work = lambda: frozen(self._weights_in(self.design.goal, race))  # noqa: E731
        return kept(self.pool.kept, "race", key, work, most=MOST_RACES)

    def _per_cost(self, weights: FloatArray) -> FloatArray:
        return weights if self.costs is None else weights / np.sqrt(self.costs[self.at])

    def _weights_at(
        self,
        reached: FloatArray,
        judged: BoolArray,
        found: Finds | None,
        goal: Goal,
        race: Race | None,
    ) -> FloatArray:
        design = self.design
        if design.measure.family != "ratio":
            if goal != design.goal:
                return self._per_cost(self._weights_in(goal, None))
            return self.weights if race is None else self._per_cost(self._weights_of(race))
        weights = ratio_weights(
            self.pool,
            goal,
            design.measure,
            levels=self.levels,
            reached=self._of_every(reached),
            known=None if found is None else self._known(judged, found),
            race=race,
        )
        return self._per_cost(weights[self.at])

    def _of_every(self, reached: FloatArray) -> FloatArray:
        """`reached` of all N pairs, 0 of those that cannot be drawn, (L, N)."""
        every = np.zeros((len(reached), len(self.pool)))
        every[:, self.at] = reached
        return every

    def _spread_by_run(
        self, reached: FloatArray, goal: Goal, race: Race | None, part: float
    ) -> FloatArray:
        """As `spread_by_run`, (n,); `reached` of the pairs that can be drawn."""
        shares = possible_shares(self._of_every(reached))
        return self._per_cost(self.spread_by_run(shares, goal, race, part)[self.at])

    def spread_by_run(
        self, shares: FloatArray, goal: Goal, race: Race | None, part: float
    ) -> FloatArray:
        """How far a goal may be off for each pair: a root of a quadratic form, (N,).

        That of the goal (`effective_weights`), of what w_ij u_ij has over the grades of a pair,
        with shares, (L + 1, N), less a part of its mean: with all of it the covariance over runs.
        """
        added = added_by_grade(self.pool, self.design.measure, self.levels)
        mean = part * expected_entries(self.pool, added, shares)
        variance, square = np.zeros((2, len(self.pool)))
        for share, of_grade in zip(shares, added, strict=True):
            variance += share * goal_weights(self.pool, goal, of_grade - mean, race) ** 2
            square += share * goal_weights(self.pool, goal, of_grade, race) ** 2
        return np.asarray(np.sqrt(np.maximum(variance, LEAST_VARIANCE * square)))

    def _finds(self, model: LearnedGrades) -> Finds | None:
        """What sizes hang on besides the model, where the measure is a ratio."""
        return model.found if self.design.measure.family == "ratio" else None

    def _known(self, judged: BoolArray, found: Finds) -> Known:
        every = np.zeros(len(self.pool), dtype=np.bool_)
        every[self.at] = judged
        if self.past is not None:
            every[self.past.judged] = True
        return Known(every, found.pair, found.reach)

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
        """Return what is expected of the utility of each pair, and of its square, (n,) each."""
        steps = utility_steps(measure, self.levels)
        squares = utility_steps(measure, self.levels, power=2)
        return np.asarray(steps @ reached), np.asarray(squares @ reached)

    def sizes(self, model: LearnedGrades | None, judged: BoolArray) -> FloatArray:
        """Return sizes, (n,), that sum to 1: weight times standard deviation, floored.

        `judged`, (n,), are the pairs of the batches before.
        """
        if model is None:
            return self.design.size[self.at]
        return self._sized(model, judged, None, np.ones(len(self.at)))

    def race_sizes(
        self, model: LearnedGrades, judged: BoolArray, race: Race, left: FloatArray
    ) -> FloatArray:
        """Return sizes in a race. What sums to 1 is what is open of them, times the shares left.

        So the few pairs that tell two runs apart do not lose to the floor when most are judged.
        `left`, (n,), are these shares, 0 of judged pairs.
        """
        return self._sized(model, judged, race, left)

    def _sized(
        self, model: LearnedGrades, judged: BoolArray, race: Race | None, left: FloatArray
    ) -> FloatArray:
        """What is wanted, floored: evenly, and by what the values of all runs need."""
        size = self._unfloored(model, judged, self.design.goal, race)
        total = float((size * left).sum())
        if not total > 0.0:
            return self.design.size[self.at]
        if model.scoring is not None:
            own, of_sizes = self.design.size[self.at], model.scoring.of_sizes
            planned = (1.0 - of_sizes) * (own / float((own * left).sum()))
            size, total = of_sizes * (size / total) + planned, 1.0
        floor, share = self.design.floor, self.design.for_all_runs
        floored = (1.0 - floor) * (size / total) + (floor - share) / float(left.sum())
        if share == 0.0:
            return np.asarray(floored)
        every = self._unfloored(model, judged, absolute(*self.pool.runs), None)
        return np.asarray(floored + share * (every / float((every * left).sum())))

    def _unfloored(
        self, model: LearnedGrades, judged: BoolArray, goal: Goal, race: Race | None
    ) -> FloatArray:
        """Weight times standard deviation, of the batches of a round worked out once.

        It follows from the design and from what is stored with the batch, which judgments that come
        later do not change.
        """
        known = () if self._finds(model) is None else (judged,)
        leader, raced = (None, ()) if race is None else (race.leader, (race.priority,))
        key = self._key, goal, leader, model.digests, *map(array_digest, (*known, *raced))
        work = lambda: frozen(self._weighted(model, judged, goal, race))  # noqa: E731
        return kept(self.pool.kept, "sizes", key, work, most=MOST_SIZES, size=len)

    @cached_property
    def _key(self) -> Hashable:
        """What sizes hang on apart from the pool and what was learned."""
        given = (self.design.size, self.costs, self.predicted)
        return (
            self.design.measure,
            self.max_grade,
            *(None if each is None else array_digest(each, self.design.digests) for each in given),
        )

    def reached(self, model: LearnedGrades) -> FloatArray:
        """Return `LearnedGrades.reach`, (L, n), of the batches of a round worked out once.

        As sizes, it follows from what is stored with the batch.
        """
        key = self._drawable_key, model.digests
        work = lambda: frozen(self._reached_now(model))  # noqa: E731
        return kept(self.pool.kept, "reached", key, work, most=MOST_REACHED, size=np.size)

    def _reached_now(self, model: LearnedGrades) -> FloatArray:
        if self.past is None:
            return model.reach(self._drawable)
        return model.reach(self.features)[:, self.at]  # it knows of pairs that cannot be drawn

    def reached_by_all(self, model: LearnedGrades) -> FloatArray:
        """Return the same of all N pairs, also of those that cannot be drawn."""
        if len(self.at) == len(self.pool):
            return self.reached(model)
        return model.reach(self.features)

    def _weighted(
        self, model: LearnedGrades, judged: BoolArray, goal: Goal, race: Race | None
    ) -> FloatArray:
        reached, found = self.reached(model), self._finds(model)
        if self.design.measure.is_by_run:
            part = 1.0 if model.scoring is None else model.part
            size = self._spread_by_run(reached, goal, race, part)
        else:
            mean, square = self.moments(self.design.measure, reached)
            variance = np.maximum(square - mean**2, LEAST_VARIANCE * square)
            weights = self._weights_at(reached, judged, found, goal, race)
            size = weights * self._spread(variance, found)
        least = LEAST_SIZE * size.max(initial=0.0)
        return np.where((size > 0.0) | (found is not None), np.maximum(size, least), 0.0)

    def topics_at(self, model: LearnedGrades | None, chance: FloatArray) -> TopicChoice:
        """Return how topics take part in a batch with chances (n,).

        It follows from these and so from the past alone, as they do. By coins, all topics take part
        in a batch that nothing was learned for.
        """
        topics, even = len(self.pool.topics), self.even_topics
        if self.topic_minimum <= 1.0 or (model is None and not even):
            return TopicChoice.independent(np.ones(topics))
        return choice_of(self.topic, chance, self.topic_minimum, topics=topics, even=even)


def utility_steps(measure: Measure, levels: IntArray, *, power: int = 1) -> FloatArray:
    """Return by how much a power of the utility rises at each level, shape (L,), from 0.

    Where levels stand for several grades, each for those up to the next one.
    """
    utility = measure.utilities(np.append(0, levels)) ** power
    return np.diff(utility)
