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
_BLANK = ord(" ")


@dataclass(frozen=True, eq=False)
class PlainCells:
    """The cells of n lines, each of c columns.

    Attributes
    ----------
    text : ndarray of uint8
        The lines, and `MOST_BYTES` after them, so that so many can be taken from any place.
    end : ndarray of int64, shape (n, c)
        Where cells end.
    """

    text: NDArray[np.uint8]
    end: IntArray

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.end)

    def __getitem__(self, column: int) -> BytesArray:
        """Return the cells of a column."""
        end = self.end[:, column]
        before = np.append(-1, self.end[:-1, -1]) if column == 0 else self.end[:, column - 1]
        length = (end - before - 1).astype(np.uint8)
        width = int(length.max())
        every = len(self.text) - width + 1
        overlapping: BytesArray = np.ndarray((every,), f"S{width}", self.text.data, 0, (1,))
        cells = overlapping[before + 1]
        if length.min() < width:
            letters = cells.view(np.uint8).reshape(-1, width)
            letters *= np.arange(width, dtype=np.uint8) < length[:, None]
        return cells


def cut_plain(content: bytes, columns: int) -> PlainCells | None:
    """Return the cells of lines that are ASCII with single blanks, or None if they are not."""
    if not content.isascii():
        return None
    lines = content.replace(b"\r\n", b"\n") if b"\r" in content else content
    rest = bytes(MOST_BYTES) if lines.endswith(b"\n") else b"\n" + bytes(MOST_BYTES)
    text = np.frombuffer(lines + rest, dtype=np.uint8)
    marks = np.flatnonzero(text[: len(text) - MOST_BYTES] <= _BLANK)
    kinds = text[marks].tobytes().replace(b"\t", b" ")
    if kinds != (b" " * (columns - 1) + b"\n") * (len(marks) // columns):
        return None
    length = np.diff(marks, prepend=-1)
    if length.min() < 2 or length.max() > MOST_BYTES + 1:
        return None
    return PlainCells(text, marks.reshape(-1, columns))
