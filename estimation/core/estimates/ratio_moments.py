"""What a linearized ratio makes of moments of its pairs: of what samples miss, and of labels."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import added, column_sums
from ..data.labels import expected_by_grade
from .products import cross_product, with_others

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray, IntArray
    from ..data.labels import LabelRows
    from ..measures.table import Measure
    from .ratio_labels import ReachedLevels
    from .ratio_lines import Tangent


@dataclass(frozen=True, eq=False)
class RatioNoise:
    """What disagreement between assessors does to k ratios over T topics.

    Attributes
    ----------
    tangent : Tangent
    moments : ndarray of float64, shape (3, m)
        What it adds to E[u^2], E[u h] and E[h^2] of the pairs of the frame.
    by_grades : ndarray of float64, shape (3, m)
        The same as the grades of all judgments let one expect it.
    told : ndarray of bool, shape (m,)
        Of which of them by their own judgments, two or more.
    counts : ndarray of float64, shape (L, T)
        What these add to the variance of the counts of each level.
    """

    tangent: Tangent
    moments: FloatArray
    by_grades: FloatArray
    told: BoolArray
    counts: FloatArray

    @classmethod
    def of(
        cls,
        tangent: Tangent,
        labels: ReachedLevels,
        rows: LabelRows,
        places: IntArray,
        factor: FloatArray,
    ) -> RatioNoise:
        """Add up what is estimated of n judged pairs.

        Parameters
        ----------
        tangent : Tangent
        labels : ReachedLevels
            By the levels of the tangent.
        rows : LabelRows
            Their judgments, `pair` counting positions among the n.
        places : ndarray of int64, shape (n,)
            Where the pairs stand in the frame of the tangent; -1 of those without any noise.
        factor : ndarray of float64, shape (n,)
            How often the covariance of what the mean of a pair's judgments moves counts.
        """
        frame, both = tangent.frame, np.zeros((2, 3, len(tangent.frame.topic)))
        for spread, found in zip(both, _moments(tangent, labels, rows, places), strict=True):
            noisy = np.flatnonzero(found[0] > 0.0)
            spread[:, places[noisy]] = (found * factor)[:, noisy]
        told = np.zeros(len(frame.topic), dtype=np.bool_)
        own = np.flatnonzero((labels.number >= 2) & (places >= 0))
        own = own[both[0, 0, places[own]] > 0.0]
        told[places[own]] = True
        times, topics = factor[own] / (labels.number[own] - 1), frame.topic[places[own]]
        counts = [
            column_sums(topics, times * reach * (1.0 - reach), number=len(frame.sizes))
            for reach in labels.reach[:, own]
        ]
        return cls(tangent, both[0], both[1], told, np.stack(counts))

    def covariances(self) -> tuple[FloatArray, FloatArray]:
        """What `moments` and `by_grades` add to the covariance of the values, (k, k) each."""
        frame, slopes = self.tangent.frame, self.tangent.slopes
        if not self.by_grades[0].any():
            nothing = np.zeros((frame.runs, frame.runs))
            return nothing, nothing
        own = cross_product(slopes, self.moments[0])
        likely = with_others(own, slopes, self.moments[0], self.by_grades[0])
        return own + self._by_denominators(self.moments), likely + self._by_denominators(
            self.by_grades
        )

    def _by_denominators(self, moments: FloatArray) -> FloatArray:
        frame, (_, crossed, falling) = self.tangent.frame, moments
        together = frame.per_cell(self.tangent.slope, crossed)
        return by_denominators(self.tangent, together, frame.per_topic(falling))

    def bias(self, measure: Measure) -> FloatArray:
        """By how much ratios over T are too large on average, to second order, shape (T, k).

        A judgment moves denominators and numerators at once, and ideal lists bend. No ratio is
        told more too large than it is. Of pairs with two judgments or more: what one pair lets
        others expect is as large as may be (`labels.expected_by_grade`), which is for intervals.
        Of Rprec nothing: how far down a list counts moves with its denominator, which makes up for
        it (Cranfield, four judgments of each pair, some of which err: .0001 left, where .0013 would
        be added; two: .0003 and .0037).
        """
        tangent, frame = self.tangent, self.tangent.frame
        if measure.name == "Rprec" or not self.told.any():
            return np.zeros_like(tangent.by_topic)
        _, crossed, falling = self.told * self.moments
        moved = tangent.bias(crossed, frame.per_topic(falling))
        bias = moved + tangent.bend_by(measure, self.counts)
        return np.asarray(np.minimum(bias, tangent.by_topic))


def by_denominators(tangent: Tangent, together: FloatArray, variance: FloatArray) -> FloatArray:
    """What sums of E[z_ij z_il] are beside those of a_ij a_il E[u^2], shape (k, k).

    Given sums over the pairs of each topic of a_ij E[u h], (T, k), and of E[h^2], (T,).
    """
    below = tangent.topic_slope
    mixed = cross_sums(together, below)
    return cross_sums(below * variance[:, None], below) - mixed - mixed.T


def cross_sums(first: FloatArray, second: FloatArray) -> FloatArray:
    """first' second, (k, k), added up in a fixed order on every machine."""
    return np.asarray(sparse.csr_array(first.T) @ second, dtype=np.float64)


