"""Documents: JSON lines or TREC `<DOC>` records."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from judging.formats.fields import SeenIds, checked_text, not_empty
from judging.formats.jsonl import parse_record
from judging.formats.lines import DEFAULT_LIMITS, MEBIBYTE, BinaryFile, Limits, filled, read_lines
from judging.formats.problems import Problems, show
from judging.formats.sgml import (
    BlockReader,
    plain_text,
    sections,
    without_sections,
)

DocumentFormat = Literal["trec", "jsonl"]

MAX_TITLE = 10_000
MAX_TEXT = MEBIBYTE
"""Bytes of a document's title and text."""

MAX_LINE = 8 * MEBIBYTE
"""Bytes of a line, unless the limits say otherwise: JSON spends up to six on one character."""

ID_KEYS = ("docno", "doc_id", "_id", "id")
TITLE_KEYS = ("title",)
TEXT_KEYS = ("text", "body", "contents")

_TITLE_TAGS = ("TITLE", "HEADLINE", "HL", "HEAD")
_META_TAGS = ("DOCNO", "DOCID", "DOCOLDNO", "DOCHDR", *_TITLE_TAGS)


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """A document; `line` is where it begins in its file."""

    docno: str
    title: str
    text: str
    line: int


def read_documents(
    file: BinaryFile,
    problems: Problems,
    *,
    format: DocumentFormat | None = None,
    limits: Limits = DEFAULT_LIMITS,
    max_documents: int = 1_000_000,
) -> Iterator[DocumentRecord]:
    """Yield the good documents of a file and report the others.

    Control characters other than NUL become spaces, with a warning; an empty text is a warning.
    The text of a TREC record loses its tags; a JSON text is kept as it is, HTML and all.
    Raises `UnreadableError`, its problem recorded, when reading cannot go on.
    """
    if limits.max_line is None:
        limits = replace(limits, max_line=MAX_LINE)
    lines = read_lines(file, problems, limits, controls="replace")
    return not_empty(_read(lines, problems, format, max_documents), "documents", problems)


def guess_document_format(first_line: str) -> DocumentFormat:
    """Tell the format of a file of documents by its first line that is not empty."""
    return "trec" if first_line.lstrip().startswith("<") else "jsonl"


def _read(
    lines: Iterator[tuple[int, str]], problems: Problems, format: DocumentFormat | None, limit: int
) -> Iterator[DocumentRecord]:
    first = next(filled(lines), None)
    if first is None:
        return
    read = _DRAFTS[format or guess_document_format(first[1])]
    seen = SeenIds(problems, "docno", limit)
    for draft, docno_line in read(chain([first], lines), problems):
        document = _checked(draft, docno_line, seen, problems)
        if document is not None:
            yield document


def _checked(
    draft: DocumentRecord, docno_line: int, seen: SeenIds, problems: Problems
) -> DocumentRecord | None:
    line = draft.line
    good = seen.accept(draft.docno, docno_line)
    title = checked_text(draft.title, "title", line, problems, limit=MAX_TITLE, clean=True)
    text = checked_text(draft.text, "text", line, problems, limit=MAX_TEXT, clean=True)
    if not good or title is None or text is None:
        return None
    if not text.strip():
        problems.warning(line, "text", f"document {show(draft.docno)} has no text")
    return DocumentRecord(draft.docno, title.strip(), text.strip(), line)


def _jsonl_drafts(
    lines: Iterable[tuple[int, str]], problems: Problems
) -> Iterator[tuple[DocumentRecord, int]]:
    for number, line in filled(lines):
        record = parse_record(line, number, problems)
        docno = record.identifier(ID_KEYS, "docno") if record else None
        if record is None or docno is None:
            continue
        title, text = record.string(TITLE_KEYS, "title"), record.string(TEXT_KEYS, "text")
        if title is not None and text is not None:
            yield DocumentRecord(docno, title, text, number), number


def _trec_drafts(
    lines: Iterable[tuple[int, str]], problems: Problems
) -> Iterator[tuple[DocumentRecord, int]]:
    for block in BlockReader("DOC", problems, limit=2 * MAX_TEXT).read(lines):
        body = block.body
        found = list(sections(body, "DOCNO"))
        if len(found) != 1:
            message = f"expected one <DOCNO> in a document, found {len(found) or 'none'}"
            problems.error(block.line, "docno", message)
            continue
        position, docno = found[0]
        draft = DocumentRecord(docno.strip(), _title(body), _text(body), block.line)
        yield draft, block.line_at(position)


def _title(body: str) -> str:
    for tag in _TITLE_TAGS:
        parts = [" ".join(plain_text(inside).split()) for _, inside in sections(body, tag)]
        if any(parts):
            return " ".join(part for part in parts if part)
    return ""


def _text(body: str) -> str:
    parts = [inside for _, inside in sections(body, "TEXT")]
    if not parts:
        for tag in _META_TAGS:
            body = without_sections(body, tag)
        parts = [body]
    lines = plain_text("\n\n".join(parts)).split("\n")
    return "\n".join(line.rstrip() for line in lines).strip()


_DRAFTS = {"jsonl": _jsonl_drafts, "trec": _trec_drafts}
