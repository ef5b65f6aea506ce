"""What old judgments do for new runs: error and coverage of second rounds over a grown pool.

    python -m benchmarks.top_ups                       every cell, from EVALSITE_TEST_DATA
    python -m benchmarks.top_ups --trials 20 --cell cranfield

Half of the runs of a fully judged collection, chosen once, are the old ones: a first round over
their pool is judged. Then the others join, and a second round of as many *new* judgments, as
expected, is drawn over the pool of all:

fresh
    as if there was no first round, and estimated without it.
union
    the same second round, estimated together with the first (Poisson rounds alone).
top-up
    filling up the chances of the first, and estimated together with it (likewise).
certain
    taking what the first judged for certain, and estimated alone.
learned
    the same by adaptive sampling, whose model knows what was judged before its first batch.
continued
    the same, whose batches are further batches of the first round, if that is adaptive.
twin
    as `certain`, but estimated together with the first round, as if its chances had been fixed
    before anything was drawn. It must be caught: it is biased.

Errors are roots of mean squares over trials and runs, of values, or of differences from the mean
of the runs for the goal ranking, old and new runs apart. "covers" is how often 95 % intervals hold
the truth, on average, and for the worst run of all; "false" the share of trials with any false
verdict; "true" the mean number of true ones; "bias" the largest over runs, in standard errors of
its own mean.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from benchmarks.grown import BATCHES, Grown
from benchmarks.public import FOLDER, collection_in
from estimation.core.arrays import FloatArray
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.adaptive.past import Past
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.combining import RoundsTogether, part_over
from estimation.core.rounds.results import DrawnRound
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.designs import Design
from estimation.core.sampling.designs import Method as Drawing
from estimation.core.sampling.draws import draw
from estimation.core.sampling.probabilities import poisson_thresholds
from estimation.core.sampling.top_up import top_up
from estimation.management.judged_collections import JudgedCollection, read_collection
from estimation.research.simulation import true_values
from estimation.research.trials.honesty import Claims, Truth, check
from estimation.research.trials.processes import in_processes

CELLS = (
    ("cranfield", "DCG@10", 10, 1000, 1000),
    ("cranfield", "DCG@10", 10, 2000, 500),
    ("trec8", "P@10", 10, 1000, 1000),
    ("trec8", "P@10", 10, 2000, 500),
)
GOALS = ("absolute", "ranking")
WAYS = ("fresh", "union", "top-up", "certain", "learned", "continued", "twin")


@dataclass(frozen=True, eq=False)
class Trial:
    """What a way told in one trial, and how many pairs were judged anew."""

    error: FloatArray
    held: FloatArray
    any_false: bool
    true_verdicts: int
    new: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Cell(Grown):
    """A collection of which half of the runs are old, a measure, a goal, and what both rounds cost.

    ``first`` is how the first round was drawn.
    """

    budgets: tuple[int, int]
    first: Drawing = "poisson"
    share: float = 0.5

    @cached_property
    def truth(self) -> Truth:
        """The values of all runs."""
        return Truth.of(true_values(self.pool, grades=self.grades, measure=self.measure))

    @cached_property
    def designs(self) -> tuple[Design, Design]:
        """Of the first round, and of the second as if there was none before it."""
        first, second = self.budgets
        one = self.design(self.smaller, first, BATCHES, self.first)
        return one, self.design(self.pool, second, 1, "poisson")

    @cached_property
    def chances(self) -> FloatArray:
        """Of each pair of the pool to be in a first round by Poisson sampling."""
        chance = np.zeros(len(self.pool))
        chance[self.place] = self.designs[0].inclusion()
        return chance

    @cached_property
    def filling(self) -> Design:
        """The second round that fills up the chances of the first."""
        return top_up(self.designs[1], self.chances).own(alone=False)

    @cached_property
    def beside(self) -> Design:
        """The second round as if there was no first, of as many new pairs."""
        return _of_new_pairs(self.designs[1], self.chances)

    def play(self, turn: int) -> dict[str, Trial]:
        """Draw both rounds, the second by every way there is."""
        first = self._first(f"{turn} first")
        judged = np.zeros(len(self.pool))
        judged[self.place[first.pairs(self.smaller)]] = 1.0
        alone = partial(self._told, judged=judged)
        second = partial(draw, self.pool, seed=f"{turn} second")
        plain = self.beside if self.first == "poisson" else _of_new_pairs(self.designs[1], judged)
        certain = top_up(self.designs[1], judged).own(alone=True)
        found = {"fresh": alone(PairRound(plain, second(plain)))}
        found["certain"] = alone(PairRound(certain, second(certain)))
        past = self.alone(np.flatnonzero(judged))
        found["learned"] = alone(self._adaptive(past, f"{turn} third"))
        if isinstance(first, AdaptiveRound):
            past = self.together(first, past.judged, self.budgets[1])
            found["continued"] = alone(self._adaptive(past, f"{turn} third"))
        if isinstance(first, PairRound):
            for way, design in (
                ("union", plain), ("top-up", self.filling), ("twin", certain),
            ):  # fmt: skip
                part = part_over(first, pool=self.smaller, joined=self.pool, like=design)
                found[way] = alone(RoundsTogether((part, PairRound(design, second(design)))))
        return found

    def _first(self, seed: str) -> PairRound | AdaptiveRound:
        design, pool = self.designs[0], self.smaller
        if self.first == "poisson":
            return PairRound(design, draw(pool, design, seed=seed))
        return self.played(pool, AdaptivePlan(design, self.collection.max_grade), seed)

    def _adaptive(self, past: Past, seed: str) -> AdaptiveRound:
        return self.played(self.pool, self.top_up(self.budgets[1], past), seed)

    def _told(self, drawn: DrawnRound, *, judged: FloatArray) -> Trial:
        pairs, result = drawn.pairs(self.pool), self.result(drawn)
        seen = check([Claims.of(result)], self.truth)
        order = seen.order
        return Trial(
            error=result.estimate.value - self.truth.value,
            held=np.where(seen.told, seen.held, np.nan),
            any_false=order is not None and order.any_false,
            true_verdicts=0 if order is None else order.true_verdicts,
            new=int(np.count_nonzero(judged[pairs] == 0.0)),
        )


def _of_new_pairs(design: Design, earlier: FloatArray) -> Design:
    """The same sizes, with the constant that pays for as many pairs that are not there."""
    steps = poisson_thresholds(design.size, targets=np.array([design.budget]), costs=1.0 - earlier)
    return replace(design, steps=steps)


@dataclass(frozen=True)
class Line:
    """What a way comes to, over all trials of a cell."""

    way: str
    old: float
    new: float
    covers_old: float
    covers_new: float
    worst: float
    false: float
    true: float
    bias: float
    judged: float


def line_of(cell: Cell, way: str, trials: list[Trial]) -> Line:
    """Sum up the trials of a way."""
    errors = np.stack([each.error for each in trials])
    held = np.stack([each.held for each in trials])
    compared = errors - errors.mean(axis=1, keepdims=True) if cell.goal == "ranking" else errors
    is_old = np.isin(cell.pool.runs, cell.old)
    squares, spread = np.square(compared), errors.std(axis=0, ddof=1) / np.sqrt(len(trials))
    varies, covered = spread > 1e-9 * np.abs(cell.truth.value).max(), np.nanmean(held, axis=0)
    return Line(
        way=way,
        old=float(np.sqrt(squares[:, is_old].mean())),
        new=float(np.sqrt(squares[:, ~is_old].mean())),
        covers_old=float(np.nanmean(held[:, is_old])),
        covers_new=float(np.nanmean(held[:, ~is_old])),
        worst=float(np.nanmin(covered)),
        false=float(np.mean([each.any_false for each in trials])),
        true=float(np.mean([each.true_verdicts for each in trials])),
        bias=float(np.max(np.abs(errors.mean(axis=0))[varies] / spread[varies])),
        judged=float(np.mean([each.new for each in trials])),
    )


def table(cell: Cell, trials: list[dict[str, Trial]]) -> list[str]:
    """What is printed of a cell."""
    lines = [line_of(cell, way, [each[way] for each in trials]) for way in WAYS if way in trials[0]]
    compared = "union" if cell.first == "poisson" else "fresh"
    base = next(each for each in lines if each.way == compared)
    head = "way      error old   new  (ratios)     covers old   new  worst  false   true  bias  new"
    return [head, *(_row(each, base) for each in lines)]


def _row(line: Line, base: Line) -> str:
    return (
        f"{line.way:8} {line.old:9.4f} {line.new:6.4f} ({line.old / base.old:.2f} "
        f"{line.new / base.new:.2f})     {line.covers_old:10.3f} {line.covers_new:5.3f} "
        f"{line.worst:6.3f} {line.false:6.3f} {line.true:6.0f} {line.bias:5.1f} {line.judged:4.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cell", default="", help="only cells whose collection has this name")
    parser.add_argument("--goal", default=",".join(GOALS))
    parser.add_argument("--first", default="poisson", help="poisson or adaptive")
    parser.add_argument("--split", type=int, default=0, help="which half of the runs is old")
    given = parser.parse_args()

    def read(name: str) -> JudgedCollection:
        there = collection_in(FOLDER, name)
        return read_collection(there / "runs", there / "qrels.txt")

    known: Mapping[str, JudgedCollection] = {
        name: read(name) for name in sorted({cell[0] for cell in CELLS}) if given.cell in name
    }
    for name, measure, depth, *budgets in CELLS:
        for goal in given.goal.split(","):
            if name not in known:
                continue
            first, second = budgets
            cell = Cell(
                collection=known[name], measure=parse_measure(measure), goal=goal, depth=depth,
                budgets=(first, second), first=given.first, split=given.split,
            )  # fmt: skip
            trials = list(in_processes(cell.play, given.trials, jobs=given.jobs))
            print(f"\n{name} {measure} {goal}, {first} + {second} pairs, {given.trials} trials")
            print("\n".join(table(cell, trials)), flush=True)


if __name__ == "__main__":
    main()