def _moments(
    tangent: Tangent, labels: ReachedLevels, rows: LabelRows, places: IntArray
) -> tuple[FloatArray, FloatArray]:
    """What disagreement adds to E[u^2], E[u h] and E[h^2] of the means of n judged pairs, (3, n).

    By their judgments, and as the grades of these let one expect it. A pair with two judgments or
    more speaks for itself; one with a single judgment has what its grade lets one expect, as in
    sums of gains (`labels.expected_by_grade`). `places`, (n,), are where pairs stand in the frame,
    -1 of those whose judgments are all of no use, about which nobody disagrees. Zero where no pair
    has two.
    """
    number, found = labels.number, np.zeros((3, len(labels.number)))
    if not np.any(number >= 2):
        return found, found  # nothing is known of it
    inside = places[rows.pair] >= 0
    own = np.flatnonzero(inside & (number[rows.pair] >= 2))
    pair = rows.pair[own]
    apart = (rows.grade[own] >= labels.grade[:, None]) - labels.reach[:, pair]
    utility, fall = added(labels.gain, apart), tangent.falling(places[pair], apart)
    for place, each in enumerate((utility**2, utility * fall, fall**2)):
        found[place] = np.bincount(pair, each, minlength=len(number))
    found /= np.maximum(number * (number - 1), 1)
    moments, topic = _by_grade(tangent, labels, rows, pair, apart), tangent.frame.topic[places]
    pair, grade = rows.pair[inside], rows.grade[inside]
    of_rows = moments[:, grade, topic[pair]] / number[pair] ** 2
    likely = np.zeros_like(found)
    for place, each in enumerate(of_rows):
        likely[place] = np.bincount(pair, each, minlength=len(number))
    return np.where(number >= 2, found, likely), likely


def _by_grade(
    tangent: Tangent, labels: ReachedLevels, rows: LabelRows, pair: IntArray, apart: FloatArray
) -> FloatArray:
    """The same of a pair with one judgment, by its grade and topic, shape (3, G, T).

    By how far the judgments of pairs with two, (L, m), are from the mean of theirs.
    """
    levels, number = len(labels.gain), labels.number
    repeated = np.flatnonzero(number >= 2)
    squares = [
        np.bincount(pair, one * other, minlength=len(number))[repeated]
        for one in apart
        for other in apart
    ]
    spread = np.stack(squares, axis=1) / (number[repeated] - 1)[:, None]
    step = np.diag(np.full(levels, 0.5 / levels)).ravel()
    expected = expected_by_grade(rows, number, spread, apart=step)
    falls = labels.gain[:, None] * tangent.level_slope
    moments = np.zeros((3, len(expected), falls.shape[1]))
    for column, (one, other) in enumerate(product(range(levels), repeat=2)):
        both = expected[:, column, None]
        moments[0] += both * (labels.gain[one] * labels.gain[other])
        moments[1] += both * (labels.gain[one] * falls[other])
        moments[2] += both * (falls[one] * falls[other])
    return moments
