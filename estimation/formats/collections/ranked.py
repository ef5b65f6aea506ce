"""What collections with the ranked lists of their pool share: facts, pairs, lists.

``lists.tsv.gz``
    topic, docno, run, rank: what every run of the pool returns, down to the pool's depth.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypedDict

import numpy as np

from estimation.core.arrays import BytesArray, IntArray
from estimation.core.collections.ranked import RankedCollection
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.scope import find_pairs
from estimation.core.measures.table import Measure
from estimation.formats.collections import facts as common
from estimation.formats.collections.archive import FACTS, JUDGMENTS, TooLargeError, inside
from estimation.formats.collections.facts import Field, Fields
from estimation.formats.collections.reading import Reading
from estimation.formats.collections.rows import keys
from estimation.formats.collections.tables import PAIR, Table, name, table_bytes, whole
from judging.formats.problems import Problems, id_problem, show

LISTS = "lists.tsv.gz"
MAX_ENTRIES = 10_000_000
MAX_CELLS = 10_000_000
"""Numbers that are held of all topics, or rounds, and all runs."""


def _is_tag(value: Any) -> bool:
    return isinstance(value, str) and id_problem(value, "tag") is None


RUNS = common.list_of(f"a list of 1 to {common.MAX_RUNS} tags of runs", _is_tag, 1, common.MAX_RUNS)

FIELDS: Fields = {
    **common.COMMON,
    "seed": common.SEED,
    "measures": common.list_of("a list of 1 to 100 names of measures", common.is_text, 1, 100),
    "runs": RUNS,
}
"""What every kind says that keeps lists."""


class Told(TypedDict):
    """What every kind that keeps lists has from its facts alone."""

    max_grade: int
    version: str
    made_for: tuple[Measure, ...]
    seed: str | None


@dataclass(frozen=True, eq=False)
class RankedFacts(common.Facts):
    """What ``collection.json`` says; `rest` is what only the kind itself says."""

    seed: str | None
    measures: tuple[Measure, ...]
    runs: tuple[str, ...]
    rest: Mapping[str, Any]

    @property
    def told(self) -> Told:
        """What a collection has from here, whatever its kind."""
        return {
            "max_grade": self.max_grade,
            "version": self.version,
            "made_for": self.measures,
            "seed": self.seed,
        }


def facts_bytes(collection: RankedCollection, form: str, rest: Mapping[str, Any]) -> bytes:
    """Return the facts as JSON.

    Raises
    ------
    TooLargeError
        If no reader would take so many runs.
    ValueError
        If no reader would take such tags.
    """
    runs = collection.pool.runs
    if len(runs) > common.MAX_RUNS:
        raise TooLargeError(f"at most {common.MAX_RUNS} runs")
    if not RUNS.check(list(runs)):
        raise ValueError(f"expected {RUNS.expected}, not {len(runs)}: {runs[0]!r}, …")
    if len(runs) * len(collection.topics) > MAX_CELLS:
        raise TooLargeError(f"at most {MAX_CELLS} runs times topics")
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
) -> RankedFacts | None:
    """Check the facts of a kind with further `fields`, or return None after recording errors."""
    common.check_fields(found, {"format": common.one_of(form), **FIELDS, **fields}, problems)
    if not problems.ok:
        return None
    every = common.read_common(found, problems)
    common.check_ascending(found["runs"], "runs", problems)
    measures = [common.read_measure(text, "measures", problems) for text in found["measures"]]
    if len(found["topics"]) * len(found["runs"]) > MAX_CELLS:
        problems.error(None, "runs", f"expected at most {MAX_CELLS} runs times topics, found more")
    if not problems.ok:
        return None
    return RankedFacts(
        **every,
        seed=found["seed"],
        measures=tuple(each for each in measures if each is not None),
        runs=tuple(found["runs"]),
        rest={field: found[field] for field in fields},
    )


# --------------------------------------------------------------------------------- writing


def lists_bytes(collection: RankedCollection) -> bytes:
    """Return the table of the lists."""
    return table_bytes(("run", "rank"), _list_rows(collection), most=MAX_ENTRIES)


def _list_rows(collection: RankedCollection) -> Iterator[tuple[str, str, str, int]]:
    """By run, then topic, then rank."""
    pool = collection.pool
    pair = pool.entry_pair
    order = np.lexsort((pool.rank, pool.topic[pair], pool.run))
    runs, ranks = pool.run[order].tolist(), pool.rank[order].tolist()
    for key, run, rank in zip(keys(collection, pair[order]), runs, ranks, strict=True):
        yield *key, pool.runs[run], rank


# --------------------------------------------------------------------------------- reading


@dataclass(frozen=True, eq=False)
class RankedReading(Reading):
    """A collection that is being read, with its lists."""

    facts: RankedFacts

    def judged(self, pool: Pool, sampled: IntArray, what: str) -> LabelRows:
        """Read the judgments: at least one of every sampled pair and none of others.

        `what` says what every sampled pair is.
        """
        labels = self.labels(self.judgments(), pool, sampled, what)
        for pair in sampled[~np.isin(sampled, labels.pair)].tolist():
            named = f"docno {show(pool.docno[pair].decode())}"
            named += f" of topic {show(pool.topics[int(pool.topic[pair])])}"
            message = f"expected a judgment of {named}, {what}, found none"
            self.member_error(JUDGMENTS, None, "docno", message)
        return labels

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
            self.refuse(lists, place < 0, "docno", f"a pair of {known}", lists.pair)
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
        return self.table(LISTS, *columns, key=PAIR, most=MAX_ENTRIES)

    def _check_lists(self, table: Table) -> None:
        """Every list has the ranks from 1 on, each once, and no document twice."""
        run, rank = table.whole("run"), table.whole("rank")

        def list_of(row: int) -> str:
            return f"the list of {show(self.facts.runs[run[row]])}"

        self.refuse_repeats(
            table,
            (table.docno, table.topic, run),
            lambda row: f"{table.pair(row)} in {list_of(row)}",
            "docno",
        )
        order = np.lexsort((rank, table.topic, run))
        cells = run[order] * len(self.facts.topics) + table.topic[order]
        _, start, place = np.unique(cells, return_index=True, return_inverse=True)
        expected = np.arange(len(order)) - start[place] + 1
        wrong = np.flatnonzero(rank[order] != expected)
        for at in wrong[np.unique(place[wrong], return_index=True)[1]].tolist():
            row = int(order[at])
            whose = f"{list_of(row)} for {table.topic_of(row)}"
            message = f"expected rank {expected[at]} next in {whose}, found {rank[row]}"
            self.error(table, row, "rank", message)

    def _runs(self, table: Table) -> Iterator[RankedLists]:
        run, rank = table.whole("run"), table.whole("rank")
        order = np.lexsort((rank, table.topic, run))
        bounds = np.searchsorted(run[order], np.arange(len(self.facts.runs) + 1))
        places = np.arange(len(self.facts.topics) + 1)
        for first, last in pairwise(bounds.tolist()):
            rows = order[first:last]
            indptr = np.searchsorted(table.topic[rows], places).astype(np.int64)
            yield RankedLists(self.facts.topics, indptr, table.docno[rows])
