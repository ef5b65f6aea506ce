"""Active sampling on TREC-8: its cost beside a plain rendition, its error beside other methods.

``--data`` is the folder with the test collections. The first part judges 10 % of the pool of single
topics (100 runs, depth 100) in rounds of three documents, with all runs re-estimated after every
round. The second part repeats the comparison of Li and Kanoulas 2017, figure 5. ``--coverage``
counts how often the intervals of an active round hold the truth; with ``--later N`` those of N runs
that join late, with a pool of 2 N others.
"""

import argparse
import gzip
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import kendalltau

from benchmarks.public import FOLDER, collection_in
from estimation.core.arrays import BoolArray, FloatArray, IntArray
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists, rank_lines
from estimation.core.data.scope import find_pairs
from estimation.core.inference.intervals import student_intervals
from estimation.core.rounds.active.estimates import estimate
from estimation.core.rounds.active.lists import ActiveFrame, make_frame
from estimation.core.rounds.active.sampling import ActiveState, plan_batch, start
from estimation.core.rounds.active.values import Form
from estimation.research.baselines.estimates import estimate as estimate_selection
from estimation.research.baselines.estimates import values_from_grades
from estimation.research.baselines.select import select
from estimation.research.baselines.selections import share_budgets

MEASURES = ("AP", "P@30", "Rprec")
COVERED = ("P@10", "P@30", "DCG@100", "AP", "Rprec")
DEPTH, RUNS, NEW = 100, 100, 3
ACTIVE: dict[float, tuple[Form, ...]] = {0.0: ("paper", "corrected"), 0.1: ("sequential",)}
REPEATED = ("mab", "stratified")  # MTF does not depend on chance
Estimates = dict[str, FloatArray]


@dataclass(frozen=True)
class Collection:
    """TREC-8: its topics, its runs down to depth 100 and its judgments."""

    topics: list[str]
    runs: Mapping[str, RankedLists]
    qrels: Mapping[tuple[str, bytes], int]

    def pool(self, tags: Iterable[str]) -> Pool:
        return build_pool(self.topics, {tag: self.runs[tag] for tag in tags}, depth=DEPTH)

    def grades(self, pool: Pool) -> IntArray:
        """The grade of every pair, 0 if nobody judged it."""
        keys = zip((pool.topics[t] for t in pool.topic), pool.docno.tolist(), strict=True)
        return np.array([self.qrels.get(key, 0) for key in keys], dtype=np.int64)


def read_collection(folder: Path) -> Collection:
    topics = [line.split("\t")[0] for line in (folder / "topics.tsv").read_text().splitlines()]
    runs = {}
    for path in sorted(folder.glob("runs/*.gz")):
        with gzip.open(path, "rb") as lines:
            columns = np.array(lines.read().split(), dtype=np.bytes_).reshape(-1, 6)
        scores = columns[:, 4].astype(float)
        tag = path.name.removesuffix(".run.gz")
        runs[tag] = rank_lines(columns[:, 0], columns[:, 2], scores, depth=DEPTH)
    qrels = {}
    for line in (folder / "qrels.txt").read_bytes().splitlines():
        topic, _, docno, grade = line.split()
        qrels[topic.decode(), docno] = max(int(grade), 0)
    return Collection(topics, runs, qrels)


# --------------------------------------------------------------------------- cost of one topic


def one_topic(pool: Pool, grades: IntArray, topic: int) -> tuple[Pool, IntArray]:
    """Return the pool of one topic and the first 100 runs."""
    lists = make_frame(pool).lists(topic)
    runs = {}
    for place, tag in enumerate(pool.runs[:RUNS]):
        entries = lists.document[lists.run_start[place] : lists.run_start[place + 1]]
        docnos = pool.docno[lists.start + entries]
        runs[tag] = RankedLists((pool.topics[topic],), np.array([0, len(docnos)]), docnos)
    small = build_pool([pool.topics[topic]], runs, depth=DEPTH)
    span = slice(lists.start, lists.start + len(lists))
    place_of = dict(zip(pool.docno[span].tolist(), grades[span].tolist(), strict=True))
    return small, np.array([place_of[docno] for docno in small.docno.tolist()], dtype=np.int64)


