"""What the readers of long (topic, docno, …) files share: lines within bounds, and their topics."""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from judging.formats.cells import (
    WORD,
    BytesArray,
    FloatArray,
    IntArray,
    PlainLines,
    Words,
    are_plain_ids,
    as_bytes,
    distinct,
)
from judging.formats.lines import MEBIBYTE, BinaryFile, Limits, decode_line, read_chunks
from judging.formats.problems import MAX_ID_LENGTH, Problems, id_problem, show

MAX_TOPICS = 100_000
MAX_LINES = 10_000_000
"""Lines of a file: with a column of docnos as wide as may be they take less than 2 GB."""
MAX_DOCNO_BYTES = 256 * MEBIBYTE
"""Size of the column of docnos, in which the longest docno sets the width of all."""

_KEPT_BYTES = 8 * MEBIBYTE
"""The C library gives memory of up to this size back to the kernel from now on only when much of it
is free: arrays of every chunk stand where those of the last one stood, in pages that are there."""
_NAMED = 5
_HASHED = 1 << 14  # lines whose docnos are hashed at once
_BLANKS = re.compile(r"[ \t]+")


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines of a file as columns.

    `topic` counts `names`, and `number` is that of the line in the file. `values` are its numbers,
    as many for every line.
    """

    names: Sequence[str]
    topic: IntArray
    docno: BytesArray
    number: IntArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.number)

    def of(self, wanted: Collection[str] | None, problems: Problems, *, missing: str) -> "Lines":
        """Return the lines of wanted topics (all when None), and warn of the others.

        `missing` says what it means that a wanted topic is not there: "3 topics (…) are <missing>".
        """
        if wanted is None or not self.names:
            return self
        asked = frozenset(wanted)
        unknown = [name for name in self.names if name not in asked]
        known: NDArray[np.bool_] | slice = slice(None)
        if unknown:
            known = np.array([name in asked for name in self.names], dtype=np.bool_)[self.topic]
            at = self.number[~known]
            message = f"{_named(unknown)} not among the known topics; {_lines(len(at))} left out"
            problems.warning(int(at[0]), "topic", message)
        if len(unknown) == len(self.names):
            problems.error(None, "topic", "expected lines of known topics, found none")
        elif absent := sorted(asked.difference(self.names)):
            problems.warning(None, "topic", f"{_named(absent)} {missing}")
        return self.some(known)

    def some(self, which: NDArray[np.bool_] | IntArray | slice) -> "Lines":
        """Return some of the lines, with the same names."""
        return replace(
            self,
            topic=self.topic[which],
            docno=self.docno[which],
            number=self.number[which],
            values=self.values[which],
        )

    def by_topic(self) -> tuple[tuple[str, ...], IntArray, IntArray]:
        """Return the topics that lines are of, sorted as UTF-8 bytes, and where lines belong.

        That is the topic of each line, and where the lines of each begin in a column by topic.
        """
        present = np.flatnonzero(np.bincount(self.topic, minlength=len(self.names)))
        used = sorted(present.tolist(), key=lambda code: self.names[code].encode())
        places = np.zeros(len(self.names), dtype=np.int64)
        places[used] = np.arange(len(used))
        topic = places[self.topic]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(topic, minlength=len(used)))])
        return tuple(self.names[code] for code in used), topic, indptr.astype(np.int64)

    def repeats(self) -> Iterator[tuple[int, int]]:
        """Yield each row whose pair an earlier one had, by line, and the first such row."""
        return repeats(self.number, self.docno, self.topic)


def may_repeat(topic: IntArray, docno: BytesArray) -> bool:
    """Tell whether two lines may be of one pair; False is certain.

    Lines are told apart by 64 bits.
    """
    bits = _bits(topic, docno)
    bits.sort()
    return bool(np.any(bits[1:] == bits[:-1]))


def _bits(topic: IntArray, docno: BytesArray) -> Words:
    """Return 64 bits of each pair, in which all bits of topic and docno are mixed."""
    result = topic.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    width = -(-docno.itemsize // WORD) * WORD
    for start in range(0, len(docno), _HASHED):
        part = result[start : start + _HASHED]
        words = docno[start : start + _HASHED].astype(f"S{width}").view(np.uint64)
        for column in words.reshape(len(part), -1).T:
            part ^= column
            part *= np.uint64(0xBF58476D1CE4E5B9)
            part ^= part >> np.uint64(31)
    result *= np.uint64(0x94D049BB133111EB)
    return result


def repeats(line: IntArray, *keys: NDArray[Any]) -> Iterator[tuple[int, int]]:
    """Yield the rows whose keys were those of an earlier row, by line, and the first such row."""
    order = np.lexsort((line, *keys))
    ordered = [key[order] for key in keys]
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = np.any([key[1:] != key[:-1] for key in ordered], axis=0)
    first = order[np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))]
    again = np.flatnonzero(~fresh)
    again = again[np.argsort(line[order[again]])]
    yield from zip(order[again].tolist(), first[again].tolist(), strict=True)


def _named(topics: Sequence[str]) -> str:
    shown = ", ".join(map(show, topics[:_NAMED])) + (", …" if len(topics) > _NAMED else "")
    return f"topic {shown} is" if len(topics) == 1 else f"{len(topics)} topics ({shown}) are"


def _lines(count: int) -> str:
    return "1 line is" if count == 1 else f"{count} lines are"


class LineReader(ABC):
    """Takes chunks of lines and collects the good lines of all, within bounds."""

    def __init__(self, problems: Problems, max_lines: int) -> None:
        self.problems = problems
        self._names: list[str] = []
        self._codes: dict[bytes, int] = {}
        self._max_lines = max_lines
        self._parts: list[tuple[IntArray, BytesArray, IntArray, FloatArray]] = []
        self._count, self._width = 0, 1

    @property
    @abstractmethod
    def what(self) -> str:
        """What a file is expected to hold."""

    @abstractmethod
    def parsed(self, cells: Sequence[str], line: int) -> tuple[str, str, Sequence[float]] | None:
        """Return topic, docno and values of a line, or None, reporting what is wrong with it."""

    def read(self, file: BinaryFile, limits: Limits) -> Lines:
        """Return the good lines of a file in their order, having reported the others."""
        np.empty(_KEPT_BYTES, dtype=np.uint8)
        for first, chunk in read_chunks(file, self.problems, limits):
            self.read_chunk(first, chunk)
        if not self._parts:
            if self.problems.ok:
                self.problems.error(None, "", f"expected {self.what}, found none in the file")
            self.add([], [], [], np.zeros((0, 2)))
        lines = Lines(self._names, *self._joined())
        return self.without_repeats(lines) if may_repeat(lines.topic, lines.docno) else lines

    def without_repeats(self, lines: Lines) -> Lines:
        """Report each docno that its topic has already, with both lines."""
        for row, first in lines.repeats():
            topic, docno = lines.names[lines.topic[row]], lines.docno[row].decode()
            message = f"expected docno {show(docno)} of topic {show(topic)} once, found it on line"
            message += f" {lines.number[first]} already"
            self.problems.error(int(lines.number[row]), "docno", message)
        return lines

    def _joined(self) -> tuple[IntArray, BytesArray, IntArray, FloatArray]:
        """Put all parts together, column by column, so that no more than one is there twice."""
        parts: list[list[Any]] = [list(column) for column in zip(*self._parts, strict=True)]
        self._parts.clear()
        topic, docno, number, values = (np.concatenate(parts.pop(0)) for _ in range(4))
        return topic, docno, number, values

    def read_chunk(self, first: int, chunk: bytes) -> None:
        """Read whole lines, the first of which has the number `first`."""
        rows: list[tuple[int, bytes, int, Sequence[float]]] = []
        for number, raw in enumerate(chunk.removesuffix(b"\n").split(b"\n"), first):
            text = decode_line(raw, number, self.problems)
            cells = _BLANKS.split(text.strip(" \t")) if text else [""]
            line = None if cells == [""] else self.parsed(cells, number)
            if line is not None:
                topic, docno, values = line
                rows.append((self.code(topic.encode(), number), docno.encode(), number, values))
        if rows:
            self.add(*zip(*rows, strict=True))

    def code(self, topic: bytes, line: int) -> int:
        """Return the number of a topic, a new one if it is new."""
        code = self._codes.setdefault(topic, len(self._names))
        if code == len(self._names):
            self._names.append(topic.decode())
            if code >= MAX_TOPICS:
                self.problems.fatal(line, "topic", f"expected at most {MAX_TOPICS} topics")
        return code

    def add_cells(self, first: int, cells: PlainLines, docno: int, values: FloatArray) -> bool:
        """Keep plain lines, the first of which has the number `first`.

        Topics stand in the first column, docnos in that of the number `docno`. Returns False, with
        nothing kept, where an id is not good or a bound is reached: lines say which one.
        """
        if not (are_plain_ids(cells, docno) and cells.length[0].max() <= MAX_ID_LENGTH):
            return False
        lines, place = distinct(cells.words(0))
        names = [cells.cell(0, line) for line in lines.tolist()]
        fresh = [name for name in names if name not in self._codes]
        if len(self._names) + len(fresh) > MAX_TOPICS:
            return False
        if any(id_problem(name.decode(), "topic") for name in fresh):
            return False
        topic = np.array([self.code(name, first) for name in names])[place]
        docnos = as_bytes(cells.words(docno), int(cells.length[docno].max()))
        self.add(topic, docnos, np.arange(first, first + len(cells)), values)
        return True

    def is_good(self, topic: str, docno: str, faults: Mapping[str, str | None], line: int) -> bool:
        """Tell whether ids are good and there are no `faults` of other fields; report them."""
        named = None if topic.encode() in self._codes else id_problem(topic, "topic")
        found = {"topic": named, "docno": id_problem(docno), **faults}
        for field, fault in found.items():
            if fault:
                self.problems.error(line, field, fault)
        return not any(found.values())

    def add(
        self,
        topic: Sequence[int] | IntArray,
        docno: Sequence[bytes] | BytesArray,
        number: Sequence[int] | IntArray,
        values: ArrayLike,
    ) -> None:
        """Keep good lines, as columns."""
        docnos = np.asarray(docno, dtype=np.bytes_)
        self._count += len(docnos)
        self._width = max(self._width, docnos.itemsize)
        at = int(number[-1]) if len(number) else 0
        if self._count > self._max_lines:
            message = f"expected at most {self._max_lines} lines, found more"
            self.problems.fatal(at, "", message)
        if self._count * self._width > MAX_DOCNO_BYTES:
            message = f"expected shorter docnos or fewer lines: over {MAX_DOCNO_BYTES} bytes"
            self.problems.fatal(at, "docno", message)
        codes, numbers = np.asarray(topic, dtype=np.int64), np.asarray(number, dtype=np.int64)
        self._parts.append((codes, docnos, numbers, np.asarray(values, dtype=np.float64)))
