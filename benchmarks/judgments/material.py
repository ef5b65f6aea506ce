"""Collections with complete judgments, and what a machine says about their pairs.

Every collection is played with all of its runs whose top is judged: of TREC-8 those with every
place down to the cutoff full and judged; of the others all runs, unjudged documents counting as
grade 0, as the collections mean it.

The machine judge is a model, unless the collection has real ones: the true grade plus normal noise,
cut to the scale, with as much noise as makes its correlation with the true grades `CORRELATION`. It
is drawn once and not once per trial, because a machine does not change its mind. Its errors know
nothing of systems, which is kind to whoever believes it; of a *leaning* one half of the noise's
variance is how many of the runs that return a document are of a certain kind.
"""

import gzip
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from benchmarks.public import collection_in
from estimation.core.arrays import BoolArray, FloatArray, IntArray, column_sums
from estimation.core.data.pool import Pool
from estimation.core.data.ranked_lists import rank_lines
from estimation.core.data.scope import find_pairs
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.sampling.random_numbers import permanent_random_numbers
from estimation.management.judged_collections import (
    JudgedCollection,
    PairKey,
    grades_of,
    predicted_of,
    read_collection,
)

CORRELATION = 0.6
DEEP = 1000  # more than any run has
HALVINGS = 60
LATER = (
    "later."  # runs of DL 2019 that were made after the track, by language models for the most part
)
MACHINE = "willia-umbrela1"  # of the real judges the one that agrees best with people
MACHINES = "willia-"  # its family, which ranks nothing


@dataclass(frozen=True, eq=False)
class Material:
    """What every method gets: the same pairs, the same grades, the same machine.

    Attributes
    ----------
    name : str
    measure : Measure
        A sum of gains, by rank.
    pool : Pool
        Its N pairs are what can be judged: what any run returns down to the measure's cutoff.
    deep : Pool
        The same runs as deep as they go: lists that are condensed move up documents from there.
    grades : ndarray of int64, shape (N,)
    max_grade : int
    machine : ndarray of float64, shape (N,)
        The machine's grade of every pair, from 0 to the best.
    """

    name: str
    measure: Measure
    pool: Pool
    deep: Pool
    grades: IntArray
    max_grade: int
    machine: FloatArray

    def utilities(self, grades: FloatArray | IntArray) -> FloatArray:
        """Return gains of grades, also of those between two."""
        scale = np.arange(self.max_grade + 1)
        return np.interp(grades, scale, self.measure.utilities(scale))

    @cached_property
    def truth(self) -> FloatArray:
        """The value of every run, shape (k,)."""
        return np.asarray(self.topic_values(self.utilities(self.grades)).mean(axis=0))

    def topic_values(self, utility: FloatArray) -> FloatArray:
        """Return the value of every run for every topic, (T, k), if pairs had these gains."""
        pool = self.pool
        weights = pool.entry_weights(self.measure) * len(pool.topics)
        return _by_cell(pool, weights * utility[pool.entry_pair])

    def condensed_values(self, judged: BoolArray) -> FloatArray:
        """Return the same of lists without the documents that nobody judged."""
        deep = self.deep
        known, utility = np.zeros(len(deep), dtype=bool), np.zeros(len(deep))
        known[self._place] = judged
        utility[self._place] = self.utilities(self.grades)
        kept = self._by_rank[known[deep.entry_pair[self._by_rank]]]
        cell = _cells(deep)[kept]
        rank = np.arange(len(kept)) - np.searchsorted(cell, cell) + 1
        gained = np.zeros(len(deep.run))
        gained[kept] = self.measure.weights(rank) * utility[deep.entry_pair[kept]]
        return _by_cell(deep, gained)

    @cached_property
    def _place(self) -> IntArray:
        """Where the pairs stand in the deep pool."""
        pool, deep = self.pool, self.deep
        return find_pairs(pool.topic, pool.docno, among_topic=deep.topic, among_docno=deep.docno)

    @cached_property
    def _by_rank(self) -> IntArray:
        """Entries of the deep pool, list by list from the top."""
        return np.lexsort((self.deep.rank, _cells(self.deep)))


def _cells(pool: Pool) -> IntArray:
    return pool.topic[pool.entry_pair].astype(np.int64) * len(pool.runs) + pool.run


def _by_cell(pool: Pool, values: FloatArray) -> FloatArray:
    shape = (len(pool.topics), len(pool.runs))
    return column_sums(_cells(pool), values, number=shape[0] * shape[1]).reshape(shape)