def active_topic(pool: Pool, grades: IntArray, *, seed: str) -> FloatArray:
    """Judge 10 % of a one-topic pool and return the estimated AP of every run."""
    frame = make_frame(pool)
    limits = np.round(0.1 * frame.sizes).astype(np.int64)
    state = start(frame, seed=seed, batch_size=NEW)
    while True:
        labels = LabelRows(state.pair, grades[state.pair])
        new = plan_batch(frame, state, labels=labels, limits=limits)
        if new is state:
            return estimate(frame, state, labels=labels, measures=["AP"])[0].value
        state = new


class PlainSampler:
    """The published algorithm with loops over runs, documents, rounds and pairs of documents."""

    def __init__(self, rankings: list[list[str]], relevant: dict[str, int], *, seed: int) -> None:
        self.rankings = rankings
        self.relevant = relevant
        self.random = random.Random(seed)
        self.rounds: list[tuple[dict[str, float], int]] = []
        self.judged: dict[str, int] = {}

    def document_chances(self, run_chances: list[float]) -> dict[str, float]:
        chances: dict[str, float] = {}
        for chance, ranking in zip(run_chances, self.rankings, strict=True):
            length = len(ranking)
            tails = [0.0] * (length + 1)
            for rank in range(length, 0, -1):
                tails[rank - 1] = tails[rank] + 1.0 / rank
            weights = [(1.0 + tail) / length for tail in tails[:-1]]
            total = sum(weights)
            for weight, document in zip(weights, ranking, strict=True):
                chances[document] = chances.get(document, 0.0) + chance * weight / total
        return chances

    def judge_round(self, run_chances: list[float], number: int) -> None:
        chances = self.document_chances(run_chances)
        documents, weights = list(chances), list(chances.values())
        draws = found = 0
        while found < number:
            document = self.random.choices(documents, weights)[0]
            draws += 1
            if document not in self.judged:
                self.judged[document] = self.relevant[document]
                found += 1
        self.rounds.append((chances, draws))

    def inclusion(self, document: str) -> float:
        absent = 1.0
        for chances, draws in self.rounds:
            for _ in range(draws):
                absent *= 1.0 - chances[document]
        return 1.0 - absent

    def average_precisions(self) -> list[float]:
        chances = {document: self.inclusion(document) for document in self.judged}
        relevant = sum(grade / chances[document] for document, grade in self.judged.items())
        return [self.average_precision(ranking, chances, relevant) for ranking in self.rankings]

    def average_precision(
        self, ranking: list[str], chances: dict[str, float], relevant: float
    ) -> float:
        returned = [document for document in self.judged if document in ranking]
        total = 0.0
        for first in returned:
            rank = ranking.index(first) + 1
            above = 0.0
            for second in returned:
                if ranking.index(second) < rank:
                    above += self.judged[second] / chances[second]
            total += self.judged[first] / chances[first] * above / rank
        return total / relevant if relevant else 0.0

    def run(self, budget: int) -> list[float]:
        chances = [1.0 / len(self.rankings)] * len(self.rankings)
        while len(self.judged) < budget:
            self.judge_round(chances, min(NEW, budget - len(self.judged)))
            values = self.average_precisions()
            total = sum(values)
            if total:
                chances = [value / total for value in values]
        return values


def plain_topic(pool: Pool, grades: IntArray, *, seed: int) -> list[float]:
    lists = make_frame(pool).lists(0)
    documents = [docno.decode() for docno in pool.docno.tolist()]
    bounds = zip(lists.run_start[:-1].tolist(), lists.run_start[1:].tolist(), strict=True)
    rankings = [[documents[i] for i in lists.document[first:last]] for first, last in bounds]
    relevant = dict(zip(documents, grades.tolist(), strict=True))
    return PlainSampler(rankings, relevant, seed=seed).run(round(0.1 * len(pool)))


