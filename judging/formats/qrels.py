"""Relevance judgments in TREC's four columns: topic, iteration, docno, grade.

A chunk of plain lines is checked and cut as columns; where something is unusual, line by line.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

import numpy as np

from judging.formats.cells import PlainLines, as_bytes, distinct, split_cells
from judging.formats.columns import MAX_LINES, LineReader, Lines
from judging.formats.lines import DEFAULT_LIMITS, BinaryFile, Limits
from judging.formats.problems import Problems, id_problem, show

_COLUMNS = 4
_DOCNO, _GRADES = 2, 3
_GRADE_LENGTH = 5
_GRADE = re.compile(r"[+-]?[0-9]{1,4}")


def read_qrels(
    file: BinaryFile,
    problems: Problems,
    *,
    grades: Collection[int] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    max_lines: int = MAX_LINES,
) -> Lines:
    """Return the good judgments of a file, their grades being the values, and report the others.

    `grades` are the grades that are allowed (any whole number of up to four digits when None).
    The same pair twice with one grade is a warning, and there once; with two, an error.
    Raises `UnreadableError`, its problem recorded, when reading cannot go on.
    """
    return _Reader(problems, max_lines, grades).read(file, limits)


class _Reader(LineReader):
    what = "judgments"

    def __init__(self, problems: Problems, max_lines: int, grades: Collection[int] | None) -> None:
        super().__init__(problems, max_lines)
        self._grades = grades

    def read_chunk(self, first: int, chunk: bytes) -> None:
        """Read whole lines, the first of which has the number `first`."""
        cells = split_cells(chunk, _COLUMNS)
        if cells is None or not self._add_plain(first, cells):
            super().read_chunk(first, chunk)

    def _add_plain(self, first: int, cells: PlainLines) -> bool:
        """Keep the lines of a chunk, or return False, with nothing kept."""
        if cells.length[_GRADES].max() > _GRADE_LENGTH:
            return False
        words = cells.words(_GRADES)
        lines, which = distinct(words)
        texts = [text.decode() for text in as_bytes(words[lines], _GRADE_LENGTH).tolist()]
        if any(self._grade_problem(text) for text in texts):
            return False
        grade = np.array([float(text) for text in texts])[which]
        return self.add_cells(first, cells, _DOCNO, grade[:, None])

    def parsed(self, cells: Sequence[str], line: int) -> tuple[str, str, Sequence[float]] | None:
        if len(cells) != _COLUMNS:
            message = "expected 4 columns (topic, iteration, docno, grade)"
            self.problems.error(line, "columns", f"{message}, found {len(cells)}")
            return None
        topic, _, docno, grade = cells
        faults = {"grade": self._grade_problem(grade)}
        good = self.is_good(topic, docno, faults, line)
        return (topic, docno, [float(grade)]) if good else None

    def _grade_problem(self, text: str) -> str | None:
        if not _GRADE.fullmatch(text):
            return f"expected a whole number of at most four digits, found {show(text)}"
        if self._grades is not None and int(text) not in self._grades:
            allowed = ", ".join(map(str, sorted(self._grades)))
            return f"expected one of the grades {allowed}, found {int(text)}"
        return None

    def without_repeats(self, lines: Lines) -> Lines:
        kept = np.ones(len(lines), dtype=np.bool_)
        for row, first in lines.repeats():
            kept[row] = False
            self._report(lines, row, first)
        return lines.some(kept)

    def _report(self, lines: Lines, row: int, first: int) -> None:
        topic, docno = lines.names[lines.topic[row]], lines.docno[row].decode()
        pair = f"topic {show(topic)} and docno {show(docno)}"
        earlier, grade = (int(lines.values[at, 0]) for at in (first, row))
        line, before = int(lines.number[row]), lines.number[first]
        if grade == earlier:
            message = f"{pair} have this grade on line {before} already"
            self.problems.warning(line, "docno", message)
        else:
            message = f"expected one grade for {pair}, found {earlier} on line {before} and {grade}"
            self.problems.error(line, "grade", message)


def grades_by_pair(lines: Lines) -> dict[tuple[str, str], int]:
    """Return the grade of each (topic, docno), for those who look pairs up one by one."""
    topics = [lines.names[topic] for topic in lines.topic.tolist()]
    docnos = [docno.decode() for docno in lines.docno.tolist()]
    grades = lines.values[:, 0].astype(np.int64).tolist()
    return dict(zip(zip(topics, docnos, strict=True), grades, strict=True))


def qrels_lines(rows: Iterable[tuple[str, str, int]]) -> Iterator[str]:
    """Yield the line of each (topic, docno, grade); ValueError for an id no reader would take."""
    good: set[str] = set()  # topics that were looked at
    for topic, docno, grade in rows:
        fault = (None if topic in good else id_problem(topic, "topic")) or id_problem(docno)
        if fault is not None:
            raise ValueError(fault)
        good.add(topic)
        yield f"{topic} 0 {docno} {int(grade)}\n"
