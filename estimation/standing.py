"""How far what a run returns is pooled, drawn and judged: counts of documents, by round.

Only columns are read, so that web processes, which load no SciPy, can tell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from django.conf import settings
from django.db.models import Case, Q, When
from numpy.typing import NDArray

from estimation.core.archives import read_archive
from estimation.core.arrays import BytesArray, IntArray
from estimation.core.data.known_documents import KnownDocuments
from estimation.formats.run_columns import COLUMNS, read_columns
from estimation.models import Draw, Round, Run
from judging.labels import number_columns
from judging.models import Campaign

POOL_FORMAT = "evalsite-pool-1"


@dataclass(frozen=True, eq=False)
class NumberedDocnos:
    """Topics, as the rows of what they are asked of are numbered, and docnos."""

    topic: IntArray
    docno: BytesArray

    def __len__(self) -> int:
        return len(self.docno)

    def count_in(self, others: "NumberedDocnos", *, topics: int) -> int:
        """How many of these are among others."""
        if not len(self) or not len(others):
            return 0
        table = KnownDocuments.of(others.topic, others.docno, topics=topics)
        return int(np.count_nonzero(table.find(self.topic, self.docno) >= 0))


@dataclass(frozen=True, eq=False)
class RunLists:
    """What a run returns, best first: the documents of each topic, as `RankedLists` has them."""

    topics: Sequence[str]
    indptr: IntArray
    docnos: BytesArray

    def down_to(self, depth: int, numbers: Mapping[str, int]) -> NumberedDocnos:
        """The documents of known topics down to a depth."""
        length = np.diff(self.indptr)
        place = np.arange(len(self.docnos)) - np.repeat(self.indptr[:-1], length)
        codes = np.array([numbers.get(topic, -1) for topic in self.topics], dtype=np.int64)
        topic = np.repeat(codes, length)
        counts = (place < depth) & (topic >= 0)
        return NumberedDocnos(topic[counts], self.docnos[counts])


@dataclass(frozen=True)
class JudgedSoFar:
    """Of the ``documents`` that a run returns down to the ``depth`` of a round, how many are
    ``outside`` of its pool, were ``drawn``, and have been ``judged``."""

    round: int
    depth: int
    documents: int
    outside: int
    drawn: int
    judged: int

    @property
    def parts(self) -> list[tuple[str, int]]:
        """What becomes of its documents, each in the furthest state that it is in."""
        pooled = self.documents - self.outside
        return [
            ("judged", self.judged),
            ("drawn, not judged", self.drawn - self.judged),
            ("in the pool, not drawn", pooled - self.drawn),
            ("outside of the pool", self.outside),
        ]


def ranking_of(run: Run) -> RunLists:
    facts, columns = read_columns(_path(run.file), COLUMNS[:2])
    return RunLists(facts["topics"], columns["indptr"], columns["docnos"])


NONE = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Where in its pool what was drawn in a round stands, and what of it is judged."""

    every: IntArray = field(default_factory=lambda: NONE)
    judged: IntArray = field(default_factory=lambda: NONE)


class RoundsAsJudged:
    """The drawn rounds of a campaign, read once, for any number of rankings."""

    def __init__(self, campaign: Campaign) -> None:
        drawn = Round.objects.filter(campaign=campaign).exclude(state__in=Round.NOT_DRAWN)
        self._rows = list(drawn.select_related("pool").order_by("number"))
        self._drawn = _drawn(campaign) if self._rows else {}

    def of(self, ranking: RunLists) -> list[JudgedSoFar]:
        return [self._standing(row, ranking) for row in self._rows]

    def _standing(self, row: Round, ranking: RunLists) -> JudgedSoFar:
        facts, columns = _pool(_file_of(row))
        numbers, count = {name: n for n, name in enumerate(facts["topics"])}, len(facts["topics"])
        mine = ranking.down_to(facts["depth"], numbers)
        there = self._drawn.get(row.pk, _Drawn())
        pooled = mine.count_in(_pooled(columns), topics=count)
        drawn, judged = (_pooled(columns, at) for at in (there.every, there.judged))
        return JudgedSoFar(
            round=row.number,
            depth=facts["depth"],
            documents=len(mine),
            outside=len(mine) - pooled,
            drawn=mine.count_in(drawn, topics=count),
            judged=mine.count_in(judged, topics=count),
        )


def _file_of(row: Round) -> str:
    """The pool's file; a round that is drawn has one."""
    return row.pool.file if row.pool else ""


def _path(name: str) -> Path:
    return Path(settings.MEDIA_ROOT) / name


@lru_cache(maxsize=4)
def _pool(name: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """A pool file never changes: its name is the digest of its content."""
    columns = ("topic", "docno", "indptr", "run")
    return read_archive(_path(name), POOL_FORMAT, columns, optional=("other",))


def pooled_in(row: Round, topic: str) -> int:
    """How many pairs of a topic are in the pool of a drawn round."""
    facts, columns = _pool(_file_of(row))
    number = facts["topics"].index(topic) if topic in facts["topics"] else -1
    return int(np.count_nonzero(columns["topic"] == number))


def pooled_by_runs(row: Round, topic: str, depth: int) -> dict[str, list[bytes]]:
    """By the tag of each run in the pool of a drawn round, what it returns for a topic.

    One file tells of all runs. Empty where it does not: of pairs of documents, of a topic that came
    later, and of another depth.
    """
    facts, columns = _pool(_file_of(row))
    if "other" in columns or topic not in facts["topics"] or facts["depth"] != depth:
        return {}
    number = facts["topics"].index(topic)
    first, last = np.searchsorted(columns["topic"], [number, number + 1])
    starts = columns["indptr"][first : last + 1]
    run = columns["run"][starts[0] : starts[-1]]
    docno = np.repeat(columns["docno"][first:last], np.diff(starts))
    order = np.argsort(run, kind="stable")
    ends = np.searchsorted(run[order], np.arange(len(facts["runs"]) + 1)).tolist()
    returned = docno[order].tolist()
    return {
        tag: returned[start:end]
        for tag, start, end in zip(facts["runs"], ends, ends[1:], strict=False)
    }


def _pooled(columns: Mapping[str, NDArray[Any]], at: IntArray | None = None) -> NumberedDocnos:
    """The documents of a pool, or of its pairs at some positions; of preferences both."""
    names = ("topic", "docno", "other")
    found = {name: columns[name] for name in names if name in columns}
    if at is not None:
        found = {name: column[at] for name, column in found.items()}
    topic, docno = found["topic"].astype(np.int64), found["docno"]
    if "other" not in found:
        return NumberedDocnos(topic, docno)
    return NumberedDocnos(np.concatenate([topic, topic]), np.concatenate([docno, found["other"]]))


def _drawn(campaign: Campaign) -> dict[int, _Drawn]:
    """By the row id of each round."""
    answered = Q(pair__judged__gt=0) | Q(pair__decided=True)
    rows = Draw.objects.filter(round__campaign=campaign)
    told = rows.annotate(answered=Case(When(answered, then=1), default=0))
    columns = number_columns(told, "round_id", "position", "answered")
    rounds, position, judged = (column.astype(np.int64) for column in columns)
    return {
        int(pk): _Drawn(position[rounds == pk], position[(rounds == pk) & (judged > 0)])
        for pk in np.unique(rounds)
    }
