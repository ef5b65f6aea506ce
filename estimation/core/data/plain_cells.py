"""Lines with one blank between their cells, cut all at once.

Most files of TREC are such. Whatever is unusual in one is left to `trec_lines`, which reads line by
line and says what is wrong; nothing is explained here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..arrays import BytesArray, IntArray

MOST_BYTES = 200  # of a cell; a column of longer ones could take any memory
_BLANK, _TAB, _NEWLINE = b" \t\n"


@dataclass(frozen=True, eq=False)
class PlainCells:
    """The cells of n lines, each of c columns.

    Attributes
    ----------
    text : ndarray of uint8
        The lines, and `MOST_BYTES` after them, so that so many can be taken from any place.
    begin, length : ndarray of int64, shape (n, c)
    """

    text: NDArray[np.uint8]
    begin: IntArray
    length: IntArray

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.begin)

    def __getitem__(self, column: int) -> BytesArray:
        """Return the cells of a column."""
        length = self.length[:, column]
        width = int(length.max())
        every = len(self.text) - width + 1
        overlapping: BytesArray = np.ndarray((every,), f"S{width}", self.text.data, 0, (1,))
        cells = overlapping[self.begin[:, column]]
        if length.min() < width:
            letters = cells.view(np.uint8).reshape(-1, width)
            letters *= np.arange(width) < length[:, None]
        return cells


def cut_plain(content: bytes, columns: int) -> PlainCells | None:
    """Return the cells of lines that are ASCII with single blanks, or None if they are not."""
    if not content.isascii():
        return None
    lines = content.replace(b"\r\n", b"\n") if b"\r" in content else content
    lines = lines.removesuffix(b"\n")
    text = np.frombuffer(lines + b"\n" + bytes(MOST_BYTES), dtype=np.uint8)
    marks = np.flatnonzero(text[: len(lines) + 1] <= _BLANK)
    if len(marks) % columns:
        return None
    kinds = text[marks].reshape(-1, columns)
    inside = kinds[:, :-1]
    if np.any(kinds[:, -1] != _NEWLINE) or not np.all((inside == _BLANK) | (inside == _TAB)):
        return None
    begin = np.append(0, marks[:-1] + 1).reshape(-1, columns)
    length = marks.reshape(-1, columns) - begin
    if length.min() < 1 or length.max() > MOST_BYTES:
        return None
    return PlainCells(text, begin, length)
