"""How many judgments it takes until the best run is known: goal "winner" beside goal "ranking".

    python -m benchmarks.winner                        every race, from EVALSITE_TEST_DATA
    python -m benchmarks.winner --race trec8:20 --trials 10
    python -m benchmarks.winner --replanning           processor seconds per batch, 128 runs

A race is a fully judged collection, with its measure, and some of its runs: all of them, or so many
that are drawn by a split. Both goals are adaptive rounds of `BATCHES` batches and of the same
budget, which is `SPARE` times what goal *ranking* took with another seed; after every batch the
rule "best run known" is looked at, with numbers that hold at all looks. A trial that is not decided
counts with its whole budget.

"-tied" adds a run that is truly as good as the best one: in every list, each document is replaced
by another one of the same topic with the same grade, where there is one. "-near" adds one that
returns what the best one does but for a single swap in a twentieth of the topics.

Columns: "judged", median of distinct pairs until the best run was known, and the share of them that
goal *winner* saves; "decided", share of trials in which it was; "wrong", trials in which the run
that was called the best is not; "false", trials with any false verdict on any two runs until then;
"bias", of values at batch `LOOK`, which is fixed, the largest over runs in standard errors of its
mean; "race", runs to which no other one was surely better, at the end.
"""

import argparse
import time
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np

from benchmarks.judgments.material import COLLECTIONS, Material
from benchmarks.public import FOLDER
from estimation.core.arrays import FloatArray, IntArray
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.inference.looks import Look
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning.stopping import StoppingRule
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.evaluation import evaluate
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.goals import Goal
from estimation.core.sampling.priors import make_prior
from estimation.research.simulation import true_values
from estimation.research.trials.honesty import Truth
from estimation.research.trials.processes import in_processes

RACES = (
    *("trec8:0", "trec8:30:1", "trec8:30:2", "trec8:10:1", "trec8:10:2", "trec8:5:1"),
    *("trec8-deep:30:1", "trec8-deep:10:1"),
    *("dl2019:30:1", "dl2019:20:1", "dl2019:10:1", "dl2019:10:2", "dl2019:5:1"),
    *("cranfield:20:1", "cranfield:10:1", "cranfield:5:1"),
    *("llm-judges:0", "llm-judges:20:1", "llm-judges:10:1", "llm-judges:10:2", "llm-judges:5:1"),
    *("ltr-rank:20:1", "ltr-rank:10:1", "ltr-rank:5:1"),
    *("trec8-tied:10:1", "dl2019-tied:10:1", "llm-judges-tied:10:1", "llm-judges-near:10:1"),
)
BATCHES, LOOK, SPARE = 20, 5, 1.6
SHARES = 1 / 16, 1 / 4, 1.0  # of the pool, for the budget of the trial that says how much it takes
LEAST = 60  # pairs
BEST = StoppingRule("best")


