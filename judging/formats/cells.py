"""Chunks of plain lines, cut into cells and read as numbers all at once.

A chunk is plain if it is UTF-8 without control or invisible characters and every line has the same
number of cells, with blanks between them. What is not plain is for those who read it line by line
and can say what is wrong with it; nothing is explained here. The work is NumPy's, on whole columns:
eight bytes from the beginning of every cell are taken in one step, and eight digits in another.
"""

import math
import re
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from judging.formats.problems import MAX_ID_LENGTH, has_invisible

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
_HAS_64_DIGITS = np.finfo(np.longdouble).nmant == 63 and sys.byteorder == "little"

_TABLE_BITS = 16
_FACTORS = np.array([0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9], dtype=np.uint64)

_ASCII = bytes(range(128))

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
        for place in range(0, size, WORD):
            word = self._eight(begin + place)
            word ^= word[0]
            word &= _FIRST[min(WORD, size - place)]
            if word.any():
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
            kept = _FIRST.take(length - WORD * place, mode="clip")
            np.bitwise_and(self._eight(begin + WORD * place), kept, out=result[:, place])
        return result

    def numbers(self, column: int) -> FloatArray:
        """Return the numbers of a column, as `parsed_number` would, to the bit."""
        short = self._short_numbers(column) if self.length[column].max() <= WORD + 1 else None
        return self._any_numbers(column) if short is None else short

    def _short_numbers(self, column: int) -> FloatArray | None:
        """Return numbers of up to eight digits, with a dot or without; None if there are others.

        What stands behind the dot is moved to the place of the dot.
        """
        begin, length = self.begin[column], self.length[column]
        word = self._eight(begin)
        if length.max() <= WORD:
            number, good = _digits(word, length)
            if good.all():
                return number.astype(np.float64)
        if np.any((word & np.uint64(0xFF)) == _MINUS):
            return None
        whole = np.minimum(_before_dot(word), length)
        before = _FIRST.take(whole)
        after = length - whole - 1  # digits behind the dot; -1 where there is no dot
        word &= before
        word |= self._eight(begin + 1) & ~before
        count = whole + np.maximum(after, 0)
        number, good = _digits(word, count)
        unseen = (whole == WORD) & (length > WORD)
        if not good.all() or count.min() == 0 or unseen.any():
            return None
        values = number.astype(np.float64)
        values /= _POWERS.take(after, mode="clip")
        return values

    def _any_numbers(self, column: int) -> FloatArray:
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
        values, sure = _quotients(number, after)
        np.negative(values, where=minus, out=values)
        good &= sure
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
        return [parsed_number(cell.decode()) for cell in cells]

    def _with_fraction(
        self,
        begin: IntArray,
        number: Words,
        good: NDArray[np.bool_],
        whole: IntArray,
        after: IntArray,
    ) -> tuple[Words, NDArray[np.bool_]]:
        """Put the digits behind the dot after `number`, and say where all of them are seen."""
        place = begin + whole + 1
        shown = _within(after, WORD)
        fraction, fits = _digits(self._eight(place), shown)
        if int(after.max()) > WORD:
            more = _within(after - WORD, WORD)
            rest, also = _digits(self._eight(place + WORD), more)
            fraction, fits = fraction * _TENS.take(more) + rest, fits & also
        short = (after <= 2 * WORD) & ((whole + after <= _MOST_DIGITS) | (number == 0))
        number = number * _TENS.take(after, mode="clip") + fraction
        seen = (after == -1) | (whole < WORD)
        return number, good & fits & seen & short

    def _eight(self, begin: IntArray) -> Words:
        """Return the `WORD` bytes from each place on, the last ones from places behind the end."""
        last = len(self.text) - WORD
        overlapping: Words = np.ndarray(last + 1, dtype="<u8", buffer=self.text, strides=(1,))
        return overlapping[begin if begin.max() <= last else np.minimum(begin, last)]


