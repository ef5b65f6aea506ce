"""Relevance judgments in TREC's four columns: topic, iteration, docno, grade.

A chunk of plain lines is checked and cut as columns; where something is unusual, line by line.
"""

import re
from array import array
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from judging.formats.cells import PlainLines, are_plain_ids, as_bytes, distinct, split_cells
from judging.formats.fields import not_empty
from judging.formats.lines import (
    DEFAULT_LIMITS,
    BinaryFile,
    Limits,
    chunk_lines,
    filled,
    read_chunks,
)
from judging.formats.problems import MAX_ID_LENGTH, Problems, id_problem, show

MAX_TOPICS = 100_000

_COLUMNS = 4
_DOCNO, _GRADES = 2, 3
_GRADE_LENGTH = 5
_GRADE = re.compile(r"[+-]?[0-9]{1,4}")
_BLANKS = re.compile(r"[ \t]+")


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """One judged pair."""

    topic_id: str
    docno: str
    grade: int
    line: int


class _SeenPairs:
    """The pairs read so far, each with its line and grade, in little memory."""

    def __init__(self) -> None:
        self._places: dict[str, dict[str, int]] = {}
        self._lines, self._grades = array("q"), array("h")

    def __len__(self) -> int:
        return len(self._lines)

    @property
    def topics(self) -> int:
        """The number of topics seen."""
        return len(self._places)

    def earlier(self, qrel: JudgedLine) -> tuple[int, int] | None:
        """Return (line, grade) of an earlier judgment of the same pair, or remember this one."""
        docnos = self._places.setdefault(qrel.topic_id, {})
        place = docnos.setdefault(qrel.docno, len(self))
        if place < len(self):
            return self._lines[place], self._grades[place]
        self._lines.append(qrel.line)
        self._grades.append(qrel.grade)
        return None


def read_qrels(
    file: BinaryFile,
    problems: Problems,
    *,
    grades: Collection[int] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    max_qrels: int = 1_000_000,
) -> Iterator[JudgedLine]:
    """Yield the good judgments of a file and report the others.

    `grades` are the grades that are allowed (any whole number of up to four digits when None).
    The same pair twice with one grade is a warning, and yielded once; with two, an error.
    Raises `UnreadableError`, its problem recorded, when reading cannot go on.
    """
    chunks = read_chunks(file, problems, limits)
    return not_empty(_read(chunks, problems, grades, max_qrels), "judgments", problems)


def _read(
    chunks: Iterable[tuple[int, bytes]],
    problems: Problems,
    grades: Collection[int] | None,
    limit: int,
) -> Iterator[JudgedLine]:
    seen = _SeenPairs()
    for first, chunk in chunks:
        for qrel in _judged(first, chunk, problems, grades):
            if _is_repeated(qrel, seen, problems):
                continue
            if len(seen) > limit:
                problems.fatal(qrel.line, "", f"expected at most {limit} judgments, found more")
            if seen.topics > MAX_TOPICS:
                message = f"expected at most {MAX_TOPICS} topics, found more"
                problems.fatal(qrel.line, "topic", message)
            yield qrel


def _judged(
    first: int, chunk: bytes, problems: Problems, grades: Collection[int] | None
) -> Iterator[JudgedLine]:
    """Yield the good lines of a chunk, the first of which has the number `first`."""
    cells = _split_plain(chunk)
    plain = None if cells is None else _parse_plain(first, cells, grades)
    if plain is not None:
        yield from plain
        return
    for number, text in filled(chunk_lines(first, chunk, problems)):
        qrel = _parse(text, number, problems, grades)
        if qrel is not None:
            yield qrel


def _split_plain(chunk: bytes) -> PlainLines | None:
    return split_cells(chunk, _COLUMNS)


def _parse_plain(
    first: int, cells: PlainLines, grades: Collection[int] | None
) -> Iterator[JudgedLine] | None:
    """Return the judgments of plain lines, or None if anything is wrong with one."""
    length = cells.length
    if length[0].max() > MAX_ID_LENGTH or length[_GRADES].max() > _GRADE_LENGTH:
        return None
    lines, of_line = distinct(cells.words(0))
    topics = [cells.cell(0, line).decode() for line in lines.tolist()]
    written, place = np.unique(cells.words(_GRADES)[:, 0], return_inverse=True)
    texts = [text.decode() for text in as_bytes(written[:, None], _GRADE_LENGTH).tolist()]
    faults = any(id_problem(topic, "topic") for topic in topics)
    if faults or any(_grade_problem(text, grades) for text in texts):
        return None
    if not are_plain_ids(cells, _DOCNO):
        return None
    docnos = as_bytes(cells.words(_DOCNO), int(length[_DOCNO].max())).astype(np.str_).tolist()
    given = [int(text) for text in texts]
    rows = zip(of_line.tolist(), docnos, place.tolist(), strict=True)
    return (
        JudgedLine(topics[topic], docno, given[grade], line)
        for line, (topic, docno, grade) in enumerate(rows, first)
    )


def _parse(
    text: str, number: int, problems: Problems, grades: Collection[int] | None
) -> JudgedLine | None:
    cells = _BLANKS.split(text.strip(" \t"))
    if len(cells) != _COLUMNS:
        message = "expected 4 columns (topic, iteration, docno, grade)"
        problems.error(number, "columns", f"{message}, found {len(cells)}")
        return None
    topic, _, docno, grade = cells
    faults = {
        "topic": id_problem(topic, "topic"),
        "docno": id_problem(docno),
        "grade": _grade_problem(grade, grades),
    }
    for field, fault in faults.items():
        if fault is not None:
            problems.error(number, field, fault)
    return None if any(faults.values()) else JudgedLine(topic, docno, int(grade), number)


def _grade_problem(text: str, grades: Collection[int] | None) -> str | None:
    if not _GRADE.fullmatch(text):
        return f"expected a whole number of at most four digits, found {show(text)}"
    if grades is not None and int(text) not in grades:
        return (
            f"expected one of the grades {', '.join(map(str, sorted(grades)))}, found {int(text)}"
        )
    return None


def _is_repeated(qrel: JudgedLine, seen: _SeenPairs, problems: Problems) -> bool:
    earlier = seen.earlier(qrel)
    if earlier is None:
        return False
    line, grade = earlier
    pair = f"topic {show(qrel.topic_id)} and docno {show(qrel.docno)}"
    if grade == qrel.grade:
        problems.warning(qrel.line, "docno", f"{pair} have this grade on line {line} already")
    else:
        message = f"expected one grade for {pair}, found {grade} on line {line} and {qrel.grade}"
        problems.error(qrel.line, "grade", message)
    return True


def qrels_lines(rows: Iterable[tuple[str, str, int]]) -> Iterator[str]:
    """Yield the line of each (topic, docno, grade); ValueError for an id no reader would take."""
    good: set[str] = set()  # topics that were looked at
    for topic, docno, grade in rows:
        fault = (None if topic in good else id_problem(topic, "topic")) or id_problem(docno)
        if fault is not None:
            raise ValueError(fault)
        good.add(topic)
        yield f"{topic} 0 {docno} {int(grade)}\n"
