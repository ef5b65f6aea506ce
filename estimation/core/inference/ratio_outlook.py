"""Ratio measures (AP, nDCG, Rprec) linearized at what is expected of every pair, and their moments.

Where every pair has its expected utility a ratio is linear in what a sample misses of the pairs, as
near as that goes; what that leaves out, and the bias, are factors of the relative variance of the
denominators. See `ratio_knowledge` for the formulas and where they come from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import column_sums, frozen, share_of
from ..estimates.products import cross_product
from ..estimates.ratio_frames import Frame, Gains
from ..estimates.ratio_lines import Tangent
from ..estimates.ratio_moments import by_denominators, cross_sums
from .missed import Missed

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray, IntArray
    from ..data.pool import Pool
    from ..estimates.drawn import Drawn
    from ..measures.table import Measure
    from .outlook import Outlook

DAMPING = 2.0  # of the expected bias, per relative variance of the denominator
OF_PRODUCTS = 2.0  # power of 1 + v: numerators of AP in rounds drawn at once
BENT = 2.0  # times the relative variance of the denominator: squared, odds that ratios bend
ALMOST_CERTAIN = 1.0 - 1e-9


@dataclass(frozen=True, eq=False)
class AtOutlook:
    """Ratios linearized where every pair has its expected utility, with moments of the sample.

    With F_i = (1 - pi_i) / pi_i, a_ij and b_xj the slopes by numerator and denominator, u_i the
    utility and h_i what the pair moves the denominator by.

    Attributes
    ----------
    tangent : Tangent
        Its frame has all N pairs.
    factor : ndarray of float64, shape (N,)
        F_i; 0 of pairs out of reach.
    squares, crossed, falling : ndarray of float64, shape (N,)
        E[u_i^2], E[u_i h_i] and E[h_i^2].
    nothing : ndarray of float64, shape (T,), optional
        Chances that a topic has nothing relevant, where ratios count so much less.
    overlooked : float
        Expected share of topics that have something relevant, of which nothing is found.
    power : float
        p: the variance of a topic is (1 + v)^p times what its tangent tells (`ratio_knowledge`).
    """

    tangent: Tangent
    factor: FloatArray
    squares: FloatArray
    crossed: FloatArray
    falling: FloatArray
    nothing: FloatArray | None = None
    overlooked: float = 0.0
    power: float = 1.0

    @classmethod
    def of(cls, pool: Pool, measure: Measure, drawn: Drawn, outlook: Outlook) -> AtOutlook:
        levels, gain = levels_of(measure, outlook)
        reach = outlook.reach(np.arange(len(pool)))[levels] * (drawn.inclusion > 0.0)
        if not gain.any():
            reach = 0.0 * reach
        gains = Gains(gain, reach, np.arange(len(pool)), np.ones(len(pool)))
        tangent = Tangent.of(Frame.of(pool, measure, gains, None), measure)
        shares = -np.diff(reach, axis=0, append=0.0)  # of judgments that reach just this level
        utility = np.cumsum(gain)[:, None]
        falling = np.cumsum(gain[:, None] * tangent.level_slope, axis=0)[:, tangent.frame.topic]
        return cls(
            tangent=tangent,
            factor=share_of(1.0 - drawn.inclusion, of=drawn.inclusion),
            squares=np.add.reduce(shares * utility**2),
            crossed=np.add.reduce(shares * utility * falling),
            falling=np.add.reduce(shares * falling**2),
            overlooked=_overlooked(tangent.frame, reach[0], drawn.inclusion),
            power=OF_PRODUCTS if measure.name == "AP" else 1.0,
        )

    @property
    def bounds(self) -> FloatArray:
        """So many times the slopes of each topic, (T,), are small enough for the errors of ratios.

        Of a topic that may have nothing relevant next to nothing may be expected, and slopes are
        one over it: of three topics of 225 (Cranfield to rank 10, AP, nearly all judged) of which D
        was .002 to .009, E was 10^7 times what all others had together. But no ratio errs by more
        than 1, and if nothing is relevant and nothing found, not at all: a topic has at most
        1 - P0 over T^2.
        """
        if self.nothing is None or not self.nothing.any():
            return np.ones(len(self.tangent.reciprocal))
        most = (1.0 - self.nothing) / len(self.nothing) ** 2
        errs = (self.more[:, None] * self._of_topics).max(axis=1)
        too_much = (self.nothing > 0.0) & (errs > most)
        return np.where(too_much, np.sqrt(share_of(most, of=errs)), 1.0)

    def bounded(self, scale: FloatArray) -> AtOutlook:
        """The same with so many times the slopes of each topic, (T,)."""
        tangent = self.tangent
        if np.all(scale == 1.0):
            return self
        lower = replace(
            tangent,
            slope=tangent.slope * tangent.frame.of_topics(scale),
            topic_slope=tangent.topic_slope * scale[:, None],
            reciprocal=tangent.reciprocal * scale,
        )
        return replace(self, tangent=lower)

    def flatter(self, scale: FloatArray) -> AtOutlook:
        """The same with so many times the slopes of each denominator, (T,)."""
        of_pairs = scale[self.tangent.frame.topic]
        return replace(
            self,
            tangent=replace(self.tangent, level_slope=self.tangent.level_slope * scale),
            crossed=self.crossed * of_pairs,
            falling=self.falling * of_pairs**2,
        )

    @property
    def _of_topics(self) -> FloatArray:
        """What E has of every topic and run, where v is 0, shape (T, k)."""
        frame, falls = self.tangent.frame, self.tangent.topic_slope
        own = frame.per_cell(self.tangent.slope**2, self.factor * self.squares)
        return own - 2.0 * falls * self._together + falls**2 * self.variance[:, None]

    @property
    def variances(self) -> FloatArray:
        """The same of all topics, shape (k,): the diagonal of `tangent_covariance`."""
        return np.asarray(self._of_topics.sum(axis=0))

    @property
    def relative_variance(self) -> FloatArray:
        """v of every topic's denominator, shape (T,)."""
        return np.asarray(self.variance * self.tangent.reciprocal**2, dtype=np.float64)

    @property
    def straight(self) -> FloatArray:
        """How far ratios of estimates are as good as linear, 1 / (1 + (2 v)^2), shape (T,)."""
        return np.asarray(1.0 / (1.0 + (BENT * self.relative_variance) ** 2), dtype=np.float64)

    @property
    def known(self) -> FloatArray:
        """How far denominators are well known, max(0, 1 - 2 v), shape (T,).

        As series over 1 + 2 v count, where v is small, and not at all where it is not.
        """
        return np.maximum(1.0 - DAMPING * self.relative_variance, 0.0)

    @property
    def more(self) -> FloatArray:
        """(1 + v)^p of every topic, shape (T,)."""
        return np.asarray((1.0 + self.relative_variance) ** self.power, dtype=np.float64)

    @cached_property
    def covariance(self) -> FloatArray:
        """E, shape (k, k)."""
        return frozen(self._covariance(self.more))

    @property
    def scale(self) -> FloatArray:
        """By how much the squared slopes of each pair count in E, shape (N,)."""
        return self._scale(self.more)

    @property
    def by_denominators(self) -> FloatArray:
        """E less what these squared slopes add up to, shape (k, k)."""
        return self._by_denominators(self.more)

    def tangent_covariance(self) -> FloatArray:
        """E where v is 0: of the tangent alone."""
        return self._covariance(np.ones_like(self.variance))

    def _covariance(self, more: FloatArray) -> FloatArray:
        """With so many times the factors of the pairs of each topic, (T,)."""
        own = cross_product(self.tangent.slopes, self._scale(more)) + self._by_denominators(more)
        return np.asarray((own + own.T) / 2.0)  # products are symmetric but for their last bits

    @property
    def of_nothing(self) -> FloatArray:
        """What ratios of topics err by that may have nothing relevant, shape (k, k).

        No part of E: no sample misses it, and no squares tell of it.
        """
        tangent = self.tangent
        if self.nothing is None or not self.nothing.any():
            return np.zeros((tangent.frame.runs, tangent.frame.runs))
        ratio = np.clip(tangent.by_topic, 0.0, 1.0 / len(self.nothing))
        spread = self.nothing * (1.0 - self.nothing)
        return cross_sums(ratio * spread[:, None], ratio)

    def _scale(self, more: FloatArray) -> FloatArray:
        return np.asarray(more[self.tangent.frame.topic] * self.factor * self.squares)

    def _by_denominators(self, more: FloatArray) -> FloatArray:
        return by_denominators(self.tangent, more[:, None] * self._together, more * self.variance)

    @property
    def by_last_rank(self) -> float:
        """Squares, over the topics, of what values err by if a document for each that R is off by
        stood on the wrong side of the last rank that counts (Rprec).

        Of several, some are relevant and others are not: e documents count as their root.
        """
        off = np.minimum(self.variance, np.sqrt(self.variance)) * self.tangent.reciprocal**2
        return float(np.minimum(off, 1.0).sum()) / len(off) ** 2

    def find(self) -> FloatArray:
        """What a find adds to each value through the numerator, shape (k,).

        Root of the mean square, each find counted as much as it adds, as `Unseen.find` is; pairs
        are taken for as good as can be.
        """
        slopes, likely = self.tangent.slopes, self.squares * (self.factor > 0.0)
        size = (1.0 + self.factor) * self.tangent.frame.gains.gain.sum()
        cubed = slopes.copy()
        cubed.data *= slopes.data * slopes.data  # a power takes ten times as long
        cubes = cubed.T @ (likely * size**2)
        return np.sqrt(share_of(cubes, of=slopes.T @ likely))

    def missed(self, unjudged: BoolArray) -> Missed:
        """Return what unjudged pairs, (N,), would add to the runs that return them.

        Each is taken for as likely as its square tells, and for as good as can be.
        """
        frame, some = self.tangent.frame, np.flatnonzero(unjudged | (self.factor > 0.0))
        rows, topic, runs = self.tangent.slopes[some], frame.topic[some], frame.runs
        at = np.repeat(np.arange(len(some)), np.diff(rows.indptr))
        step = rows.data * frame.gains.gain.sum() - self._taken[topic[at], rows.indices]
        step = np.maximum(step, 0.0)
        open_pairs, squares = unjudged[some][at], step**2
        likely = step * open_pairs * self.squares[some][at]
        total, cubes, left, sampled = (
            column_sums(rows.indices, each, number=runs)
            for each in (likely, likely * squares, open_pairs * squares, ~open_pairs * squares)
        )
        largest = np.zeros(runs)
        np.maximum.at(largest, rows.indices, squares)
        expected = replace(self, factor=unjudged.astype(np.float64)).tangent_covariance()
        left = share_of(left, of=sampled + largest)
        return Missed(expected, np.sqrt(share_of(cubes, of=total)), left)

    def missed_elsewhere(self, unjudged: BoolArray) -> Missed:
        """Return what they would take from values through the denominator.

        Pairs that a run does return are counted too, so that it is no less than others take.
        """
        per_topic, step = self.tangent.frame.per_topic, np.maximum(self._taken, 0.0)
        likely = per_topic(unjudged * self.squares)[:, None]
        left = per_topic(unjudged.astype(np.float64))[:, None]
        sampled = per_topic((~unjudged & (self.factor > 0.0)).astype(np.float64))[:, None]
        squares = step**2
        total, cubes, expected = (
            (likely * each).sum(axis=0) for each in (step, step * squares, squares)
        )
        of = (sampled * squares).sum(axis=0) + squares.max(axis=0, initial=0.0)
        return Missed(
            np.diag(expected / self.tangent.frame.gains.gain.sum() ** 2),
            np.sqrt(share_of(cubes, of=total)),
            share_of((left * squares).sum(axis=0), of=of),
        )

    @cached_property
    def _taken(self) -> FloatArray:
        """What a pair of the best utility takes from a value through the denominator, (T, k)."""
        tangent = self.tangent
        falls = (tangent.frame.gains.gain[:, None] * tangent.level_slope).sum(axis=0)
        return np.asarray(tangent.topic_slope * falls[:, None], dtype=np.float64)

    def bias(self, damping: float = DAMPING) -> FloatArray:
        """The expected bias of every run before correction, damped, shape (k,)."""
        return np.asarray(self.bias_by_topic(damping).sum(axis=0), dtype=np.float64)

    def bias_by_topic(self, damping: float = DAMPING) -> FloatArray:
        """The same of every topic, shape (T, k)."""
        bias = self.tangent.bias(self.factor * self.crossed, self.variance)
        return np.asarray(bias / (1.0 + damping * self.relative_variance)[:, None])

    @cached_property
    def variance(self) -> FloatArray:
        """sum_i F_i E[h_i^2] over the pairs of each topic, shape (T,)."""
        return self.tangent.frame.per_topic(self.factor * self.falling)

    @cached_property
    def _together(self) -> FloatArray:
        """sum_i F_i E[u_i h_i] a_ij over them, shape (T, k)."""
        frame = self.tangent.frame
        return frame.per_cell(self.tangent.slope, self.factor * self.crossed)


def levels_of(measure: Measure, outlook: Outlook) -> tuple[IntArray, FloatArray]:
    """Return the levels of an outlook that add utility, and what each adds, (L,) both.

    If the scale ends below what counts as relevant: one level without gain.
    """
    gain = np.diff(measure.utilities(outlook.grades))
    levels = np.flatnonzero(gain > 0.0) if gain.any() else np.array([0])
    return levels, gain[levels]


def chance_of_nothing(frame: Frame, chance: FloatArray) -> FloatArray:
    """Return the chance of every topic, (T,), that none of its pairs comes, by theirs, (m,)."""
    return np.exp(frame.per_topic(np.log1p(-np.minimum(chance, ALMOST_CERTAIN))))


def _overlooked(frame: Frame, chance: FloatArray, inclusion: FloatArray) -> float:
    """`AtOutlook.overlooked`, from the chances of pairs to be relevant, and to be sampled."""
    overlooked = chance_of_nothing(frame, chance * inclusion) - chance_of_nothing(frame, chance)
    return min(float(np.mean(overlooked)), ALMOST_CERTAIN)
