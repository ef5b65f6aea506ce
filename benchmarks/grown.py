"""Judged collections of which some runs come later: what the benchmarks of top-ups play on."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from estimation.core.arrays import IntArray
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.data.scope import Scope, place_of_pairs
from estimation.core.measures.table import Measure
from estimation.core.rounds.adaptive.past import Past
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.adaptive.top_ups import continued, topped_up
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import DrawnRound, MeasureResult
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.designs import Method as Drawing
from estimation.core.sampling.goals import Goal
from estimation.core.sampling.priors import Prior, make_prior
from estimation.management.judged_collections import JudgedCollection, grades_of

BATCHES = 10  # of an adaptive round


@dataclass(frozen=True, eq=False, kw_only=True)
class Grown:
    """A collection of whose runs a share is old, a measure and a goal.

    ``split`` is by which numbers the old ones are chosen.
    """

    collection: JudgedCollection
    measure: Measure
    goal: str
    depth: int
    share: float
    split: int = 0

    @cached_property
    def old(self) -> list[str]:
        """The tags of the old runs."""
        tags, rng = sorted(self.collection.runs), np.random.default_rng(self.split)
        number = math.ceil(self.share * len(tags) - 0.5)
        return sorted(rng.choice(tags, number, replace=False).tolist())

    @cached_property
    def smaller(self) -> Pool:
        """The pool of the old runs, over the topics of all."""
        runs = {tag: self.collection.runs[tag] for tag in self.old}
        return replace(self.collection, runs=runs).pool(depth=self.depth)

    @cached_property
    def pool(self) -> Pool:
        """The pool of all runs."""
        return self.collection.pool(depth=self.depth)

    @cached_property
    def grades(self) -> IntArray:
        """The grade of each pair of the pool."""
        return grades_of(self.pool, self.collection.grades)[0]

    @cached_property
    def place(self) -> IntArray:
        """Where the pairs of the smaller pool stand in the pool."""
        return place_of_pairs(self.smaller, self.pool)

    def prior(self, pool: Pool) -> Prior:
        goal, best = Goal(self.goal, pool.runs), self.collection.max_grade
        return make_prior(pool, name="rank", goal=goal, measure=self.measure, max_grade=best)

    def design(self, pool: Pool, budget: int, batches: int, method: Drawing) -> Design:
        return make_design(
            pool, goal=Goal(self.goal, pool.runs), measure=self.measure, prior=self.prior(pool),
            budget=budget, batch_size=-(-budget // batches), method=method,
        )  # fmt: skip

    def plan(self, pool: Pool, budget: int) -> AdaptivePlan:
        design = self.design(pool, budget, BATCHES, "adaptive")
        return AdaptivePlan(design, self.collection.max_grade)

    def played(self, pool: Pool, plan: AdaptivePlan, seed: str) -> AdaptiveRound:
        """An adaptive round over the smaller pool or the pool, of which every batch is judged."""
        grades = self.grades if pool is self.pool else self.grades[self.place]

        def labels(pairs: IntArray) -> LabelRows:
            return LabelRows(pairs, grades[pairs])

        judged = np.array([], dtype=np.int64) if plan.past is None else plan.past.judged
        drawn = AdaptiveRound.begin(pool, plan, seed=seed, labels=labels(judged))
        while drawn.planned < drawn.batches:
            drawn = drawn.extended(pool, labels=labels(drawn.sample.pair))
        return drawn

    def top_up(self, budget: int, past: Past) -> AdaptivePlan:
        """An adaptive second round that knows what was judged."""
        return topped_up(self.plan(self.pool, budget), past)

    def alone(self, judged: IntArray) -> Past:
        """What a second round starts from that is estimated without the first."""
        return Past.alone(judged, pairs=len(self.pool))

    def together(self, first: AdaptiveRound, judged: IntArray, budget: int) -> Past:
        """What one starts from whose batches are further batches of the first round."""
        frame, scope = first.design.frame(self.smaller), Scope.of(self.smaller, self.pool)
        return continued(scope, frame, first.sample, judged, budget=float(budget))

    def result(self, drawn: DrawnRound) -> MeasureResult:
        """What a round over the pool tells when all that it drew is judged."""
        pairs = drawn.pairs(self.pool)
        labels, best = LabelRows(pairs, self.grades[pairs]), self.collection.max_grade
        return evaluate(
            self.pool, drawn, labels=labels, measures=[self.measure], max_grade=best
        ).results[0]
