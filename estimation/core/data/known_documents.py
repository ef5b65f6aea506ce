"""Judged documents, found by topic and docno among those that runs return, millions at a time.

A pool sorts all docnos, which takes longer than all the rest where everything is judged. Here only
the judged documents stand in a table, at a place that their bytes tell; what a run returns is
looked up there, and compared with what stands there to the last byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..arrays import BytesArray, Int32Array, IntArray

WORD = 8  # bytes that are compared at once
ROOM = 8  # places of the table for each document, at least
_ODD = np.uint64(0x9E3779B97F4A7C15)
_OTHER = np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True, eq=False)
class KnownDocuments:
    """m documents in a table of hashes, in which the next free place is taken where one is not.

    Every topic has a part of the table of its own, so that lists, which come topic by topic, are
    looked up in little memory.

    Attributes
    ----------
    words : sequence of ndarray of uint64, shape (m,)
        The bytes of the docnos, eight by eight; behind their ends are zeros.
    start, last : ndarray of int64, shape (T,)
        Where the part of a topic begins, and its number of places, a power of two, less one.
    table : ndarray of int32
        Which document stands at a place; -1 for none.
    """

    words: Sequence[NDArray[np.uint64]]
    start: IntArray
    last: IntArray
    table: Int32Array

    @classmethod
    def of(cls, topic: IntArray, docno: BytesArray, *, topics: int) -> KnownDocuments:
        """Put documents into a table; topics are numbers below `topics`."""
        counts = np.bincount(topic, minlength=topics).tolist()
        sizes = np.array([1 << (ROOM * count).bit_length() for count in counts], dtype=np.int64)
        start, last = np.cumsum(sizes) - sizes, sizes - 1
        table = np.full(int(sizes.sum()), -1, dtype=np.int32)
        words = _words(docno)
        place, waiting = _places(_mixed(words), start[topic], last[topic]), np.arange(len(docno))
        while len(waiting):
            free = waiting[table[place[waiting]] < 0]
            table[place[free]] = free  # of several, one stays
            waiting = waiting[table[place[waiting]] != waiting]
            part = topic[waiting]
            place[waiting] = _next(place[waiting], start[part], last[part])
        return cls(words, start, last, table)

    def find(self, topic: IntArray, docno: BytesArray) -> IntArray:
        """Return which of the m documents each of n is, (n,); -1 for none of them."""
        words, width = _words(docno), len(self.words)
        longer = [each > 0 for each in words[width:]]
        zeros = np.zeros(len(docno), dtype=np.uint64)
        words = (words + [zeros] * width)[:width]
        place = _places(_mixed(words), self.start[topic], self.last[topic])
        found = np.full(len(docno), -1, dtype=np.int64)
        some, there = np.arange(len(docno)), self.table[place]
        while len(some):
            held = np.flatnonzero(there >= 0)
            some, there = some[held], there[held]
            same = np.ones(len(some), dtype=np.bool_)
            for known, wanted in zip(self.words, words, strict=True):
                same &= known[there] == wanted[some]
            found[some[same]] = there[same]
            some = some[~same]
            part = topic[some]
            place[some] = _next(place[some], self.start[part], self.last[part])
            there = self.table[place[some]]
        for beyond in longer:
            found[beyond] = -1
        return found

    def first_twice(self, topic: IntArray, docno: BytesArray) -> int | None:
        """Return the first of the m documents, `topic` and `docno`, that another one equals."""
        found = self.find(topic, docno)
        twice = np.bincount(found, minlength=len(docno))[found] > 1
        return int(np.argmax(twice)) if twice.any() else None


def document_hashes(topic: IntArray, docno: BytesArray) -> NDArray[np.uint64]:
    """Return 64 well-mixed bits of each topic and docno; equal ones have equal bits."""
    return _mixed([topic.astype(np.uint64), *_words(docno)])


def _words(docno: BytesArray) -> list[NDArray[np.uint64]]:
    width = -(-max(docno.dtype.itemsize, 1) // WORD)
    padded = np.ascontiguousarray(docno.astype(f"S{WORD * width}", copy=False))
    columns = padded.view("<u8").reshape(len(docno), width)
    return [columns[:, each] for each in range(width)]


def _places(mixed: NDArray[np.uint64], start: IntArray, last: IntArray) -> IntArray:
    """Where documents belong in the parts of their topics."""
    return start + ((mixed >> np.uint64(33)).astype(np.int64) & last)


def _next(place: IntArray, start: IntArray, last: IntArray) -> IntArray:
    return start + ((place - start + 1) & last)


def _mixed(words: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    state = np.zeros(len(words[0]), dtype=np.uint64)
    for each in words:
        state ^= each
        state *= _ODD
        state ^= state >> np.uint64(29)
    state *= _OTHER
    return state
