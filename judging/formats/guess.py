"""Tells what an uploaded file is by its beginning; its name only breaks ties."""

import math
import re
from dataclasses import dataclass, field
from typing import Literal

from judging.formats.lines import file_head
from judging.formats.magic import archive, foreign

Kind = Literal["topics", "documents", "run", "qrels", "predictions", "archive"]
Format = Literal["trec", "tsv", "jsonl", "zip", "tar"]

_LINES = 20
_KEY = re.compile(r'"(\w+)"\s*:')
_DOCUMENT_KEYS = {"docno", "doc_id", "_id", "contents", "body"}
_TOPIC_KEYS = {
    *("topic", "topic_id", "qid", "query_id", "number", "query"),
    *("description", "desc", "narrative", "narr"),
}
_TOPIC_NAME = re.compile(r"topic|quer", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?[0-9]{1,4}")
_COST_HEADER = ["topic", "docno", "cost"]
_ITERATIONS = {"0", "Q0"}  # the second column of qrels and runs
_MOST = {3: 20.0, 4: 1.0}  # by columns: the best grade of any scale, a probability


@dataclass(frozen=True, slots=True)
class Guess:
    """What a file holds, how it is written, and by what one can tell."""

    kind: Kind
    format: Format
    why: str = field(default="", compare=False)


def guess_kind(name: str, head: bytes) -> Guess | None:
    """Guess kind and format of a file from its first bytes (64 KiB is good; plain or gzip).

    Returns None when nothing fits, or more than one kind; `unknown_kind` then says what is seen.
    """
    inside = file_head(head)
    packed = archive(inside)
    if packed is not None:
        return Guess("archive", packed, f"it begins as a {packed} archive")
    if foreign(inside) is not None:
        return None
    text = inside.decode(errors="replace")
    lines = [line for line in text.split("\n")[: 10 * _LINES] if line.strip()]
    if not lines:
        return None
    return _guess_below_comments(text) or _guess_text(name, text, lines)


def _guess_text(name: str, text: str, lines: list[str]) -> Guess | None:
    start = lines[0].lstrip()
    if start.startswith("<"):
        return _guess_markup(text)
    if start.startswith("{"):
        return _guess_json(name, start)
    if len(lines) > 1 and not text.endswith("\n"):
        lines.pop()  # probably cut off in the middle
    return _guess_columns([line.rstrip("\r") for line in lines[:_LINES]])


def _guess_below_comments(text: str) -> Guess | None:
    """A run may have comments before its first line; nothing else has."""
    if not text.startswith("#"):
        return None
    lines = text.split("\n")
    first = next((n for n, line in enumerate(lines) if not line.startswith("#")), len(lines))
    body = [line.rstrip("\r") for line in lines[first:-1] if line.strip()][:_LINES]
    found = _guess_columns(body) if body else None
    if found is None or found.kind != "run":
        return None
    return Guess("run", "trec", f"{found.why}, below {first} lines of comments")


SAY_WHICH = "say whether this holds topics, documents, a run, qrels or predicted grades"


def unknown_kind(name: str, head: bytes) -> str:
    """Say of a file that `guess_kind` does not know what it looks like, and what to do."""
    inside = file_head(head)
    other = foreign(inside)
    if other is not None:
        return f"{name} is {other.name}: {other.advice}."
    lines = [line for line in inside.decode(errors="replace").split("\n") if line.strip()]
    if not lines:
        return f"{name} is empty, or no sound gzip file: look whether it was written completely."
    rows = [line.split() for line in lines[: _LINES - 1]]
    if _is_ambiguous(rows):
        return (
            f"{name} has three columns with whole numbers: choose predicted grades if they are"
            " those; judgments (qrels) have four columns, topic 0 docno grade."
        )
    if lines[0].lstrip().startswith("["):
        return f"{name} begins as a JSON array: write one object per line instead (JSON lines)."
    if len(lines[0].split(",")) > 2 and "\t" not in lines[0]:
        return f"{name} has commas between its columns: write tabs or spaces instead."
    return f"{name}: {SAY_WHICH}."


def _is_ambiguous(rows: list[list[str]]) -> bool:
    """Tell whether these may be predicted grades as well as judgments without their 0."""
    return all(len(row) == 3 and _NUMBER.fullmatch(row[2]) for row in rows)


def _guess_markup(text: str) -> Guess | None:
    found = re.search(r"<(top|DOC)(?:\s[^<>]*)?>", text, re.IGNORECASE)
    if found is None:
        return None
    kind: Kind = "topics" if found[1].lower() == "top" else "documents"
    return Guess(kind, "trec", f"it has <{found[1]}> elements")


def _guess_json(name: str, line: str) -> Guess:
    keys = set(_KEY.findall(line))
    if named := keys & _DOCUMENT_KEYS:
        return Guess("documents", "jsonl", f"its first line has the field {min(named)}")
    if named := keys & _TOPIC_KEYS:
        return Guess("topics", "jsonl", f"its first line has the field {min(named)}")
    if _TOPIC_NAME.search(name):
        return Guess("topics", "jsonl", "it has lines of JSON, and its name says so")
    return Guess("documents", "jsonl", "it has lines of JSON, and no field that topics have")


def _guess_columns(lines: list[str]) -> Guess | None:
    rows = [line.split() for line in lines]
    if [cell.lower() for cell in rows[0]] == _COST_HEADER:
        return Guess("predictions", "trec", "its first line says topic, docno, cost")
    if _is_ambiguous(rows) and any(map(_is_prediction, lines)):
        return None
    if 2 * sum(map(_is_prediction, lines)) > len(lines):
        return Guess("predictions", "trec", "numbers follow the topic and the docno")
    tabbed = all("\t" in line.strip() for line in lines)
    cells = {len(line.strip().split("\t")) for line in lines}
    if all(len(row) == 6 and _is_number(row[4]) for row in rows) and (
        not tabbed or cells == {6} or all(row[1].upper() in _ITERATIONS for row in rows)
    ):
        return Guess("run", "trec", "six columns, the fifth of them a number")
    if all(len(row) == 4 and _NUMBER.fullmatch(row[3]) for row in rows) and (
        not tabbed or cells == {4}
    ):
        return Guess("qrels", "trec", "four columns, the fourth of them a whole number")
    return Guess("topics", "tsv", "a tab in every line") if tabbed else _guess_most(rows)


def _is_prediction(line: str) -> bool:
    """Tell a topic, a docno and a grade, or numbers for all grades, from a run or qrels.

    Sums are not looked at: a bad line shall be reported by the reader of predicted grades, and
    not pass as a line of a run whose tag is a number.
    """
    row, cells = line.split(), line.strip().split("\t")
    if len(row) < 3 or len(cells) not in (1, len(row)) or row[1].upper() in _ITERATIONS:
        return False
    most = _MOST.get(len(row), math.inf)
    return all(_is_number(text) and not float(text) > most for text in row[2:])


def _guess_most(rows: list[list[str]]) -> Guess | None:
    """Guess by what most lines look like, so that the right reader reports the other lines."""
    six = sum(len(row) == 6 for row in rows)
    four = sum(len(row) == 4 for row in rows)
    if 2 * max(six, four) <= len(rows):
        return None
    if six >= four:
        return Guess("run", "trec", "six columns in most lines")
    return Guess("qrels", "trec", "four columns in most lines")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
