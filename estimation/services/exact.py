"""Numbers as text for digests, many at once: of one width each, and what is not used taken out.

The text of each number is that of Python, so that digests are the same as if it had been asked.
"""

from binascii import hexlify
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from estimation.core.arrays import FloatArray, IntArray

Letters = NDArray[np.uint8]
UNUSED = b"\0"
"""No text has it; it is taken out of what is put together."""
FRACTION, EXPONENTS = 52, 1 << 11
WORD = 8
WITHOUT_HEAD = np.frombuffer(3 * b"\0" + 5 * b"\xff", dtype=np.uint64)[0]
"""Leaves of a word of digits what is behind those of sign and exponent."""
LONGEST = 4 * WORD
"""Letters of a hexadecimal float with the blank after it: -0x1. and p-1022 have a word each."""


def hexadecimal(numbers: FloatArray | NDArray[np.int8]) -> bytes:
    """``float.hex`` of all numbers, blanks in between."""
    if numbers.dtype == np.int8:
        return _together(_of_bytes().take(numbers.ravel().view(np.uint8), axis=0))[:-1]
    bits = np.ascontiguousarray(numbers, dtype=np.float64).ravel().view(np.uint64)
    head = (bits >> np.uint64(FRACTION)).astype(np.int64)
    text = np.empty((len(bits), 4), dtype=np.uint64)
    before, after = _words()
    text[:, 0], text[:, 3] = before[head], after[head]
    digits = np.frombuffer(hexlify(bits.astype(">u8").data), dtype=np.uint64)
    text[:, 1:3] = digits.reshape(-1, 2)
    text[:, 1] &= WITHOUT_HEAD
    letters = text.view(np.uint8).reshape(-1, LONGEST)
    zero, exponent = bits == 0, head & (EXPONENTS - 1)
    letters[zero] = _table(["0x0.0p+0 "], width=LONGEST)
    rare = np.flatnonzero((exponent == EXPONENTS - 1) | (exponent == 0) & ~zero)
    if len(rare):
        letters[rare] = _of_rare(bits[rare])
    return _together(letters)[:-1]


def counted(numbers: IntArray, endings: Sequence[str], which: IntArray) -> bytes:
    """Whole numbers from 0 on, each followed by one of the endings, which are ASCII."""
    digits = np.zeros((len(numbers), len(str(int(numbers.max(initial=0))))), dtype=np.uint8)
    left = numbers
    for place in range(digits.shape[1] - 1, -1, -1):
        rest = left // 10
        digits[:, place] = np.where((left > 0) | (left is numbers), left - 10 * rest + ord("0"), 0)
        left = rest
    return _together(np.concatenate([digits, _table(endings).take(which, axis=0)], axis=1))


@cache
def _words() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """What stands before and after the digits, by sign and exponent."""
    exponents = (np.arange(EXPONENTS) - (EXPONENTS // 2 - 1)).tolist()
    before = ["0x1."] * EXPONENTS + ["-0x1."] * EXPONENTS
    after = [f"p{exponent:+d} " for exponent in exponents] * 2
    return tuple(_table(each, width=WORD).view(np.uint64).ravel() for each in (before, after))  # type: ignore[return-value]


@cache
def _of_bytes() -> Letters:
    """All whole numbers of eight bits, as these count."""
    every = np.arange(256, dtype=np.uint8).view(np.int8)
    return _table([float(number).hex() + " " for number in every.tolist()])


def _of_rare(bits: NDArray[np.uint64]) -> Letters:
    """What is no number, or next to 0: few of them differ."""
    values, place = np.unique(bits, return_inverse=True)
    texts = [number.hex() + " " for number in values.view(np.float64).tolist()]
    return _table(texts, width=LONGEST)[place]


def _table(texts: Sequence[str], *, width: int = 1) -> Letters:
    """One row for each text, as long as the longest."""
    longest = max(width, *(len(text) for text in texts))
    padded = b"".join(text.encode("ascii").ljust(longest, UNUSED) for text in texts)
    return np.frombuffer(padded, dtype=np.uint8).reshape(-1, longest)


def _together(text: Letters) -> bytes:
    return text.tobytes().translate(None, UNUSED)
