"""Lines with blanks between their cells, cut all at once.

Most files of TREC are such. Whatever is unusual in one is left to `trec_lines`, which reads line by
line and says what is wrong; nothing is explained here.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..arrays import BytesArray, IntArray

MOST_BYTES = 200  # of a cell; a column of longer ones could take any memory
_PIECE = 1 << 18  # bytes of text that are decoded at once
_BLANK, _NEWLINE = b" \n"


@dataclass(frozen=True, eq=False)
class PlainCells:
    """The cells of n lines, each of c columns.

    Attributes
    ----------
    text : ndarray of uint8
        The lines, and `MOST_BYTES` after them, so that so many can be taken from any place.
    end : ndarray of int64, shape (n, c)
        Where cells end.
    length : ndarray of uint8, shape (n, c)
        How many bytes they have.
    """

    text: NDArray[np.uint8]
    end: IntArray
    length: NDArray[np.uint8]

    def __len__(self) -> int:
        """Return the number of lines."""
        return len(self.end)

    def __getitem__(self, column: int) -> BytesArray:
        """Return the cells of a column."""
        length = self.length[:, column]
        width = int(length.max())
        every = len(self.text) - width + 1
        overlapping: BytesArray = np.ndarray((every,), f"S{width}", self.text.data, 0, (1,))
        cells: BytesArray = overlapping[self.end[:, column] - length]
        if length.min() < width:
            letters = cells.view(np.uint8).reshape(-1, width)
            letters *= np.arange(width, dtype=np.uint8) < length[:, None]
        return cells


def cut_plain(content: bytes, columns: int) -> PlainCells | None:
    """Return the cells of lines that are UTF-8 and all have so many, or None if they are not."""
    if not (content.isascii() or _is_utf8(content)):
        return None
    lines = content.replace(b"\r\n", b"\n") if b"\r" in content else content
    rest = bytes(MOST_BYTES) if lines.endswith(b"\n") else b"\n" + bytes(MOST_BYTES)
    text = np.frombuffer(lines + rest, dtype=np.uint8)
    marks = np.flatnonzero(text[: len(text) - MOST_BYTES] <= _BLANK)
    length = np.diff(marks, prepend=-1)
    length -= 1
    there = _ends(text[marks], length, columns)
    if there is None or length.max() > MOST_BYTES:
        return None
    shape = (-1, columns)
    short = length[there].astype(np.uint8)
    return PlainCells(text, marks[there].reshape(shape), short.reshape(shape))


def _is_utf8(content: bytes) -> bool:
    """Piece by piece: a text takes up to four times the memory of its bytes."""
    decoder = getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _PIECE):
            decoder.decode(content[start : start + _PIECE], start + _PIECE >= len(content))
    except UnicodeDecodeError:
        return False
    return True


def _ends(kinds: NDArray[np.uint8], length: IntArray, columns: int) -> IntArray | slice | None:
    """Return which marks end cells, or None unless every line has as many cells as `columns`."""
    signs = kinds.tobytes().replace(b"\t", b" ")
    if length.min() > 0:  # one blank between cells, and none elsewhere
        regular = (b" " * (columns - 1) + b"\n") * (len(kinds) // columns)
        return slice(None) if signs == regular else None
    line_end, there = np.flatnonzero(kinds == _NEWLINE), np.flatnonzero(length)
    if signs.translate(None, b" \n") or len(there) != columns * len(line_end):
        return None
    cells = there.reshape(-1, columns)
    inside = np.all(cells[:, -1] <= line_end) and np.all(cells[1:, 0] > line_end[:-1])
    return there if inside else None
