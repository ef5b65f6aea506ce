"""Tables of a judged collection: gzipped tab-separated columns under a header line.

A table is declared once, as a `Form`: its file, what its rows are about, and its columns. That is
what it is written by, and what it is read by.
"""

import re
import string
import zlib
from array import array
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from estimation.core.arrays import BytesArray, FloatArray, Indices, Int32Array, IntArray
from estimation.core.collections.base import RoundCollection
from estimation.core.data.preferences import BETWEEN
from estimation.core.data.scope import find_pairs
from estimation.formats.collections.archive import TooLargeError
from judging.formats.columns import MAX_DOCNO_BYTES
from judging.formats.lines import BinaryFile, filled, read_lines
from judging.formats.problems import MAX_ID_LENGTH, Problems, id_problem, show

MAX_ROWS = 4_000_000
PAIR, TOPIC, TWO = ("topic", "docno"), ("topic",), ("topic", "docno", "other")
ROUND = ()
"""What the rows of a table are about: their first columns; none where it is the round itself."""

_BLOCK = 20_000  # rows
_LEVEL = 4  # of digits: with Z_FILTERED smaller than 6 without, in two thirds of the time
_NUMBERS = 4  # in a row, if a table has as many rows as it may have
_MAX_NUMBER = 40
_DECIMAL = re.compile(r"[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?", re.ASCII)
_SIMPLE = f"{string.ascii_letters}{string.digits}-_".encode()
_SIGNED = re.compile(f"-?{_DECIMAL.pattern}", re.ASCII)
_WHOLE = re.compile(r"[0-9]{1,15}", re.ASCII)

Numbers = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Column:
    """A column of numbers: its name, what is expected in it, how it is read and written.

    `read` returns None for a text that is not as expected. An `optional` column may be missing. A
    column of ids expects nothing here: `id_problem` says what is wrong with them.
    """

    name: str
    expected: str
    read: Callable[[str], float | str | None]
    optional: bool = False
    text: Callable[[Any], str] = repr


def share(name: str) -> Column:
    """A column of numbers above 0 and at most 1."""
    return Column(name, "a number above 0 and at most 1", _decimal(lambda value: 0 < value <= 1))


def fraction(name: str) -> Column:
    """A column of numbers from 0 to 1, which may be missing."""
    return Column(name, "a number from 0 to 1", _decimal(lambda value: value <= 1), optional=True)


def positive(name: str) -> Column:
    """A column of numbers above 0 and below 1e15."""
    return Column(name, "a number above 0 and below 1e15", _decimal(lambda value: 0 < value < 1e15))


def real(name: str, least: float, most: float) -> Column:
    """A column of numbers within limits; they have a sign only where that may be."""
    form = _SIGNED if least < 0 else _DECIMAL
    wanted = f"a number from {least:g} to {most:g}"
    return Column(name, wanted, _decimal(lambda value: least <= value <= most, form))


def _decimal(
    is_good: Callable[[float], bool], form: re.Pattern[str] = _DECIMAL
) -> Callable[[str], float | None]:
    def read(text: str) -> float | None:
        if len(text) > _MAX_NUMBER or not form.fullmatch(text):
            return None
        value = float(text)
        return value if is_good(value) else None

    return read


def whole(name: str, least: int, most: int) -> Column:
    """A column of whole numbers within limits."""

    def read(text: str) -> float | None:
        value = int(text) if _WHOLE.fullmatch(text) else -1
        return float(value) if least <= value <= most else None

    return Column(name, f"a whole number from {least} to {most}", read)


def name(title: str, known: Sequence[str], of: str) -> Column:
    """A column of known names, each held as its number; `of` says whose names they are."""
    places = {each: place for place, each in enumerate(known)}
    return Column(title, of, places.get, text=known.__getitem__)


def _read_id(text: str) -> str | None:
    return None if id_problem(text) else text


