"""How much of the runs' weight a sample reaches: support, effective sample size, upper limits.

None of it depends on grades. It does depend on the weight of every entry of the sampled pairs,
millions where runs are deep, so that sums over entries are taken once for all measures: `Reach`
adds up what pairs have by run and rank, and a measure's weight of a rank is multiplied in later.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from estimation.core.arrays import (
    BoolArray,
    FloatArray,
    Int32Array,
    IntArray,
    SparseMatrix,
    column_sums,
)
from estimation.core.estimators import effective_sample_size, kish
from estimation.core.measures import Measure
from estimation.core.pool import Pool
from estimation.core.pool_ranks import best_rank, number_by_rank

# Sums by run and rank are taken where lists fill at least this share of topics, runs and ranks.
LEAST_FILLED = 0.1
NEGLIGIBLE = 1e-9  # share of a list's squared weights that its end may have, to be left out
FEW_REACHED = 0.3  # share of the pairs
COMPARED = 650_000  # entries that can be compared with one another without taking long


@dataclass(frozen=True, eq=False)
class Reach:
    """What a design can sample of a pool, and what it did.

    Attributes
    ----------
    pool : Pool
    pair : ndarray of int64, shape (n,)
        Sampled pairs.
    inclusion : ndarray of float64, shape (N,)
        Probability of every pair of the pool to be among them.
    expected : ndarray of float64, shape (N,)
        How often the design expects to take a pair.
    """

    pool: Pool
    pair: IntArray
    inclusion: FloatArray
    expected: FloatArray

    @classmethod
    def of_design(cls, pool: Pool, eligible: BoolArray) -> "Reach":
        """Return what could be sampled, without any sample."""
        chance = eligible.astype(np.float64)
        return cls(pool, np.array([], dtype=np.int64), chance, chance)

    def effective_sample_size(self, measure: Measure) -> FloatArray:
        """Return (sum_S w/pi)^2 / sum_S (w/pi)^2 of each run, shape (k,); see the estimators'."""
        weights = _by_rank(self.pool, measure)
        if weights is None:
            chance = self.inclusion[self.pair]
            return effective_sample_size(self.pool.weights(measure, self.pair), probability=chance)
        first, second = self._inverse_chances
        return kish(_run_sums(first * weights), _run_sums(second * weights**2))

    def support(self, measure: Measure, added: BoolArray | None = None) -> FloatArray:
        """Return `share`; under a ratio measure no more than the share of pairs, shape (k,).

        There every pair of the pool counts, also those that the run does not return; of the pairs
        `added`, which only later runs return and none of which is eligible, those of the run.
        """
        share = self.share(measure)
        if measure.family != "ratio":
            return share
        pairs, out = len(self.pool), len(self.out_of_reach)
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
        total = self.total_weights(measure)
        lost = np.divide(missing, total, out=np.zeros_like(total), where=total > 0.0)
        return np.asarray(1.0 - lost, dtype=np.float64)

    def missing(self, measure: Measure) -> FloatArray:
        """Return every run's weight on pairs that are not eligible, shape (k,)."""
        weights = _by_rank(self.pool, measure)
        if weights is not None:
            return _run_sums(self._out_of_reach_by_rank * weights)
        rest = self.pool.weights(measure, self.out_of_reach)
        return column_sums(rest.indices, rest.data, number=len(self.pool.runs))

    def returned_by(self, pairs: IntArray, rank: int) -> IntArray:
        """Return those of some pairs that a run has at this rank or before."""
        return pairs if rank >= self.pool.depth else pairs[best_rank(self.pool)[pairs] <= rank]

    def entries_of(self, pairs: IntArray) -> "Entries":
        """Return the entries of some pairs, ascending; remembered by the array."""
        if id(pairs) not in self._of_pairs:
            entry, _ = self.pool.entries_of(pairs)
            counts = self.pool.indptr[pairs + 1] - self.pool.indptr[pairs]
            ends = np.append(0, np.cumsum(counts))
            found = Entries(pairs, ends, entry, self.pool.run[entry], self.pool.rank[entry])
            self._of_pairs[id(pairs)] = found
        return self._of_pairs[id(pairs)]

    @cached_property
    def _of_pairs(self) -> dict[int, "Entries"]:
        return {}

    def last_rank(self, measure: Measure) -> int:
        """Return the last rank with a weight that is not next to nothing."""
        table = self.pool.rank_weights(measure)
        return self.pool.depth if table is None else _last_rank(table)

    def largest_values(self, measure: Measure, max_grade: int) -> FloatArray:
        """Return the value of every run, (k,), under a measure of gains, at the best grades."""
        return self.total_weights(measure) * measure.max_utility(max_grade)

    def total_weights(self, measure: Measure) -> FloatArray:
        """Return every run's weight on all pairs, shape (k,)."""
        weights = _by_rank(self.pool, measure)
        if weights is None:
            return self.pool.total_weights(measure)
        return _run_sums(number_by_rank(self.pool) * weights)

    @cached_property
    def out_of_reach(self) -> IntArray:
        """The pairs that are not eligible, ascending."""
        return np.flatnonzero(self.inclusion <= 0.0)

    @cached_property
    def compared(self) -> int:
        """Down to which rank every two runs can be compared out of reach without taking long.

        The last one, where `COMPARED` entries or fewer are out of reach.
        """
        pool, within = self.pool, np.flatnonzero(self.inclusion > 0.0)
        reached = int(np.sum(pool.indptr[within + 1] - pool.indptr[within]))
        if len(pool.run) - reached <= COMPARED:
            return pool.depth
        return max(1, COMPARED // (len(pool.topics) * len(pool.runs)))

    def first_out_of_reach(self, rank: int) -> SparseMatrix:
        """Return the ranks that runs give to pairs out of reach, (n, k), perhaps without deep ones.

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
            return pool.by_pair(pool.rank)[self.out_of_reach]
        places = np.flatnonzero(pool.rank <= rank)
        pair = np.searchsorted(pool.indptr, places, side="right") - 1
        missed = (self.inclusion <= 0.0)[pair]
        pair, places = pair[missed], places[missed]
        starts = np.flatnonzero(np.diff(pair, prepend=-1, append=-1))
        rows = pool.rank[places], pool.run[places], starts.astype(np.int32)
        return sparse.csr_array(rows, shape=(len(starts) - 1, len(pool.runs)))

    def ranks_out_of_reach(self, runs: IntArray, rank: int) -> SparseMatrix:
        """Return the same for some runs, ascending, (n, runs).

        Of pairs that two of them return, or more.
        """
        if any(deeper >= rank for deeper in self._first):
            return self.first_out_of_reach(rank)[:, runs]
        if runs.tobytes() not in self._whole:
            ranks = self.pool.by_pair(self.pool.rank)[:, runs]
            shared = np.flatnonzero((np.diff(ranks.indptr) > 1) & (self.inclusion <= 0.0))
            self._whole[runs.tobytes()] = ranks[shared]
        return self._whole[runs.tobytes()]

    @cached_property
    def _whole(self) -> dict[bytes, SparseMatrix]:
        return {}

    @cached_property
    def _out_of_reach_by_rank(self) -> FloatArray:
        """How many pairs out of reach each run has at each rank: counted where there are fewer."""
        if not self._few_are_reached:
            ones = np.ones(len(self.out_of_reach))
            (number,) = rank_sums(self.pool, self.out_of_reach, [ones])
            return number
        return np.asarray(number_by_rank(self.pool) - self._reached[0], dtype=np.float64)

    @cached_property
    def _inverse_chances(self) -> list[FloatArray]:
        if self._few_are_reached:
            return self._reached[1:]
        inverse = 1.0 / self.inclusion[self.pair]
        return rank_sums(self.pool, self.pair, [inverse, inverse**2])

    @cached_property
    def _few_are_reached(self) -> bool:
        """Whether to count all of them, the sampled ones in the pass that adds up 1/pi."""
        reached = int(np.count_nonzero(self.inclusion > 0.0))
        return reached < FEW_REACHED * len(self.pool)

    @cached_property
    def _reached(self) -> list[FloatArray]:
        """By run and rank: number of pairs within reach; 1/pi and 1/pi^2 of the sampled ones."""
        unsampled = self.inclusion > 0.0
        unsampled[self.pair] = False
        others, inverse = np.flatnonzero(unsampled), 1.0 / self.inclusion[self.pair]
        number, first, second = rank_sums(
            self.pool, self.pair, [np.ones(len(self.pair)), inverse, inverse**2]
        )
        (more,) = rank_sums(self.pool, others, [np.ones(len(others))])
        return [number + more, first, second]


@dataclass(frozen=True, eq=False)
class Entries:
    """Entries of some pairs of a pool.

    Attributes
    ----------
    pair : ndarray of int64, shape (m,)
        Ascending.
    ends : ndarray of int64, shape (m + 1,)
        The entries of pair i are those from ends[i] to ends[i + 1].
    entry : ndarray of int64, shape (e,)
        Their place in the pool.
    run, rank : ndarray of int32, shape (e,)
    """

    pair: IntArray
    ends: IntArray
    entry: IntArray
    run: Int32Array
    rank: Int32Array

    def down_to(self, rank: int) -> "Entries":
        """Return those of some ranks; pairs may be left without any."""
        kept = self.rank <= rank
        if kept.all():
            return self
        ends = np.append(0, np.cumsum(kept))[self.ends]
        return Entries(self.pair, ends, self.entry[kept], self.run[kept], self.rank[kept])


def rank_sums(pool: Pool, pairs: IntArray, values: Sequence[FloatArray]) -> list[FloatArray]:
    """Add up what pairs have by run and rank.

    Parameters
    ----------
    pool : Pool
    pairs : ndarray of int64, shape (n,)
    values : sequence of c ndarrays of float64, shape (n,)

    Returns
    -------
    list of c ndarrays of float64, shape (k, depth + 1)
        Sums of each of the values over the pairs that the run returns at the rank, from rank 0
        on, where there are none.
    """
    entries, ranks = pool.by_pair(pool.rank)[pairs], pool.depth + 1
    places = len(pool.runs) * ranks
    cells = entries.indices.astype(sparse.get_index_dtype(maxval=places), copy=False)
    cells *= ranks
    cells += entries.data
    matrix = np.ones(len(cells)), cells, entries.indptr
    of_cells = sparse.csr_array(matrix, shape=(len(pairs), places)).T
    return [(of_cells @ each).reshape(-1, ranks) for each in values]


def _by_rank(pool: Pool, measure: Measure) -> FloatArray | None:
    """Weights of the ranks, shape (depth + 1,), where they say all and lists are full."""
    pool.check_measure(measure)
    weights = pool.rank_weights(measure)
    places = len(pool.topics) * len(pool.runs) * pool.depth
    return weights if len(pool.run) > LEAST_FILLED * places else None


def _last_rank(table: FloatArray) -> int:
    """The rank behind which all squared weights together are next to nothing."""
    rest = np.cumsum(table[::-1] ** 2)[::-1]
    return int(np.count_nonzero(rest[1:] > NEGLIGIBLE * rest[0]))


def _run_sums(by_rank: FloatArray) -> FloatArray:
    return np.asarray(by_rank.sum(axis=1), dtype=np.float64)
