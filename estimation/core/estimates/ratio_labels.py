"""Judgments as ratio measures take them, and what is estimated of ratios; see `ratios`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..data.labels import singles_of
from ..measures.kinds import MAX_GRADE

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from ..data.labels import LabelRows
    from ..measures.table import Measure
    from .ratio_lines import Tangent
    from .totals import Totals


@dataclass(frozen=True, eq=False)
class BiasLeft:
    """What may be left of the bias of k ratios after some was taken off, signed.

    Attributes
    ----------
    of_differences : ndarray of float64, shape (k,)
        As differences have it.
    of_values : ndarray of float64, shape (k,)
        As values have it: at least as far from 0.
    told_low : ndarray of float64, shape (k,), or None
        By how much values are lower than unbiased sums say, <= 0: of topics in which nothing
        relevant was found (`rounds.adaptive.beyond`), and because counts are not taken below what
        was found. None of rounds drawn at once, whose ratios are of what was found alone.
    apart : ndarray of float64, shape (k, k), or None
        Squares of what differences may be off by as products of finds say, >= 0
        (`inference.second_order`). None where these say nothing.
    """

    of_differences: FloatArray
    of_values: FloatArray
    told_low: FloatArray | None = None
    apart: FloatArray | None = None

    @property
    def further_down(self) -> FloatArray:
        """What of `told_low` is beyond what differences have already, <= 0, shape (k,).

        A bias that may leave a value too low by so much is allowed for already, wherever it comes
        from. One that may leave it too high does not make up for what it is too low by.
        """
        if self.told_low is None:
            return np.zeros_like(self.of_differences)
        down = self.told_low - np.minimum(self.of_differences, 0.0)
        return np.asarray(np.minimum(down, 0.0), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Rest:
    """What may be left of second-order terms, and variances of what was followed.

    Attributes
    ----------
    of_values : ndarray of float64, shape (k,), >= 0
        Squares.
    of_differences : ndarray of float64, shape (k, k), >= 0
    taken : ndarray of float64, shape (k,)
        By how much values went up for what was followed.
    """

    of_values: FloatArray
    of_differences: FloatArray
    taken: FloatArray


@dataclass(frozen=True, eq=False)
class FoundParts:
    """What is there of ratios of T topics and k runs whatever else might have been drawn.

    Attributes
    ----------
    numerator : ndarray of float64, shape (T, k)
        What judged pairs add to the numerators, over T, each as often as it is drawn; and of that
        the share that it is of the estimated numerator.
    reciprocal : ndarray of float64, shape (T,)
        One over the estimated denominators; 0 of topics without.
    """

    numerator: FloatArray
    reciprocal: FloatArray


@dataclass(frozen=True, eq=False)
class RatioEstimate:
    """Estimated values of k runs under a ratio measure.

    Attributes
    ----------
    estimate : Totals
        Mean over the topics, corrected for bias; covariance by the delta method.
    by_topic : ndarray of float64, shape (T, k)
        What each topic contributes to the value: its corrected ratio over T.
    bias : ndarray of float64, shape (k,)
        Second-order estimate of the bias, in the measure's unit, pairs being taken for
        independent: the mean of what was found tells and what is expected. It has been taken off
        the value. Blind to topics of which no relevant document was found. Of nDCG in adaptive
        rounds either counts as much as it is large, with what a line says less
        (`rounds.adaptive.ratios`).
    found : ndarray of int64, shape (T,)
        Sampled pairs of each topic with any utility: on few of them neither the bias nor the
        interval can be relied on.
    noise_measured : bool
        Whether any pair has two judgments or more.
    left : BiasLeft or None
        By how much two estimates of the bias are apart, of which a mean was taken off; of values
        under AP and Rprec the larger of two such distances. None of samples drawn at once.
    gains : ndarray of float64, shape (k,), or None
        What uncertain pairs add to each value, by the slopes of its linearization: those that add
        alone. None where errors are about what a model predicted.
    parts : FoundParts or None
        What was found, of samples drawn at once, under nDCG with a cutoff (`ideal_lists`).
    rest : Rest or None
        What may be left of second-order terms, of samples drawn at once that tell them.
    """

    estimate: Totals
    by_topic: FloatArray
    bias: FloatArray
    found: IntArray
    noise_measured: bool
    left: BiasLeft | None = None
    gains: FloatArray | None = None
    parts: FoundParts | None = None
    rest: Rest | None = None


@dataclass(frozen=True, eq=False)
class ReachedLevels:
    """Judgments of n pairs as shares of labels that reach each level of utility."""

    gain: FloatArray  # (L,) by how much a level exceeds the one below
    grade: IntArray  # (L,) its lowest grade
    reach: FloatArray  # (L, n) share of the pair's judgments that reach it
    number: IntArray  # (n,)


def levels_reached(
    rows: LabelRows, pairs: int, measure: Measure, *, also: IntArray | None = None
) -> ReachedLevels:
    """Return which levels judgments of n pairs reach: of grades that occur, and of others."""
    grades = np.flatnonzero(np.bincount(rows.grade))  # a sort of all takes ten times as long
    grades = grades if also is None else np.union1d(also, grades)
    gain = np.diff(measure.utilities(grades), prepend=0.0)
    grades, gain = grades[gain > 0.0], gain[gain > 0.0]
    if not len(gain):  # nothing was found: one level, which no judgment reaches
        grades, gain = np.array([MAX_GRADE + 1]), np.ones(1)
    return by_levels(rows, pairs, gain, grades)


def by_levels(rows: LabelRows, pairs: int, gain: FloatArray, grade: IntArray) -> ReachedLevels:
    """Return which levels judgments of n pairs reach, given what each adds and its lowest grade."""
    number = np.bincount(rows.pair, minlength=pairs)
    reached = [np.bincount(rows.pair[rows.grade >= each], minlength=pairs) for each in grade]
    return ReachedLevels(gain, grade, np.stack(reached) / np.maximum(number, 1), number)


@dataclass(frozen=True, eq=False)
class Deviations:
    """By how much single judgments deviate from the mean of their pair, through the derivatives.

    Sums over a pair's rows of scale moved_j moved_l estimate what disagreement adds to the
    covariance of the values, from the pairs with two judgments or more, which stand for the
    others as well: which pairs get two was decided at random.
    """

    moved: FloatArray  # (m, k)
    scale: FloatArray  # (m,)
    pair: IntArray  # (m,) positions among the judged pairs, ascending


def deviations(
    tangent: Tangent, labels: ReachedLevels, rows: LabelRows, places: IntArray
) -> Deviations:
    """Return those of n judged pairs; `places`, (n,), are where they stand in the frame, or -1."""
    repeated = labels.number >= 2
    if not repeated.any():
        none = np.zeros(0, dtype=np.int64)
        return Deviations(np.zeros((0, tangent.frame.runs)), np.zeros(0), none)
    others = np.broadcast_to(singles_of(rows, labels.number), labels.number.shape)
    deviation = (rows.grade >= labels.grade[:, None]) - labels.reach[:, rows.pair]
    kept = repeated[rows.pair] & deviation.any(axis=0)  # none of a pair without any utility
    pair = rows.pair[kept]
    number = labels.number[pair]
    scale = (1.0 / number + others[pair]) / (number - 1)
    return Deviations(tangent.moved(places[pair], deviation[:, kept]), scale, pair)
