"""Ratios to the second order: what a model is wrong about, by topics, that no bias shows.

A model that is wrong about the denominators of topics, and about what a run has in just these, is
wrong about the run's ratios by the product of the two. With D, N_j and r_j = N_j / D where judged
pairs have their labels and others what is expected of them (`slopes`), D^ and N^_j the estimates,

    H = (D^ - D) / D,    Z_j = (N^_j - r_j D^) / D,    both linear in what was found,

the ratio of a topic is r_j + Z_j - H Z_j + ..., and what N_j and D bend by. A run that is good
where little is relevant, in a collection of many topics of which few documents are judged, has too
low a value for the third term, however many topics there are (400 topics, half of them with 2
relevant documents of 40 and half with 20, two judged of each: AP .19 too low, nDCG@10 .17; six
judged: .14 and .09), and neither squares nor what a model expects tell of it.

The sample does. Products of what was found of different pairs are right on average given the past
(`ratios`), and where a pair meets itself, in H Z_j and because slopes know its label, what counts
is the bias that squares tell, b_j = -sum_i (1 - p_i) h_i z_ij, undamped. So does an ideal list of
nDCG bend by B, half its second difference times the square of what was found of a level less
(1 - p_i) of each pair's own, and

    r_j + Z_j - H Z_j - b_j + (N^_j - its line - r_j B) / D

is right on average up to products of three. What it differs by from the value has a sampling
variance that topics tell. Where sums of it over topics are sure, beyond `SURE` standard errors, and
beyond `NOTABLE` of the value, they are followed, by 1 - s^2 / t^2 of a sum t where s is sure: what
is not would bring more noise than it takes bias off, and what is small more of the third order
(Cranfield, nDCG@10, half of the pool judged: .0046, 4.4 standard errors, where values are right).
Of the square of what is left, less its own sampling variance, intervals allow for what is positive,
and for the sampling variance of what was followed. Nothing is left where all is judged.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import column_sums, share_of
from ..estimates.products import gram
from ..estimates.ratio_frames import Frame
from ..estimates.ratio_labels import Rest
from ..estimates.ratio_lines import Counts, Numerator, discounted
from .intervals import difference_variances

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from ..estimates.ratio_lines import Tangent
    from ..measures.table import Measure

SURE, NOTABLE = 3.0, 2.0  # standard errors: its own, and those of the value
LEAST_TOPICS = 20  # that tell a sampling variance


def followed(
    by_topic: FloatArray, further: FloatArray, variance: FloatArray
) -> tuple[FloatArray, Rest]:
    """Return what topics contribute to the values after all, (T, k), and what may be left.

    Parameters
    ----------
    by_topic : ndarray of float64, shape (T, k)
        What topics contribute to the values.
    further : ndarray of float64, shape (T, k)
        The same to the second order.
    variance : ndarray of float64, shape (k,)
        Of the values, as squares of what was found tell.
    """
    topics, runs = by_topic.shape
    if topics < LEAST_TOPICS:
        return by_topic, Rest(np.zeros(runs), np.zeros((runs, runs)), np.zeros(runs))
    off = further - by_topic
    squares, chance = sums_told(off)
    least = np.maximum(SURE**2 * np.diag(chance), NOTABLE**2 * variance)
    share = share_of(np.maximum(squares - least, 0.0), of=squares)
    return by_topic + share * off, rest_of(off.sum(axis=0), chance, share, np.ones(len(share)))


def sums_told(off: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Squares of sums over topics, (k,), and the covariance of the sums, as topics tell it."""
    chance = gram(sparse.csr_array(off - off.mean(axis=0)))
    return np.asarray(off.sum(axis=0) ** 2), chance


def rest_of(total: FloatArray, chance: FloatArray, share: FloatArray, believed: FloatArray) -> Rest:
    """What may be left of sums if such a share of each is followed, as far as it is believed."""
    left, of_left, taken = (1.0 - share) * total, _times(1.0 - share, chance), _times(share, chance)
    squares = np.subtract.outer(left, left) ** 2 - difference_variances(of_left)
    of_two = np.maximum.outer(believed, believed)
    return Rest(
        believed * np.maximum(left**2 - np.diag(of_left), 0.0) + np.diag(taken),
        of_two * np.maximum(squares, 0.0) + difference_variances(taken),
        share * total,
    )


