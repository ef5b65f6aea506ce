"""Chunks of plain lines, cut into cells and read as numbers all at once.

A chunk is plain if it is ASCII without control characters and every line has the same number of
cells, with blanks between them. What is not plain is for those who read it line by line and can say
what is wrong with it; nothing is explained here. The work is NumPy's, on whole columns: eight bytes
from the beginning of every cell are taken in one step, and eight digits in another.
"""

import math
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judging.formats.problems import MAX_ID_LENGTH

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BytesArray = NDArray[np.bytes_]
Words = NDArray[np.uint64]

MAX_NUMBER = 400
"""Characters of a number; parsing longer ones takes its time."""

WORD = 8
_SPACE, _TAB, _NEWLINE, _MINUS, _DOT = b" \t\n-."
_EVERY = np.uint64(0x0101010101010101)
_ZEROS, _DOTS = _EVERY * np.uint64(ord("0")), _EVERY * np.uint64(_DOT)
_FIRST = np.array([(1 << 8 * count) - 1 for count in range(WORD + 1)], dtype=np.uint64)
_TENS = 10 ** np.arange(2 * WORD + 1, dtype=np.uint64)
_POWERS = _TENS.astype(np.float64)
_MOST_DIGITS = 18
_EXACT = np.uint64(1 << 53)

_PATH_LIKE = re.compile(rb"(?:^| )(?:[/~]|[A-Za-z]:)|(?:^|[ /])\.{1,2}(?:[ /]|$)")


def parsed_number(text: str) -> float:
    """Return a number, or NaN for what is none (Python's underscores and digits included)."""
    if len(text) > MAX_NUMBER or "_" in text or not text.isascii():
        return math.nan
    try:
        return float(text)
    except ValueError:
        return math.nan


