"""Checks of ids and texts that the readers of topics and documents share."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

from judging.formats.problems import CONTROLS, Problems, id_problem, show, text_problem

T = TypeVar("T")


class SeenIds:
    """The ids read so far with their lines: refuses bad and repeated ids, bounds their number."""

    def __init__(self, problems: Problems, what: str, limit: int) -> None:
        self._problems, self._what, self._limit = problems, what, limit
        self._lines: dict[str, int] = {}

    def accept(self, text: str, line: int) -> bool:
        """Tell whether `text` is a good id not seen before; report it otherwise."""
        problem = id_problem(text, self._what)
        if problem is None and text in self._lines:
            problem = f"{self._what} {show(text)} is on line {self._lines[text]} already"
        if problem is not None:
            self._problems.error(line, self._what, problem)
            return False
        if len(self._lines) >= self._limit:
            self._problems.fatal(
                line, self._what, f"expected at most {self._limit} records, found more"
            )
        self._lines[text] = line
        return True


def checked_text(
    text: str, field: str, line: int, problems: Problems, *, limit: int, clean: bool = False
) -> str | None:
    """Return the text to keep, or None after reporting why it cannot be.

    `limit` is in UTF-8 bytes. With `clean`, control characters except NUL become spaces.
    """
    problem = text_problem(text)
    if problem and clean and "\0" not in text:
        replaced = CONTROLS.sub(" ", text)
        if replaced != text:
            problems.warning(line, field, "control characters were replaced by spaces")
        text, problem = replaced, text_problem(replaced)
    if problem is None and len(text.encode()) > limit:
        problem = f"expected at most {limit} bytes of text, found {len(text.encode())}"
    if problem is None:
        return text
    problems.error(line, field, problem)
    return None


def not_empty(records: Iterable[T], what: str, problems: Problems) -> Iterator[T]:
    """Pass records on; a file that had none, and no error to explain it, gets one."""
    found = False
    for record in records:
        found = True
        yield record
    if not found and problems.ok:
        problems.error(None, "", f"expected {what}, found none in the file")