def cpu_seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def compare_cost(pool: Pool, grades: IntArray, *, topics: range) -> None:
    ours, plain = [], []
    for topic in topics:
        small, few = one_topic(pool, grades, topic)
        active_topic(small, few, seed="warm")
        ours.append(cpu_seconds(lambda s=small, f=few: active_topic(s, f, seed="cost")))
        plain.append(cpu_seconds(lambda s=small, f=few: plain_topic(s, f, seed=1)))
        print(
            f"topic {pool.topics[topic]}: {len(small)} documents, {int(few.sum())} relevant: "
            f"{ours[-1]:.3f} CPU s, plain rendition {plain[-1]:.2f} CPU s, "
            f"{plain[-1] / ours[-1]:.0f} times as long"
        )
    ratio = sum(plain) / sum(ours)
    print(f"mean {np.mean(ours):.3f} CPU s and {np.mean(plain):.2f} CPU s: {ratio:.0f} times\n")


# -------------------------------------------------------------------------------- comparison


def sampled(
    frame: ActiveFrame, grades: IntArray, *, seed: str, limits: IntArray, share: float
) -> tuple[ActiveState, LabelRows]:
    """Judge until every topic has reached its limit."""
    state = start(frame, seed=seed, batch_size=NEW, uniform_share=share)
    while True:
        labels = LabelRows(state.pair, grades[state.pair])
        new = plan_batch(frame, state, labels=labels, limits=limits)
        if new is state:
            return state, labels
        state = new


def active_values(
    frame: ActiveFrame, grades: IntArray, *, seed: str, limits: IntArray, share: float
) -> dict[Form, Estimates]:
    """Estimates of one sample in every form that goes with this share of uniform sampling."""
    state, labels = sampled(frame, grades, seed=seed, limits=limits, share=share)
    result = {}
    for form in ACTIVE[share]:
        found = estimate(frame, state, labels=labels, measures=MEASURES, form=form)
        result[form] = {each.measure: each.value for each in found}
    return result


def baseline_values(
    pool: Pool, grades: IntArray, *, name: str, seed: str, limits: IntArray
) -> Estimates:
    chosen = select(pool, name, grades=grades, budget=limits, seed=seed)
    return {
        measure: estimate_selection(pool, chosen, grades=grades, measure=measure)
        for measure in MEASURES
    }


def methods(
    frame: ActiveFrame, grades: IntArray, *, limits: IntArray, samples: int
) -> Iterator[tuple[str, list[Estimates]]]:
    """The estimates of every sample of every method."""
    for name in ("mtf", *REPEATED):
        seeds = map(str, range(samples if name in REPEATED else 1))
        yield (
            name,
            [
                baseline_values(frame.pool, grades, name=name, seed=seed, limits=limits)
                for seed in seeds
            ],
        )
    for share, forms in ACTIVE.items():
        found = [
            active_values(frame, grades, seed=str(number), limits=limits, share=share)
            for number in range(samples)
        ]
        yield from ((f"active, {form}", [each[form] for each in found]) for form in forms)


def summary(values: FloatArray, truth: FloatArray) -> str:
    error = values - truth
    bias, number = error.mean(axis=1), len(values)
    noise = bias.std(ddof=1) / np.sqrt(number) if number > 1 else 0.0
    rms = np.sqrt((error**2).mean(axis=1)).mean()
    tau = np.mean([kendalltau(each, truth).statistic for each in values])
    return f"rms {rms:.5f}  bias {bias.mean():+.5f} +- {noise:.5f}  tau {tau:.4f}"


def compare_methods(pool: Pool, grades: IntArray, *, share: float, samples: int) -> None:
    frame, limits = make_frame(pool), share_budgets(pool, share=share)
    truth = {
        measure: values_from_grades(pool, grades=grades, measure=measure).mean(axis=0)
        for measure in MEASURES
    }
    print(
        f"{share:.0%} of the pool: {int(limits.sum()):,} of {len(pool):,} pairs, {samples} samples"
    )
    for name, found in methods(frame, grades, limits=limits, samples=samples):
        for measure in MEASURES:
            values = np.array([each[measure] for each in found])
            print(f"  {name:<18} {measure:<6} {summary(values, truth[measure])}", flush=True)
    print()


# ---------------------------------------------------------------------------------- coverage


