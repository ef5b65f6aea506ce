"""The entries of a pool down to a rank, pair by pair: all that a measure of few ranks looks at.

The entries of deep runs are millions, of which a measure with a cutoff counts a few. Which these
are follows from the pool alone; they are looked for once, and kept as long as the pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import (
    BoolArray,
    FloatArray,
    Indices,
    Int32Array,
    IntArray,
    SparseMatrix,
    column_sums,
    spread_rows,
)
from .kept import kept, nbytes

if TYPE_CHECKING:
    from ..measures.table import Measure
    from .pool import Pool

MOST_BYTES = 96_000_000  # of entries that are kept with a pool
MOST_KEPT = 4  # measures of which shares are
NEGLIGIBLE = 1e-9  # share of a list's squared weights that its end may have, to be left out
ROUNDING = 1e-18  # share of its weights that the end may have, which no sum of them shows


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries of m pairs of a pool: all of them, or those down to a rank.

    Attributes
    ----------
    ends : ndarray of int64, or int32 where that suffices, shape (m + 1,)
        The entries of pair i are those from ends[i] to ends[i + 1].
    places : ndarray of the same, shape (e,), or None
        Where they stand in the pool; None if all entries are there.
    run, rank : ndarray of int32, shape (e,)
    """

    ends: Indices
    places: Indices | None
    run: Int32Array
    rank: Int32Array

    @property
    def in_pool(self) -> Indices:
        """Where each entry stands in the pool, shape (e,)."""
        return np.arange(len(self.run)) if self.places is None else self.places

    @cached_property
    def numbers(self) -> Indices:
        """How many entries each of the m pairs has."""
        return np.diff(self.ends).astype(np.int32)

    @cached_property
    def counted(self) -> IntArray:
        """The pairs with an entry, ascending."""
        return np.flatnonzero(self.numbers)

    @property
    def nbytes(self) -> int:
        """What they take in memory beside the pool, about."""
        entries = 0 if self.places is None else 12 * len(self.run)
        return entries + 8 * (len(self.ends) + min(len(self.run), len(self.ends)))

    def number(self, pairs: IntArray) -> Indices:
        """Return how many entries each of some pairs has."""
        return self.numbers[pairs]

    def of(self, pairs: IntArray) -> Entries:
        """Return the entries of some pairs, in their order."""
        number = self.number(pairs)
        ends = np.append(0, np.cumsum(number))
        place = np.arange(ends[-1]) + np.repeat(self.ends[pairs] - ends[:-1], number)
        places = place if self.places is None else self.places[place]
        return Entries(ends, places, self.run[place], self.rank[place])

    def rows(self, pairs: IntArray, table: FloatArray, runs: int) -> SparseMatrix:
        """Return numbers by rank, (rank + 1,), of the entries of some pairs: shape (n, runs)."""
        place = self.run, self.ends
        found = sparse.csr_array((self.rank, *place), shape=(len(self.ends) - 1, runs))[pairs]
        numbers = np.take(table, found.data)
        return sparse.csr_array((numbers, found.indices, found.indptr), found.shape)


def entries_down_to(pool: Pool, rank: int) -> Entries:
    """Return the entries of all N pairs down to a rank; pairs may be left without any."""
    rank = min(rank, pool.depth)
    work = partial(_find, pool, rank)
    return kept(pool.kept, "entries", rank, work, most=MOST_BYTES, size=nbytes)


def _find(pool: Pool, rank: int) -> Entries:
    whole = Entries(pool.by_pair(pool.rank).indptr, None, pool.run, pool.rank)
    if rank == pool.depth:
        return whole
    found: dict[int, Entries] = pool.kept.get("entries", {})
    among = found[min(deeper)] if (deeper := [each for each in found if each > rank]) else whole
    there = among.rank <= rank
    entry, before = np.flatnonzero(there), np.zeros(len(there) + 1, dtype=np.int32)
    np.cumsum(there, out=before[1:])
    narrow = sparse.get_index_dtype(maxval=len(pool.run))
    places = entry if among.places is None else among.places[entry]
    ends = before[among.ends].astype(narrow)
    return Entries(ends, places.astype(narrow), among.run[entry], among.rank[entry])


def counted_entries(pool: Pool, measure: Measure) -> Entries:
    """Return the entries of all N pairs that `weights_of` looks at."""
    table = pool.rank_weights(measure)
    last = pool.depth if table is None else last_of(table, share=ROUNDING)
    return entries_down_to(pool, last)


def weights_of(pool: Pool, measure: Measure, pairs: IntArray, *, wanted: BoolArray) -> SparseMatrix:
    """Return `Pool.weights`; where a measure counts few ranks, from the entries down to the last.

    Parameters are those of `Pool.weights`. Ranks of which all weights together are less than the
    rounding of the ones before them do not count: of RBP(p=0.8) those behind 186.
    """
    pool.check_measure(measure)
    table = pool.rank_weights(measure)
    if table is None:
        return pool.weights(measure, pairs, wanted=wanted)
    last = last_of(table, share=ROUNDING)
    if not table[1 : last + 1].all():
        return pool.weights(measure, pairs, wanted=wanted)
    rows = entries_down_to(pool, last).rows(pairs[wanted], table, len(pool.runs))
    return rows if len(wanted) == rows.shape[0] else spread_rows(rows, wanted)


def shares_of_squares(pool: Pool, measure: Measure) -> FloatArray:
    """Return the share of each pair in a run's sum of squared weights, added up over runs, (N,)."""
    return kept(
        pool.kept, "squares", measure, lambda: _shares_of_squares(pool, measure), most=MOST_KEPT
    )


def _shares_of_squares(pool: Pool, measure: Measure) -> FloatArray:
    squares = np.square(pool.entry_weights(measure))
    of_runs = column_sums(pool.run, squares, number=len(pool.runs))
    np.divide(squares, of_runs[pool.run], out=squares, where=squares > 0.0)
    return column_sums(pool.entry_pair, squares, number=len(pool))


def last_rank(pool: Pool, measure: Measure) -> int:
    """Return the last rank with a weight that is not next to nothing."""
    table = pool.rank_weights(measure)
    return pool.depth if table is None else last_of(np.square(table), share=NEGLIGIBLE)


def last_of(weights: FloatArray, *, share: float) -> int:
    """Return the rank behind which there is at most a share of all weights, by rank, from 0 on."""
    rest = np.cumsum(weights[::-1])[::-1]
    return int(np.count_nonzero(rest[1:] > share * rest[0]))
