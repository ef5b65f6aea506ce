"""CSV for people, who will open it in a spreadsheet."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral, Real

Cell = str | int | float | bool | Real | None

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_lines(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[str]:
    """Yield the lines of a CSV file (RFC 4180), the header first.

    Text that a spreadsheet could take for a formula gets a leading apostrophe. Numbers are
    written exactly, truth values as true and false, None as an empty cell. For programs that
    read the text back, offer JSON or TREC files, which change nothing.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")
    for row in _all_rows(header, rows):
        writer.writerow([cell_text(cell) for cell in row])
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()


def _all_rows(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[Sequence[Cell]]:
    yield header
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"expected {len(header)} cells in a row, found {len(row)}")
        yield row


def cell_text(cell: Cell) -> str:
    """Return the text of one cell, harmless in a spreadsheet."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return f"'{cell}" if _is_formula_like(cell) else cell
    if type(cell) is int or type(cell) is float:  # most are; abstract types take long to ask
        return repr(cell)
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, Integral):
        return str(int(cell))
    if isinstance(cell, Real):
        return repr(float(cell))
    raise TypeError(f"a CSV cell is text, a number, a truth value or None, not {type(cell)}")


def _is_formula_like(text: str) -> bool:
    """Tell by the first character, and by the first visible one: some programs trim."""
    if text[:1].isalnum():
        return False
    return text.startswith(_FORMULA_STARTS) or text.lstrip().startswith(_FORMULA_STARTS)