@dataclass(frozen=True, eq=False)
class PlainLines:
    """The cells of n lines: where they begin in `text`, their lengths; shape (columns, n) each.

    `text` goes on after the last line, so that `WORD` bytes can be taken from any place of a line.
    """

    text: bytes
    begin: IntArray
    length: IntArray

    def __len__(self) -> int:
        return int(self.begin.shape[1])

    def cell(self, column: int, line: int) -> bytes:
        """Return one cell."""
        begin = int(self.begin[column, line])
        return self.text[begin : begin + int(self.length[column, line])]

    def is_constant(self, column: int) -> bool:
        """Whether all cells of a column are equal."""
        length = self.length[column]
        if np.any(length != length[0]):
            return False
        begin, size = self.begin[column], int(length[0])
        first = self._eight(begin[:1] + np.arange(0, size, WORD))
        for place, word in zip(range(0, size, WORD), first, strict=True):
            kept = _FIRST[min(WORD, size - place)]
            if np.any((self._eight(np.minimum(begin + place, self._last)) ^ word) & kept):
                return False
        return True

    def words(self, column: int) -> Words:
        """Return the bytes of a column, shape (n, width): the first of each in the lowest bits.

        Cells are equal if and only if their words are: behind a cell stand zeros.
        """
        begin, length = self.begin[column], self.length[column]
        width = -(-int(length.max()) // WORD)
        result = np.empty((len(self), width), dtype="<u8")
        for place in range(width):
            start = np.minimum(begin + WORD * place, self._last)
            left = _within(length - WORD * place, WORD)
            np.bitwise_and(self._eight(start), _FIRST.take(left), out=result[:, place])
        return result

    def numbers(self, column: int) -> FloatArray:
        """Return the numbers of a column, as `parsed_number` would, to the bit."""
        begin, length = self.begin[column], self.length[column]
        word = self._eight(begin)
        minus = (word & np.uint64(0xFF)) == _MINUS
        if minus.any():
            begin, length = begin + minus, length - minus
            word = self._eight(begin)
        whole = np.minimum(_before_dot(word), length)
        number, good = _digits(word, whole)
        after = length - whole - 1  # digits behind the dot; -1 where there is no dot
        if not np.all(after == -1):
            number, good = self._with_fraction(begin, number, good, whole, after)
        values = number.astype(np.float64)
        np.divide(values, _POWERS.take(_within(after, 2 * WORD)), out=values)
        np.negative(values, where=minus, out=values)
        good &= length > (after >= 0)  # a digit
        if not good.all():
            values[~good] = self._parsed(column, np.flatnonzero(~good))
        return values

    def _parsed(self, column: int, lines: IntArray) -> list[float]:
        """Return the numbers of some lines, by Python."""
        begin = self.begin[column][lines]
        end = begin + self.length[column][lines]
        cells = [self.text[a:b] for a, b in zip(begin.tolist(), end.tolist(), strict=True)]
        if np.max(end - begin) <= MAX_NUMBER and b"_" not in self.text:
            with suppress(ValueError):
                return list(map(float, cells))
        return [parsed_number(cell.decode("ascii")) for cell in cells]

    def _with_fraction(
        self,
        begin: IntArray,
        number: Words,
        good: NDArray[np.bool_],
        whole: IntArray,
        after: IntArray,
    ) -> tuple[Words, NDArray[np.bool_]]:
        """Put the digits behind the dot after `number`, and say where all that is seen and exact.

        A quotient of a whole number below 2**53 and a power of ten below 10**23 is rounded once.
        """
        place = np.minimum(begin + whole + 1, self._last)
        shown = _within(after, WORD)
        fraction, fits = _digits(self._eight(place), shown)
        if int(after.max()) > WORD:
            more = _within(after - WORD, WORD)
            rest, also = _digits(self._eight(np.minimum(place + WORD, self._last)), more)
            fraction, fits = fraction * _TENS.take(more) + rest, fits & also
        exact = (after <= 2 * WORD) & ((whole + after <= _MOST_DIGITS) | (number == 0))
        number = number * _TENS.take(_within(after, 2 * WORD)) + fraction
        seen = (after == -1) | (whole < WORD)
        return number, good & fits & seen & exact & (number < _EXACT)

    @property
    def _last(self) -> int:
        return len(self.text) - WORD

    def _eight(self, begin: IntArray) -> Words:
        """Return the `WORD` bytes from each place on."""
        shape = (len(self.text) - WORD + 1,)
        overlapping: Words = np.ndarray(shape, dtype="<u8", buffer=self.text, strides=(1,))
        return overlapping[begin]


def split_cells(chunk: bytes, columns: int) -> PlainLines | None:
    """Return the cells of whole lines, or None if they are not plain."""
    if not chunk.isascii() or b"\x7f" in chunk:
        return None
    if b"\r" in chunk:
        chunk = chunk.replace(b"\r\n", b"\n")
    text = chunk if chunk.endswith(b"\n") else chunk + b"\n"
    return _cut(text, columns) or _cut(_with_single_blanks(text), columns)


def _cut(text: bytes, columns: int) -> PlainLines | None:
    """Cut at every blank and line feed; None unless these come as often as `columns` says."""
    content = np.frombuffer(text, dtype=np.uint8)
    marks = np.flatnonzero(content <= _SPACE)
    if not len(marks) or len(marks) % columns:
        return None
    end = np.ascontiguousarray(marks.reshape(-1, columns).T)
    kinds = content.take(marks).tobytes().replace(b"\t", b" ")
    if kinds != (b" " * (columns - 1) + b"\n") * end.shape[1]:
        return None
    begin = np.empty_like(end)
    begin[1:] = end[:-1]
    begin[0, 1:] = end[-1, :-1]
    begin[0, 0] = -1
    begin += 1
    length = end - begin
    return PlainLines(text + bytes(WORD), begin, length) if length.min() > 0 else None


def _with_single_blanks(text: bytes) -> bytes:
    """Return lines without blanks at their ends, and with one where there were several."""
    content = np.frombuffer(text, dtype=np.uint8)
    blank = (content == _SPACE) | (content == _TAB)
    followed = np.append(content[1:] <= _SPACE, True)
    content = content[~(blank & followed)]
    blank = (content == _SPACE) | (content == _TAB)
    leading = np.append(True, content[:-1] == _NEWLINE)
    return bytes(content[~(blank & leading)])


def _within(numbers: IntArray, most: int) -> IntArray:
    """Return the numbers between 0 and `most` (np.clip costs more than its work on few numbers)."""
    return np.minimum(np.maximum(numbers, 0), most)


def _before_dot(word: Words) -> IntArray:
    """Return how many of the eight bytes stand before the first dot; 8 if there is none."""
    other = word ^ _DOTS
    found = (other - _EVERY) & ~other & (_EVERY << np.uint64(7))
    lowest = found & (~found + np.uint64(1))
    return np.bitwise_count(lowest - np.uint64(1)).astype(np.int64) >> 3


def _digits(word: Words, count: IntArray) -> tuple[Words, NDArray[np.bool_]]:
    """Return the number that the first `count` bytes (0 to 8) write, and whether they are digits.

    Digits are moved behind zeros; then neighbors are joined, to two, four and eight digits.
    """
    free = (WORD - count) << 3
    half = free.astype(np.uint64) >> np.uint64(1)  # a shift by 64 does nothing on some machines
    word = (word << half << half) | (_ZEROS & _FIRST.take(WORD - count))
    high = _EVERY * np.uint64(0xF0)
    sixes = _EVERY * np.uint64(6)  # no digit has its upper half moved by them
    good = ((word & high) | (((word + sixes) & high) >> np.uint64(4))) == _EVERY * np.uint64(0x33)
    word = word - _ZEROS
    word = word * np.uint64(10) + (word >> np.uint64(8))
    pairs = np.uint64(0x000000FF000000FF)
    upper = (word & pairs) * np.uint64(100 + (1000000 << 32))
    lower = ((word >> np.uint64(16)) & pairs) * np.uint64(1 + (10000 << 32))
    return (upper + lower) >> np.uint64(32), good


def as_bytes(words: NDArray[Any], width: int) -> BytesArray:
    """Return words as a column of byte strings of at most `width` bytes, as wide as that."""
    rows, count = words.shape
    whole = np.ascontiguousarray(words).view(np.uint8).reshape(rows, WORD * count)
    return np.ascontiguousarray(whole[:, :width]).view(f"S{width}").ravel()


def changes(words: Words) -> IntArray:
    """Return the rows that differ from the one before, the first among them."""
    fresh = np.append(True, np.any(words[1:] != words[:-1], axis=1))
    return np.flatnonzero(fresh)


def distinct(words: Words) -> tuple[IntArray, IntArray]:
    """Return the rows that differ from all before, and which of them each row is like."""
    starts = changes(words)
    some = words[starts]
    keys, axis = (some[:, 0], None) if some.shape[1] == 1 else (some, 0)
    _, first, place = np.unique(keys, axis=axis, return_index=True, return_inverse=True)
    order = np.argsort(first)
    by_appearance = np.empty_like(order)
    by_appearance[order] = np.arange(len(order))
    like = by_appearance[place.ravel()]
    return starts[first[order]], np.repeat(like, np.diff(starts, append=len(words)))


def are_plain_ids(cells: PlainLines, column: int) -> bool:
    """Whether all cells of a column are ids as `id_problem` wants them."""
    length, text = cells.length[column], cells.text
    if length.max() > MAX_ID_LENGTH or b"\\" in text:
        return False
    if b"/" in text and (b"/." in text or b"./" in text):
        ids = as_bytes(cells.words(column), int(length.max())).tolist()
        return not _PATH_LIKE.search(b" ".join(ids))
    if length.min() > 2 and not any(sign in text for sign in (b"/", b"~", b":")):
        return True
    word = cells.words(column)[:, 0]
    first, second = word & np.uint64(0xFF), word >> np.uint64(8) & np.uint64(0xFF)
    small = first | np.uint64(0x20)
    wrong = (first == ord("/")) | (first == ord("~"))
    wrong |= (second == ord(":")) & (small >= ord("a")) & (small <= ord("z"))
    wrong |= (first == ord(".")) & ((length == 1) | ((second == ord(".")) & (length == 2)))
    return not wrong.any()
