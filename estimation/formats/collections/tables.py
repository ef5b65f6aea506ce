"""Tables of a judged collection: gzipped tab-separated columns under a header line."""

import re
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import BytesArray, FloatArray, IntArray
from estimation.core.data.preferences import BETWEEN
from estimation.formats.collections.archive import TooLargeError
from estimation.formats.columns import MAX_DOCNO_BYTES
from judging.formats.lines import BinaryFile, filled, read_lines
from judging.formats.problems import Problems, id_problem, show

MAX_ROWS = 4_000_000
PAIR, TOPIC, TWO = ("topic", "docno"), ("topic",), ("topic", "docno", "other")
"""What the rows of a table are about: their first columns."""

_BLOCK = 20_000  # rows
_NUMBERS = 4  # in a row, if a table has as many rows as it may have
_MAX_NUMBER = 40
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,15}", re.ASCII)


@dataclass(frozen=True)
class Column:
    """A column of numbers: its name, what is expected in it, and how it is read.

    `read` returns None for a text that is not as expected. An `optional` column may be missing.
    """

    name: str
    expected: str
    read: Callable[[str], float | None]
    optional: bool = False


@dataclass(frozen=True, eq=False)
class Table:
    """The n rows of a table, as columns.

    `name` is that of its file, and `topics` are the names of all topics that are known.
    """

    name: str
    topics: Sequence[str]
    line: IntArray
    topic: IntArray  # positions among the known topics
    docno: BytesArray  # empty ones if the table is of topics; both if of two documents
    numbers: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(self.line)

    def whole(self, name: str) -> IntArray:
        """Return a column of whole numbers."""
        return self.numbers[name].astype(np.int64)

    def topic_of(self, row: int) -> str:
        """Name the topic of a row for a message."""
        return f"topic {show(self.topics[int(self.topic[row])])}"

    def pair(self, row: int) -> str:
        """Name the pair of a row for a message."""
        docnos = [show(docno.decode()) for docno in self.docno[row].split(BETWEEN)]
        what = "docno" if len(docnos) == 1 else "documents"
        return f"{what} {' and '.join(docnos)} of {self.topic_of(row)}"

    def batch_of(self, row: int) -> str:
        """Name the topic and the batch of a row for a message."""
        return f"{self.topic_of(row)} in batch {self.numbers['batch'][row]:.0f}"


def share(name: str) -> Column:
    """A column of numbers above 0 and at most 1."""

    def read(text: str) -> float | None:
        value = _decimal(text)
        return value if value is not None and 0.0 < value <= 1.0 else None

    return Column(name, "a number above 0 and at most 1", read)


def fraction(name: str, *, optional: bool = False) -> Column:
    """A column of numbers from 0 to 1."""

    def read(text: str) -> float | None:
        value = _decimal(text)
        return value if value is not None and value <= 1.0 else None

    return Column(name, "a number from 0 to 1", read, optional)


def positive(name: str) -> Column:
    """A column of numbers above 0 and below 1e15."""

    def read(text: str) -> float | None:
        value = _decimal(text)
        return value if value is not None and 0.0 < value < 1e15 else None

    return Column(name, "a number above 0 and below 1e15", read)


def whole(name: str, least: int, most: int) -> Column:
    """A column of whole numbers within limits."""

    def read(text: str) -> float | None:
        value = int(text) if _WHOLE.fullmatch(text) else -1
        return float(value) if least <= value <= most else None

    return Column(name, f"a whole number from {least} to {most}", read)


def _decimal(text: str) -> float | None:
    return float(text) if len(text) <= _MAX_NUMBER and _DECIMAL.fullmatch(text) else None


def name(title: str, known: Mapping[str, int], of: str) -> Column:
    """A column of known names, each read as its number; `of` says whose names they are."""

    def read(text: str) -> float | None:
        return known.get(text)

    return Column(title, of, read)


def table_bytes(
    columns: Sequence[str],
    rows: Iterable[Sequence[str | int | float]],
    *,
    key: Sequence[str] = PAIR,
    most: int | None = None,
) -> bytes:
    """Return a gzipped table; equal rows give equal bytes, numbers lose no digit.

    Raises
    ------
    TooLargeError
        If there are more rows than `most`, by default `MAX_ROWS`, or fewer with many columns.
    ValueError
        For an id that no reader would take.
    """
    limit = _most_rows(most, len(columns))
    packer = zlib.compressobj(6, zlib.DEFLATED, 31)
    lines, packed = ["\t".join((*key, *columns))], []
    for number, row in enumerate(rows, start=1):
        if number > limit:
            raise TooLargeError(f"at most {limit} rows, with {', '.join((*key, *columns))}")
        for what, text in zip(key, row, strict=False):
            fault = id_problem(str(text), what)
            if fault is not None:
                raise ValueError(fault)
        lines.append("\t".join(cell if isinstance(cell, str) else repr(cell) for cell in row))
        if len(lines) >= _BLOCK:
            packed.append(packer.compress(("\n".join(lines) + "\n").encode()))
            lines = []
    packed.append(packer.compress("".join(f"{line}\n" for line in lines).encode()))
    return b"".join([*packed, packer.flush()])


