"""What is wrong with an uploaded file, and the rules that every id and text must meet."""

import re
import unicodedata
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

Severity = Literal["error", "warning"]

MAX_KEPT = 50
"""Problems of each severity that are kept; all are counted."""

MAX_ERRORS = 10_000
"""Reading stops at this many errors: the file is refused anyway, and time is bounded."""

MAX_ID_LENGTH = 255
"""Characters in a topic id, docno or tag.

Long enough for a URL as docno; short enough that an index over (topic, docno) stays below
the 2704 bytes that a PostgreSQL B-tree entry may take, with four bytes to a character.
"""

_SHOWN = 60
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp"})
_PLAIN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*", re.ASCII)
_DRIVE = re.compile(r"[A-Za-z]:", re.ASCII)

CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Control characters that no text may hold: all but tab, line feed and carriage return."""

_NOT_IN_A_LINE = re.compile("[\t\n\r\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a file; `field` is empty when the line or file as a whole is meant."""

    file: str
    line: int | None
    field: str
    message: str
    severity: Severity = "error"

    def as_dict(self) -> dict[str, Any]:
        """Return the problem as plain JSON values."""
        return {
            "file": self.file,
            "line": self.line,
            "field": self.field,
            "message": self.message,
            "severity": self.severity,
        }


class UnreadableError(Exception):
    """Reading a file cannot go on. Its problem is already in the collector."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass
class Problems:
    """Collects the problems of one file: the first `MAX_KEPT` of each severity, and counts."""

    file: str
    errors: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    error_count: int = 0
    warning_count: int = 0

    def __post_init__(self) -> None:
        self.file = _storable(self.file)

    @property
    def ok(self) -> bool:
        """Whether no error was found; warnings do not count."""
        return self.error_count == 0

    def error(self, line: int | None, field: str, message: str) -> None:
        """Record an error; raises `UnreadableError` once there are `MAX_ERRORS` of them."""
        self._add_error(line, field, message)
        if self.error_count >= MAX_ERRORS:
            self.fatal(line, "", f"more than {MAX_ERRORS} errors: reading stopped here")

    def warning(self, line: int | None, field: str, message: str) -> None:
        """Record a warning."""
        self.warning_count += 1
        if len(self.warnings) < MAX_KEPT:
            self.warnings.append(Problem(self.file, line, field, message, "warning"))

    def fatal(self, line: int | None, field: str, message: str) -> NoReturn:
        """Record an error that ends the reading, and raise it.

        It is kept even when `MAX_KEPT` errors are there already, in place of the last one.
        """
        problem = self._add_error(line, field, message)
        self.errors[-1] = problem
        raise UnreadableError(problem)

    def _add_error(self, line: int | None, field: str, message: str) -> Problem:
        problem = Problem(self.file, line, field, message)
        self.error_count += 1
        if len(self.errors) < MAX_KEPT:
            self.errors.append(problem)
        return problem

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain JSON values that any database stores."""
        return {
            "errors": _by_line(self.errors),
            "warnings": _by_line(self.warnings),
            "error_count": self.error_count,
            "warning_count": self.warning_count,
        }


def _by_line(problems: list[Problem]) -> list[dict[str, Any]]:
    """From top to bottom: what rests on several lines is found after what rests on one."""
    return [each.as_dict() for each in sorted(problems, key=lambda problem: problem.line or 0)]


def show(value: object) -> str:
    """Return a value in quotes for a message: shortened, and without unprintable characters."""
    if not isinstance(value, str):
        return f"a value of type {type(value).__name__}"
    return repr(value[:_SHOWN] + "…" if len(value) > _SHOWN else value)


def id_problem(text: str, what: str = "docno") -> str | None:
    """Return what is wrong with a topic id, docno or tag, or None.

    Ids travel into links, file formats separated by white space and messages, so they are
    1 to `MAX_ID_LENGTH` visible characters that do not look like a path leading elsewhere.
    """
    if len(text) <= MAX_ID_LENGTH and _PLAIN_ID.fullmatch(text):
        return None
    fault = _id_fault(text)
    return f"expected a {what} {fault}, found {show(text)}" if fault else None


def has_invisible(text: str) -> bool:
    """Whether there is white space, or a control or invisible character, in a text."""
    return any(unicodedata.category(character) in _INVISIBLE for character in text)


def _id_fault(text: str) -> str | None:
    if not text or len(text) > MAX_ID_LENGTH:
        return f"of 1 to {MAX_ID_LENGTH} characters"
    if has_invisible(text):
        return "without white space, control or invisible characters"
    if text[0] in "/~" or "\\" in text or _DRIVE.match(text):
        return "that is no path (no leading '/' or '~', no backslash, no drive letter)"
    if any(step in {".", ".."} for step in text.split("/")):
        return "that is no path (no '.' or '..' as a step)"
    return None


def text_problem(text: str) -> str | None:
    """Return what keeps a text from being stored, or None: control characters, surrogates."""
    found = CONTROLS.search(text)
    if found:
        return f"expected text without control characters, found U+{ord(found[0]):04X}"
    if not text.isascii() and (found := _SURROGATES.search(text)):
        return f"expected Unicode text, found the lone surrogate U+{ord(found[0]):04X}"
    return None


def line_problem(text: str) -> str | None:
    """Return what keeps a text from standing in a line among others, or None.

    Beside what `text_problem` finds: line breaks, tabs, and marks that turn what follows around.
    """
    found = _NOT_IN_A_LINE.search(text)
    if found:
        what = "without line breaks, tabs and marks of direction"
        return f"expected one line {what}, found U+{ord(found[0]):04X}"
    return text_problem(text)


def _storable(name: str) -> str:
    return _SURROGATES.sub("\ufffd", CONTROLS.sub("\ufffd", name))
