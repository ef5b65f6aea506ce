"""What clients know of their judgments, and what a site has stored: the two are held together.

A client writes down what it is about to say, and that it was acknowledged, each forced to the
disk before it goes on, as a client must whose own word is to be the measure.
"""

import json
import os
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Said:
    """One judgment as its client knows it."""

    assessor: str
    key: str
    assignment: int
    grade: int
    acknowledged: bool


@dataclass(frozen=True)
class Stored:
    """One row of the judgments table."""

    id: int
    assessor: str
    key: str
    assignment: int
    pair: int
    grade: int
    revision: int


@dataclass(frozen=True)
class PairRow:
    id: int
    wanted: int
    held: int
    judged: int
    decided: bool


@dataclass(frozen=True)
class BatchRow:
    """A batch with how many of its pairs lack labels, counted from the judgments."""

    number: int
    state: str
    remaining: int
    lacking: int


@dataclass(frozen=True)
class Tables:
    judgments: list[Stored]
    pairs: list[PairRow]
    batches: list[BatchRow]
    audits: list[tuple[str, int]]
    """(judgment, grade) of every audit row of a judgment."""


class Journal:
    """A file that many threads append to; nothing is said before it stands there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._file = path.open("a")

    def say(self, assessor: str, key: str, assignment: int, grade: int) -> None:
        self._write([assessor, key, assignment, grade])

    def acknowledge(self, assessor: str, key: str) -> None:
        self._write([assessor, key])

    def _write(self, entry: list[Any]) -> None:
        with self._lock:
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()
            os.fsync(self._file.fileno())

    def read(self) -> list[Said]:
        entries = [json.loads(line) for line in self.path.read_text().splitlines()]
        acknowledged = {tuple(entry) for entry in entries if len(entry) == 2}
        said = [entry for entry in entries if len(entry) == 4]
        return [Said(*entry, tuple(entry[:2]) in acknowledged) for entry in said]


def differences(said: Sequence[Said], stored: Sequence[Stored]) -> list[str]:
    """Everything that clients and site disagree about; empty if nothing was lost or made up.

    Acknowledged judgments are stored once, with the grade that was said. One that was never
    acknowledged may be stored, once, or not.
    """
    by_key = defaultdict(list)
    for row in stored:
        by_key[row.assessor, row.key].append(row)
    found = []
    for one in said:
        rows = by_key.pop((one.assessor, one.key), [])
        if one.acknowledged and not rows:
            found.append(f"lost: {one}")
        if len(rows) > 1:
            found.append(f"doubled: {one}")
        found += [f"changed: {one} {row}" for row in rows if not _same(one, row)]
    found += [f"made up: {row}" for rows in by_key.values() for row in rows]
    places = Counter((row.assessor, row.pair) for row in stored if row.revision == 1)
    return found + [f"judged twice: {place}" for place, times in places.items() if times > 1]


def _same(one: Said, row: Stored) -> bool:
    return (one.assignment, one.grade) == (row.assignment, row.grade)


def contradictions(tables: Tables) -> list[str]:
    """Everything the tables of a site disagree about among themselves."""
    return [
        *_of_pairs(tables.pairs, tables.judgments),
        *_of_audits(tables.audits, tables.judgments),
        *_of_batches(tables.batches),
    ]


def _of_pairs(pairs: Iterable[PairRow], judgments: Iterable[Stored]) -> list[str]:
    labels = Counter(row.pair for row in judgments if row.revision == 1)
    found = []
    for pair in pairs:
        if labels[pair.id] > pair.wanted:
            found.append(f"more labels than wanted: {pair}")
        if labels[pair.id] != pair.judged or not pair.judged <= pair.held <= pair.wanted:
            found.append(f"counts {labels[pair.id]} labels: {pair}")
    return found


def _of_audits(audits: Iterable[tuple[str, int]], judgments: Iterable[Stored]) -> list[str]:
    told = Counter(audits)
    there = Counter((f"judgment {row.id}", row.grade) for row in judgments)
    return [
        *(f"without audit row: {row}" for row in (there - told)),
        *(f"audit row of nothing: {row}" for row in (told - there)),
    ]


def _of_batches(batches: Iterable[BatchRow]) -> list[str]:
    """A batch is complete exactly when no pair of it lacks labels; open ones count their lack."""
    return [
        str(batch)
        for batch in batches
        if (batch.state == "complete" and batch.lacking)
        or (batch.state == "open" and (not batch.lacking or batch.lacking != batch.remaining))
    ]


DUMP = """
import json
from django.db.models import F
from judging.models import AuditEntry, Batch, Judgment, Pair
from judging.services import batches

judgments = Judgment.objects.order_by("pk").values_list(
    "pk", "assessor__username", "key", "assignment_id", "assignment__pair_id", "grade", "revision"
)
print(json.dumps({
    "judgments": list(judgments),
    "pairs": list(Pair.objects.values_list("pk", "wanted", "held", "judged", "decided")),
    "batches": [
        (b.number, b.state, b.remaining, batches.unfinished(b.pk).count())
        for b in Batch.objects.order_by("pk")
    ],
    "audits": [
        (target, data["grade"])
        for target, data in AuditEntry.objects.filter(action="judge").values_list("target", "data")
    ],
}))
"""


def tables_of(run: Any) -> Tables:
    """What a site has stored; ``run`` is its ``python``."""
    rows = json.loads(run(DUMP))
    return Tables(
        judgments=[Stored(*row) for row in rows["judgments"]],
        pairs=[PairRow(*row) for row in rows["pairs"]],
        batches=[BatchRow(*row) for row in rows["batches"]],
        audits=[(target, grade) for target, grade in rows["audits"]],
    )
