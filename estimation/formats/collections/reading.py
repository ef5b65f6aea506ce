"""Reading the tables of a judged collection, and naming what is wrong with their rows."""

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from estimation.core.arrays import BoolArray, BytesArray, Int32Array, IntArray
from estimation.core.collections.base import CollectionError, RoundCollection
from estimation.core.collections.published import checked
from estimation.core.data.labels import LabelRows
from estimation.core.data.scope import find_pairs
from estimation.core.rounds.combining import CombiningError
from estimation.formats.collections.archive import JUDGMENTS, inside
from estimation.formats.collections.facts import Facts
from estimation.formats.collections.tables import PAIR, Column, Table, read_table, whole
from judging.formats.problems import Problems


class Known(Protocol):
    """Pairs by (topic, docno)."""

    @property
    def topic(self) -> Int32Array | IntArray:
        """Topic of each pair, as a position among those of the facts."""

    @property
    def docno(self) -> BytesArray:
        """Docno of each pair."""


@dataclass(frozen=True, eq=False)
class Reading:
    """A collection that is being read: its archive and facts, and the problems so far."""

    archive: zipfile.ZipFile
    facts: Facts
    problems: Problems

    def table(
        self, member: str, *columns: Column, key: Sequence[str], most: int | None = None
    ) -> Table:
        """Read a table of the archive; of its rows those that are good."""
        with inside(self.problems, member) as problems, self.archive.open(member) as file:
            return read_table(
                file,
                problems,
                name=member,
                columns=columns,
                topics=self.facts.topics,
                key=key,
                most=most,
            )

    def judgments(self, key: Sequence[str] = PAIR) -> Table:
        """Read the table of judgments."""
        return self.table(JUDGMENTS, whole("grade", 0, self.facts.max_grade), key=key)

    def error(self, table: Table, row: int, field: str, message: str) -> None:
        """Record what is wrong with a row of a table."""
        self.member_error(table.name, int(table.line[row]), field, message)

    def member_error(self, member: str, line: int | None, field: str, message: str) -> None:
        """Record what is wrong with a file of the archive."""
        with inside(self.problems, member) as problems:
            problems.error(line, field, message)

    def refuse(
        self,
        table: Table,
        wrong: BoolArray,
        field: str,
        expected: str,
        found: Callable[[int], str],
    ) -> None:
        """Refuse the rows that are wrong; `found` tells what stands in a row."""
        for row in np.flatnonzero(wrong).tolist():
            self.error(table, row, field, f"expected {expected}, found {found(row)}")

    def refuse_repeats(
        self, table: Table, keys: Sequence[Any], what: Callable[[int], str], field: str
    ) -> None:
        """Refuse rows whose keys, the least important first, are those of an earlier row.

        `what` names the keys of a row for the message.
        """
        order = np.lexsort((table.line, *keys))
        same = np.all([key[order][1:] == key[order][:-1] for key in keys], axis=0)
        for before, row in zip(order[:-1][same].tolist(), order[1:][same].tolist(), strict=True):
            message = f"expected {what(row)} once, found it on line {table.line[before]} already"
            self.error(table, row, field, message)

    def refuse_repeated_pairs(self, table: Table) -> None:
        """Refuse pairs that stand in an earlier row."""
        self.refuse_repeats(table, (table.docno, table.topic), table.pair, "docno")

    def places(self, table: Table, known: Known) -> IntArray:
        """Where the pairs of a table stand among those known; -1 for those that do not."""
        return find_pairs(
            table.topic, table.docno, among_topic=known.topic, among_docno=known.docno
        )

    def labels(self, table: Table, known: Known, sampled: IntArray, what: str) -> LabelRows:
        """Return the judgments, in any order, and refuse those of pairs that were not sampled.

        `what` says what every sampled pair is.
        """
        place = self.places(table, known)
        self.refuse(table, ~np.isin(place, sampled), "docno", what, table.pair)
        return LabelRows(place, table.whole("grade"))

    def built(self, build: Callable[[], RoundCollection]) -> RoundCollection | None:
        """Return what is built, or None after recording what does not fit."""
        try:
            return checked(build())
        except (CollectionError, CombiningError) as error:
            self.problems.error(None, "", str(error))
            return None
