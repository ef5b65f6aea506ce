"""How near what an adaptive round is foretold to reach before anything is judged is to what came.

    python -m benchmarks.ahead                  every cell, from EVALSITE_TEST_DATA
    python -m benchmarks.ahead --cell trec8 --trials 10
    python -m benchmarks.ahead --top-ups --trials 3    of top-ups (`ahead_top_ups`)

A cell is a collection, a measure, a goal and a budget. Told are the half width of the middle run
that came in the median of the trials, for the goal "pair" 1.96 standard errors of the difference of
its two runs; what was foretold over it, at best and at worst, as the round is played in worlds; and
the same by the design of its first batch alone, as the prior expects and with relevant documents
everywhere.
"""

import argparse
from collections.abc import Iterator
from functools import cache

import numpy as np

from benchmarks import ahead_top_ups
from benchmarks.public import FOLDER, collection_in
from estimation.core.arrays import IntArray
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.measures.table import parse_measure
from estimation.core.planning.learning import LearningProspects
from estimation.core.planning.planning import expected_covariances
from estimation.core.planning.prospects import plentiful, reached_by_budget
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.evaluation import evaluate
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.goals import Goal
from estimation.core.sampling.priors import Prior, make_prior
from estimation.management.judged_collections import grades_of, read_collection

DEPTH, BATCHES, NORMAL = 10, 10, 1.96
CELLS = (
    ("cranfield", ("DCG@10", "P@10", "AP")),
    ("dl2019", ("DCG@10", "P(rel=2)@10", "nDCG@10")),
    ("trec8", ("P@10", "RBP(p=0.8)", "AP")),
    ("ltr-rank", ("DCG@10", "P(rel=2)@10", "nDCG@10")),
)
GOALS, BUDGETS, MOST = ("absolute", "ranking", "winner", "pair"), (250, 1000, 3000), 0.75


@cache
def collection(name: str) -> tuple[Pool, IntArray, int]:
    place = collection_in(FOLDER, name)
    found = read_collection(place / "runs", place / "qrels.txt", after_each=lambda _: None)
    pool = found.pool(depth=DEPTH)
    return pool, grades_of(pool, found.grades)[0], found.max_grade


def goal_of(pool: Pool, kind: str) -> Goal:
    runs = pool.runs
    if kind == "pair":
        return goals.pair(runs[len(runs) // 3], runs[2 * len(runs) // 3])
    if kind == "winner":
        return goals.winner(*runs)
    return goals.absolute(*runs) if kind == "absolute" else goals.ranking(*runs)


def planned(
    pool: Pool, best: int, measure: str, kind: str, budget: int
) -> tuple[AdaptivePlan, Prior]:
    goal, asked = goal_of(pool, kind), parse_measure(measure)
    prior = make_prior(pool, name="rank", goal=goal, measure=asked, max_grade=best)
    design = make_design(
        pool, goal=goal, measure=asked, prior=prior, method="adaptive", max_grade=best,
        budget=budget, batch_size=-(-budget // BATCHES),
    )  # fmt: skip
    return AdaptivePlan(design, best), prior


def asked_runs(pool: Pool, goal: Goal) -> tuple[int, int] | None:
    return (
        None
        if goal.kind != "pair"
        else (pool.run_index(goal.runs[0]), pool.run_index(goal.runs[1]))
    )


def came(pool: Pool, plan: AdaptivePlan, grades: IntArray, turn: int) -> float:
    drawn = AdaptiveRound.begin(pool, plan, seed=f"ahead {turn}")
    while drawn.planned < drawn.batches:
        labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
        drawn = drawn.extended(pool, labels=labels)
    labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
    asked = {"measures": [plan.measure], "max_grade": plan.max_grade}
    result = evaluate(pool, drawn, labels=labels, **asked).results[0]  # type: ignore[arg-type]
    two = asked_runs(pool, plan.goal)
    if two is not None:
        return NORMAL * float(result.ranking.difference_se[two])
    return float(np.median(result.estimate.half_width))


def by_design(pool: Pool, plan: AdaptivePlan, prior: Prior) -> tuple[float, float]:
    measure, best, design = plan.measure, plan.max_grade, plan.design
    two = asked_runs(pool, plan.goal)
    if two is None:
        told = reached_by_budget(pool, design, measure=measure, prior=prior, max_grade=best)
        here = told.at(design.budget)
        return here.half_width, here.half_width_most
    widths = []
    for each in (prior, plentiful(prior, measure, best)):
        found, _ = expected_covariances(
            pool, design, measure=measure, prior=each, steps=[design.step()], max_grade=best
        )
        first, second = two
        variance = found[0, first, first] + found[0, second, second] - 2.0 * found[0, first, second]
        widths.append(NORMAL * float(np.sqrt(max(variance, 0.0))))
    return widths[0], widths[1]


def lines(wanted: str, trials: int) -> Iterator[str]:
    for name, measures in CELLS:
        if wanted not in name:
            continue
        pool, grades, best = collection(name)
        for measure, kind in ((each, goal) for each in measures for goal in GOALS):
            told = None
            for budget in (each for each in BUDGETS if each <= MOST * len(pool)):
                plan, prior = planned(pool, best, measure, kind, budget)
                told = told or LearningProspects.of(pool, plan, measures=[plan.measure])
                here = told.reached().at(float(budget))
                ends = here.half_width, here.half_width_most
                if kind == "pair":
                    ends = told.differences(plan.measure, float(budget))
                width = float(np.median([came(pool, plan, grades, turn) for turn in range(trials)]))
                over = [each / max(width, 1e-12) for each in (*ends, *by_design(pool, plan, prior))]
                yield (
                    f"{name:10}{measure:13}{kind:10}{budget:5}  {width:8.4f}   "
                    f"{over[0]:5.2f} {over[1]:5.2f}   {over[2]:5.2f} {over[3]:5.2f}"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--cell", default="", help="part of a collection's name")
    parser.add_argument("--top-ups", action="store_true")
    given = parser.parse_args()
    print(f"{'':42}    came    played         by the design")
    told = ahead_top_ups.lines if given.top_ups else lines
    for line in told(given.cell, given.trials):
        print(line, flush=True)


if __name__ == "__main__":
    main()