def _most_rows(most: int | None, columns: int) -> int:
    """How many rows a table may have: fewer if there are many columns of numbers."""
    rows = MAX_ROWS if most is None else most
    return rows if columns <= _NUMBERS else rows * _NUMBERS // columns


def read_table(
    file: BinaryFile,
    problems: Problems,
    *,
    name: str,
    columns: Sequence[Column],
    topics: Sequence[str],
    key: Sequence[str] = PAIR,
    most: int | None = None,
) -> Table:
    """Read a table and return its good rows.

    `name` is that of its file; `topics` are the known topics; `most` is the number of rows there
    may be, as in `table_bytes`. Raises `UnreadableError`, its problem recorded, when reading cannot
    go on.
    """
    lines = filled(read_lines(file, problems))
    number, text = next(lines, (1, ""))
    there = text.split("\t")
    columns, every = _columns_of(there, columns), columns
    if there != [*key, *(column.name for column in columns)]:
        header = "\t".join([*key, *(column.name for column in every)])
        perhaps = ", or a part of it" if any(column.optional for column in every) else ""
        problems.fatal(number, "columns", f"expected the header {show(header)}{perhaps}")
    reader = _Reader(problems, columns, topics, key, _most_rows(most, len(columns)))
    for number, text in lines:
        reader.read(number, text)
    return reader.table(name)


def _columns_of(header: Sequence[str], columns: Sequence[Column]) -> Sequence[Column]:
    """The columns that a table has; all that must be there are among them."""
    names = frozenset(header)
    return [column for column in columns if not column.optional or column.name in names]


class _Reader:
    """Takes lines and collects the good ones."""

    def __init__(
        self,
        problems: Problems,
        columns: Sequence[Column],
        topics: Sequence[str],
        key: Sequence[str],
        most: int,
    ) -> None:
        self._problems, self._columns, self._names = problems, columns, topics
        self._topics = {topic: place for place, topic in enumerate(topics)}
        self._key, self._first, self._most = key, len(key), most
        self._lines, self._codes, self._numbers = array("q"), array("q"), array("d")
        self._docnos: list[bytes] = []
        self._width = 1

    def read(self, line: int, text: str) -> None:
        cells = text.split("\t")
        wanted = self._first + len(self._columns)
        if len(cells) != wanted:
            message = f"expected {wanted} columns between tabs, found {len(cells)}"
            self._problems.error(line, "columns", message)
            return
        code = self._topics.get(cells[0])
        docnos = cells[1 : self._first]
        faults = [id_problem(docno) for docno in docnos]
        found = cells[self._first :]
        numbers = [column.read(cell) for column, cell in zip(self._columns, found, strict=True)]
        if code is None or any(faults) or None in numbers:
            self._refuse(line, cells, faults, numbers)
            return
        name = BETWEEN.join(docno.encode() for docno in docnos)
        self._keep(line, code, name, [number or 0.0 for number in numbers])

    def _refuse(
        self,
        line: int,
        cells: Sequence[str],
        faults: Sequence[str | None],
        numbers: Sequence[float | None],
    ) -> None:
        if cells[0] not in self._topics:
            message = f"expected a topic of collection.json, found {show(cells[0])}"
            self._problems.error(line, "topic", message)
        for field, fault in zip(self._key[1:], faults, strict=True):
            if fault is not None:
                self._problems.error(line, field, fault)
        found = cells[self._first :]
        for column, cell, number in zip(self._columns, found, numbers, strict=True):
            if number is None:
                message = f"expected {column.expected}, found {show(cell)}"
                self._problems.error(line, column.name, message)

    def _keep(self, line: int, code: int, docno: bytes, numbers: list[float]) -> None:
        self._lines.append(line)
        self._codes.append(code)
        self._docnos.append(docno)
        self._numbers.extend(numbers)
        self._width = max(self._width, len(docno))
        if len(self._lines) > self._most:
            self._problems.fatal(line, "", f"expected at most {self._most} rows, found more")
        if len(self._lines) * self._width > MAX_DOCNO_BYTES:
            message = f"expected shorter docnos or fewer rows: over {MAX_DOCNO_BYTES} bytes"
            self._problems.fatal(line, "docno", message)

    def table(self, name: str) -> Table:
        numbers = np.array(self._numbers, dtype=np.float64).reshape(
            len(self._lines), len(self._columns)
        )
        return Table(
            name=name,
            topics=self._names,
            line=np.array(self._lines, dtype=np.int64),
            topic=np.array(self._codes, dtype=np.int64),
            docno=np.array(self._docnos, dtype=np.bytes_),
            numbers={c.name: numbers[:, place] for place, c in enumerate(self._columns)},
        )
