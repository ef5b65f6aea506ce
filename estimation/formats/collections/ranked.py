"""What collections with the ranked lists of their pool share: facts, pairs, lists.

``lists.tsv.gz``
    topic, docno, run, rank: what every run of the pool returns, down to the pool's depth.
"""

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from estimation.core.arrays import BytesArray, IntArray, frozen
from estimation.core.carrying import find_pairs
from estimation.core.collection import CollectionError
from estimation.core.labels import LabelRows
from estimation.core.measures import Measure
from estimation.core.pool import Pool, RankedLists, build_pool
from estimation.core.ranked_collection import RankedCollection
from estimation.formats.collections import facts as common
from estimation.formats.collections.archive import FACTS, inside
from estimation.formats.collections.facts import Field, Fields
from estimation.formats.collections.tables import (
    Column,
    Table,
    name,
    read_table,
    whole,
)
from judging.formats.problems import Problems, id_problem, show

LISTS, DRAWS, JUDGMENTS = "lists.tsv.gz", "draws.tsv.gz", "judgments.tsv.gz"
MAX_ENTRIES = 10_000_000
MAX_RUNS = 1000
MAX_CELLS = 10_000_000
"""Numbers that are held of all topics, or rounds, and all runs."""

_Kind = TypeVar("_Kind", bound=RankedCollection)


def _is_tag(value: Any) -> bool:
    return isinstance(value, str) and id_problem(value, "tag") is None


RUNS = common.list_of(f"a list of 1 to {MAX_RUNS} tags of runs", _is_tag, 1, MAX_RUNS)

FIELDS: Fields = {
    **common.COMMON,
    "seed": common.SEED,
    "measures": common.list_of("a list of 1 to 100 names of measures", common.is_text, 1, 100),
    "runs": RUNS,
}
"""What every kind says that keeps lists."""


@dataclass(frozen=True, eq=False)
class Facts:
    """What ``collection.json`` says; `rest` is what only the kind itself says."""

    version: str
    pool: str
    topics: tuple[str, ...]
    depth: int
    max_grade: int
    seed: str | None
    measures: tuple[Measure, ...]
    runs: tuple[str, ...]
    rest: Mapping[str, Any]

    @property
    def places(self) -> dict[str, int]:
        """The topics with their positions."""
        return {topic: place for place, topic in enumerate(self.topics)}


def facts_bytes(collection: RankedCollection, form: str, rest: Mapping[str, Any]) -> bytes:
    """Return the facts as JSON.

    Raises
    ------
    ValueError
        If no reader would take so many runs or such tags.
    """
    runs = collection.pool.runs
    if not RUNS.check(list(runs)):
        raise ValueError(f"expected {RUNS.expected}, not {len(runs)}: {runs[0]!r}, …")
    if len(runs) * len(collection.topics) > MAX_CELLS:
        raise ValueError(f"expected at most {MAX_CELLS} runs times topics")
    told = {
        "format": form,
        **common.common_facts(collection),
        "seed": collection.seed,
        "measures": [str(measure) for measure in collection.made_for],
        "runs": runs,
    }
    return common.fields_bytes(told | dict(rest), dict.fromkeys([*told, *rest], common.TEXT))


def read_facts(
    found: Mapping[str, Any], form: str, fields: Mapping[str, Field], problems: Problems
) -> Facts | None:
    """Check the facts of a kind with further `fields`, or return None after recording errors."""
    common.check_fields(found, {"format": common.one_of(form), **FIELDS, **fields}, problems)
    if not problems.ok:
        return None
    for field in ("topics", "runs"):
        _check_ascending(found[field], field, problems)
    measures = [common.read_measure(text, "measures", problems) for text in found["measures"]]
    if len(found["topics"]) * len(found["runs"]) > MAX_CELLS:
        problems.error(None, "runs", f"expected at most {MAX_CELLS} runs times topics, found more")
    if not problems.ok:
        return None
    return Facts(
        version=found["evalsite"],
        pool=found["pool"],
        topics=tuple(found["topics"]),
        depth=found["depth"],
        max_grade=found["max_grade"],
        seed=found["seed"],
        measures=tuple(each for each in measures if each is not None),
        runs=tuple(found["runs"]),
        rest={field: found[field] for field in fields},
    )


