"""Ratio measures of every topic and run as functions of what the sampled pairs weigh.

The definitions stand in `estimates.ratios`: values, and their slopes at the estimates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import (
    FloatArray,
    Int32Array,
    IntArray,
    SparseMatrix,
    added,
    column_sums,
    frozen,
    share_of,
)
from ..data.kept import kept

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..data.pool import Pool
    from ..measures.table import Measure

    Lists: TypeAlias = tuple[Int32Array, Int32Array, Int32Array, IntArray]

MOST_KEPT = 2  # lists of all pairs, down to different ranks
MANY = 4  # one pair in so many is enough to take lists from those of all
MAX_IDEAL = 1_000_000  # ranks of an ideal list; an estimated count beyond adds no more gain


@dataclass(frozen=True, eq=False)
class Gains:
    """The m pairs that have any utility, ascending, with their inclusion probabilities.

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
    """The pairs with any utility, and their entries in the runs' lists by (topic, run, rank)."""

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

    def per_cell(self, values: FloatArray) -> FloatArray:
        """Sums over the entries of each topic and run, shape (T, k)."""
        sums = column_sums(self.cell, values, number=len(self.sizes) * self.runs)
        return sums.reshape(-1, self.runs)


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


# -------------------------------------------------------------------------------- numerators


@dataclass(frozen=True, eq=False)
class Numerator:
    """Numerators, and by how much a unit of f_i u_i moves them."""

    total: FloatArray  # (T, k)
    slope: FloatArray  # (e,)
    by_count: FloatArray  # (T, k) by how much a unit of R moves them (Rprec)

    @classmethod
    def of(cls, frame: Frame, measure: Measure) -> Numerator:
        if measure.name == "Rprec":
            return _within_count(frame)
        value, none = frame.expanded[frame.place], np.zeros((len(frame.sizes), frame.runs))
        if measure.name == "nDCG":
            slope = measure.weights(frame.rank)
            return cls(frame.per_cell(value * slope), slope, none)
        alone, paired = 1.0 / frame.rank, _neighbors(frame)
        total = frame.per_cell(value * (alone + 0.5 * paired))
        return cls(total, alone + paired, none)


def _within_count(frame: Frame) -> Numerator:
    value, count = frame.expanded[frame.place], Counts.of(frame)
    topic = frame.cell // frame.runs

    def numerator(number: FloatArray) -> FloatArray:
        return frame.per_cell(value * share_within(frame.rank, number[topic]))

    low, high = count.bracket(count.step)
    by_count = (numerator(high[0]) - numerator(low[0])) / (high[0] - low[0])[:, None]
    slope = share_within(frame.rank, count.number[0][topic])
    return Numerator(frame.per_cell(value * slope), slope, by_count)


def share_within(rank: FloatArray, number: FloatArray | float) -> FloatArray:
    """Which ranks are the first ones: of a number that is not whole, the next one in part."""
    return np.clip(number - rank + 1.0, 0.0, 1.0)


def _neighbors(frame: Frame) -> FloatArray:
    """sum_l f_l u_l (pi_i pi_l / pi_il) min(1/r_i, 1/r_l) over the others of a list, (e,).

    Each two documents of a list are counted once in AP, at the lower of them.
    """
    bounds = frame.list_bounds
    if frame.draws is not None:
        return _joint_neighbors(frame, frame.draws, bounds)
    lengths = np.diff(bounds)
    shape = len(lengths), int(lengths.max(initial=0)) + 1  # one more, which is empty
    at = np.repeat(np.arange(shape[0]) * shape[1] - bounds[:-1], lengths)
    at += np.arange(len(at))
    found, rows = frame.expanded[frame.place], np.zeros(shape)
    rows.ravel()[at + 1] = found
    near = np.cumsum(rows, axis=1, out=rows).ravel()[at]
    near /= frame.rank
    tails = np.zeros(shape)
    tails.ravel()[at] = np.divide(found, frame.rank, out=found)
    backward = tails[:, ::-1]
    np.cumsum(backward, axis=1, out=backward)
    near += tails.ravel()[at + 1]
    return near


def _joint_neighbors(frame: Frame, draws: DrawChances, bounds: IntArray) -> FloatArray:
    near, reciprocal = np.zeros(len(frame.cell)), 1.0 / frame.rank
    known, first, weighted = -1, 0, np.zeros((0, 0))
    for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        topic = int(frame.cell[start]) // frame.runs
        if topic != known:
            known = topic
            first, last = np.searchsorted(frame.topic, [topic, topic + 1]).tolist()
            rows = np.arange(first, last)
            weighted = draws.overlap(rows) * frame.expanded[rows]
        inside, ranks = frame.place[start:stop] - first, reciprocal[start:stop]
        shares = weighted[np.ix_(inside, inside)] * np.minimum.outer(ranks, ranks)
        near[start:stop] = shares.sum(axis=1)
    return near


# ------------------------------------------------------------------------------ denominators


