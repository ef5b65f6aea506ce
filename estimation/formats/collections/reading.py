"""What a kind of judged collection is, and what the readers of all kinds do with its tables."""

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from estimation.core.arrays import BoolArray, Indices, IntArray
from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.formats.collections.archive import JUDGMENTS, go_on, inside
from estimation.formats.collections.facts import Facts, Fields
from estimation.formats.collections.tables import PAIR, Form, Numbers, Table, share, whole
from judging.formats.columns import repeats
from judging.formats.problems import Problems

F = TypeVar("F", bound=Facts)
Row = tuple[str, Indices, Numbers]
"""A table by its file's name: the topic or the pair of each row, and its columns of numbers."""
REPEATED = replace(share("repeated"), optional=True)
"""Of a judgment: the chance with which its pair was to have two or more, if pairs differ in it."""


@dataclass(frozen=True, eq=False)
class CollectionReading(Generic[F]):
    """A collection that is being read: its archive, facts and tables, and the problems so far."""

    archive: zipfile.ZipFile
    facts: F
    forms: Mapping[str, Form]
    problems: Problems

    def has(self, name: str) -> bool:
        """Whether a table is there that may be missing."""
        return name in self.archive.namelist()

    def table(self, name: str) -> Table:
        """Read a table of the archive; of its rows those that are good."""
        with inside(self.problems, name) as problems, self.archive.open(name) as file:
            return self.forms[name].read(file, problems, self.facts.topics)

    def error(
        self, where: Table | str, row: int | None, field: str, expected: str, found: object = None
    ) -> None:
        """Record what is wrong with a row of a table, or with a file as a whole."""
        line = int(where.line[row]) if isinstance(where, Table) and row is not None else row
        told = f"expected {expected}" + ("" if found is None else f", found {found}")
        with inside(self.problems, where if isinstance(where, str) else where.name) as problems:
            problems.error(line, field, told)

    def go_on(self) -> None:
        """Raise RefusedError if there was an error."""
        go_on(self.problems)

    def refuse(
        self,
        table: Table,
        wrong: BoolArray,
        field: str,
        expected: str,
        found: Callable[[int], object],
    ) -> None:
        """Refuse the rows that are wrong; `found` tells what stands in a row."""
        for row in np.flatnonzero(wrong).tolist():
            self.error(table, row, field, expected, found(row))

    def refuse_repeats(
        self, table: Table, keys: Sequence[Any], what: Callable[[int], str], field: str
    ) -> None:
        """Refuse rows whose keys, the least important first, are those of an earlier row.

        `what` names the keys of a row for the message.
        """
        for row, first in repeats(table.line, *keys):
            again = f"it on line {table.line[first]} already"
            self.error(table, row, field, f"{what(row)} once", again)

    def refuse_repeated_pairs(self, table: Table) -> None:
        """Refuse pairs that stand in an earlier row."""
        self.refuse_repeats(table, (table.docno, table.topic), table.pair, "docno")

    def labels(self, place: IntArray, table: Table, sampled: IntArray, what: str) -> LabelRows:
        """Return the judgments, in any order, and refuse those of pairs that were not sampled.

        `place` has the pair of each, -1 for one that is not known; `what` says what every sampled
        pair is.
        """
        self.refuse(table, ~np.isin(place, sampled), "docno", what, table.pair)
        repeated = table.numbers.get(REPEATED.name)
        if repeated is not None and len(place):
            of_pair = np.zeros(int(place.max()) + 2)
            of_pair[place] = repeated
            expected = "one number for all judgments of a pair"
            found = repeated.__getitem__
            self.refuse(table, of_pair[place] != repeated, REPEATED.name, expected, found)
        return LabelRows(place, table.whole("grade"), repeated)


@dataclass(frozen=True)
class Kind:
    """A kind of collection: what it tells, declared once for those who write and who read it.

    Attributes
    ----------
    fields : Fields
        What ``collection.json`` says.
    refuse : function
        Raises TooLargeError for a collection of which no reader would take so much.
    facts : function
        Makes facts of fields that are as they must be; a problem may be recorded.
    forms : function
        Returns the tables that stand beside such facts.
    rows : function
        Yields the rows of these tables, in canonical order.
    read : function
        Reads the tables, which must fit each other, and returns the collection.
        Raises RefusedError, or CollectionError, for one that has an error.
    """

    fields: Fields
    refuse: Callable[[Any], None]
    facts: Callable[[Mapping[str, Any], Problems], Facts]
    forms: Callable[[Any], Sequence[Form]]
    rows: Callable[[Any], Iterator[Row]]
    read: Callable[[CollectionReading[Any]], RoundCollection]


def judgments(facts: Facts, key: Sequence[str] = PAIR) -> Form:
    """The table of judgments, one row for each, without the assessor."""
    return Form(JUDGMENTS, key, [whole("grade", 0, facts.max_grade), REPEATED])


def judgment_rows(collection: RoundCollection) -> Row:
    """Return the rows of the judgments, by (topic, docno, grade)."""
    labels = collection.labels
    told = {} if labels.repeated is None else {REPEATED.name: labels.repeated}
    return JUDGMENTS, labels.pair, {"grade": labels.grade, **told}


def counted(group: IntArray) -> IntArray:
    """The place of each row in its group, from 1; groups ascend."""
    return np.arange(len(group)) - np.searchsorted(group, group) + 1