def split_cells(chunk: bytes, columns: int) -> PlainLines | None:
    """Return the cells of whole lines, or None if they are not plain."""
    if b"\x7f" in chunk or not (chunk.isascii() or _has_plain_letters(chunk)):
        return None
    if b"\r" in chunk:
        chunk = chunk.replace(b"\r\n", b"\n")
    text = chunk if chunk.endswith(b"\n") else chunk + b"\n"
    content = np.frombuffer(text, dtype=np.uint8)
    end = np.flatnonzero(content <= _SPACE)
    kinds = content.take(end)
    length = np.empty_like(end)
    length[0] = end[0]
    np.subtract(end[1:], end[:-1] + 1, out=length[1:])
    if length.min() == 0:  # several blanks, or some at the ends of a line
        there = _cells_of_lines(length > 0, kinds, columns)
        if there is None:
            return None
        end, length = end.take(there), length.take(there)
    elif not _is_regular(kinds, columns):
        return None
    begin = (end - length).reshape(-1, columns).T
    shape = np.ascontiguousarray(begin), np.ascontiguousarray(length.reshape(-1, columns).T)
    return PlainLines(text + bytes(WORD), *shape)


def _has_plain_letters(chunk: bytes) -> bool:
    """Whether it is UTF-8, and what is not ASCII in it may stand in any cell.

    Each different letter is looked at once, as rules for ids ask nothing else of one.
    """
    try:
        chunk.decode()
    except UnicodeDecodeError:
        return False
    codes = np.frombuffer(chunk.translate(None, _ASCII).decode().encode("utf-32-le"), dtype="<u4")
    return not has_invisible("".join(map(chr, np.flatnonzero(np.bincount(codes)).tolist())))


def _is_regular(kinds: NDArray[np.uint8], columns: int) -> bool:
    """Whether there are cells with blanks between them, and every so many end in a line feed."""
    line = b" " * (columns - 1) + b"\n"
    return kinds.tobytes().replace(b"\t", b" ") == line * (len(kinds) // columns)


def _cells_of_lines(
    ended: NDArray[np.bool_], kinds: NDArray[np.uint8], columns: int
) -> IntArray | None:
    """Return which marks end cells, or None unless every line has as many cells as `columns`."""
    if kinds.tobytes().translate(None, b" \t\n"):
        return None
    line_end, there = np.flatnonzero(kinds == _NEWLINE), np.flatnonzero(ended)
    if len(there) != columns * len(line_end):
        return None
    cells = there.reshape(-1, columns)
    inside = np.all(cells[:, -1] <= line_end) and np.all(cells[1:, 0] > line_end[:-1])
    return there if inside else None


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


def _quotients(number: Words, digits: IntArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return whole numbers over powers of ten, and which of these are sure to be rounded once.

    Those below 2**53 over a power below 10**23 are. A larger one is divided with 64 binary digits
    where the machine has that, and rounded again: which is wrong only where the first quotient
    seems to lie just between two numbers of 53 digits.
    """
    values = number.astype(np.float64)
    values /= _POWERS.take(digits, mode="clip")
    sure = number < _EXACT
    if _HAS_64_DIGITS and not sure.all():
        large = np.flatnonzero(~sure)
        longer = number[large].astype(np.longdouble)
        longer /= _POWERS.take(digits[large], mode="clip")
        values[large] = longer
        last = longer.view(np.uint64)[::2] & np.uint64(0x7FF)
        sure[large] = last != np.uint64(0x400)
    return values, sure


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
    first, like = _first_and_like(words[starts])
    return starts[first], np.repeat(like, np.diff(starts, append=len(words)))


def _first_and_like(rows: Words) -> tuple[IntArray, IntArray]:
    """Return `distinct` of rows in any order.

    Each is put into a table at some of its mixed bits. Where two that differ have the same place
    it is tried once more with other bits, and then all are sorted.
    """
    own = np.arange(len(rows))
    for factor in _FACTORS:
        mixed = np.zeros(len(rows), dtype=np.uint64)
        for column in rows.T:
            mixed = (mixed ^ column) * factor
        place = (mixed >> np.uint64(64 - _TABLE_BITS)).view(np.int64)
        table = np.empty(1 << _TABLE_BITS, dtype=np.int64)
        table[place[::-1]] = own[::-1]  # of several, the last that is put there stays
        earliest = table[place]
        if np.array_equal(rows[earliest], rows):
            return _numbered(earliest)
    keys, axis = (rows[:, 0], None) if rows.shape[1] == 1 else (rows, 0)
    _, first, kind = np.unique(keys, axis=axis, return_index=True, return_inverse=True)
    return _numbered(first[kind.ravel()])


def _numbered(earliest: IntArray) -> tuple[IntArray, IntArray]:
    """Number rows by those that come first, of which `earliest` says for each row which one."""
    fresh = earliest == np.arange(len(earliest))
    return np.flatnonzero(fresh), (np.cumsum(fresh) - 1)[earliest]


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
