"""Topics: TREC `<top>` records, tab-separated values, or JSON lines."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from judging.formats.fields import SeenIds, checked_text, not_empty
from judging.formats.jsonl import parse_record
from judging.formats.lines import DEFAULT_LIMITS, BinaryFile, Limits, filled, read_lines
from judging.formats.problems import MAX_KEPT, Problems, show
from judging.formats.sgml import Block, BlockReader, paragraphs, plain_text

TopicFormat = Literal["trec", "tsv", "jsonl"]

MAX_TITLE = 10_000
MAX_TEXT = 64 * 1024
"""Bytes of a title, and of a description or narrative."""

ID_KEYS = ("id", "topic_id", "qid", "query_id", "number", "num", "topic")
TITLE_KEYS = ("title", "query", "text")
DESCRIPTION_KEYS = ("description", "desc")
NARRATIVE_KEYS = ("narrative", "narr")

_COLUMNS = ("topic", "title", "description", "narrative")
_COLUMN_NAMES = {
    name: column
    for column, names in zip(
        _COLUMNS, (ID_KEYS, TITLE_KEYS, DESCRIPTION_KEYS, NARRATIVE_KEYS), strict=True
    )
    for name in names
}
_MAX_BLOCK = 256 * 1024
_SECTION = re.compile(
    r"<(/?)(num|title|desc|narr)(?:\s[^<>]*)?>|(?:^|\n)[ \t]*<(/?)([a-z][a-z0-9]*)>",
    re.IGNORECASE | re.ASCII,
)
_PREFIX = {
    "num": re.compile(r"\s*(?:Number|Topic)\s*:", re.IGNORECASE),
    "title": re.compile(r"\s*(?:Topic|Title)\s*:", re.IGNORECASE),
    "desc": re.compile(r"\s*Description\s*:", re.IGNORECASE),
    "narr": re.compile(r"\s*Narrative\s*:", re.IGNORECASE),
}
_FIELD = {"num": "topic", "title": "title", "desc": "description", "narr": "narrative"}


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """An information need; `line` is where it begins in its file."""

    topic_id: str
    title: str
    description: str
    narrative: str
    line: int


@dataclass(frozen=True, slots=True)
class _Draft:
    """A topic's texts by field, before they are checked, with the line of each."""

    texts: Mapping[str, str]
    lines: Mapping[str, int]
    line: int

    def line_of(self, field: str) -> int:
        return self.lines.get(field, self.line)


def read_topics(
    file: BinaryFile,
    problems: Problems,
    *,
    format: TopicFormat | None = None,
    limits: Limits = DEFAULT_LIMITS,
    max_topics: int = 100_000,
) -> Iterator[TopicRecord]:
    """Yield the good topics of a file and report the others.

    The format is told by the first line that is not empty, unless it is given. Raises
    `UnreadableError`, its problem recorded, when reading cannot go on.
    """
    lines = read_lines(file, problems, limits)
    return not_empty(_read(lines, problems, format, max_topics), "topics", problems)


def _read(
    lines: Iterator[tuple[int, str]], problems: Problems, format: TopicFormat | None, limit: int
) -> Iterator[TopicRecord]:
    first = next(filled(lines), None)
    if first is None:
        return
    read = _DRAFTS[format or guess_topic_format(first[1])]
    seen = SeenIds(problems, "topic", limit)
    for draft in read(chain([first], lines), problems):
        topic = _checked(draft, seen, problems)
        if topic is not None:
            yield topic


def guess_topic_format(first_line: str) -> TopicFormat:
    """Tell the format of a file of topics by its first line that is not empty."""
    start = first_line.lstrip()[:1]
    return "jsonl" if start == "{" else "trec" if start == "<" else "tsv"


def _checked(draft: _Draft, seen: SeenIds, problems: Problems) -> TopicRecord | None:
    good = "topic" in draft.texts
    if not good:
        problems.error(draft.line, "topic", "expected a topic id, found none")
    elif not seen.accept(draft.texts["topic"], draft.line_of("topic")):
        good = False
    texts = [_checked_text(draft, field, problems) for field in _COLUMNS[1:]]
    if not draft.texts.get("title", "").strip():
        problems.error(draft.line_of("title"), "title", "expected a title, found none")
        good = False
    title, description, narrative = texts
    if not good or title is None or description is None or narrative is None:
        return None
    return TopicRecord(draft.texts["topic"], title, description, narrative, draft.line)


