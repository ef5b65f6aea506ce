"""Whole numbers as text for digests, many at once: of one width, and what is not used taken out.

The text is that of Python, so that digests are the same as if it had been asked for each of them.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from estimation.core.arrays import IntArray

Letters = NDArray[np.uint8]
UNUSED = b"\0"
"""No text has it; it is taken out of what is put together."""


def counted(numbers: IntArray, endings: Sequence[str], which: IntArray) -> bytes:
    """Whole numbers from 0 on, each followed by one of the endings, which are ASCII."""
    left, parts = numbers, [_table(endings).take(which, axis=0)]
    while len(parts) == 1 or left.any():
        ahead = left // 1000
        row = left - 1000 * ahead + np.where(ahead > 0, 0, 1000)
        row[(left == 0) & (len(parts) > 1)] = 2000
        parts.append(_thousand().take(row, axis=0))
        left = ahead
    return _together(np.concatenate(parts[::-1], axis=1))


@cache
def _thousand() -> Letters:
    """Three digits behind others, numbers below a thousand as they are, and nothing."""
    return _table([f"{number:03d}" for number in range(1000)] + [*map(str, range(1000)), ""])


def _table(texts: Sequence[str]) -> Letters:
    """One row for each text, as long as the longest."""
    longest = max(1, *(len(text) for text in texts))
    padded = b"".join(text.encode("ascii").ljust(longest, UNUSED) for text in texts)
    return np.frombuffer(padded, dtype=np.uint8).reshape(-1, longest)


def _together(text: Letters) -> bytes:
    return text.tobytes().translate(None, UNUSED)
