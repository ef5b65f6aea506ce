"""A round of adaptive sampling: batches are planned one by one, from the judgments so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import FloatArray, IntArray, check_seed, check_whole, frozen
from ...data.kept import kept
from ...data.labels import LabelRows, select_rows
from ...data.scope import Scope
from ...sampling.random_numbers import (
    batch_random_numbers,
    class_random_numbers,
    permanent_random_numbers,
    topic_random_numbers,
)
from ...sampling.samples import Served
from ..results import Asked, DrawnRound, Evaluation, MeasureResult
from .answers import answer_of_batches, variance_of_topics
from .grades import LearnedGrades, fit_grades
from .race import race_of
from .sampled import Sampled
from .sampling import (
    AdaptiveStep,
    Chances,
    Openness,
    plan_chances,
    reached,
)
from .state import AdaptiveError, AdaptivePlan, AdaptiveState, standing_after
from .trust import trusted

if TYPE_CHECKING:
    from ...data.pool import Pool
    from ...measures.table import Measure
    from ...sampling.goals import Race
    from .frame import AdaptiveFrame
    from .topic_choice import TopicChoice


@dataclass(frozen=True, eq=False)
class PlannedBatch:
    """A batch that was planned and not drawn: its step, where pairs stand, and their chances.

    ``topics`` says how topics take part; None if all do for certain.
    """

    frame: AdaptiveFrame
    number: int
    step: AdaptiveStep
    standing: Openness
    chances: Chances
    topics: TopicChoice | None = None

    @property
    def expected_ahead(self) -> float:
        """How many pairs it and the batches after it are expected to draw."""
        return float(self.chances.by(len(self.step.constants) - 1).sum())

    def draws(self, *, seed: str) -> IntArray:
        """Return the pairs that it draws, ascending."""
        if self.topics is not None:
            return self._by_topic(self.topics, seed)
        frame = self.frame
        number = _random_numbers(frame.pool, seed)[frame.at]
        return frame.at[self.standing.open & (number < reached(self.standing, self.chances))]

    def chance_of(self, pairs: IntArray) -> FloatArray:
        """Return the chances with which it draws pairs that can be drawn."""
        return self.chances.by(0)[self.frame.place(pairs)]

    def _by_topic(self, topics: TopicChoice, seed: str) -> IntArray:
        frame, chance = self.frame, self.chances.by(0)
        numbers = topic_random_numbers(frame.pool, seed=seed, batch=self.number)
        coins = class_random_numbers(seed=seed, batch=self.number, classes=topics.classes)
        taking_part = topics.taking_part(numbers, coins)
        some = np.flatnonzero(self.standing.open & (chance > 0.0) & taking_part[frame.topic])
        pairs = frame.at[some]
        numbers = batch_random_numbers(frame.pool, seed=seed, batch=self.number, pairs=pairs)
        found: IntArray = pairs[numbers < chance[some] / topics.chance[frame.topic[some]]]
        return found


@dataclass(frozen=True, eq=False, repr=False)
class AdaptiveRound(DrawnRound):
    """A plan, and the batches planned from the judgments so far."""

    design: AdaptivePlan
    sample: AdaptiveState

    @classmethod
    def begin(
        cls, pool: Pool, plan: AdaptivePlan, *, seed: str, labels: LabelRows | None = None
    ) -> AdaptiveRound:
        """Plan the first batch: by the design, and of a top-up by what was judged before.

        `labels` are those of the pairs of its past.
        """
        check_seed(seed)
        if plan.design.pool_digest != pool.digest:
            raise AdaptiveError("the plan belongs to another pool")
        nothing = np.array([], dtype=np.int64)
        known = LabelRows(nothing, nothing) if labels is None else labels
        return cls.unplanned(plan, seed=seed).extended(pool, labels=known)

    @classmethod
    def unplanned(cls, plan: AdaptivePlan, *, seed: str) -> AdaptiveRound:
        """Return the round before its first batch is planned."""
        nothing = np.array([], dtype=np.int64)
        empty = AdaptiveState(seed, nothing, nothing.astype(np.int32), nothing.astype(float), ())
        return cls(plan, empty.after(plan.past))

    method = "adaptive"

    @property
    def batches(self) -> int:
        """Number of batches, the ones that are not planned yet included."""
        return self.design.design.batches

    @property
    def planned(self) -> int:
        """Number of batches that were planned."""
        return self.sample.batches

    @property
    def budgets(self) -> tuple[float | None, ...] | None:
        """What the round was to spend when each batch was planned; None: what its design says."""
        found = tuple(step.budget for step in self.sample.steps)
        return found if any(each is not None for each in found) else None

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What it was planned for, the goal's first."""
        return self.design.design.measure, *self.design.design.reported

    def pairs(self, pool: Pool) -> IntArray:
        """Return the pairs of the planned batches, ascending."""
        return self.sample.pair

    def served(self, pool: Pool) -> Served:
        """Return what is to be judged in the batches that are planned.

        `Served.probability` is that of the pair to be drawn in its batch, given that it was not
        drawn before. The estimates of the round do not rest on it alone (`sampling`).
        """
        once = np.ones(len(self.sample.pair), dtype=np.int64)
        batch = np.maximum(self.sample.batch, 1)  # what was judged before comes with the first
        return Served(self.sample.pair, batch, self.sample.chance, once, pool)

    def prefix(self, pool: Pool, batches: int) -> AdaptiveRound:
        """Return the round as it was when so many batches were planned."""
        check_whole(batches, name="batches", most=self.sample.batches)
        if batches == self.sample.batches:
            return self
        return replace(self, sample=self.sample.first(batches))

    def following(self, before: AdaptiveRound) -> AdaptiveRound:
        """Return the same with all that was worked out of it when it had fewer batches.

        Their designs must be equal.
        """
        return AdaptiveRound(before.design, self.sample.following(before.sample))

    def extended(
        self,
        pool: Pool,
        *,
        labels: LabelRows,
        negligible: float = 0.0,
        budget: float | None = None,
        known: MeasureResult | None = None,
    ) -> AdaptiveRound:
        """Plan one more batch from the judgments of all pairs so far.

        The same labels give the same batch. Returns the round itself when all are planned. For the
        goal "winner", differences under its measure up to `negligible` do not matter, and `known`
        is what `answer` says under it of these judgments, if that was worked out before. `budget`
        is what the round may spend in all as of now, where that follows the measured pace
        (`hours`); it must rest on the batches so far alone.

        Raises
        ------
        LabelError
            If a sampled pair has no label.

        Examples
        --------
        >>> pool = pool_runs(read_runs("demo/collection/runs"), depth=10)
        >>> asked = {"measure": "DCG@10", "budget": 200, "method": "adaptive", "max_grade": 3}
        >>> drawn = draw_round(pool, make_design(pool, **asked), seed="a seed")
        >>> truth = read_qrels("demo/collection/qrels.txt.gz")
        >>> while drawn.planned < drawn.batches:
        ...     labels = truth.labels(pool, drawn.pairs(pool), unlisted=0)
        ...     drawn = drawn.extended(pool, labels=labels)
        >>> drawn.planned
        10
        """
        if self.sample.batches == self.batches:
            return self
        planned = self.next_batch(
            pool, labels=labels, negligible=negligible, budget=budget, known=known
        )
        return self.with_batch(planned, planned.draws(seed=self.sample.seed))

    def redrawn(self, pool: Pool, *, seed: str) -> AdaptiveRound:
        """Draw the batches again from the design, a seed and what was learned before each of them.

        All of a round but its models hangs on no label, so that this tells whether it is what it is
        said to be, however labels were corrected since. The first batch of a round that is no
        top-up has learned nothing.
        """
        frame, nothing = self.design.frame(pool), self.sample.first(0)
        again = replace(self, sample=replace(nothing, seed=seed))
        for step in self.sample.steps:
            learned = again.planned or self.design.past is not None
            found = (step.model, step.race) if learned else (None, None)
            planned = again._planned(frame, *found, step.budget)
            again = again.with_batch(planned, planned.draws(seed=seed))
        return again

    def next_batch(
        self,
        pool: Pool,
        *,
        labels: LabelRows,
        negligible: float = 0.0,
        budget: float | None = None,
        known: MeasureResult | None = None,
    ) -> PlannedBatch:
        """Plan the next batch without drawing it; as `extended`."""
        frame = self.design.frame(pool)
        model, race = self.learned(frame, labels), None
        if model is not None and self.planned and self.design.goal.kind == "winner":
            found = self._under_the_goal(pool, labels) if known is None else known
            race = race_of(found, self.design.goal, negligible=negligible)
        return self._planned(frame, model, race, budget)

    def _under_the_goal(self, pool: Pool, labels: LabelRows) -> MeasureResult:
        """What all batches so far say of the runs of the pool under the measure of the goal."""
        asked = Asked(labels, (self.design.measure,), self.design.max_grade)
        return self.answer(Scope.of(pool), asked).results[0]

    def _planned(
        self,
        frame: AdaptiveFrame,
        model: LearnedGrades | None,
        race: Race | None,
        budget: float | None,
    ) -> PlannedBatch:
        standing, number = standing_after(frame, self.sample), self.sample.batches + 1
        chances = plan_chances(
            frame, model, standing, number=number, spent=self.spent, race=race, budget=budget
        )
        step = AdaptiveStep(model, chances.constants, race, budget)
        apart = frame.topic_minimum > 1.0
        topics = frame.topics_at(model, chances.by(0)) if apart else None
        return PlannedBatch(frame, number, step, standing, chances, topics)

    def with_batch(self, planned: PlannedBatch, drawn: IntArray) -> AdaptiveRound:
        """Return the round with one more batch, of these pairs."""
        state = self.sample
        order = np.argsort(np.append(state.pair, drawn), kind="stable")
        number = np.full(len(drawn), state.batches + 1, dtype=np.int32)
        pair, batch, chance = (
            frozen(np.append(before, new)[order])
            for before, new in (
                (state.pair, drawn),
                (state.batch, number),
                (state.chance, planned.chance_of(drawn)),
            )
        )
        longer = AdaptiveState(state.seed, pair, batch, chance, (*state.steps, planned.step))
        longer.walks.extend(state.walks)
        return replace(self, sample=longer)

    @property
    def spent(self) -> float:
        """What the planned batches cost."""
        costs, pairs = self.design.costs, self.sample.pair[self.sample.batch > 0]
        return float(len(pairs)) if costs is None else float(costs[pairs].sum())

    def learned(self, frame: AdaptiveFrame, labels: LabelRows) -> LearnedGrades | None:
        """What the judgments of all batches so far say of grades; None: too few for a model."""
        pairs = self.sample.pair
        rows = select_rows(
            labels,
            sampled=pairs,
            prefix=pairs,
            max_grade=self.design.max_grade,
            pool=frame.pool,
        )
        if not len(pairs):  # before the first batch there is nothing to learn from
            return None
        number = np.maximum(np.bincount(rows.pair, minlength=len(pairs)), 1)
        columns = (
            np.bincount(rows.pair[rows.grade >= level], minlength=len(pairs)) / number
            for level in frame.levels.tolist()
        )
        shares = np.stack(list(columns), axis=1)
        before = self.sample.steps[-1].model if self.sample.steps else None
        model = fit_grades(frame.features, pairs, shares, levels=frame.levels, before=before)
        if model is None or model.scoring is None:
            return model
        return trusted(model, model.scoring, frame, self.sample, shares, rows)

    def answer(self, scope: Scope, asked: Asked) -> Evaluation:
        """Estimate the runs of a scope from the planned batches; see `evaluation.evaluate`.

        Judgments of the planned batches must be complete.
        """
        return answer_of_batches(self._sampled(scope, asked.measures), asked)

    def work_ahead(self, scope: Scope, measures: tuple[Measure, ...]) -> None:
        """Work out and keep what `answer` takes of the planned batches, and no judgment is in."""
        self._sampled(scope, measures).work_ahead()

    def variance_by_topic(self, scope: Scope, asked: Asked, measure: Measure) -> FloatArray:
        """Split the sampling variance of values under a sum of gains by topic, shape (T, k)."""
        return variance_of_topics(self._sampled(scope, (measure,)), asked, measure)

    def _sampled(self, scope: Scope, measures: tuple[Measure, ...]) -> Sampled:
        if scope.sampled is None:
            raise AdaptiveError("adaptive rounds can only be estimated from with their pool")
        return Sampled(self.design.frame(scope.sampled), self.sample, scope, measures)


def _random_numbers(pool: Pool, seed: str) -> FloatArray:
    return kept(
        pool.kept, "numbers", seed, lambda: frozen(permanent_random_numbers(pool, seed=seed))
    )