def _check_ascending(names: Sequence[str], field: str, problems: Problems) -> None:
    for first, second in pairwise(names):
        if first.encode() >= second.encode():
            message = f"expected them to ascend, each once, found {show(second)} after"
            problems.error(None, field, f"{message} {show(first)}")
            return


# --------------------------------------------------------------------------------- writing


def keys(collection: RankedCollection, pairs: IntArray) -> Iterator[tuple[str, str]]:
    """Yield topic and docno of pairs."""
    topics, docnos = collection.topic[pairs].tolist(), collection.docno[pairs].tolist()
    for topic, docno in zip(topics, docnos, strict=True):
        yield collection.topics[topic], docno.decode()


def list_rows(collection: RankedCollection) -> Iterator[tuple[str, str, str, int]]:
    """Yield the rows of the lists by (run, topic, rank).

    Raises
    ------
    ValueError
        If no reader would take so many.
    """
    pool = collection.pool
    if len(pool.run) > MAX_ENTRIES:
        raise ValueError(f"expected at most {MAX_ENTRIES} documents in lists, not {len(pool.run)}")
    pair = pool.entry_pair
    order = np.lexsort((pool.rank, pool.topic[pair], pool.run))
    runs, ranks = pool.run[order].tolist(), pool.rank[order].tolist()
    for key, run, rank in zip(keys(collection, pair[order]), runs, ranks, strict=True):
        yield *key, pool.runs[run], rank


def judgment_rows(collection: RankedCollection) -> Iterator[tuple[str, str, int]]:
    """Yield the rows of the judgments by (topic, docno, grade)."""
    labels = collection.labels
    for key, grade in zip(keys(collection, labels.pair), labels.grade.tolist(), strict=True):
        yield *key, grade


# --------------------------------------------------------------------------------- reading


