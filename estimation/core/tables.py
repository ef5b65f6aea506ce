"""Results as tables: plain columns, a data frame where pandas is there, short text, HTML.

Whoever prints a result, or leaves it as the last line of a notebook's cell, sees its table; nothing
is looked at before somebody asks.
"""

from __future__ import annotations

import html
from abc import abstractmethod
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

Columns: TypeAlias = dict[str, list[Any]]

UNKNOWN = "?"  # in the place of a number that is not known


class Tabled:
    """Something that has a table.

    Dataclasses that inherit from it are declared with ``repr=False``, or theirs would be printed.
    Of the rows the first ``MOST_ROWS`` are; `columns` has all.
    """

    MOST_ROWS: ClassVar[int] = 20

    @abstractmethod
    def columns(self) -> Columns:
        """Return the columns of the table by name, each a list of plain Python values."""

    @property
    def caption(self) -> str:
        """A line above the table."""
        return type(self).__name__

    def table(self) -> Any:
        """Return a pandas DataFrame where pandas is installed, else what `columns` returns."""
        if find_spec("pandas") is None:
            return self.columns()
        return import_module("pandas").DataFrame(self.columns())

    def __repr__(self) -> str:
        """Return the first rows as text."""
        names, rows, more = self._shown()
        widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        right = [_all_numbers(column) for column in self.columns().values()]
        lines = [_line(row, widths, right) for row in (names, *rows)]
        return "\n".join([self.caption, *lines, *([more] if more else [])])

    def _repr_html_(self) -> str:
        """Return the first rows as HTML: what notebooks show."""
        names, rows, more = self._shown()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows
        )
        tail = f"<p>{html.escape(more)}</p>" if more else ""
        table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        return f"<table><caption>{html.escape(self.caption)}</caption>{table}</table>{tail}"

    def _shown(self) -> tuple[list[str], list[list[str]], str]:
        """The names of the columns, the first rows as texts, and how many more there are."""
        columns = self.columns()
        cells = [list(map(_cell, column[: self.MOST_ROWS])) for column in columns.values()]
        number = max(map(len, columns.values()), default=0)
        more = f"… and {number - self.MOST_ROWS} more rows" if number > self.MOST_ROWS else ""
        return list(columns), [list(row) for row in zip(*cells, strict=True)], more


class FactSheet(Tabled):
    """Something that is told by a few facts: a table of what is what.

    ``FACTS`` names its attributes and properties that are told.
    """

    FACTS: ClassVar[tuple[str, ...]]

    def columns(self) -> Columns:
        """Return the columns ``what`` and ``value``; facts that do not apply are left out."""
        told = {name: _plain(getattr(self, name)) for name in self.FACTS}
        told = {name: value for name, value in told.items() if value is not None and value != ""}
        return {"what": list(told), "value": list(told.values())}


def by_rows(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Columns:
    """Return the columns of a table that is given row by row."""
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


def _plain(value: object) -> Any:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return value if isinstance(value, str | int | float | None) else str(value)


def _all_numbers(column: Sequence[object]) -> bool:
    return all(value is None or isinstance(value, int | float) for value in column)


def _cell(value: object) -> str:
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if number else cell.ljust(width)
        for cell, width, number in zip(cells, widths, right, strict=True)
    )
    return "  ".join(padded).rstrip()