@dataclass(frozen=True)
class Covered:
    """What is sampled and which runs are estimated from it; their grades are 0 outside the pool."""

    frame: ActiveFrame
    grades: IntArray
    over: ActiveFrame
    place: IntArray
    over_grades: IntArray
    groups: Mapping[str, BoolArray]

    @classmethod
    def whole(cls, pool: Pool, grades: IntArray) -> "Covered":
        frame = make_frame(pool)
        everyone = {"": np.ones(len(pool.runs), dtype=np.bool_)}
        return cls(frame, grades, frame, np.arange(len(pool)), grades, everyone)

    @classmethod
    def with_later(cls, collection: Collection, later: int) -> "Covered":
        tags = sorted(collection.runs)
        random.Random(1).shuffle(tags)
        own, late = tags[: 2 * later], tags[2 * later : 3 * later]
        pool, joined = collection.pool(own), collection.pool([*own, *late])
        place = find_pairs(
            pool.topic, pool.docno, among_topic=joined.topic, among_docno=joined.docno
        )
        grades = collection.grades(pool)
        inside = np.zeros(len(joined), dtype=np.int64)
        inside[place] = grades
        is_late = np.isin(joined.runs, late)
        groups = {"own": ~is_late, "later": is_late}
        return cls(make_frame(pool), grades, make_frame(joined), place, inside, groups)

    def truth(self, measure: str) -> FloatArray:
        pool, grades = self.over.pool, self.over_grades
        return values_from_grades(pool, grades=grades, measure=measure).mean(axis=0)


def compare_coverage(covered: Covered, *, share: float, samples: int) -> None:
    """How often 95 % intervals hold the truth, and on which side they miss it."""
    limits = share_budgets(covered.frame.pool, share=share)
    holds: dict[str, list[BoolArray]] = {measure: [] for measure in COVERED}
    above: dict[str, list[BoolArray]] = {measure: [] for measure in COVERED}
    relevant = []
    for number in range(samples):
        state, labels = sampled(
            covered.frame, covered.grades, seed=str(number), limits=limits, share=0.1
        )
        for found in estimate(
            covered.frame, state, labels=labels, measures=COVERED, form="sequential",
            over=covered.over, place=covered.place,
        ):  # fmt: skip
            truth = covered.truth(found.measure)
            df = np.full(len(truth), max(1.0, found.found.sum() - 1.0))
            limits_of = student_intervals(found.value, variance=found.se**2, df=df)
            holds[found.measure].append((limits_of.low <= truth) & (truth <= limits_of.high))
            above[found.measure].append(truth > limits_of.high)
        relevant.append(found.found.mean())
    print(f"{share:.0%} of the pool: {np.mean(relevant):.1f} relevant found per topic")
    for measure in COVERED:
        for group, runs in covered.groups.items():
            inside = np.array(holds[measure])[:, runs]
            error = np.std(inside.mean(axis=1), ddof=1) / np.sqrt(samples)
            print(
                f"  {measure:<8} {group:<5} covered {inside.mean():.3f} +- {error:.3f}, "
                f"truth above {np.array(above[measure])[:, runs].mean():.3f}, "
                f"worst run {inside.mean(axis=0).min():.2f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=FOLDER, type=Path)
    parser.add_argument("--samples", default=30, type=int)
    parser.add_argument("--shares", default=[0.10, 0.05, 0.03], type=float, nargs="*")
    parser.add_argument("--coverage", default=0, type=int, help="samples for coverage, 2 or more")
    parser.add_argument("--topics", default=3, type=int, help="topics whose cost is measured")
    parser.add_argument("--later", default=0, type=int, help="runs that join late")
    chosen = parser.parse_args()
    collection = read_collection(collection_in(chosen.data, "trec8"))
    pool = collection.pool(collection.runs)
    grades = collection.grades(pool)
    if chosen.topics:
        compare_cost(pool, grades, topics=range(chosen.topics))
    for share in chosen.shares:
        if chosen.samples:
            compare_methods(pool, grades, share=share, samples=chosen.samples)
        if chosen.coverage:
            covered = Covered.whole(pool, grades)
            if chosen.later:
                covered = Covered.with_later(collection, chosen.later)
            compare_coverage(covered, share=share, samples=chosen.coverage)


if __name__ == "__main__":
    main()
