"""How long a design and a recompute take on a pool of TREC-8's size.

    python -m benchmarks.core                  all 129 TREC-8 runs (EVALSITE_TEST_DATA)
    python -m benchmarks.core --synthetic      128 made-up runs of the same size
    python -m benchmarks.core --files FOLDER   run files in FOLDER/runs, FOLDER/qrels.txt

Every figure is a median of processor seconds of one thread. The pool is in memory, as it is in a
worker after its first recompute, and so is what follows from pool and design alone
(`core.data.kept`); "first" is the first recompute, which works that out, and "next" one after
one more batch, whose sampled pairs are new; of adaptive batches that worker has worked out ahead
what no judgment is in, which has a figure of its own. Nothing that depends on a judgment is kept
from one repetition to the next, but for the models by which batches of adaptive rounds were
planned: these are stored, and stay what they were whatever is corrected.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import lzma
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.figures import Figure, tell
from benchmarks.public import FOLDER, collection_in
from estimation.core.arrays import IntArray
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists, rank_lines
from estimation.core.data.scope import Scope
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.planning.forecasts import forecast
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan, AdaptiveState
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design, Method
from estimation.core.sampling.draws import draw
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.samples import Sample

DEPTHS, BUDGET, BATCH, MAX_GRADE = (100, 1000), 100_000, 1000, 2
MOST = 0.15  # seconds of a recompute
MOST_ADAPTIVE, MOST_PLANNING = 1.3 * MOST, 1.0  # of adaptive batches, and to plan one
ADAPTIVE_BATCHES, LAST = 10, 3  # of the last ones the median is told
LIGHT = [parse_measure(text) for text in ("DCG@100", "P@10", "RBP(p=0.8)")]
HEAVY = [parse_measure(text) for text in ("DCG", "P@10", "RBP(p=0.8)")]
METHODS: tuple[Method, ...] = ("poisson", "iid")
Qrels = Mapping[tuple[str, bytes], int]


@dataclass(frozen=True, eq=False)
class Collection:
    """Topics, runs down to depth 1000, and the grades of judged documents; the others have 0."""

    name: str
    topics: list[str]
    runs: dict[str, RankedLists]
    qrels: Qrels

    def grades(self, pool: Pool) -> IntArray:
        keys = zip((pool.topics[t] for t in pool.topic.tolist()), pool.docno.tolist(), strict=True)
        return np.array([self.qrels.get(key, 0) for key in keys], dtype=np.int64)


# --------------------------------------------------------------------------------- the runs


def trec8(folder: Path) -> Collection:
    with lzma.open(folder / "full-docnos.tsv.xz", "rb") as lines:
        docnos = {topic: np.array(names.split()) for topic, names in map(_halves, lines)}
    found: dict[str, dict[str, np.ndarray]] = {}
    with lzma.open(folder / "full-rankings.tsv.xz", "rb") as lines:
        for line in lines:
            topic, tag, places = line.rstrip(b"\n").split(b"\t")
            ranked = docnos[topic][np.array(places.split(), dtype=np.int64)]
            found.setdefault(tag.decode(), {})[topic.decode()] = ranked
    runs = {tag: ranked_lists(lists) for tag, lists in found.items()}
    topics = sorted(topic.decode() for topic in docnos)
    return Collection("TREC-8", topics, runs, read_qrels(folder / "qrels.txt"))


def _halves(line: bytes) -> tuple[bytes, bytes]:
    first, second = line.rstrip(b"\n").split(b"\t")
    return first, second


def ranked_lists(lists: Mapping[str, np.ndarray]) -> RankedLists:
    lengths = [len(each) for each in lists.values()]
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    return RankedLists(tuple(lists), bounds, np.concatenate(list(lists.values())))


def run_files(folder: Path) -> Collection:
    runs = {}
    for path in sorted((folder / "runs").iterdir()):
        columns = np.array(path.read_bytes().split(), dtype=np.bytes_).reshape(-1, 6)
        runs[path.stem] = rank_lines(columns[:, 0], columns[:, 2], columns[:, 4].astype(float))
    topics = sorted({topic for run in runs.values() for topic in run.topics})
    return Collection(folder.name, topics, runs, read_qrels(folder / "qrels.txt"))


def read_qrels(path: Path) -> Qrels:
    rows = (line.split() for line in path.read_bytes().splitlines())
    return {(topic.decode(), docno): max(int(grade), 0) for topic, _, docno, grade in rows}


def synthetic(
    runs: int = 128, topics: int = 50, documents: int = 14_000, noise: float = 1.0
) -> Collection:
    """Runs that mostly agree, each noisy in its own way; 100 relevant documents in a topic."""
    rng = np.random.default_rng(8)
    names = [f"t{topic:02}" for topic in range(topics)]
    docnos = np.array([f"doc-{number:05}".encode() for number in range(documents)])
    common = rng.exponential(size=(topics, documents))
    lists: dict[str, dict[str, np.ndarray]] = {}
    for run in range(runs):
        noisy = common + noise * rng.normal(size=common.shape)
        best = np.argsort(-noisy, axis=1)[:, : max(DEPTHS)]
        lists[f"run{run:03}"] = dict(zip(names, docnos[best], strict=True))
    relevant = np.argsort(-common - 0.5 * rng.normal(size=common.shape), axis=1)[:, :100]
    qrels = {
        (topic, docno): 1
        for topic, row in zip(names, docnos[relevant], strict=True)
        for docno in row.tolist()
    }
    runs_of = {tag: ranked_lists(each) for tag, each in lists.items()}
    return Collection("synthetic", names, runs_of, qrels)


# ---------------------------------------------------------------------------- what is measured


def median_seconds(work: Callable[[], object], repetitions: int) -> float:
    times = []
    for _ in range(repetitions):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return float(np.median(times))


def design_for(
    pool: Pool,
    goal: goals.Goal,
    measures: list[Measure],
    method: Method,
    budget: int = BUDGET,
    floor: float = 0.1,
    batch_size: int = BATCH,
) -> Design:
    measure = measures[0]
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=MAX_GRADE)
    return make_design(
        pool,
        goal=goal,
        measure=measure,
        prior=prior,
        budget=budget,
        batch_size=batch_size,
        method=method,
        reported=measures[1:],
        floor=floor,
    )


def every_goal(runs: tuple[str, ...]) -> list[goals.Goal]:
    return [
        goals.single(runs[0]),
        goals.absolute(*runs),
        goals.pair(*runs[:2]),
        goals.baseline(*runs[1:], against=runs[0]),
        goals.ranking(*runs),
    ]


def one_judgment(sample: Sample | AdaptiveState, grades: IntArray) -> LabelRows:
    return LabelRows(sample.pair, grades[sample.pair])


def two_judgments(sample: Sample | AdaptiveState, grades: IntArray) -> LabelRows:
    """One pair in five has a second judgment, of which one in seven is another grade."""
    rng = np.random.default_rng(3)
    again = sample.pair[rng.random(len(sample.pair)) < 0.2]
    other = 1 - np.minimum(grades[again], 1)
    second = np.where(rng.random(len(again)) < 1 / 7, other, grades[again])
    return LabelRows(
        np.concatenate([sample.pair, again]), np.concatenate([grades[sample.pair], second])
    )


def without_certainty(design: Design) -> Design:
    """The same design, but that no pair is certain: every relevant pair carries covariance."""
    chance = 0.95 * design.inclusion()
    return replace(design, size=chance / chance.sum(), steps=np.array([chance.sum()]))


def in_part(pool: Pool, methods: Sequence[Method]) -> Iterator[tuple[str, list[Measure], Design]]:
    """Designs that leave pairs out: without a floor, or draws, which have no eps here."""
    for method in methods:
        for goal in every_goal(pool.runs):
            for name, measures in MEASURES.items():
                design = design_for(pool, goal, measures, method, floor=0.0)
                yield f"{method}, goal {goal.kind}, {name}", measures, design


MEASURES = {"DCG@100": LIGHT, "full DCG": HEAVY}
BARS = (
    ("planning", MOST_PLANNING), ("recompute, adaptive", MOST_ADAPTIVE), ("recompute", MOST),
)  # fmt: skip
Labeling = Callable[[Sample, IntArray], LabelRows]
LABELINGS: Mapping[str, Labeling] = {"one judgment": one_judgment, "20 % two": two_judgments}


def reports(pool: Pool, grades: IntArray, repetitions: int) -> Iterator[tuple[str, float]]:
    """Name and seconds of everything that is measured on one pool."""
    for method in METHODS:
        for goal in every_goal(pool.runs):
            designing = partial(design_for, pool, goal, HEAVY, method)
            seconds = median_seconds(designing, repetitions)
            yield f"design, {method}, {goal.kind}", seconds
    for method in METHODS:
        for name, measures in MEASURES.items():
            design = design_for(pool, goals.absolute(*pool.runs), measures, method)
            for judged, seconds in recomputes(pool, design, measures, grades, repetitions):
                yield f"recompute, {method}, {name}, {judged}", seconds
            if method == "poisson":
                open_design = without_certainty(design)
                for judged, seconds in recomputes(pool, open_design, measures, grades, repetitions):
                    yield f"recompute, nothing certain, {name}, {judged}", seconds
    for name, measures, design in in_part(pool, METHODS):
        for judged, seconds in recomputes(
            pool, design, measures, grades, repetitions, {"one judgment": one_judgment}
        ):
            yield f"recompute, in part, {name}, {judged}", seconds
    for name, measures in MEASURES.items():
        yield from of_adaptive(pool, name, measures, grades, repetitions)


def of_adaptive(
    pool: Pool, name: str, measures: list[Measure], grades: IntArray, repetitions: int
) -> Iterator[tuple[str, float]]:
    """An adaptive round: each of its batches is planned once, and after it all is estimated.

    What a worker works out ahead of the judgments of a batch is done when that is open.
    """
    size = -(-min(BUDGET, len(pool)) // ADAPTIVE_BATCHES)
    goal, budget = goals.absolute(*pool.runs), ADAPTIVE_BATCHES * size
    design = design_for(pool, goal, measures, "adaptive", min(budget, len(pool)), batch_size=size)
    drawn = AdaptiveRound.begin(pool, AdaptivePlan(design, MAX_GRADE), seed="benchmark")
    planning, ahead, after = [], [], []
    while drawn.planned < drawn.batches:
        labels = one_judgment(drawn.sample, grades)
        start = time.process_time()
        drawn = drawn.extended(pool, labels=labels)
        planning.append(time.process_time() - start)
        start = time.process_time()
        drawn.work_ahead(Scope.of(pool), tuple(measures))
        ahead.append(time.process_time() - start)
        labels = two_judgments(drawn.sample, grades)
        work = partial(evaluate, pool, drawn, labels=labels, measures=measures, max_grade=MAX_GRADE)
        after.append(median_seconds(work, 1))
    pairs = f"{len(drawn.sample.pair):,} pairs in {drawn.batches} batches"
    yield f"planning, adaptive, {name}, the slowest batch ({pairs})", max(planning)
    yield f"ahead of judgments, adaptive, {name}, the slowest batch ({pairs})", max(ahead)
    row = f"recompute, adaptive, {name}"
    yield f"{row}, after one more batch, 20 % two ({pairs})", statistics.median(after[-LAST:])
    yield f"{row}, after a correction, 20 % two ({pairs})", median_seconds(work, repetitions)


def recomputes(
    pool: Pool,
    design: Design,
    measures: list[Measure],
    grades: IntArray,
    repetitions: int,
    labelings: Mapping[str, Labeling] = LABELINGS,
) -> Iterator[tuple[str, float]]:
    sample = draw(pool, design, seed="benchmark")
    share = np.count_nonzero(grades[sample.pair]) / len(sample.pair)
    for judged, labeling in labelings.items():
        labels = labeling(sample, grades)
        work = partial(
            evaluate,
            pool,
            PairRound(design, sample),
            labels=labels,
            measures=measures,
            max_grade=MAX_GRADE,
        )
        pool.kept.clear()
        first = median_seconds(work, 1)
        seconds = median_seconds(work, repetitions)
        telling = foretelling(pool, PairRound(design, sample), labels, measures, repetitions)
        last = range(max(2, design.batches + 1 - repetitions), design.batches + 1)
        after = [median_seconds(partial(work, batches=batches), 1) for batches in [1, *last]][1:]
        next_one = f"next {np.median(after):.3f} s, " if after else ""
        pairs = f"{len(sample.pair):,} pairs, {100 * share:.1f} % relevant"
        yield f"first {first:.2f} s, {next_one}{telling}{judged} ({pairs})", seconds


def foretelling(
    pool: Pool, part: PairRound, labels: LabelRows, measures: list[Measure], repetitions: int
) -> str:
    """What a forecast takes after the middle batch, beside the recompute that it comes with."""
    batches = part.design.batches // 2
    if not batches:
        return ""
    about = {"batches": batches, "max_grade": MAX_GRADE}
    look = partial(evaluate, pool, part, labels=labels, measures=measures, **about)
    result = look().results[0]
    work = partial(forecast, Scope.of(pool), part, result=result, **about)
    telling, looking = median_seconds(work, repetitions), median_seconds(look, repetitions)
    return f"forecast {telling:.3f} s beside {looking:.3f} s, "


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--synthetic", action="store_true")
    parser.add_argument("--files", type=Path)
    parser.add_argument("--repetitions", type=int, default=5)
    given = parser.parse_args()
    if given.synthetic:
        collection = synthetic()
    elif given.files:
        collection = run_files(given.files)
    else:
        collection = trec8(collection_in(FOLDER, "trec8"))
    for depth in DEPTHS:
        pool = build_pool(collection.topics, collection.runs, depth=depth)
        one_pass = median_seconds(partial(np.bincount, pool.run), 9)
        print(
            f"\n{collection.name}, depth {depth}: {len(pool.runs)} runs, {len(pool):,} pairs, "
            f"{len(pool.run):,} entries; one pass over them {1000 * one_pass:.1f} ms"
        )
        for name, seconds in reports(pool, collection.grades(pool), given.repetitions):
            most = next((most for begin, most in BARS if name.startswith(begin)), None)
            tell(Figure(f"depth {depth}, {name}", seconds, "s", "a pass", one_pass, most))


if __name__ == "__main__":
    main()
