"""How the core grows with the pool: the same campaign at depth 100 and at depth 400."""

import resource
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from estimation.core import goals
from estimation.core.designs import make_design
from estimation.core.draws import draw
from estimation.core.evaluation import evaluate
from estimation.core.labels import LabelRows
from estimation.core.measures import parse_measure
from estimation.core.pool import Pool, RankedLists, build_pool
from estimation.core.priors import make_prior

RUNS, TOPICS, DOCUMENTS, BUDGET = 64, 50, 4000, 5000
T = TypeVar("T")


def timed(name: str, times: dict[str, float], work: Callable[[], T]) -> T:
    start = time.perf_counter()
    result = work()
    times[name] = time.perf_counter() - start
    return result


def synthetic_runs(depth: int, rng: np.random.Generator) -> dict[str, RankedLists]:
    """Runs that mostly agree: every run ranks by a common score with noise of its own."""
    names = tuple(f"t{topic:03}" for topic in range(TOPICS))
    docnos = np.array([f"doc-{number:05}".encode() for number in range(DOCUMENTS)])
    common = rng.normal(size=(TOPICS, DOCUMENTS))
    runs = {}
    for number in range(RUNS):
        noisy = common + rng.normal(size=common.shape)
        best = np.argsort(-noisy, axis=1)[:, :depth]
        bounds = np.arange(TOPICS + 1) * depth
        runs[f"run{number:03}"] = RankedLists(names, bounds, docnos[best].ravel())
    return runs


def measure(depth: int) -> tuple[Pool, dict[str, float]]:
    times: dict[str, float] = {}
    runs = synthetic_runs(depth, np.random.default_rng(8))
    topics = [f"t{topic:03}" for topic in range(TOPICS)]
    pool = timed("pool", times, lambda: build_pool(topics, runs, depth=depth))
    goal, chosen = goals.absolute(*pool.runs), parse_measure(f"DCG@{depth}")
    prior = make_prior(pool, name="rank", goal=goal, measure=chosen, max_grade=3)
    design = timed(
        "design",
        times,
        lambda: make_design(
            pool, goal=goal, measure=chosen, prior=prior, budget=BUDGET, batch_size=500
        ),
    )
    sample = timed("draw", times, lambda: draw(pool, design, seed="benchmark"))
    grades = np.random.default_rng(9).integers(0, 4, size=len(sample.pair))
    labels = LabelRows(pair=sample.pair, grade=grades)
    measures = [chosen, parse_measure("P@10"), parse_measure("RBP(p=0.8)")]
    timed(
        "recompute",
        times,
        lambda: evaluate(pool, design, sample, labels=labels, measures=measures, max_grade=3),
    )
    return pool, times


def main() -> None:
    small_pool, small = measure(100)
    large_pool, large = measure(400)
    lines = len(large_pool.run) / len(small_pool.run)
    print(
        f"entries: {len(small_pool.run):,} and {len(large_pool.run):,}, {lines:.1f} times as many"
    )
    for name, seconds in large.items():
        growth = seconds / small[name]
        print(f"{name:<10} {small[name]:7.3f} s {seconds:7.3f} s  {growth:5.1f} times as long")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"peak memory {peak:.0f} MB, {1024 * 1024 * peak / len(large_pool.run):.0f} bytes an entry"
    )


if __name__ == "__main__":
    main()
