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
    BoolArray,
    FloatArray,
    IntArray,
    SparseMatrix,
    added,
    column_sums,
    share_of,
)

if TYPE_CHECKING:
    from ..measures.table import Measure
    from .ratio_frames import DrawChances, Frame

MAX_IDEAL = 1_000_000  # ranks of an ideal list; an estimated count beyond adds no more gain


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
        alone = 1.0 / frame.rank
        paired = _neighbors(frame, value, alone)
        total = frame.per_cell(value * (alone + 0.5 * paired))
        return cls(total, alone + paired, none)


def _within_count(frame: Frame) -> Numerator:
    value, count = frame.expanded[frame.place], Counts.of(frame)

    def numerator(number: FloatArray) -> FloatArray:
        return frame.per_cell(value * share_within(frame.rank, frame.of_topics(number)))

    low, high = count.bracket(count.step)
    by_count = (numerator(high[0]) - numerator(low[0])) / (high[0] - low[0])[:, None]
    slope = share_within(frame.rank, frame.of_topics(count.number[0]))
    return Numerator(frame.per_cell(value * slope), slope, by_count)


def share_within(rank: FloatArray, number: FloatArray | float) -> FloatArray:
    """Which ranks are the first ones: of a number that is not whole, the next one in part."""
    return np.clip(number - rank + 1.0, 0.0, 1.0)


def _neighbors(frame: Frame, value: FloatArray, alone: FloatArray) -> FloatArray:
    """sum_l f_l u_l (pi_i pi_l / pi_il) min(1/r_i, 1/r_l) over the others of a list, (e,).

    Each two documents of a list are counted once in AP, at the lower of them. `value` are f_i u_i,
    and `alone` 1/r_i.
    """
    if frame.draws is not None:
        return _joint_neighbors(frame, frame.draws, alone)
    within = _within_lists(frame.list_bounds)
    found, share = (_in_rows(each, within).T.copy() for each in (value, alone))  # by rank
    near, above, below = np.empty_like(found), *np.zeros((2, len(within)))
    for rank, each in enumerate(found):  # lists beside one another: sums of one wait for each other
        np.multiply(above, share[rank], out=near[rank])
        above += each
    found *= share
    for rank in range(len(found) - 1, -1, -1):
        near[rank] += below
        below += found[rank]
    return near.T.ravel() if within.all() else near.T[within]


def _within_lists(bounds: IntArray) -> BoolArray:
    """Which places of rows, one a list and as long as the longest, hold entries."""
    lengths = np.diff(bounds)
    return np.asarray(np.arange(lengths.max(initial=0)) < lengths[:, None])


def _in_rows(values: FloatArray, within: BoolArray) -> FloatArray:
    """Numbers of entries as rows of their lists, and 0 behind."""
    if len(values) == within.size:
        return values.reshape(within.shape)
    rows = np.zeros(within.shape)
    rows[within] = values
    return rows


def _joint_neighbors(frame: Frame, draws: DrawChances, reciprocal: FloatArray) -> FloatArray:
    near, bounds = np.zeros(len(frame.cell)), frame.list_bounds
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
    low, high = counts.bracket(counts.step)
    value, least, most = discounted(measure, np.stack([counts.number, low, high]))
    slope = (most - least) / (high - low)
    bend = _bent_by(counts.error, counts, measure)
    return Denominator((gain * value).sum(axis=0), slope, (gain * bend).sum(axis=0))


def _bent_by(error: FloatArray, counts: Counts, measure: Measure) -> FloatArray:
    """By how much errors of counts, (L, T), make discounts of their first ranks too large."""
    value = discounted(measure, counts.number)
    least, most = discounted(measure, np.stack(counts.bracket(np.minimum(error, counts.number))))
    return np.asarray((most + least) / 2.0 - value)


def discounted(measure: Measure, number: FloatArray) -> FloatArray:
    """G of numbers of documents: discounts of so many first ranks, linear between whole ones."""
    longest = min(number.max(initial=1.0), MAX_IDEAL)
    sums = np.cumsum(measure.weights(np.arange(1, int(longest) + 2)))
    sums = np.concatenate([[0.0], sums])
    return np.asarray(np.interp(number, np.arange(len(sums)), sums), dtype=np.float64)


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
            slope=above.slope * frame.of_topics(each),
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

    def along(self, reach: FloatArray) -> FloatArray:
        """What the linear function says, (T, k), where the m pairs reach so far, (L, m)."""
        frame, gains = self.frame, self.frame.gains
        moved = reach - gains.reach
        above = frame.per_cell(self.slope, added(gains.gain, moved))
        below = frame.per_topic(self.falling(np.arange(len(frame.topic)), moved))
        return np.asarray(self.by_topic + above - self.topic_slope * below[:, None])

    def bend_by(self, measure: Measure, noise: FloatArray) -> FloatArray:
        """Bias of the value as counts have so much more variance, (L, T), by how ideal lists bend.

        Counts are the denominators of other ratios. Shape (T, k).
        """
        if measure.name != "nDCG":
            return np.zeros_like(self.by_topic)
        counts = Counts.of(self.frame)
        more = np.sqrt(counts.error**2 + noise)
        bend = _bent_by(more, counts, measure) - _bent_by(counts.error, counts, measure)
        of_list = (self.frame.gains.gain[:, None] * bend).sum(axis=0) * self.reciprocal
        return np.asarray(-self.by_topic * of_list[:, None])

    def moments(
        self, places: IntArray, reach: FloatArray, factor: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Products u_i h_i of the m pairs, (m,), and sums of h_i^2 by topic, (T,).

        Of some pairs with these shares of judgments at each level, (L, n), each `factor` times.
        """
        falling, topic = self.falling(places, reach), self.frame.topic[places]
        crossed = np.zeros(len(self.frame.topic))
        crossed[places] = factor * falling * added(self.frame.gains.gain, reach)
        squares = column_sums(topic, factor * falling**2, number=len(self.frame.sizes))
        return crossed, squares

    def bias(self, crossed: FloatArray, variance: FloatArray) -> FloatArray:
        """-Cov(z, D) / D: by how much what moves both parts makes ratios too large, (T, k).

        From Cov(u_i, h_i) of what is wrong about the m pairs, (m,), and Var D, (T,).
        """
        together = self.frame.per_cell(self.slope, crossed)
        apart = self.topic_slope * variance[:, None] - together
        return np.asarray(apart * self.reciprocal[:, None], dtype=np.float64)

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