@dataclass(frozen=True, eq=False)
class Race:
    """Runs of a judged collection, of which the best is looked for."""

    pool: Pool
    grades: IntArray
    measure: Measure
    max_grade: int

    @cached_property
    def truth(self) -> Truth:
        """The true values and order."""
        return Truth.of(true_values(self.pool, grades=self.grades, measure=self.measure))

    def plan(self, goal: str, budget: int) -> AdaptivePlan:
        """The plan of a round."""
        aim = Goal(goal, self.pool.runs)
        prior = make_prior(
            self.pool, name="rank", goal=aim, measure=self.measure, max_grade=self.max_grade
        )
        design = make_design(
            self.pool,
            goal=aim,
            measure=self.measure,
            prior=prior,
            budget=budget,
            batch_size=-(-budget // BATCHES),
            method="adaptive",
        )
        return AdaptivePlan(design, self.max_grade)

    def budget(self) -> int:
        """`SPARE` times what goal *ranking* takes."""
        for share in SHARES:
            asked = int(share * len(self.pool))
            if asked >= LEAST:
                found = self.play("ranking", asked, "how much")
                if found.decided:
                    return min(len(self.pool), int(SPARE * found.judged))
        return len(self.pool)

    def play(self, goal: str, budget: int, seed: str) -> "Trial":
        """Judge batch by batch until the best run is known, and at least to batch `LOOK`."""
        plan, found = self.plan(goal, budget), None
        drawn = AdaptiveRound.begin(self.pool, plan, seed=seed)
        wrong, early = False, np.full(len(self.pool.runs), np.nan)
        while True:
            pairs = drawn.sample.pair
            labels = LabelRows(pairs, self.grades[pairs])
            seen = evaluate(
                self.pool,
                drawn,
                labels=labels,
                measures=[self.measure],
                max_grade=self.max_grade,
                look=Look(drawn.planned, drawn.batches),
            ).results[0]
            if drawn.planned == min(LOOK, drawn.batches):
                early = seen.estimate.value - self.truth.value
            if found is None:
                said, so = seen.ranking.verdicts, self.truth.order
                wrong = wrong or bool(np.any((said != 0) & (said != so)))
                last, decided = drawn.planned == drawn.batches, BEST.holds(seen)
                if decided or last:
                    first = int(seen.ranking.order[0])
                    best = bool(np.all(self.truth.order[first] >= 0))
                    left = int(np.count_nonzero(seen.ranking.rank_low == 1))
                    found = Trial(len(pairs), decided, decided and not best, wrong, left, early)
            if found is not None and drawn.planned >= min(LOOK, drawn.batches):
                return replace(found, error=early)
            drawn = drawn.extended(self.pool, labels=labels)


@dataclass(frozen=True, eq=False)
class Trial:
    """What came of a trial; `error` is that of the values at batch `LOOK`, (k,)."""

    judged: int
    decided: bool
    wrong: bool
    false: bool
    left: int
    error: FloatArray


# ------------------------------------------------------------------------------- what is played


def race_of(name: str, data: Path) -> Race:
    """Return the race of a name: a collection, perhaps a number of runs, and which."""
    asked, number, split = (*name.split(":"), "0", "0")[:3]
    collection, _, kind = asked.partition("-")
    if asked in COLLECTIONS:
        collection, kind = asked, ""
    else:
        collection, _, kind = asked.rpartition("-")
    material: Material = COLLECTIONS[collection](collection, data, "0")
    pool, grades = material.pool, material.grades
    if int(number):
        rng = np.random.default_rng([int(split), int(number)])
        pool, grades = only(pool, grades, rng.choice(len(pool.runs), int(number), replace=False))
    race = Race(pool, grades, material.measure, material.max_grade)
    return race if not kind else with_rival(race, swaps=kind == "near")


def only(pool: Pool, grades: IntArray, runs: IntArray) -> tuple[Pool, IntArray]:
    """Keep some runs of a pool, and what they return."""
    kept = np.sort(runs)
    place = np.full(len(pool.runs), -1)
    place[kept] = np.arange(len(kept))
    entries = place[pool.run] >= 0
    counts = np.bincount(pool.entry_pair[entries], minlength=len(pool))
    pairs = np.flatnonzero(counts)
    smaller = replace(
        pool,
        runs=tuple(pool.runs[run] for run in kept.tolist()),
        topic=pool.topic[pairs],
        docno=pool.docno[pairs],
        indptr=np.append(0, np.cumsum(counts[pairs])),
        run=place[pool.run[entries]].astype(np.int32),
        rank=pool.rank[entries],
    )
    return smaller, grades[pairs]


def with_rival(race: Race, *, swaps: bool) -> Race:
    """Add a run that is as good as the best one, with other documents, or nearly the same one."""
    pool, best = race.pool, int(np.argmax(race.truth.value))
    own = np.flatnonzero(pool.run == best)
    pair, rank = pool.entry_pair[own], pool.rank[own].copy()
    if swaps:
        few = pool.topic[pair] % 20 == 0
        rank[few & (pool.rank[own] == 1)], rank[few & (pool.rank[own] == 2)] = 2, 1
    else:
        pair = _others_of_the_same_grade(pool, race.grades, pair)
    every = np.append(pool.entry_pair, pair)
    run = np.append(pool.run, np.full(len(pair), len(pool.runs), dtype=np.int32))
    order = np.lexsort((run, every))
    grown = replace(
        pool,
        runs=(*pool.runs, "~rival"),
        indptr=np.append(0, np.cumsum(np.bincount(every, minlength=len(pool)))),
        run=run[order],
        rank=np.append(pool.rank, rank)[order].astype(np.int32),
    )
    return replace(race, pool=grown)


def _others_of_the_same_grade(pool: Pool, grades: IntArray, pairs: IntArray) -> IntArray:
    found, free = pairs.copy(), np.ones(len(pool), dtype=bool)
    free[pairs] = False
    for at, pair in enumerate(pairs.tolist()):
        alike = np.flatnonzero(free & (pool.topic == pool.topic[pair]) & (grades == grades[pair]))
        if len(alike):
            found[at] = alike[0]
            free[alike[0]] = False
    return found


# ------------------------------------------------------------------------------------ the table


HEAD = f"{'race':22}  runs  pairs gap    goal     judged saved  decided wrong false  bias  race"


def table(name: str, race: Race, *, trials: int, jobs: int) -> list[str]:
    """Return the lines of a race, one for each goal."""
    budget = race.budget()
    value = np.sort(race.truth.value)[::-1]
    gap = 1.0 - value[1] / value[0]
    lines, before = [], np.nan
    for goal in ("ranking", "winner"):
        play = partial(_seeded, race, goal, budget)
        found = list(in_processes(play, trials, jobs=jobs))
        judged = float(np.median([each.judged for each in found]))
        errors = np.stack([each.error for each in found])
        spread = errors.std(axis=0, ddof=1) / np.sqrt(trials)
        varies = spread > 1e-9 * value[0]
        bias = np.abs(errors.mean(axis=0))[varies] / spread[varies]
        share = {
            each: float(np.mean([getattr(trial, each) for trial in found]))
            for each in ("decided", "wrong", "false", "left")
        }
        saved = f"{1.0 - judged / before:5.0%}" if goal == "winner" else "     "
        lines.append(
            f"{name:22} {len(race.pool.runs):5} {len(race.pool):6} {gap:.3f}  {goal:8} "
            f"{judged:6.0f} {saved}  {share['decided']:7.2f} {share['wrong']:5.2f} "
            f"{share['false']:5.2f} {bias.max(initial=0.0):5.1f} {share['left']:5.1f}"
        )
        before = judged
    return lines


def _seeded(race: Race, goal: str, budget: int, turn: int) -> Trial:
    return race.play(goal, budget, str(turn))


# ------------------------------------------------------------------------------------- the time


def replanning(*, runs: int, topics: int, depth: int, batches: int) -> list[str]:
    """Return the processor seconds that the next batch of a large round takes, goal by goal.

    As in a worker, which has just worked out the estimates.
    """
    pool, grades = _large(runs, topics, depth)
    race = Race(pool, grades, parse_measure(f"DCG@{depth}"), 3)
    lines = [f"{runs} runs, {topics} topics, depth {depth}: {len(pool)} pairs"]
    for goal in ("ranking", "winner"):
        drawn = AdaptiveRound.begin(pool, race.plan(goal, 5000), seed="s")
        spent = []
        for _ in range(batches):
            labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
            evaluate(pool, drawn, labels=labels, measures=[race.measure], max_grade=3)
            begun = time.process_time()
            drawn = drawn.extended(pool, labels=labels)
            spent.append(time.process_time() - begun)
        lines.append(f"{goal:8} {' '.join(f'{each:5.2f}' for each in spent)}")
    return lines


def _large(runs: int, topics: int, depth: int) -> tuple[Pool, IntArray]:
    """Runs that agree more the better a document is: each noisy views of one hidden score."""
    from estimation.core.data.pool import build_pool
    from estimation.core.data.ranked_lists import RankedLists

    rng, names = np.random.default_rng(0), [f"t{topic:03}" for topic in range(topics)]
    hidden = [rng.gumbel(size=6 * depth) for _ in names]
    docnos = np.array([f"d{number:06}".encode() for number in range(6 * depth)])
    bounds = np.arange(topics + 1) * depth
    lists = {}
    for run in range(runs):
        noise = 0.5 + 1.5 * run / runs
        tops = [
            np.argsort(-(score + noise * rng.normal(size=len(score))))[:depth] for score in hidden
        ]
        lists[f"run{run:03}"] = RankedLists(tuple(names), bounds, docnos[np.concatenate(tops)])
    pool = build_pool(names, lists, depth=depth)
    place = np.array([int(each[1:]) for each in pool.docno.tolist()])
    score = np.stack(hidden)[pool.topic, place]
    return pool, np.clip(np.round(score - 2.0), 0, 3).astype(np.int64)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--race", default=",".join(RACES))
    parser.add_argument("--replanning", action="store_true")
    given = parser.parse_args()
    if given.replanning:
        print("\n".join(replanning(runs=128, topics=50, depth=1000, batches=8)), flush=True)
        return
    print(HEAD)
    for name in given.race.split(","):
        lines = table(name, race_of(name, FOLDER), trials=given.trials, jobs=given.jobs)
        print("\n".join(lines), flush=True)


if __name__ == "__main__":
    main()