@dataclass(frozen=True, eq=False)
class Reading:
    """A collection that is being read: its archive and facts, and the problems so far."""

    archive: zipfile.ZipFile
    facts: Facts
    problems: Problems

    def table(
        self, member: str, *columns: Column, key: Sequence[str], most: int | None = None
    ) -> Table:
        """Read a table of the archive."""
        with inside(self.problems, member) as problems, self.archive.open(member) as file:
            return read_table(
                file, problems, columns=columns, topics=self.facts.places, key=key, most=most
            )

    def error(self, member: str, table: Table, row: int, field: str, message: str) -> None:
        """Record what is wrong with a row of a table."""
        self.member_error(member, int(table.line[row]), field, message)

    def member_error(self, member: str, line: int | None, field: str, message: str) -> None:
        """Record what is wrong with a table."""
        with inside(self.problems, member) as problems:
            problems.error(line, field, message)

    def refuse_repeats(
        self, member: str, table: Table, keys: Sequence[Any], what: Callable[[int], str]
    ) -> None:
        """Refuse rows whose keys, the least important first, are those of an earlier row.

        `what` names the keys of a row for the message.
        """
        if not len(table):
            return
        order = np.lexsort((table.line, *keys))
        same = np.all([key[order][1:] == key[order][:-1] for key in keys], axis=0)
        for before, row in zip(order[:-1][same].tolist(), order[1:][same].tolist(), strict=True):
            message = f"expected {what(row)} once, found it on line {table.line[before]} already"
            self.error(member, table, row, "docno" if table.docno[row] else "topic", message)

    def refuse_repeated_pairs(self, member: str, table: Table) -> None:
        """Refuse pairs that stand in an earlier row."""
        self.refuse_repeats(
            member, table, (table.docno, table.topic), lambda row: self.pair(table, row)
        )

    def pair(self, table: Table, row: int) -> str:
        """Name the pair of a row."""
        return table.pair(row, self.facts.topics)

    def topic(self, table: Table, row: int) -> str:
        """Name the topic of a row."""
        return f"topic {show(self.facts.topics[int(table.topic[row])])}"

    def places(self, table: Table, pool: Pool) -> IntArray:
        """Where the pairs of a table stand in a pool; -1 for those that do not."""
        return find_pairs(table.topic, table.docno, among_topic=pool.topic, among_docno=pool.docno)

    def labels(self, pool: Pool, sampled: IntArray, reason: str) -> LabelRows:
        """Read the judgments: at least one of every sampled pair and none of others.

        `reason` says where it stands that a pair is sampled.
        """
        grade = whole("grade", 0, self.facts.max_grade)
        table = self.table(JUDGMENTS, grade, key=("topic", "docno"))
        place = self.places(table, pool)
        for row in np.flatnonzero(~np.isin(place, sampled)).tolist():
            message = f"expected a document {reason}, found {self.pair(table, row)}"
            self.error(JUDGMENTS, table, row, "docno", message)
        for pair in sampled[~np.isin(sampled, place)].tolist():
            named = f"docno {show(pool.docno[pair].decode())}"
            named += f" of topic {show(pool.topics[int(pool.topic[pair])])}"
            message = f"expected a judgment of {named}, a document {reason}, found none"
            self.member_error(JUDGMENTS, None, "docno", message)
        grades = table.whole("grade")
        order = np.lexsort((grades, place))
        return LabelRows(frozen(place[order]), frozen(grades[order]))

    def pool(
        self, topic: IntArray, docno: BytesArray, lists: Table, known: str = ""
    ) -> Pool | None:
        """Build the pool of lists and of pairs that may be in none, or None after an error.

        Pairs ascend by (topic, docno). `known` names the tables of these pairs, if they
        should have every pair of the lists.
        """
        self._check_lists(lists)
        if known:
            place = find_pairs(lists.topic, lists.docno, among_topic=topic, among_docno=docno)
            for row in np.flatnonzero(place < 0).tolist():
                message = f"expected a pair of {known}, found {self.pair(lists, row)}"
                self.error(LISTS, lists, row, "docno", message)
        if not self.problems.ok:
            return None
        bounds = np.searchsorted(topic, np.arange(len(self.facts.topics) + 1)).tolist()
        extra = {
            name: [each.decode() for each in docno[first:last].tolist()]
            for name, (first, last) in zip(self.facts.topics, pairwise(bounds), strict=True)
        }
        runs = dict(zip(self.facts.runs, self._runs(lists), strict=True))
        pool = build_pool(self.facts.topics, runs, depth=self.facts.depth, extra=extra)
        if pool.digest != self.facts.pool:
            message = f"expected {pool.digest}, which follows from the tables, found"
            with inside(self.problems, FACTS) as problems:
                problems.error(None, "pool", f"{message} {self.facts.pool}")
            return None
        return pool

    def lists(self) -> Table:
        """Read the lists."""
        runs = {tag: place for place, tag in enumerate(self.facts.runs)}
        columns = name("run", runs, f"a run of {FACTS}"), whole("rank", 1, self.facts.depth)
        return self.table(LISTS, *columns, key=("topic", "docno"), most=MAX_ENTRIES)

    def _check_lists(self, table: Table) -> None:
        """Every list has the ranks from 1 on, each once, and no document twice."""
        run, rank = table.whole("run"), table.whole("rank")
        self.refuse_repeats(
            LISTS,
            table,
            (table.docno, table.topic, run),
            lambda row: f"{self.pair(table, row)} in the list of {show(self.facts.runs[run[row]])}",
        )
        if not len(table):
            return
        order = np.lexsort((rank, table.topic, run))
        cells = run[order] * len(self.facts.topics) + table.topic[order]
        _, start, place = np.unique(cells, return_index=True, return_inverse=True)
        expected = np.arange(len(order)) - start[place] + 1
        wrong = np.flatnonzero(rank[order] != expected)
        for at in wrong[np.unique(place[wrong], return_index=True)[1]].tolist():
            row = int(order[at])
            whose = f"the list of {show(self.facts.runs[run[row]])} for {self.topic(table, row)}"
            message = f"expected rank {expected[at]} next in {whose}, found {rank[row]}"
            self.error(LISTS, table, row, "rank", message)

    def _runs(self, table: Table) -> Iterator[RankedLists]:
        run, rank = table.whole("run"), table.whole("rank")
        order = np.lexsort((rank, table.topic, run))
        bounds = np.searchsorted(run[order], np.arange(len(self.facts.runs) + 1))
        places = np.arange(len(self.facts.topics) + 1)
        for first, last in pairwise(bounds.tolist()):
            rows = order[first:last]
            indptr = np.searchsorted(table.topic[rows], places).astype(np.int64)
            yield RankedLists(self.facts.topics, indptr, table.docno[rows])

    def built(self, build: Callable[[], _Kind]) -> _Kind | None:
        """Return what is built, or None after recording what does not fit."""
        try:
            return build()
        except CollectionError as error:
            self.problems.error(None, "", str(error))
            return None