def _checked_text(draft: _Draft, field: str, problems: Problems) -> str | None:
    limit = MAX_TITLE if field == "title" else MAX_TEXT
    text = draft.texts.get(field, "").strip()
    return checked_text(text, field, draft.line_of(field), problems, limit=limit)


def _jsonl_drafts(lines: Iterable[tuple[int, str]], problems: Problems) -> Iterator[_Draft]:
    for number, text in filled(lines):
        record = parse_record(text, number, problems)
        topic = record.identifier(ID_KEYS, "topic") if record else None
        if record is None or topic is None:
            continue
        keys = (TITLE_KEYS, DESCRIPTION_KEYS, NARRATIVE_KEYS)
        values = {f: record.string(k, f) for f, k in zip(_COLUMNS[1:], keys, strict=True)}
        texts = {field: value for field, value in values.items() if value is not None}
        if len(texts) == len(values):
            yield _Draft({"topic": topic, **texts}, {}, number)


def _tsv_drafts(lines: Iterable[tuple[int, str]], problems: Problems) -> Iterator[_Draft]:
    columns: tuple[str, ...] | None = None
    for number, text in filled(lines):
        cells = [cell.strip() for cell in text.split("\t")]
        if columns is None:
            columns = _COLUMNS
            if cells[0].lower() in _COLUMN_NAMES:
                columns = _header(cells, number, problems)
                continue
        if 2 <= len(cells) <= len(columns):
            yield _Draft(dict(zip(columns, cells, strict=False)), {}, number)
        else:
            wanted = f"2 to {len(columns)}" if len(columns) > 2 else "2"
            message = f"expected {wanted} columns separated by tabs, found {len(cells)}"
            problems.error(number, "columns", message)


def _header(cells: list[str], number: int, problems: Problems) -> tuple[str, ...]:
    columns = tuple(_COLUMN_NAMES.get(cell.lower(), "") for cell in cells)
    if "" in columns or "title" not in columns or len(set(columns)) < len(columns):
        wanted, names = (
            "id, title, description, narrative, each at most once",
            show(", ".join(cells)),
        )
        problems.fatal(number, "columns", f"expected a header of {wanted}, found {names}")
    return columns


def _trec_drafts(lines: Iterable[tuple[int, str]], problems: Problems) -> Iterator[_Draft]:
    ignored: set[str] = set()
    for block in BlockReader("top", problems, limit=_MAX_BLOCK).read(lines):
        draft = _trec_draft(block, problems, ignored)
        if draft is not None:
            yield draft


def _trec_draft(block: Block, problems: Problems, ignored: set[str]) -> _Draft | None:
    body = block.body
    tags = list(_SECTION.finditer(body))
    ends = [*(tag.start() for tag in tags), len(body)][1:]
    texts: dict[str, str] = {}
    places: dict[str, int] = {}
    for tag, end in zip(tags, ends, strict=True):
        name = (tag[2] or tag[4]).lower()
        if tag[1] or tag[3]:
            continue
        field = _FIELD.get(name)
        line = block.line_at(tag.start(2) if tag[2] else tag.start(4))
        if field is None:
            _warn_ignored(name, line, problems, ignored)
        elif field in texts:
            problems.error(line, field, f"expected one <{name}> in a topic, found another")
            return None
        else:
            texts[field] = _section_text(name, body[tag.end() : end])
            places[field] = line
    return _Draft(texts, places, block.line)


def _section_text(name: str, text: str) -> str:
    prefix = _PREFIX[name].match(text)
    text = plain_text(text[prefix.end() :] if prefix else text)
    return paragraphs(text) if name in {"desc", "narr"} else " ".join(text.split())


def _warn_ignored(name: str, line: int, problems: Problems, ignored: set[str]) -> None:
    if name not in ignored and len(ignored) < MAX_KEPT:
        ignored.add(name)
        problems.warning(line, "", f"the section <{name}> is not used")


_DRAFTS = {"jsonl": _jsonl_drafts, "tsv": _tsv_drafts, "trec": _trec_drafts}
