"""Which runs return some pairs, held so that means over them take little time.

A deep pool has dozens of runs for every pair that many runs return: a mean over them would be the
longest part of what is expected of a pair. The runs of such a pair are held as bits, eight runs
together, and a table has the sum for each of the 256 sets that eight runs can form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import (
    BoolArray,
    FloatArray,
    Indices,
    Int32Array,
    IntArray,
    SparseMatrix,
    array_digest,
    spread_rows,
)
from .kept import kept, nbytes
from .pool_ranks import number_of_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .pool import Pool

MOST_KEPT = 32_000_000  # bytes that are kept with a pool
AT_ONCE = 1 << 14  # pairs whose runs are turned into bits together


@dataclass(frozen=True, eq=False)
class Returned:
    """The runs of n pairs: of those of few runs one by one, of the m others as bits.

    Attributes
    ----------
    number : ndarray of int, shape (n,)
        Of runs.
    few : csr_array, shape (n, k)
        Ones; rows of pairs that many runs return are empty.
    many : ndarray of int64, shape (m,)
        Positions of the pairs that many runs return.
    bits : ndarray of uint8, shape (ceil(k / 8), m)
    """

    number: Int32Array
    few: SparseMatrix
    many: IntArray
    bits: NDArray[np.uint8]

    @classmethod
    def of(cls, pool: Pool, pairs: IntArray) -> Returned:
        rows, number = pool.by_pair(pool.rank), number_of_runs(pool)[pairs]
        few = is_few(number, len(pool.runs))
        sparser, many = rows[pairs[few]], np.flatnonzero(~few)
        ones = type(rows)((np.ones(sparser.nnz), sparser.indices, sparser.indptr), sparser.shape)
        return cls(number, spread_rows(ones, few), many, _bits(rows[pairs[many]]))

    @property
    def nbytes(self) -> int:
        """What they take in memory, about."""
        return int(self.bits.nbytes + 12 * self.few.nnz + 20 * len(self.number))

    def means(self, of_all: FloatArray, of_few: FloatArray) -> FloatArray:
        """Return means over the runs of each pair of a number of each run; 0 without any run.

        Parameters
        ----------
        of_all, of_few : ndarray of float64, shape (k,)
            To be added up for pairs of few runs, alone for the others.
        """
        sums: FloatArray = self.few @ (of_all + of_few)
        sums[self.many] = _sums(self.bits, of_all)
        return sums / np.maximum(self.number, 1)


def is_few(number: Indices, runs: int) -> BoolArray:
    """Whether at most sqrt(k) of k runs return a pair."""
    return np.asarray(number.astype(np.int64) ** 2 <= runs)


def returned_by(pool: Pool, pairs: IntArray, *, keep: bool) -> Returned:
    """Return which runs return some pairs, kept with the pool for the next time or not."""
    work = partial(Returned.of, pool, pairs)
    if not keep:
        return work()
    return kept(pool.kept, "returned", _key(pool, pairs), work, most=MOST_KEPT, size=nbytes)


def _key(pool: Pool, pairs: IntArray) -> tuple[bool, bytes]:
    """What tells apart any two arrays of pairs: a bit for each of the pool if they ascend."""
    if not np.all(pairs[1:] > pairs[:-1]):
        return False, array_digest(pairs)
    places = np.zeros(len(pool), dtype=np.bool_)
    places[pairs] = True
    return True, array_digest(np.packbits(places))


def _bits(rows: SparseMatrix) -> NDArray[np.uint8]:
    """The columns of each row as bits, shape (ceil(k / 8), n)."""
    pairs, runs = rows.shape
    bits = np.zeros((-(-runs // 8), pairs), dtype=np.uint8)
    for start in range(0, pairs, AT_ONCE):
        ends = rows.indptr[start : start + AT_ONCE + 1]
        there = np.zeros((len(ends) - 1, runs), dtype=np.bool_)
        pair = np.repeat(np.arange(len(there)), np.diff(ends))
        there[pair, rows.indices[ends[0] : ends[-1]]] = True
        bits[:, start : start + len(there)] = np.packbits(there, axis=1, bitorder="little").T
    return bits


def _sums(bits: NDArray[np.uint8], numbers: FloatArray) -> FloatArray:
    """The sum of the numbers of the runs of each pair, shape (m,); runs ascending in eights."""
    padded = np.zeros(8 * len(bits))
    padded[: len(numbers)] = numbers
    total = np.zeros(bits.shape[1])
    for eight, sets in zip(padded.reshape(-1, 8), bits, strict=True):
        table = np.zeros(256)
        for run, number in enumerate(eight.tolist()):
            table[1 << run : 2 << run] = table[: 1 << run] + number
        total += np.take(table, sets)
    return total