@dataclass(frozen=True, eq=False)
class Table:
    """The n rows of a table that was read, as columns.

    `name` is that of its file, and `topics` are the names of all topics that are known.
    """

    name: str
    topics: Sequence[str]
    line: IntArray
    topic: IntArray  # positions among the known topics; 0 if the table is of none
    docno: BytesArray  # empty ones if the table is of no documents; both if of two
    numbers: Mapping[str, FloatArray]

    def __len__(self) -> int:
        return len(self.line)

    def whole(self, name: str) -> IntArray:
        """Return a column of whole numbers."""
        return self.numbers[name].astype(np.int64)

    def ordered(self, *keys: NDArray[Any]) -> "Table":
        """Return the rows by keys, the least important first."""
        order = np.lexsort(keys)
        return replace(
            self,
            line=self.line[order],
            topic=self.topic[order],
            docno=self.docno[order],
            numbers={name: column[order] for name, column in self.numbers.items()},
        )

    def places(self, topic: Int32Array | IntArray, docno: BytesArray) -> IntArray:
        """Where the pairs stand among those of a pool; -1 for those that do not."""
        return find_pairs(self.topic, self.docno, among_topic=topic, among_docno=docno)

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


@dataclass(frozen=True)
class Form:
    """What a table is like: its file, what its rows are about, its columns of numbers.

    It has `MAX_ROWS` rows at most, or `most`, and fewer with many columns. An `optional` table may
    be missing.
    """

    name: str
    key: Sequence[str]
    columns: Sequence[Column] = ()
    most: int | None = None
    optional: bool = False

    @property
    def header(self) -> list[str]:
        """The names of all columns."""
        return [*self.key, *(column.name for column in self.columns)]

    @property
    def limit(self) -> int:
        """How many rows there may be."""
        rows, columns = MAX_ROWS if self.most is None else self.most, len(self.columns)
        return rows if columns <= _NUMBERS else rows * _NUMBERS // columns

    def having(self, names: Container[str]) -> "Form":
        """The form of a table that has only those of the optional columns."""
        columns = [each for each in self.columns if not each.optional or each.name in names]
        return replace(self, columns=columns)

    def written(self, collection: RoundCollection, about: Indices, numbers: Numbers) -> bytes:
        """Return a gzipped table; equal rows give equal bytes, numbers lose no digit.

        Parameters
        ----------
        collection : RoundCollection
        about : ndarray of int, shape (n,)
            The topic or the pair of each row, as the key says; anything where it is the round.
        numbers : mapping of str to ndarray, shape (n,) each
            The columns; optional ones may be missing.

        Raises
        ------
        TooLargeError
            If there are more rows than a reader takes.
        ValueError
            For an id that no reader would take.
        """
        form = self.having(numbers)
        if len(about) > form.limit:
            raise TooLargeError(f"at most {form.limit} rows, with {', '.join(form.header)}")
        packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, 31, strategy=zlib.Z_FILTERED)
        packed = [packer.compress(("\t".join(form.header) + "\n").encode())]
        for start in range(0, len(about), _BLOCK):
            rows = slice(start, start + _BLOCK)
            cells = form._ids(collection, about[rows])
            cells += (map(each.text, numbers[each.name][rows].tolist()) for each in form.columns)
            lines = "\n".join(map("\t".join, zip(*cells, strict=True)))
            packed.append(packer.compress(f"{lines}\n".encode()))
        return b"".join([*packed, packer.flush()])

    def _ids(self, collection: RoundCollection, about: Indices) -> list[Any]:
        """The columns of the key."""
        if not self.key:
            return []
        names = collection.topics
        of_rows = about if self.key == TOPIC else collection.topic[about]
        codes = of_rows.tolist()
        _refuse_ids((names[code] for code in dict.fromkeys(codes)), self.key[0])
        topics = [names[code] for code in codes]
        if self.key == TOPIC:
            return [topics]
        docno = collection.docno[about]
        docnos = [each.decode() for each in docno.tolist()]
        if self.key == PAIR and _are_simple(docno):
            return [topics, docnos]
        between = BETWEEN.decode()
        ids = [list(each) for each in zip(*(each.split(between) for each in docnos), strict=True)]
        for what, column in zip(self.key[1:], ids, strict=True):
            _refuse_ids(column, what)
        return [topics, *ids]

    def read(self, file: BinaryFile, problems: Problems, topics: Sequence[str]) -> Table:
        """Read a table and return its good rows; `topics` are those that are known.

        Raises `UnreadableError`, its problem recorded, when reading cannot go on.
        """
        lines = filled(read_lines(file, problems))
        number, text = next(lines, (1, ""))
        there = text.split("\t")
        form = self.having(frozenset(there))
        if there != form.header:
            header = "\t".join(self.header)
            perhaps = ", or a part of it" if any(each.optional for each in self.columns) else ""
            problems.fatal(number, "columns", f"expected the header {show(header)}{perhaps}")
        reader = _Reader(form, problems, topics)
        for number, text in lines:
            reader.read(number, text)
        return reader.table()