def _times(share: FloatArray, covariance: FloatArray) -> FloatArray:
    """The covariance of such shares."""
    return np.asarray(np.multiply.outer(share, share) * covariance)


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """What judged pairs say of topics.

    Attributes
    ----------
    bias : ndarray of float64, shape (T, k)
        Of the ratios over T, that squares of what was found tell at the tangent, undamped.
    squares : ndarray of float64, shape (L, T)
        These squares in the counts of each level.
    number : ndarray of float64, shape (L, T)
        Of judged pairs that reach each level.
    """

    bias: FloatArray
    squares: FloatArray
    number: FloatArray

    @classmethod
    def of(
        cls,
        at: Tangent,
        places: IntArray,
        *,
        missed: FloatArray,
        reached: FloatArray,
        uncertain: FloatArray,
    ) -> SecondMoments:
        """Add up what n judged pairs say.

        Parameters
        ----------
        at : Tangent
        places : ndarray of int64, shape (n,)
            Where they stand among the pairs of the tangent.
        missed, reached : ndarray of float64, shape (L, n)
            What they add to the counts by surprise, and how far their judgments reach.
        uncertain : ndarray of float64, shape (n,)
            1 - p of each.
        """
        topic, topics = at.frame.topic[places], len(at.reciprocal)
        squares, number = (
            np.stack([column_sums(topic, each, number=topics) for each in levels])
            for levels in (uncertain * missed**2, reached)
        )
        return cls(at.bias(*at.moments(places, missed, uncertain)), squares, number)


def to_second_order(
    measure: Measure, at: Tangent, reach: FloatArray, found: SecondMoments
) -> FloatArray:
    """Return the ratios of topics over T to the second order, shape (T, k): noisy, and unbounded.

    Parameters
    ----------
    measure : Measure
    at : Tangent
        Where judged pairs have their labels, and others what is expected of them.
    reach : ndarray of float64, shape (L, m)
        What is estimated of all pairs.
    found : SecondMoments
    """
    line, moved = at.along(reach), reach - at.frame.gains.reach
    more = at.frame.per_topic(at.falling(np.arange(len(at.frame.topic)), moved)) * at.reciprocal
    products = more[:, None] * (line - at.by_topic)
    bent = _bent_list(measure, at, moved, found) * at.reciprocal
    bends = _bent(measure, at, reach, line, more) - bent[:, None] * at.by_topic
    return np.asarray(line + bends - products - found.bias)


def _bent(
    measure: Measure, at: Tangent, reach: FloatArray, line: FloatArray, more: FloatArray
) -> FloatArray | float:
    """What estimated numerators are more than what is linear in them, over T D; nDCG's are."""
    if measure.name == "nDCG":
        return 0.0
    gains = replace(at.frame.gains, reach=reach, variances=np.zeros_like(reach))
    above = Numerator.of(Frame.of(at.frame.pool, measure, gains, None), measure).total
    linear = line + at.by_topic * more[:, None]
    return np.asarray(above * (at.reciprocal / len(more))[:, None] - linear)


def _bent_list(
    measure: Measure, at: Tangent, moved: FloatArray, found: SecondMoments
) -> FloatArray:
    """What denominators bend by where counts move so far, (T,); those of AP and Rprec do not.

    Slopes on both sides, as far away as counts move and not below what was found, tell how an ideal
    list bends: one that is full of that does not (TREC-8, 5 %: standard errors .002 for .018).
    """
    if measure.name != "nDCG":
        return np.zeros(len(at.reciprocal))
    count = Counts.of(at.frame).number
    square = np.stack([at.frame.per_topic(each) for each in moved]) ** 2 - found.squares
    step = np.maximum(np.sqrt(np.abs(square)), 1.0)
    down = np.clip(count - found.number, 0.0, step)
    low, here, high = discounted(measure, np.stack([count - down, count, count + step]))
    flatter = (high - here) / step - share_of(here - low, of=down)
    bend = np.where(down > 0.0, flatter / ((step + down) / 2.0), 0.0)
    return np.asarray(at.frame.gains.gain @ (bend * square) / 2.0)
