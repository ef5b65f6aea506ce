"""Judged collections of every kind as files, with the numbers that were published from them.

    .venv/bin/python -m tests.formats.stored_collections [name …]

makes both anew in `stored/`, of all kinds or of those that are named: only where a kind is new, or
numbers change for a reason that a decision record tells.
Files of `EARLIER` are kept, which no version plans any more: only their numbers are made anew.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import RankedLists, rank_lines
from estimation.core.measures.kinds import MeasureError
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.active.rounds import ActiveRound, make_plan
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.results import Evaluation
from estimation.core.rounds.rounds import PairRound, TopicRound
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.designs import labeled_pairs
from estimation.core.rounds.topics.draws import draw_queries
from estimation.core.rounds.topics.grade_models import uniform_grades
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.formats.collections.files import read_collection, write_collection
from judging.formats.problems import Problems
from tests.core.collecting import publish

EARLIER = {
    "adaptive": "models of grades that look at no neighbors",
    "adaptive-neighbors": "models of grades whose fits ended near the minimum",
    "adaptive-fitted": "models of grades that know no decline",
    "adaptive-decline": "models of grades that trust all predictions",
}
STORED = Path(__file__).parent / "stored"
NUMBERS = STORED / "numbers.json"
TOPICS = [f"t{number:02}" for number in range(10)]
DEPTH, MAX_GRADE, VERSION = 8, 3, "0.1.0"
MEASURES = (
    "DCG@5", "DCG", "P@5", "RBP(p=0.8)", "Mean(max=3)", "AP", "nDCG@5", "Rprec", "ERR@5",
    "#ofSwaps", "wSwaps",
)  # fmt: skip
OF_SCORES = "Accuracy", "MAE", "MSE"  # told of runs whose scores are kept
RUNS, LATER = ("run0", "run1", "run2", "run3"), ("later", "own")


def lists_of(tag: str) -> RankedLists:
    """Run 1 is nearly run 0; a later run has documents of its own, `own` one in two."""
    seed = {"run0": 0, "run1": 0, "run2": 2, "run3": 3, "later": 4, "own": 5}[tag]
    rng = np.random.default_rng(seed)
    rows = []
    for topic in range(len(TOPICS)):
        docnos = [f"d{number:02}" for number in rng.permutation(24)[:DEPTH]]
        if tag == "run1" and topic % 3 == 0:
            docnos[1], docnos[2] = docnos[2], docnos[1]
        if tag == "own":
            docnos = [name if number % 2 else f"new{number}" for number, name in enumerate(docnos)]
        rows.append(np.array([name.encode() for name in docnos]))
    bounds = np.arange(len(TOPICS) + 1) * DEPTH
    return RankedLists(tuple(TOPICS), bounds, np.concatenate(rows))


def scored_lists_of(tag: str) -> RankedLists:
    """The same documents by scores: about their grades, those of run 2 a grade higher."""
    docnos, at = lists_of(tag).docnos, np.arange(len(TOPICS) * DEPTH)
    topic = at // DEPTH
    grades = [grade_of(*each, MAX_GRADE) for each in zip(topic.tolist(), docnos, strict=True)]
    scores = np.array(grades) + (tag == "run2") + (at * 5 % 7 - 3) / 8.0
    return rank_lines(np.array(TOPICS, dtype="S")[topic], docnos, scores)


def grade_of(topic: int, docno: bytes, best: int) -> int:
    """About two documents in five are relevant."""
    number = (topic * 7 + sum(docno) * 13) % 10
    return 0 if number < 6 else 1 + number % best


def labels_of(pool: Pool, pairs: np.ndarray, best: int) -> LabelRows:
    """A judgment a pair; a second one of every fifth, and one of these in three differs."""
    names = pool.docno if pool.other is None else np.char.add(pool.docno, pool.other)
    first = np.array([grade_of(int(pool.topic[at]), names[at], best) for at in pairs])
    again = np.flatnonzero(np.arange(len(pairs)) % 5 == 0)
    second = np.where(np.arange(len(again)) % 3 == 0, (first[again] + 1) % (best + 1), first[again])
    return LabelRows(np.append(pairs, pairs[again]), np.append(first, second))


def pooled() -> Pool:
    return build_pool(TOPICS, {tag: lists_of(tag) for tag in RUNS}, depth=DEPTH)


def part(pool: Pool, method: str, *, seed: str, goal: goals.Goal, **more: Any) -> PairRound:
    measure = parse_measure("wSwaps" if pool.is_of_preferences else "DCG@5")
    best = 2 if pool.is_of_preferences else MAX_GRADE
    name = "constant" if pool.is_of_preferences else "rank"
    prior = make_prior(pool, name=name, goal=goal, measure=measure, max_grade=best)
    chosen = {"budget": 60, "batch_size": 20, "max_grade": best} | more
    design = make_design(pool, goal=goal, measure=measure, prior=prior, method=method, **chosen)
    return PairRound(design, draw(pool, design, seed=seed), min(2, design.batches), numbers=seed)


def of_pairs(pool: Pool, *parts: PairRound) -> RoundCollection:
    drawn = np.unique(np.concatenate([each.sample.prefix(each.used) for each in parts]))
    best = 2 if pool.is_of_preferences else MAX_GRADE
    labels = labels_of(pool, drawn, best)
    return publish(pool, parts, labels=labels, max_grade=best, version=VERSION)


def of_topics(pool: Pool, estimator: str) -> RoundCollection:
    measure = parse_measure("DCG@5")
    model = uniform_grades(pool, max_grade=MAX_GRADE)
    design = make_query_design(
        pool, goal=goals.ranking(*RUNS), measure=measure, model=model, budget=90.0,
        batch_budget=30.0, estimator=estimator, measures=[measure],
    )  # fmt: skip
    sample = draw_queries(pool, design, seed="topics")
    needed = labeled_pairs(pool, runs=design.runs, depth=design.depth)
    pairs = np.flatnonzero(needed & np.isin(pool.topic, sample.topic))
    return publish(
        pool, TopicRound(design, sample),
        labels=labels_of(pool, pairs, MAX_GRADE), batches=2,
        max_grade=MAX_GRADE, version=VERSION, measures=[measure],
    )  # fmt: skip


def of_active(pool: Pool) -> RoundCollection:
    measures = [parse_measure(text) for text in ("AP", "P@5")]
    plan = make_plan(pool, measures=measures, budget=60, batch_size=20)
    drawn = ActiveRound.begin(pool, plan, seed="active")
    first = labels_of(pool, drawn.served(pool).pair, MAX_GRADE)
    drawn = drawn.extended(pool, labels=first)
    more = np.setdiff1d(drawn.served(pool).pair, first.pair)
    second = labels_of(pool, more, MAX_GRADE)
    labels = LabelRows(np.append(first.pair, second.pair), np.append(first.grade, second.grade))
    return publish(
        pool, drawn, labels=labels, batches=2, max_grade=MAX_GRADE, version=VERSION,
        measures=measures,
    )  # fmt: skip


def of_adaptive(pool: Pool) -> RoundCollection:
    """Two of three batches, the second from what the first taught; costs and predicted grades."""
    goal, measure = goals.absolute(*RUNS), parse_measure("DCG@5")
    at = np.arange(len(pool))
    told = labels_of(pool, at, MAX_GRADE).grade[: len(pool)] + at % 7 / 7.0
    costs, said = 1.0 + at % 3 / 2.0, np.where(at % 4 == 0, np.nan, told)
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=MAX_GRADE)
    design = make_design(
        pool, goal=goal, measure=measure, prior=prior, method="adaptive", budget=210.0,
        batch_size=70.0, costs=costs, reported=[parse_measure("P@5")], max_grade=MAX_GRADE,
    )  # fmt: skip
    plan = AdaptivePlan(design, MAX_GRADE, costs, said[:, None])
    drawn = AdaptiveRound.begin(pool, plan, seed="adaptive")
    drawn = drawn.extended(pool, labels=labels_of(pool, drawn.pairs(pool), MAX_GRADE))
    assert drawn.sample.steps[1].model is not None
    return publish(
        pool, drawn, labels=labels_of(pool, drawn.pairs(pool), MAX_GRADE), max_grade=MAX_GRADE,
        version=VERSION,
    )  # fmt: skip


def of_adaptive_by_run(pool: Pool, measures: list[str], *, best: int, seed: str) -> RoundCollection:
    """Two of three batches, the second from what the first taught; the first measure is its own."""
    goal, (measure, *reported) = goals.ranking(*RUNS), [parse_measure(each) for each in measures]
    prior = make_prior(pool, name="constant", goal=goal, measure=measure, max_grade=best)
    design = make_design(
        pool, goal=goal, measure=measure, prior=prior, method="adaptive", budget=150,
        batch_size=50, reported=reported, max_grade=best,
    )  # fmt: skip
    drawn = AdaptiveRound.begin(pool, AdaptivePlan(design, best), seed=seed)
    drawn = drawn.extended(pool, labels=labels_of(pool, drawn.pairs(pool), best))
    assert drawn.sample.steps[1].model is not None
    labels = labels_of(pool, drawn.pairs(pool), best)
    return publish(pool, drawn, labels=labels, max_grade=best, version=VERSION)


def of_adaptive_scores() -> RoundCollection:
    """Of errors of scores; a part of what these predict is taken off."""
    runs = {tag: scored_lists_of(tag) for tag in RUNS}
    pool = build_pool(TOPICS, runs, depth=DEPTH, scores=True)
    made = of_adaptive_by_run(pool, ["MSE", "MAE", "P@5"], best=MAX_GRADE, seed="scores")
    assert isinstance(made.drawn, AdaptiveRound)
    learned = made.drawn.sample.steps[1].model
    assert learned is not None
    assert learned.part > 0.0
    return made


def collections() -> Iterator[tuple[str, RoundCollection]]:
    pool, all_runs = pooled(), goals.absolute(*RUNS)
    for method in ("poisson", "priority", "iid", "per-query"):
        more: dict[str, Any] = {} if method in ("poisson", "priority") else {"eps": 0.1}
        yield method, of_pairs(pool, part(pool, method, seed="a", goal=all_runs, **more))
    for kind in ("ranking", "pair", "single", "baseline"):
        goal = {
            "ranking": goals.ranking(*RUNS), "pair": goals.pair(*RUNS[1:3]),
            "single": goals.single(RUNS[2]), "baseline": goals.baseline(*RUNS[1:], against="run0"),
        }[kind]  # fmt: skip
        made = part(pool, "poisson", seed="b", goal=goal, floor=0.0, budget=30, batch_size=10)
        yield f"poisson-{kind}", of_pairs(pool, made)
    for method in ("poisson", "iid"):
        rounds = [
            part(pool, method, seed="c", goal=all_runs),
            part(pool, method, seed="d", goal=goals.ranking(*RUNS)),
        ]
        yield f"{method}-together", of_pairs(pool, *rounds)
    preferences = preference_pool(pool, depth=DEPTH)
    yield (
        "preferences",
        of_pairs(preferences, part(preferences, "poisson", seed="e", goal=all_runs)),
    )
    for estimator in ("ratio", "unbiased"):
        yield f"topics-{estimator}", of_topics(pool, estimator)
    yield "active", of_active(pool)
    yield "adaptive-told", of_adaptive(pool)
    made = of_adaptive_by_run(preferences, ["wSwaps", "#ofSwaps"], best=2, seed="preferences")
    yield "adaptive-preferences", made
    yield "adaptive-scores", of_adaptive_scores()


# ---------------------------------------------------------------------------------- numbers


def published(collection: RoundCollection) -> dict[str, Any]:
    """All numbers by measure and kind of interval, for the runs of the pool and later ones."""
    scores = collection.pool.score is not None
    runs = {tag: (scored_lists_of if scores else lists_of)(tag) for tag in (*RUNS, *LATER)}
    found: dict[str, Any] = {}
    for text in (*MEASURES, *(OF_SCORES if scores else ())):
        for interval in collection.intervals:
            try:
                evaluation = collection.evaluate(
                    runs, measures=[parse_measure(text)], interval=interval
                )
            except MeasureError as error:
                found[f"{text} {interval}"] = str(error)
                continue
            found[f"{text} {interval}"] = numbers_of(evaluation)
    return found


def numbers_of(evaluation: Evaluation) -> dict[str, Any]:
    (result,) = evaluation.results
    facts: dict[str, Any] = {
        "counts": [evaluation.batches, evaluation.judged_pairs, evaluation.judgments],
        "runs": list(result.runs),
        "interval": result.interval,
        "support": result.support.tolist(),
        "effective sample size": result.effective_sample_size.tolist(),
        "by topic": result.by_topic.tolist(),
        "primary": result.primary,
    }
    for name, each in result.estimators.items():
        for field in ("value", "se", "df", "low", "high", "unknown", "covariance"):
            facts[f"{name} {field}"] = getattr(each, field).tolist()
    for field, values in vars(result.ranking).items():
        facts[f"ranking {field}"] = np.asarray(values).tolist()
    return facts


def stored(name: str) -> RoundCollection:
    problems = Problems(f"{name}.zip")
    with (STORED / f"{name}.zip").open("rb") as file:
        found = read_collection(file, problems)
    assert found is not None, problems.as_dict()
    return found


def main(*wanted: str) -> None:
    numbers = json.loads(NUMBERS.read_text())
    if not wanted:
        numbers = {name: published(stored(name)) for name in EARLIER}
    for name, collection in collections():
        if not wanted or name in wanted:
            with (STORED / f"{name}.zip").open("wb") as file:
                write_collection(file, collection)
            numbers[name] = published(collection)
    NUMBERS.write_text(json.dumps(numbers, indent=0, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