def _refuse_ids(ids: Iterable[str], what: str) -> None:
    """Raise ValueError for the first id that no reader would take."""
    for fault in filter(None, (id_problem(each, what) for each in ids)):
        raise ValueError(fault)


def _are_simple(ids: BytesArray) -> bool:
    """Whether all are letters, digits, hyphens and underscores: no reader refuses these."""
    length = np.char.str_len(ids)
    content = ids.tobytes().replace(b"\0", b"")  # behind the ids, if nowhere else
    if ids.itemsize > MAX_ID_LENGTH or length.min() == 0 or len(content) != length.sum():
        return False
    return not content.translate(None, _SIMPLE)


class _Reader:
    """Takes lines and collects the good ones."""

    def __init__(self, form: Form, problems: Problems, topics: Sequence[str]) -> None:
        ids = [Column(each, "", _read_id) for each in form.key]
        ids[:1] = [name("topic", topics, "a topic of collection.json")] if ids else []
        self._columns = [*ids, *form.columns]
        self._form, self._problems, self._names = form, problems, topics
        self._first, self._limit = len(form.key), form.limit
        self._lines, self._codes, self._numbers = array("q"), array("q"), array("d")
        self._docnos: list[bytes] = []
        self._width = 1

    def read(self, line: int, text: str) -> None:
        cells = text.split("\t")
        if len(cells) != len(self._columns):
            message = f"expected {len(self._columns)} columns between tabs, found {len(cells)}"
            self._problems.error(line, "columns", message)
            return
        values = [each.read(cell) for each, cell in zip(self._columns, cells, strict=True)]
        if None not in values:
            self._keep(line, values)
            return
        for column, cell, value in zip(self._columns, cells, values, strict=True):
            if value is None:
                wanted = f"expected {column.expected}, found {show(cell)}"
                fault = wanted if column.expected else str(id_problem(cell))
                self._problems.error(line, column.name, fault)

    def _keep(self, line: int, values: list[Any]) -> None:
        docno = BETWEEN.join(each.encode() for each in values[1 : self._first])
        self._lines.append(line)
        self._codes.append(values[0] if self._first else 0)
        self._docnos.append(docno)
        self._numbers.extend(values[self._first :])
        self._width = max(self._width, len(docno))
        if len(self._lines) > self._limit:
            self._problems.fatal(line, "", f"expected at most {self._limit} rows, found more")
        if len(self._lines) * self._width > MAX_DOCNO_BYTES:
            message = f"expected shorter docnos or fewer rows: over {MAX_DOCNO_BYTES} bytes"
            self._problems.fatal(line, "docno", message)

    def table(self) -> Table:
        shape = len(self._lines), len(self._form.columns)
        numbers = np.array(self._numbers, dtype=np.float64).reshape(shape)
        return Table(
            name=self._form.name,
            topics=self._names,
            line=np.array(self._lines, dtype=np.int64),
            topic=np.array(self._codes, dtype=np.int64),
            docno=np.array(self._docnos, dtype=np.bytes_),
            numbers={each.name: numbers[:, at] for at, each in enumerate(self._form.columns)},
        )
