"""How well a round foretells itself: judgments until a goal is met, foretold and taken.

    python -m benchmarks.forecasts                     every cell, from EVALSITE_TEST_DATA
    python -m benchmarks.forecasts --trials 20 --cell cranfield
    python -m benchmarks.forecasts --method adaptive   the same of adaptive rounds

A trial draws a sample of a fully judged collection, looks at it after a quarter of the budget, and
foretells how many pairs will be judged when the middle run's half width is half of what it is then,
and when one run is surely the best. Then the sample is judged on, to the end of the pool if needed,
and estimated after every 5 % more judgments, until both have come. "within" is the share of trials
in which what was foretold is within a factor 1.5 of what it took.

Of verdicts, as many as there are at the end of the budget are compared with those foretold.

Of the best run trials count in which it is not known when it is foretold. What is only known when
everything is judged counts as the whole pool, and so does "never". "right" counts, too, where it
was foretold and came that the budget does not decide it. "could" is the largest share of the
futures that any single number is within the factor of, by the forecast's own chances: what a
forecast can reach that knows no more. "range" is the share in which it took what was said to be
likely with 8 in 10, to a twentieth; "by end" the chance that was told for the end of the budget, on
average, and the share in which it was so.

The best of all runs of a collection is one case, however often a sample is drawn: whether its two
best runs are far apart or nearly tied is a fact of the collection. So trials are played with some
of its runs too, chosen at random in each (`--runs`).

"end" is the half width that is foretold for the end of the budget over the one that came. With
`--method adaptive` a round of `ADAPTIVE` batches foretells after a quarter, and what it took
is told by its later batches, and of the best run by a round that goes on to the end of the pool, to
the middle of the batch in which it came.

The twin foretells by observed differences as they are, with their errors, and must be caught: it
promises too early.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.public import FOLDER, collection_in
from estimation.core.arrays import FloatArray, IntArray, frozen
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.data.scope import Scope
from estimation.core.measures.table import parse_measure
from estimation.core.planning import contenders
from estimation.core.planning.forecasts import forecast
from estimation.core.planning.foretold import LIKELY, SELDOM, Forecast, crossing
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.goals import Goal
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.probabilities import poisson_thresholds
from estimation.management.judged_collections import JudgedCollection, grades_of, read_collection
from estimation.research.trials.processes import in_processes

DEPTH, FEW, STEP, FACTOR = 10, 10, 1.05, 1.5
ADAPTIVE, EARLY, LONG = (
    8,
    2,
    24,
)  # batches: of a round, before it foretells, of what goes on
OPEN = 0.98  # of the pool: what is decided later takes all of it
CELLS = (
    ("cranfield", "DCG@10", 2000),
    ("dl2019", "DCG@10", 1000),
    ("trec8", "P@10", 2000),
    ("dl2019", "nDCG@10", 1000),
    ("dl2019", "AP", 1000),
    ("trec8", "AP", 3000),
    ("trec8", "Rprec", 3000),
)
GOALS = ("ranking", "absolute")


@dataclass(frozen=True)
class Trial:
    """What was foretold after a quarter of the budget, and what it took; None: never."""

    width: tuple[float | None, float | None]
    told: Forecast
    best: float | None
    verdicts: float
    end: float
    pool: float


@dataclass(frozen=True, eq=False)
class Cell:
    """What is played: a collection, a measure, a goal, a budget, and how many of its runs."""

    collection: JudgedCollection
    measure: str
    goal: str
    budget: int
    runs: int | None
    method: str = "poisson"
    on: bool = True

    def play(self, turn: int) -> Trial:
        rng = np.random.default_rng(turn)
        tags = list(self.collection.runs)
        if self.runs is not None:
            tags = sorted(rng.choice(tags, self.runs, replace=False).tolist())
        chosen = replace(self.collection, runs={tag: self.collection.runs[tag] for tag in tags})
        pool, measure = chosen.pool(depth=DEPTH), parse_measure(self.measure)
        grades, _ = grades_of(pool, chosen.grades)
        best, budget = self.collection.max_grade, min(self.budget, len(pool) // 2)
        goal = Goal(self.goal, tuple(pool.runs))  # type: ignore[arg-type]
        prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=best)
        if self.method == "adaptive":
            design = partial(make_design, pool, goal=goal, measure=measure, prior=prior)
            return adaptive(
                pool, partial(design, method="adaptive"), grades, best, budget, turn, self.on
            )
        planned = make_design(
            pool, goal=goal, measure=measure, prior=prior, budget=budget, batch_size=budget // 4
        )
        known: dict[str, Any] = {"measures": [measure], "max_grade": best}
        sample = draw(pool, planned, seed=str(turn))
        labels = LabelRows(sample.pair, grades[sample.pair])
        part = PairRound(planned, sample)
        early = evaluate(pool, part, labels=labels, batches=1, **known).results[0]
        wanted = half_width(early) / 2.0
        told = forecast(Scope.of(pool), part, batches=1, result=early, max_grade=best)
        sizes = growing(float(planned.inclusion(1).sum()), float(planned.reachable_pairs))
        steps = np.append(planned.steps[0], poisson_thresholds(planned.size, targets=sizes))
        whole = replace(planned, steps=frozen(np.unique(steps)), budget=len(pool))
        drawn = draw(pool, whole, seed=str(turn))
        judged = LabelRows(drawn.pair, grades[drawn.pair])
        look = partial(evaluate, pool, PairRound(whole, drawn), labels=judged, **known)
        width, surely = taken(look, whole.batches, wanted)
        end = evaluate(pool, part, labels=labels, **known).results[0]
        return trial(told, wanted, width, surely, end, planned.batches, len(pool))


def adaptive(
    pool: Pool,
    design: Callable[..., Design],
    grades: IntArray,
    best: int,
    budget: int,
    turn: int,
    on: bool,
) -> Trial:
    def rounds(
        spent: int, batches: int
    ) -> Iterator[tuple[AdaptiveRound, LabelRows, MeasureResult]]:
        planned = design(budget=spent, batch_size=-(-spent // batches))
        drawn = AdaptiveRound.begin(pool, AdaptivePlan(planned, best), seed=str(turn))
        for _ in range(planned.batches):
            labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
            asked: dict[str, Any] = {"measures": [planned.measure], "max_grade": best}
            yield drawn, labels, evaluate(pool, drawn, labels=labels, **asked).results[0]
            drawn = drawn.extended(pool, labels=labels)

    every = rounds(budget, ADAPTIVE)
    drawn, labels, early = next(islice(every, EARLY - 1, None))
    told = forecast(
        Scope.of(pool), drawn, batches=EARLY, result=early, max_grade=best, labels=labels
    )
    wanted, now = half_width(early) / 2.0, float(len(drawn.sample.pair))
    points = [(now, half_width(early))]
    surely = now if np.any(early.ranking.rank_high == 1) else None
    for later, _, end in every:
        pairs = float(len(later.sample.pair))
        if surely is None and np.any(end.ranking.rank_high == 1):
            surely = middle(points[-1][0], pairs)
        points.append((pairs, half_width(end)))
    if surely is None and on:
        surely = beyond(rounds(len(pool), LONG), len(pool))
    width = crossing([(pairs, -each) for pairs, each in points], -wanted)
    return trial(told, wanted, width, surely, end, drawn.batches, len(pool))


def beyond(every: Iterator[Any], most: int) -> float | None:
    """Judged pairs when the best run is known, in a round that goes on to the end of the pool."""
    before = 1.0
    for later, _, result in every:
        pairs = float(len(later.sample.pair))
        if np.any(result.ranking.rank_high == 1):
            return middle(before, pairs) if pairs < OPEN * most else pairs
        before = pairs
    return None


def middle(before: float, after: float) -> float:
    return float(np.sqrt(before * after))


def trial(
    told: Forecast,
    wanted: float,
    width: float | None,
    surely: float | None,
    end: MeasureResult,
    batches: int,
    pool: int,
) -> Trial:
    foretold = next(each for each in told.steps if each.batches == batches)
    return Trial(
        (told.until_half_width(wanted), width),
        told,
        surely,
        foretold.decided / max(int(np.count_nonzero(end.ranking.verdicts == 1)), 1),
        foretold.half_width / half_width(end),
        float(pool),
    )


def growing(first: float, last: float) -> FloatArray:
    number = int(np.ceil(np.log(last / first) / np.log(STEP)))
    return np.geomspace(first, last, number + 1)[1:]


def half_width(result: MeasureResult) -> float:
    return float(np.median(result.estimate.high - result.estimate.low)) / 2.0


def taken(look: Callable[..., Any], batches: int, wanted: float) -> tuple[float | None, ...]:
    """Judged pairs at the first look at which each goal is met."""
    width = best = None
    for number in range(1, batches + 1):
        found = look(batches=number)
        result, pairs = found.results[0], float(found.judged_pairs)
        if width is None and half_width(result) <= wanted:
            width = pairs
        if best is None and np.any(result.ranking.rank_high == 1):
            best = pairs
        if width is not None and best is not None:
            break
    return width, best


def told_as_observed() -> Any:
    """The twin: true differences are what they look like, whatever luck there was."""
    return mock.patch.multiple(
        contenders,
        _prior=lambda *_: (0.0, 1e12),
        _widths=lambda _, number: np.full(number, 1e6),
    )


def line(trials: list[Trial]) -> str:
    ratios = np.array([ratio(*each.width) for each in trials if each.width[1] is not None])
    verdicts, end = (
        np.array(each) for each in zip(*((t.verdicts, t.end) for t in trials), strict=True)
    )
    return (
        f"{within(ratios)}  {quantiles(ratios)}   {quantiles(end)}   {quantiles(verdicts)}   "
        f"{of_best([each for each in trials if each.told.steps[0].best < 1.0])}"
    )


def of_best(trials: list[Trial]) -> str:
    if not trials:
        return "   0"
    took = np.array([min(each.best or each.pool, each.pool) for each in trials])
    few, middle, most = (
        np.array([min(each.told.until_best(chance) or each.pool, each.pool) for each in trials])
        for chance in (SELDOM, LIKELY, 1.0 - SELDOM)
    )
    ends = np.array([each.told.end for each in trials])
    chance = np.mean([each.told.of_best().chance or 0.0 for each in trials])
    near = np.abs(np.log(middle / took)) <= np.log(FACTOR)
    right = near | ((middle > ends) & (took > ends))
    could = np.mean([attainable(each) for each in trials])
    held = (few <= took * STEP) & (took <= most * STEP)
    return (
        f"{len(trials):4d} {near.mean():6.2f} {right.mean():6.2f} {could:6.2f}  "
        f"{quantiles(middle / took)} {held.mean():6.2f}   {chance:.2f} {np.mean(took <= ends):.2f}"
    )


def attainable(trial: Trial) -> float:
    """The share of the futures that the best single number is within the factor of."""
    pairs = np.array([min(each.pairs, trial.pool) for each in trial.told.steps])
    chances = [each.known for each in trial.told.steps]

    def by(number: FloatArray) -> FloatArray:
        found = np.interp(np.log(number), np.log(pairs), chances)
        return np.where(number >= trial.pool, 1.0, found)

    tried = np.geomspace(pairs[0], trial.pool, 100)
    return float(np.max(by(tried * FACTOR) - by(np.maximum(tried / FACTOR, pairs[0]))))


def ratio(foretold: float | None, took: float | None) -> float:
    return np.inf if foretold is None else foretold / (took or np.inf)


def within(ratios: FloatArray) -> str:
    if not len(ratios):
        return "     –"
    return f"{np.mean((ratios <= FACTOR) & (ratios >= 1.0 / FACTOR)):6.2f}"


def quantiles(ratios: FloatArray) -> str:
    if not len(ratios):
        return "    –         "
    return " ".join(f"{each:4.2f}" for each in np.quantile(ratios, [0.1, 0.5, 0.9], method="lower"))


def cells(
    folder: Path, wanted: str, goals: Sequence[str], numbers: Sequence[int], **how: Any
) -> Iterator[tuple[str, Cell]]:
    for name, measure, budget in CELLS:
        if wanted not in name:
            continue
        place = collection_in(folder, name)
        collection = read_collection(place / "runs", place / "qrels.txt", after_each=lambda _: None)
        for goal in goals:
            for runs in (number or None for number in numbers):
                told = f"{name:10} {measure:7} {goal:9} {runs or 'all':>4}"
                yield told, Cell(collection, measure, goal, budget, runs, **how)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--cell", default="", help="part of a collection's name")
    parser.add_argument("--twin", action="store_true", help="the broken twin")
    parser.add_argument("--method", default="poisson", choices=["poisson", "adaptive"])
    parser.add_argument("--goals", nargs="+", default=GOALS, choices=GOALS)
    parser.add_argument("--runs", nargs="+", type=int, default=(0, FEW), help="0: all")
    parser.add_argument("--within", action="store_true", help="adaptive: not beyond the budget")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    print(
        f"{'':34} half width:  ratio       end              verdicts         "
        "best: within right  could   ratio          range  by end"
    )
    for told, cell in cells(
        FOLDER, given.cell, given.goals, given.runs, method=given.method, on=not given.within
    ):
        with told_as_observed() if given.twin else nullcontext():
            trials = list(in_processes(cell.play, given.trials, jobs=given.jobs))
        print(f"{told}  {line(trials)}", flush=True)


if __name__ == "__main__":
    main()
