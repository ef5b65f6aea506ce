"""How near what a top-up is foretold to reach is to what came: `benchmarks.ahead --top-ups`.

Two thirds of the runs, chosen once, are the old ones: an adaptive round over their pool is judged.
Then the others join, and a top-up over the pool of all is foretold and played to its end, alone and
together with the first. Each trial has a first round of its own. Told are the half width of the
middle run that came, and what was foretold over it, as it is played and by the design alone, in the
median of the trials; and in how many cells what came was within the range give or take a quarter.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.grown import Grown
from benchmarks.public import FOLDER, collection_in
from estimation.core.arrays import FloatArray
from estimation.core.data.labels import LabelRows
from estimation.core.measures.table import parse_measure
from estimation.core.planning.learning import LearningProspects
from estimation.core.planning.prospects import reached_by_budget
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.adaptive.top_ups import unlearned
from estimation.management.judged_collections import read_collection

CELLS = ("cranfield", "DCG@10"), ("trec8", "P@10"), ("dl2019", "DCG@10")
FIRST, MORE, WAYS = (500, 2000), (120, 500, 1000), ("alone", "together")
GOALS = "absolute", "ranking"
DEPTH, OLD, MOST, NEAR = 10, 2.0 / 3.0, 0.75, 1.25


@dataclass(frozen=True, eq=False, kw_only=True)
class Foretold(Grown):
    """A collection of which some runs come later, whose top-ups are foretold and played."""

    def first(self, budget: int, turn: int) -> AdaptiveRound:
        return self.played(self.smaller, self.plan(self.smaller, budget), f"first {turn}")

    def second(self, first: AdaptiveRound, budget: int, way: str) -> AdaptivePlan:
        judged = np.sort(self.place[first.sample.pair])
        past = self.alone(judged) if way == "alone" else self.together(first, judged, budget)
        return self.top_up(budget, past)

    def came(self, plan: AdaptivePlan, turn: int) -> float:
        """The half width of the middle run."""
        result = self.result(self.played(self.pool, plan, f"second {turn}"))
        return float(np.median(result.estimate.half_width))

    def told(self, plan: AdaptivePlan) -> tuple[float, float]:
        """The half width of the middle run as it is played, at best and at worst."""
        assert plan.past is not None
        judged = plan.past.judged
        labels = LabelRows(judged, self.grades[judged])
        told = LearningProspects.of(self.pool, plan, measures=[plan.measure], labels=labels)
        here = told.reached().at(plan.budget)
        return here.half_width, here.half_width_most

    def by_design(self, plan: AdaptivePlan) -> tuple[float, float]:
        told = reached_by_budget(
            self.pool, unlearned(plan), measure=plan.measure, prior=self.prior(self.pool),
            max_grade=plan.max_grade,
        )  # fmt: skip
        here = told.at(plan.budget)
        return here.half_width, here.half_width_most


def lines(wanted: str, trials: int) -> Iterator[str]:
    """A line for each cell, then how many hold, as it is played and by the design alone."""
    found: list[tuple[str, FloatArray]] = []
    for name, measure in (each for each in CELLS if wanted in each[0]):
        there = collection_in(FOLDER, name)
        read = read_collection(there / "runs", there / "qrels.txt", after_each=lambda _: None)
        for goal in GOALS:
            grown = Foretold(
                collection=read, measure=parse_measure(measure), goal=goal, depth=DEPTH, share=OLD
            )
            for cell, over in _cells(grown, trials):
                found.append((f"{name} {measure} {goal} {cell}", over))
                yield f"{found[-1][0]:42}" + _line(over)
    for way, ends in (("played", slice(1, 3)), ("by the design", slice(3, 5))):
        told = {cell: over[ends] for cell, over in found}
        held = [low <= NEAR and high >= 1.0 / NEAR for low, high in told.values()]
        low, high = max(told, key=lambda cell: told[cell][0]), min(told, key=lambda c: told[c][1])
        yield (
            f"{way}: {sum(held)} of {len(held)} cells within; too wide at best "
            f"{told[low][0]:.2f} ({low}), too narrow at worst {told[high][1]:.2f} ({high})"
        )


def _cells(grown: Foretold, trials: int) -> Iterator[tuple[str, FloatArray]]:
    for first in (each for each in FIRST if each < len(grown.smaller)):
        rounds = [grown.first(first, turn) for turn in range(trials)]
        for more in (each for each in MORE if each <= MOST * (len(grown.pool) - first)):
            for way in WAYS:
                found = [_over(grown, turn, each, more, way) for turn, each in enumerate(rounds)]
                yield f"{first} + {more} {way}", np.median(found, axis=0)


def _over(grown: Foretold, turn: int, first: AdaptiveRound, more: int, way: str) -> FloatArray:
    """What came, and what was foretold over it: played, and by the design, at best and at worst."""
    plan = grown.second(first, more, way)
    width = max(grown.came(plan, turn), 1e-12)
    ends = *grown.told(plan), *grown.by_design(plan)
    return np.array([width, *(each / width for each in ends)])


def _line(over: FloatArray) -> str:
    width, *ends = over.tolist()
    return f"{width:8.4f}   {ends[0]:5.2f} {ends[1]:5.2f}   {ends[2]:5.2f} {ends[3]:5.2f}"
