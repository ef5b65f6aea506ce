"""What the readers of long (topic, docno, …) files share: lines within bounds, and their topics."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from estimation.core.arrays import BytesArray, FloatArray, IntArray
from judging.formats.lines import MEBIBYTE, BinaryFile, Limits, decode_line, read_chunks
from judging.formats.problems import Problems, id_problem, show

MAX_TOPICS = 100_000
MAX_DOCNO_BYTES = 256 * MEBIBYTE
"""Size of the column of docnos, in which the longest docno sets the width of all."""
MAX_NUMBER = 400
"""Characters of a number; parsing longer ones takes its time."""

_NAMED = 5
_BLANKS = re.compile(r"[ \t]+")


def parsed_number(text: str) -> float:
    """Return a number, or NaN for what is none (Python's underscores and digits included)."""
    if len(text) > MAX_NUMBER or "_" in text or not text.isascii():
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


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
        known = np.array([name in asked for name in self.names], dtype=np.bool_)[self.topic]
        unknown = [name for name in self.names if name not in asked]
        if unknown:
            at = self.number[~known]
            message = f"{_named(unknown)} not among the known topics; {len(at)} lines are left out"
            problems.warning(int(at[0]), "topic", message)
        if len(unknown) == len(self.names):
            problems.error(None, "topic", "expected lines of known topics, found none")
        elif absent := sorted(asked.difference(self.names)):
            problems.warning(None, "topic", f"{_named(absent)} {missing}")
        return replace(
            self,
            topic=self.topic[known],
            docno=self.docno[known],
            number=self.number[known],
            values=self.values[known],
        )

    def by_topic(self) -> tuple[tuple[str, ...], IntArray, IntArray]:
        """Return the topics that lines are of, sorted as UTF-8 bytes, and where lines belong.

        That is the topic of each line, and where the lines of each begin in a column by topic.
        """
        used = sorted(np.unique(self.topic).tolist(), key=lambda code: self.names[code].encode())
        places = np.zeros(len(self.names), dtype=np.int64)
        places[used] = np.arange(len(used))
        topic = places[self.topic]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(topic, minlength=len(used)))])
        return tuple(self.names[code] for code in used), topic, indptr.astype(np.int64)

    def report_duplicates(self, problems: Problems) -> None:
        """Report each docno that its topic has already, with both lines."""
        for row, first in repeats(self.number, self.docno, self.topic):
            topic, docno = self.names[self.topic[row]], self.docno[row].decode()
            message = f"expected docno {show(docno)} of topic {show(topic)} once, found it on line"
            message += f" {self.number[first]} already"
            problems.error(int(self.number[row]), "docno", message)


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
        for first, chunk in read_chunks(file, self.problems, limits):
            self.read_chunk(first, chunk)
        if not self._parts:
            if self.problems.ok:
                self.problems.error(None, "", f"expected {self.what}, found none in the file")
            self.add([], [], [], np.zeros((0, 2)))
        topic, docno, number, values = map(np.concatenate, zip(*self._parts, strict=True))
        lines = Lines(self._names, topic, docno, number, values)
        lines.report_duplicates(self.problems)
        return lines

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

    def is_known(self, topic: bytes) -> bool:
        """Whether a good line was of the topic."""
        return topic in self._codes

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
        topic: Sequence[int],
        docno: Sequence[bytes],
        number: Sequence[int],
        values: ArrayLike,
    ) -> None:
        """Keep good lines, as columns."""
        docnos = np.array(docno, dtype=np.bytes_)
        self._count += len(docnos)
        self._width = max(self._width, docnos.itemsize)
        at = number[-1] if number else 0
        if self._count > self._max_lines:
            message = f"expected at most {self._max_lines} lines, found more"
            self.problems.fatal(at, "", message)
        if self._count * self._width > MAX_DOCNO_BYTES:
            message = f"expected shorter docnos or fewer lines: over {MAX_DOCNO_BYTES} bytes"
            self.problems.fatal(at, "docno", message)
        codes, numbers = np.array(topic, dtype=np.int64), np.array(number, dtype=np.int64)
        self._parts.append((codes, docnos, numbers, np.array(values, dtype=np.float64)))
