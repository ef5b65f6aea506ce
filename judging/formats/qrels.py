"""Relevance judgments in TREC's four columns: topic, iteration, docno, grade."""

import re
from array import array
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from judging.formats.fields import not_empty
from judging.formats.lines import DEFAULT_LIMITS, BinaryFile, Limits, filled, read_lines
from judging.formats.problems import Problems, id_problem, show

MAX_TOPICS = 100_000

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
    lines = filled(read_lines(file, problems, limits))
    return not_empty(_read(lines, problems, grades, max_qrels), "judgments", problems)


def _read(
    lines: Iterable[tuple[int, str]],
    problems: Problems,
    grades: Collection[int] | None,
    limit: int,
) -> Iterator[JudgedLine]:
    seen = _SeenPairs()
    for number, text in lines:
        qrel = _parse(text, number, problems, grades)
        if qrel is None or _is_repeated(qrel, seen, problems):
            continue
        if len(seen) > limit:
            problems.fatal(number, "", f"expected at most {limit} judgments, found more")
        if seen.topics > MAX_TOPICS:
            problems.fatal(number, "topic", f"expected at most {MAX_TOPICS} topics, found more")
        yield qrel


def _parse(
    text: str, number: int, problems: Problems, grades: Collection[int] | None
) -> JudgedLine | None:
    cells = _BLANKS.split(text.strip(" \t"))
    if len(cells) != 4:
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
    for topic, docno, grade in rows:
        fault = id_problem(topic, "topic") or id_problem(docno)
        if fault is not None:
            raise ValueError(fault)
        yield f"{topic} 0 {docno} {int(grade)}\n"
