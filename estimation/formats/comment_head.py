"""The comment lines at the head of a run, and the ir_metadata in them, as names and values.

The YAML (https://www.ir-metadata.org) is hostile until shown otherwise: it is parsed into events
and never constructed, so that no tag, date, or number is looked at. Anchors are refused, as an
alias within an alias grows without end; size, depth and number of values are bounded.
"""

import re

import yaml

from judging.formats.cells import parsed_number
from judging.formats.problems import CONTROLS

MAX_HEAD_BYTES = 64 * 1024
MAX_DEPTH = 8
MAX_VALUES = 200
MAX_NAME, MAX_VALUE = 200, 1000

_START, _END = "ir_metadata.start", "ir_metadata.end"
_COLUMNS = 6
_SCORE = 4
_PARTS = frozenset({
    "actor", "data", "implementation", "method", "platform", "research goal", "run-version",
    "schema-version", "tag",
})  # fmt: skip
_SURROGATES = re.compile("[\ud800-\udfff]")


class HeadError(ValueError):
    """What keeps the metadata of a head from being read."""


def is_comment(line: bytes) -> bool:
    """Tell whether a line is a comment, and none of a run whose topic begins with the sign."""
    if not line.startswith(b"#"):
        return False
    cells = line.split()
    return len(cells) != _COLUMNS or parsed_number(cells[_SCORE].decode(errors="replace")) is None


def split_head(chunk: bytes) -> tuple[list[bytes], bytes]:
    """Return the comment lines that a chunk begins with, and the rest of it."""
    lines: list[bytes] = []
    at = 0
    while at < len(chunk) and chunk.startswith(b"#", at):
        end = chunk.find(b"\n", at) + 1 or len(chunk)
        if not is_comment(chunk[at:end]):
            break
        lines.append(chunk[at:end])
        at = end
    return lines, chunk[at:]


def read_metadata(lines: list[bytes]) -> list[tuple[str, str]]:
    """Return the names and values of ir_metadata in comment lines; none without any.

    A name has its steps joined by " / ", and what is listed is joined by commas.

    Raises
    ------
    HeadError
        If it is no such YAML, or over a bound.
    """
    if sum(map(len, lines)) > MAX_HEAD_BYTES:
        raise HeadError(f"expected at most {MAX_HEAD_BYTES} bytes of comments")
    text = [line.decode(errors="replace").rstrip("\r\n")[1:] for line in lines]
    indent = 1 if all(not line.strip() or line.startswith(" ") for line in text) else 0
    text = [_plain(line[indent:]) for line in text]
    marked = _START in (line.strip() for line in text)
    if marked:
        stripped = [line.strip() for line in text]
        first = stripped.index(_START) + 1
        last = stripped.index(_END, first) if _END in stripped[first:] else len(text)
        text = text[first:last]
    try:
        found = _flat("\n".join(text))
    except HeadError:
        if marked:
            raise
        return []  # comments that are no metadata
    known = marked or any(name.split(" / ")[0] in _PARTS for name in found)
    return (
        [(name, ", ".join(values)[:MAX_VALUE]) for name, values in found.items()] if known else []
    )


def _plain(line: str) -> str:
    return _SURROGATES.sub("\ufffd", CONTROLS.sub(" ", line))


def _flat(text: str) -> dict[str, list[str]]:
    """Values by their names, from the events of the parser alone."""
    reader = _Flattener()
    try:
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            reader.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1} of it" if mark else ""
        raise HeadError(f"{getattr(error, 'problem', None) or 'no YAML'}{where}") from None
    except (RecursionError, ValueError) as error:
        raise HeadError(str(error) or "nested too deeply") from None
    return reader.found


class _Flattener:
    """Keeps the way to the value that comes next: keys of mappings, None for a list."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}
        self._way: list[str | None] = []
        self._opened: list[str] = []
        self._wants_key = False
        self._count = 0

    def take(self, event: yaml.Event) -> None:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise HeadError("expected no anchors and aliases")
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            self._open(event)
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._opened.pop()
            self._way.pop()
            self._wants_key = bool(self._opened) and self._opened[-1] == "mapping"
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event.value)

    def _open(self, event: yaml.Event) -> None:
        if self._wants_key:
            raise HeadError("expected names that are words")
        if len(self._opened) >= MAX_DEPTH:
            raise HeadError(f"expected at most {MAX_DEPTH} levels")
        mapping = isinstance(event, yaml.MappingStartEvent)
        if not self._opened and not mapping:
            raise HeadError("expected names with values")
        self._opened.append("mapping" if mapping else "list")
        self._way.append(None)
        self._wants_key = mapping

    def _scalar(self, value: str) -> None:
        if not self._opened:
            raise HeadError("expected names with values")
        if self._wants_key:
            self._way[-1] = value
            self._wants_key = False
            return
        self._count += 1
        if self._count > MAX_VALUES:
            raise HeadError(f"expected at most {MAX_VALUES} values")
        name = " / ".join(step for step in self._way if step)[:MAX_NAME]
        if value := " ".join(value.split()):
            self.found.setdefault(name, []).append(value[:MAX_VALUE])
        self._wants_key = self._opened[-1] == "mapping"
