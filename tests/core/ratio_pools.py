"""Pools with many relevant documents per topic, for the tests of ratio measures."""

import numpy as np

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior

EXACT = {"rel": 1e-12, "abs": 1e-12}
AP = parse_measure("AP")
RATIOS = [parse_measure(text) for text in ("AP", "AP@3", "nDCG", "nDCG@3", "Rprec")]
METHODS = ["poisson", "priority", "iid", "per-query"]


def shuffled(seed: int, topics: list[str], documents: int) -> RankedLists:
    docnos = []
    for place in range(len(topics)):
        order = np.random.default_rng([seed, place]).permutation(documents)
        keen = order[np.argsort(order / documents + 0.3 * seed * (order % 3 == 0), kind="stable")]
        docnos += [f"d{number:03d}".encode() for number in keen]
    return RankedLists(tuple(topics), np.arange(0, len(docnos) + 1, documents), np.array(docnos))


TOPICS = [f"topic {number:02d}" for number in range(20)]


def pool_with(tags: list[str], depth: int = 20) -> Pool:
    runs = {tag: shuffled(seed, TOPICS, 40) for seed, tag in enumerate(tags)}
    return build_pool(TOPICS, runs, depth=depth)


def three_runs() -> Pool:
    return pool_with(["one", "three", "two"])


def grades_of(pool: Pool) -> np.ndarray:
    numbers = np.array([int(docno[1:]) for docno in pool.docno.tolist()])
    return np.array([3, 0, 1, 0, 0, 2])[(numbers * 7 + pool.topic * 5) % 23 % 6] * (numbers % 2)


def design_for(pool: Pool, method: str, budget: int = 300, measure: Measure = AP) -> Design:
    goal = goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=3)
    return make_design(
        pool, goal=goal, measure=measure, prior=prior, budget=budget, batch_size=budget,
        method=method, eps=0.02,
    )  # fmt: skip


def results(pool: Pool, method: str, budget: int = 300, seed: str = "s", grades=None):
    design = design_for(pool, method, budget)
    sample = draw(pool, design, seed=seed)
    labels = LabelRows(sample.pair, (grades_of(pool) if grades is None else grades)[sample.pair])
    return evaluate(
        pool, PairRound(design, sample), labels=labels, measures=RATIOS, max_grade=3
    ).results