def noisy_machine(
    pool: Pool, grades: IntArray, *, max_grade: int, seed: str, favored: str | None = None
) -> FloatArray:
    """Return grades of a machine whose correlation with the true ones is `CORRELATION`.

    It leans to what runs return whose tags begin as `favored` says.
    """
    numbers = permanent_random_numbers(pool, seed=f"machine {seed}")
    errors = special.ndtri(np.clip(numbers, 1e-12, 1.0 - 1e-12))
    if favored is not None:
        kind = np.array([tag.startswith(favored) for tag in pool.runs])
        share = column_sums(pool.entry_pair, kind[pool.run].astype(float), number=len(pool))
        share /= np.diff(pool.indptr)
        errors = np.sqrt(0.5) * (errors + (share - share.mean()) / share.std())

    def said(noise: float) -> FloatArray:
        return np.asarray(np.clip(grades + noise * errors, 0.0, float(max_grade)))

    less, more = 0.0, 100.0
    for _ in range(HALVINGS):
        middle = (less + more) / 2.0
        agrees = np.corrcoef(grades, said(middle))[0, 1] > CORRELATION
        less, more = (middle, more) if agrees else (less, middle)
    return said(more)


# --------------------------------------------------------------------------------------- reading


def of_collection(
    name: str,
    collection: JudgedCollection,
    measure: str,
    *,
    seed: str,
    full: bool = False,
    favored: str | None = None,
) -> Material:
    """Return the material of a collection without real machine judges.

    ``full``: only of runs that have every place down to the cutoff filled and judged.
    """
    asked = parse_measure(measure)
    depth = asked.cutoff or DEEP
    if full:
        collection = collection.only(tuple(collection.only_fully_judged(depth).runs))
    pool, deep, best = (
        collection.pool(depth=depth),
        collection.pool(depth=DEEP),
        collection.max_grade,
    )
    grades, _ = grades_of(pool, collection.grades)
    machine = noisy_machine(pool, grades, max_grade=best, seed=seed, favored=favored)
    return Material(name, asked, pool, deep, grades, best, machine)


def _runs_of(folder: str, measure: str, **options: Any) -> Callable[..., Material]:
    def read(name: str, data: Path, seed: str) -> Material:
        there = collection_in(data, folder)
        collection = read_collection(there / "runs", there / "qrels.txt")
        return of_collection(name, collection, measure, seed=seed, **options)

    return read


def _language_models(name: str, data: Path, seed: str) -> Material:
    """Language models graded all pairs. Some are systems, which rank by their grades; one judges.

    Systems order documents of the same grade by chance.
    """
    grades: dict[PairKey, int] = {}
    there = collection_in(data, name)
    for line in (there / "qrels.txt").read_text().splitlines():
        topic, _, docno, grade = line.split()
        grades[topic, docno] = int(grade)
    with gzip.open(there / "judges.tsv.gz", "rt") as lines:
        head, *rows = (line.rstrip("\n").split("\t") for line in lines)
    keys = [(row[0], row[1]) for row in rows]
    best = max(grades.values())
    said = np.clip(np.array([row[2:] for row in rows], dtype=float), 0, best)
    judges = dict(zip(head[2:], said.T, strict=True))
    rng = np.random.default_rng([ord(each) for each in seed])
    topics, docnos = (np.array(each, dtype=np.bytes_) for each in zip(*keys, strict=True))
    runs = {
        judge: rank_lines(topics, docnos, each + rng.random(len(each)) / 2.0)
        for judge, each in judges.items()
        if not judge.startswith(MACHINES)
    }
    collection = JudgedCollection(tuple(sorted({topic for topic, _ in keys})), runs, grades)
    found = of_collection(name, collection, "DCG@10", seed=seed)
    machine = predicted_of(found.pool, dict(zip(keys, judges[MACHINE].tolist(), strict=True)))
    return replace(found, machine=machine)


COLLECTIONS: Mapping[str, Callable[[str, Path, str], Material]] = {
    "trec8": _runs_of("trec8", "P@10", full=True),
    "trec8-deep": _runs_of("trec8", "DCG@100", full=True),
    "dl2019": _runs_of("dl2019", "DCG@10"),
    "dl2019-leaning": _runs_of("dl2019", "DCG@10", favored=LATER),
    "cranfield": _runs_of("cranfield", "DCG@10"),
    "ltr-rank": _runs_of("ltr-rank", "DCG@10"),
    "llm-judges": _language_models,
}
REPEATED = ("dl2019-leaning",)  # but for the machine another collection: for those who ask it


def read(names: list[str], data: Path, *, seed: str) -> Iterator[Material]:
    """Read collections, one after the other."""
    for name in names:
        yield COLLECTIONS[name](name, data, seed)
