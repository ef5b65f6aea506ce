"""The pairs that a ratio measure (AP, nDCG, Rprec) is about, and their entries in runs' lists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import FloatArray, Int32Array, IntArray, added, column_sums, frozen
from ..data.kept import kept

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..data.pool import Pool
    from ..measures.table import Measure

    Lists: TypeAlias = tuple[Int32Array, Int32Array, Int32Array, IntArray]

MOST_KEPT = 2  # lists of all pairs, down to different ranks
MANY = 4  # one pair in so many is enough to take lists from those of all


@dataclass(frozen=True, eq=False)
class Gains:
    """The m pairs that may have any utility, ascending, with their inclusion probabilities.

    Where `reach` holds estimates of all pairs, `variances` are theirs, and `least` are counts of
    each level in each topic that are not gone below: estimates may come out next to 0.
    """

    gain: FloatArray  # (L,)
    reach: FloatArray  # (L, m)
    pair: IntArray  # positions in the pool
    inclusion: FloatArray
    variances: FloatArray | None = None  # (L, m)
    least: FloatArray | None = None  # (L, T)

    @property
    def utility(self) -> FloatArray:
        """u_i, shape (m,)."""
        return added(self.gain, self.reach)

    @property
    def spread(self) -> FloatArray:
        """(1 - pi) / pi^2, the sampling variance of a unit."""
        return np.asarray((1.0 - self.inclusion) / self.inclusion**2, dtype=np.float64)

    def variance(self, level: int) -> FloatArray:
        """The sampling variance of what each pair adds to the count of a level, shape (m,)."""
        if self.variances is None:
            return np.asarray(self.spread * self.reach[level] ** 2, dtype=np.float64)
        return np.asarray(self.variances[level], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class DrawChances:
    """Draws with replacement: probability of a draw of each pair, number of draws per topic."""

    chance: FloatArray  # (m,)
    number: int
    per_topic: bool

    def overlap(self, rows: IntArray) -> FloatArray:
        """pi_i pi_l / pi_il of two pairs; 0 for a pair with itself."""
        chance = self.chance[rows]
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = chance / (1.0 - chance)
            logs = self.number * np.log1p(-chance)
            absent, present = np.exp(logs), -np.expm1(logs)
            product = np.minimum(np.multiply.outer(odds, odds), 1.0)
            excess = np.multiply.outer(absent, absent) * np.expm1(self.number * np.log1p(-product))
            ratio = 1.0 + np.nan_to_num(excess) / np.multiply.outer(present, present)
        np.fill_diagonal(ratio, np.inf)
        return np.asarray(1.0 / ratio, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Frame:
    """The pairs that may have any utility, and their entries in lists by (topic, run, rank)."""

    gains: Gains
    draws: DrawChances | None
    topic: IntArray  # (m,)
    sizes: IntArray  # (T,) pairs of the pool, judged or not
    runs: int
    place: Int32Array  # (e,) positions among the m pairs
    cell: Int32Array  # (e,) topic * k + run
    rank: FloatArray  # (e,)
    list_bounds: IntArray  # where lists of a topic and run begin among entries, and the last ends
    pool: Pool
    every_place: Int32Array | None  # (e,) if these are all entries: where each of the pool stands

    @classmethod
    def of(cls, pool: Pool, measure: Measure, gains: Gains, draws: DrawChances | None) -> Frame:
        last = min(measure.cutoff or pool.depth, pool.depth)
        place, cell, rank, bounds = lists_of(pool, gains.pair, last)
        every = None
        if len(gains.pair) == len(pool) and last == pool.depth:
            every = kept(pool.kept, "places", last, lambda: _places(place, cell, len(pool.runs)))
        return cls(
            gains=gains,
            draws=draws,
            topic=pool.topic[gains.pair].astype(np.int64),
            sizes=np.bincount(pool.topic, minlength=len(pool.topics)),
            runs=len(pool.runs),
            place=place,
            cell=cell,
            rank=rank.astype(np.float64),
            list_bounds=bounds,
            pool=pool,
            every_place=every,
        )

    @property
    def expanded(self) -> FloatArray:
        """f_i u_i of the pairs, shape (m,)."""
        return np.asarray(self.gains.utility / self.gains.inclusion, dtype=np.float64)

    def per_topic(self, values: FloatArray) -> FloatArray:
        """Sums over the pairs of each topic, shape (T,)."""
        return column_sums(self.topic, values, number=len(self.sizes))

    def per_cell(self, values: FloatArray, of_pairs: FloatArray | None = None) -> FloatArray:
        """Sums over the entries of each topic and run, from first to last, shape (T, k).

        Of `values` alone, or of their products with numbers of the entries' pairs, (m,).
        """
        if of_pairs is None:
            column, numbers = np.zeros(len(values), dtype=np.int32), np.ones(1)
        else:
            column, numbers = self.place, of_pairs
        parts, shape = (values, column, self.list_bounds), (self.lists, len(numbers))
        sums = np.zeros(len(self.sizes) * self.runs)
        sums[self._cell_of_lists] = sparse.csr_array(parts, shape=shape) @ numbers
        return sums.reshape(-1, self.runs)

    def of_topics(self, values: FloatArray) -> FloatArray:
        """Numbers of the topics, (T,), at their entries, shape (e,)."""
        topics = self._cell_of_lists // self.runs
        return np.repeat(values[topics], np.diff(self.list_bounds))

    @property
    def lists(self) -> int:
        """How many lists have entries."""
        return len(self.list_bounds) - 1

    @cached_property
    def _cell_of_lists(self) -> Int32Array:
        return self.cell[self.list_bounds[:-1]]


def lists_of(pool: Pool, pairs: IntArray, last: int) -> Lists:
    """Places, cells and ranks of entries of pairs down to a rank, by topic, run, rank; and bounds.

    Those of all pairs are kept with the pool: no judgment changes them, and to sort them takes
    longer than all the rest of a linearization. Those of many are what is left of them.
    """
    if MANY * len(pairs) < len(pool):
        return _sorted_lists(pool, pairs, last)
    work = lambda: _sorted_lists(pool, np.arange(len(pool)), last)  # noqa: E731
    place, cell, rank, bounds = kept(pool.kept, "lists", last, work, most=MOST_KEPT)
    if len(pairs) == len(pool):
        return place, cell, rank, bounds
    at = np.full(len(pool), -1, dtype=np.int32)
    at[pairs] = np.arange(len(pairs))
    own = at[place]
    within = np.flatnonzero(own >= 0)
    cell = cell[within]
    return frozen(own[within]), frozen(cell), frozen(rank[within]), _bounds(cell)


def _sorted_lists(pool: Pool, pairs: IntArray, last: int) -> Lists:
    entry, number = pool.entries_of(pairs)
    place = np.repeat(np.arange(len(pairs)), number)
    within = np.flatnonzero(pool.rank[entry] <= last)
    entry, place = entry[within], place[within]
    cell, rank = pool.topic[pairs][place].astype(np.int64) * len(pool.runs), pool.rank[entry]
    cell += pool.run[entry]
    order = np.argsort(cell * (pool.depth + 1) + rank)  # no two are equal
    cell = cell[order]
    return (
        frozen(place[order].astype(np.int32)),
        frozen(cell.astype(np.int32)),
        frozen(rank[order].astype(np.int32)),
        _bounds(cell),
    )


def _bounds(cell: IntArray | Int32Array) -> IntArray:
    return frozen(np.append(np.flatnonzero(np.diff(cell, prepend=-1)), len(cell)))


def _places(place: Int32Array, cell: Int32Array, runs: int) -> Int32Array:
    """Where entries, by topic, run and rank, stand one behind the other as a pool has them."""
    return frozen(np.argsort(place * np.int64(runs) + cell % runs).astype(np.int32))
