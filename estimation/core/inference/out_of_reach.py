"""The pairs of a pool that no draw of a design can take, and what every run has there.

None of it depends on grades, nor on which pairs were drawn or how many batches are judged: it is
worked out once for a pool and a set of eligible pairs, and kept with the pool.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    SparseMatrix,
    array_digest,
    column_sums,
    frozen,
    share_of,
)
from ..data.kept import kept
from ..data.pool_ranks import number_by_rank, number_of_pairs, total_weights, weights_by_rank

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from ..data.pool import Pool
    from ..measures.table import Measure

MOST_KEPT = 4  # sets of eligible pairs that are kept with a pool
COMPARED = 650_000  # entries that can be compared with one another without taking long


@dataclass(frozen=True, eq=False)
class OutOfReach:
    """The pairs of a pool that are not eligible.

    Attributes
    ----------
    pool : Pool
    eligible : ndarray of bool, shape (N,)
    """

    pool: Pool
    eligible: BoolArray

    @classmethod
    def of(cls, pool: Pool, eligible: BoolArray) -> OutOfReach:
        """Return what was kept for these pairs, or begin it."""
        return kept(
            pool.kept,
            "out of reach",
            array_digest(eligible),
            lambda: cls(pool, frozen(eligible.astype(np.bool_))),
            most=MOST_KEPT,
        )

    def remembered(self, key: Hashable, work: Callable[[], FloatArray]) -> FloatArray:
        """Return an array that was worked out before under this key, or work it out now."""
        if key not in self._remembered:
            self._remembered[key] = frozen(work())
        return self._remembered[key]

    @cached_property
    def _remembered(self) -> dict[Hashable, FloatArray]:
        return {}

    @cached_property
    def pairs(self) -> IntArray:
        """The pairs that are not eligible, ascending."""
        return np.flatnonzero(~self.eligible)

    def support(self, measure: Measure, added: BoolArray | None = None) -> FloatArray:
        """Return `share`; under a ratio measure no more than the share of pairs, shape (k,).

        There every pair of the pool counts, also those that the run does not return; of the pairs
        `added`, which only later runs return and none of which is eligible, those of the run.
        """
        share = self.share(measure)
        if measure.family != "ratio":
            return share
        pairs, out = len(self.pool), len(self.pairs)
        if added is None:
            return np.minimum(share, 1.0 - out / pairs)
        own = np.bincount(
            self.pool.run[added[self.pool.entry_pair]], minlength=len(self.pool.runs)
        ) - np.count_nonzero(added)
        return np.minimum(share, 1.0 - (out + own) / (pairs + own))

    def share(self, measure: Measure) -> FloatArray:
        """Return the share of every run's weight on eligible pairs, shape (k,).

        Exactly 1 if all pairs with a weight are eligible, or the run has no weight at all.
        """
        missing = self.missing(measure)
        if not missing.any():  # the usual case; the total would take a look at every entry
            return np.ones(len(missing))
        lost = share_of(missing, of=total_weights(self.pool, measure))
        return np.asarray(1.0 - lost, dtype=np.float64)

    def missing(self, measure: Measure) -> FloatArray:
        """Return every run's weight on pairs that are not eligible, shape (k,)."""
        return self.remembered(("missing", measure), lambda: self._missing(measure))

    def _missing(self, measure: Measure) -> FloatArray:
        weights = weights_by_rank(self.pool, measure)
        if weights is not None:
            return np.asarray((self._by_rank * weights).sum(axis=1), dtype=np.float64)
        if not len(self.pairs):  # the usual case, which needs no look at any entry
            return np.zeros(len(self.pool.runs))
        rest = self.pool.weights(measure, self.pairs)
        return column_sums(rest.indices, rest.data, number=len(self.pool.runs))

    @cached_property
    def _by_rank(self) -> FloatArray:
        """How many pairs each run has at each rank, (k, depth + 1): counted where are fewer."""
        within = np.flatnonzero(self.eligible)
        fewer = min(self.pairs, within, key=len)
        number = number_of_pairs(self.pool, fewer)
        if fewer is self.pairs:
            return number
        return np.asarray(number_by_rank(self.pool) - number, dtype=np.float64)

    @cached_property
    def compared(self) -> int:
        """Down to which rank every two runs can be compared without taking long.

        The last one, where these pairs have `COMPARED` entries or fewer.
        """
        pool = self.pool
        out = int(np.sum(pool.indptr[self.pairs + 1] - pool.indptr[self.pairs]))
        if out <= COMPARED:
            return pool.depth
        return max(1, COMPARED // (len(pool.topics) * len(pool.runs)))

    def first_ranks(self, rank: int) -> SparseMatrix:
        """Return the ranks that runs give to these pairs, (n, k), perhaps without deep ones.

        All down to this rank are there; deeper ones if they had to be looked for before.
        """
        known = [deeper for deeper in self._first if deeper >= rank]
        if not known:
            self._first[rank] = self._find_first(rank)
        return self._first[min(known, default=rank)]

    @cached_property
    def _first(self) -> dict[int, SparseMatrix]:
        return {}

    def _find_first(self, rank: int) -> SparseMatrix:
        pool = self.pool
        if rank == pool.depth:
            return pool.by_pair(pool.rank)[self.pairs]
        places = np.flatnonzero(pool.rank <= rank)
        pair = np.searchsorted(pool.indptr, places, side="right") - 1
        missed = ~self.eligible[pair]
        pair, places = pair[missed], places[missed]
        starts = np.flatnonzero(np.diff(pair, prepend=-1, append=-1))
        rows = pool.rank[places], pool.run[places], starts.astype(np.int32)
        return sparse.csr_array(rows, shape=(len(starts) - 1, len(pool.runs)))

    def ranks_of(self, runs: IntArray, rank: int) -> SparseMatrix:
        """Return the same for some runs, ascending, (n, runs).

        Of pairs that two of them return, or more.
        """
        if any(deeper >= rank for deeper in self._first):
            return self.first_ranks(rank)[:, runs]
        if runs.tobytes() not in self._whole:
            ranks = self.pool.by_pair(self.pool.rank)[:, runs]
            shared = np.flatnonzero((np.diff(ranks.indptr) > 1) & ~self.eligible)
            self._whole[runs.tobytes()] = ranks[shared]
        return self._whole[runs.tobytes()]

    @cached_property
    def _whole(self) -> dict[bytes, SparseMatrix]:
        return {}
