"""Pairs with known grades, for gold, training and norming: CSV or JSON lines, read within bounds.

CSV has a first line with the columns ``topic``, ``docno``, ``grade`` and possibly ``reason``;
several grades that are right are separated by ``|``. JSON lines have the same names; ``grade`` is
a whole number or a list of such. Pairs for norming need no grade (``graded`` is false): one that is
given must be of the scale all the same.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from judging.formats.jsonl import parse_record
from judging.formats.problems import Problems, id_problem, show, text_problem

MOST, MOST_CHARACTERS, MOST_REASON = 2000, 2_000_000, 1000
NEEDED, OPTIONAL = ("topic", "docno", "grade"), ("reason",)
UNGRADED = ("topic", "docno")


@dataclass(frozen=True)
class KnownPair:
    """``line`` is where it stands, from 1. Any of ``grades`` is right, the lowest first; none are
    there where none are needed."""

    line: int
    topic: str
    docno: str
    grades: tuple[int, ...]
    reason: str


def read(text: str, problems: Problems, *, max_grade: int, graded: bool = True) -> list[KnownPair]:
    """The pairs of a file whose lines are all right; what is not is among the problems."""
    if len(text) > MOST_CHARACTERS:
        problems.error(None, "", f"expected at most {MOST_CHARACTERS:,} characters")
        return []
    text = text.removeprefix("\ufeff")
    is_json = text.lstrip().startswith("{")
    rows = _json_rows(text, problems) if is_json else _rows(text, problems, graded=graded)
    asked: dict[str, Any] = {"max_grade": max_grade, "graded": graded}
    pairs = (checked(line, values, problems, **asked) for line, values in rows)
    found = [pair for pair in pairs if pair is not None]
    refuse_twice(found, problems)
    if len(found) > MOST:
        problems.error(None, "", f"expected at most {MOST:,} pairs, found {len(found):,}")
    if not found and problems.ok:
        told = "expected pairs with their grades" if graded else "expected pairs"
        problems.error(None, "", f"{told}, found none")
    return found


def refuse_twice(found: Iterable[KnownPair], problems: Problems) -> None:
    """A pair that comes twice is an error of the later line."""
    lines: dict[tuple[str, str], int] = {}
    for pair in found:
        first = lines.setdefault((pair.topic, pair.docno), pair.line)
        if first != pair.line:
            problems.error(pair.line, "docno", f"this pair is on line {first} already")


def checked(
    line: int,
    values: dict[str, Any],
    problems: Problems,
    *,
    max_grade: int,
    graded: bool = True,
) -> KnownPair | None:
    """The pair of one line, or None after saying what is wrong with it."""
    before = problems.error_count
    for name in sorted(set(values) - {*NEEDED, *OPTIONAL}):
        problems.error(line, name[:60], f"expected the fields {', '.join((*NEEDED, *OPTIONAL))}")
    ids = {}
    for name in ("topic", "docno"):
        value = values.get(name)
        ids[name] = str(value) if type(value) is int else value if isinstance(value, str) else ""
        if problem := id_problem(ids[name], name):
            problems.error(line, name, problem)
    given = values.get("grade")
    grades = _grades(given)
    lacking = not grades and (graded or given not in (None, ""))
    if lacking or not all(0 <= grade <= max_grade for grade in grades):
        told = f"expected grades from 0 to {max_grade}, found {show(str(values.get('grade', '')))}"
        problems.error(line, "grade", told)
    reason = values.get("reason") or ""
    if not isinstance(reason, str) or len(reason) > MOST_REASON or text_problem(reason):
        problems.error(line, "reason", f"expected text of at most {MOST_REASON} characters")
    if problems.error_count > before:
        return None
    return KnownPair(line, ids["topic"], ids["docno"], grades, reason.strip())


def _grades(given: Any) -> tuple[int, ...]:
    if type(given) is int:
        return (given,)
    if isinstance(given, list) and all(type(each) is int for each in given):
        return tuple(sorted(set(given)))
    if isinstance(given, str):
        parts = [part.strip() for part in given.split("|")]
        if all(part.isascii() and part.isdigit() and len(part) < 4 for part in parts):
            return tuple(sorted({int(part) for part in parts}))
    return ()


def _json_rows(text: str, problems: Problems) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and (record := parse_record(line, number, problems)):
            yield number, record.values


def _rows(text: str, problems: Problems, *, graded: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    names: list[str] = []
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if not names:
                names = [cell.strip().casefold() for cell in cells]
                if not _is_heading(names, problems, graded=graded):
                    return
            elif len(cells) != len(names):
                told = f"expected {len(names)} columns, found {len(cells)}"
                problems.error(reader.line_num, "", told)
            else:
                yield reader.line_num, dict(zip(names, map(str.strip, cells), strict=True))
    except csv.Error as error:
        problems.error(reader.line_num, "", f"expected CSV: {error}")


def _is_heading(names: list[str], problems: Problems, *, graded: bool) -> bool:
    needed = NEEDED if graded else UNGRADED
    lacking = [name for name in needed if name not in names]
    if lacking or len(set(names)) < len(names):
        more = " and possibly reason" if graded else ""
        told = f"expected a first line with the columns {', '.join(needed)}{more}"
        problems.error(1, lacking[0] if lacking else "", told)
    return problems.ok