@dataclass(frozen=True, eq=False)
class Counts:
    """Estimated numbers of documents that reach each level of utility, and their errors."""

    number: FloatArray  # (L, T)
    error: FloatArray  # (L, T)
    least: FloatArray | float = 0.0

    @classmethod
    def of(cls, frame: Frame) -> Counts:
        gains, shape = frame.gains, (len(frame.gains.gain), len(frame.sizes))
        number, variance = np.zeros(shape), np.zeros(shape)
        for level, reach in enumerate(gains.reach):
            number[level] = frame.per_topic(reach / gains.inclusion)
            variance[level] = frame.per_topic(gains.variance(level))
        least = 0.0 if gains.least is None else gains.least
        return cls(np.maximum(number, least), np.sqrt(variance), least)

    @property
    def step(self) -> FloatArray:
        """Distance over which slopes are taken: the error, and at least one document."""
        return np.maximum(self.error, 1.0)

    def bracket(self, step: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The counts less and plus a step, not below 0."""
        return np.maximum(self.number - step, self.least), self.number + step


@dataclass(frozen=True, eq=False)
class Denominator:
    """R, or the ideal DCG, of every topic."""

    value: FloatArray  # (T,)
    slope: FloatArray  # (L, T) by how much a document that reaches a level moves it, per gain
    bend: FloatArray  # (T,) second-order effect of the errors of the counts


def denominator(frame: Frame, measure: Measure) -> Denominator:
    if measure.name == "nDCG":
        return _ideal(frame, measure)
    levels, topics = len(frame.gains.gain), len(frame.sizes)
    value = frame.per_topic(frame.expanded)
    if frame.gains.least is not None:
        value = np.maximum(value, added(frame.gains.gain, frame.gains.least))
    return Denominator(value, np.ones((levels, topics)), np.zeros(topics))


def _ideal(frame: Frame, measure: Measure) -> Denominator:
    counts, gain = Counts.of(frame), frame.gains.gain[:, None]
    longest = counts.bracket(counts.step)[1].max(initial=1.0)
    ranks = np.arange(1, int(min(longest, MAX_IDEAL)) + 2)
    sums = np.concatenate([[0.0], np.cumsum(measure.weights(ranks))])
    ranks = np.append(0, ranks)

    def discounted(number: FloatArray) -> FloatArray:
        return np.asarray(np.interp(number, ranks, sums), dtype=np.float64)

    low, high = counts.bracket(counts.step)
    slope = (discounted(high) - discounted(low)) / (high - low)
    value = discounted(counts.number)
    low, high = counts.bracket(np.minimum(counts.error, counts.number))
    bend = (discounted(high) + discounted(low)) / 2.0 - value
    return Denominator((gain * value).sum(axis=0), slope, (gain * bend).sum(axis=0))


# ------------------------------------------------------------------------------ linearization


@dataclass(frozen=True, eq=False)
class Tangent:
    """The value of every run as a linear function near the estimates."""

    frame: Frame
    by_topic: FloatArray  # (T, k) ratios over T
    slope: FloatArray  # (e,) a_ij: of a unit of f_i u_i, through the numerator
    topic_slope: FloatArray  # (T, k) b_xj: of a unit of the denominator
    level_slope: FloatArray  # (L, T) by how much a document at a level moves the denominator
    reciprocal: FloatArray  # (T,) one over the denominator
    bend: FloatArray  # (T, k) bias of the value by what `Denominator.bend` is

    @classmethod
    def of(cls, frame: Frame, measure: Measure) -> Tangent:
        above, below = Numerator.of(frame, measure), denominator(frame, measure)
        ratio = share_of(above.total, of=below.value[:, None])
        each = share_of(np.ones(len(below.value)), of=below.value * len(frame.sizes))
        return cls(
            frame=frame,
            by_topic=ratio / len(frame.sizes),
            slope=above.slope * each[frame.cell // frame.runs],
            topic_slope=(ratio - above.by_count) * each[:, None],
            level_slope=below.slope,
            reciprocal=each * len(frame.sizes),
            bend=-ratio * (below.bend * each)[:, None],
        )

    @cached_property
    def slopes(self) -> SparseMatrix:
        """a_ij of the m pairs, shape (m, k)."""
        if self.frame.every_place is not None:
            return self.frame.pool.by_pair(self.slope[self.frame.every_place])
        place = self.frame.place, self.frame.cell % self.frame.runs
        return sparse.csr_array((self.slope, place), shape=(len(self.frame.topic), self.frame.runs))

    def falling(self, places: IntArray, reach: FloatArray) -> FloatArray:
        """h of pairs with these shares of judgments at each level."""
        slopes = self.level_slope[:, self.frame.topic[places]]
        return added(self.frame.gains.gain, slopes * reach)

    def moved(self, places: IntArray, reach: FloatArray) -> FloatArray:
        """z_ij = a_ij u_i - b_xj h_i of pairs, shape (rows, k)."""
        moved = self.slopes[places].toarray() * added(self.frame.gains.gain, reach)[:, None]
        topic_slope = self.topic_slope[self.frame.topic[places]]
        moved -= topic_slope * self.falling(places, reach)[:, None]
        return np.asarray(moved, dtype=np.float64)
