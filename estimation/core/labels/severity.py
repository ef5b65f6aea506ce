"""How severe or lenient each rater is, and how far from others: against the mean of the others.

Of every pair that rater a and somebody else graded, d = y_a - (mean grade of the others). The bias
of a is the mean of d: above 0 they are lenient, below severe; the spread is its standard deviation,
which holds what the others differ among themselves too. Pairs of a topic are alike, so that the
interval adds the deviations of a topic before it squares them: topics are the units, with Student's
t of one degree less than there are of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..arrays import check_confidence, column_sums
from .ratings import checked_weight

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from .ratings import Ratings

LEAST_SHARED = 5
"""Pairs in common with others, from which on a bias is told."""
LEAST_TOPICS = 3
"""Topics of these, from which on its interval is told: with two, t of one degree is 12.7."""


@dataclass(frozen=True, eq=False)
class Severity:
    """Of each rater, shape (raters,); nan where too little is known.

    Attributes
    ----------
    shared : ndarray of int64
        Pairs that somebody else graded too.
    same : ndarray of float64
        Mean share of the others of a pair who gave the same grade.
    bias, low, high : ndarray of float64
        In grades, with the ends of its interval.
    spread : ndarray of float64
        In grades.
    """

    shared: IntArray
    same: FloatArray
    bias: FloatArray
    low: FloatArray
    high: FloatArray
    spread: FloatArray


def severity(
    ratings: Ratings,
    *,
    topic: IntArray,
    weight: FloatArray | None = None,
    confidence: float = 0.95,
) -> Severity:
    """Hold everybody against the mean of the others.

    Parameters
    ----------
    ratings : Ratings
    topic : ndarray of int64, shape (pairs,)
        Of each pair, from 0.
    weight : ndarray of float64, shape (pairs,), optional
        At least 0; by default 1 each.
    confidence : float
    """
    check_confidence(confidence)
    given = checked_weight(weight, ratings.pairs)
    number = ratings.counts.sum(axis=1)
    total = column_sums(ratings.pair, ratings.grade.astype(np.float64), number=ratings.pairs)
    rows = np.flatnonzero((number[ratings.pair] >= 2) & (given[ratings.pair] > 0.0))
    pair, who, grade = ratings.pair[rows], ratings.rater[rows], ratings.grade[rows]
    others = number[pair] - 1
    apart = grade - (total[pair] - grade) / others
    same = (ratings.counts[pair, grade] - 1) / others
    return _summed(who, topic[pair], apart, same, given[pair], ratings.raters, confidence)


def _summed(
    who: IntArray,
    topic: IntArray,
    apart: FloatArray,
    same: FloatArray,
    weight: FloatArray,
    raters: int,
    confidence: float,
) -> Severity:
    shared = np.bincount(who, minlength=raters)
    scale = column_sums(who, weight, number=raters)
    bias = _ratio(column_sums(who, weight * apart, number=raters), scale)
    moved = weight * (apart - bias[who])
    spread2 = _ratio(column_sums(who, weight * (apart - bias[who]) ** 2, number=raters), scale)
    groups, group = np.unique(who * (int(topic.max(initial=0)) + 1) + topic, return_inverse=True)
    sums = column_sums(group, moved, number=len(groups))
    owner = groups // (int(topic.max(initial=0)) + 1)
    topics = np.bincount(owner, minlength=raters)
    squares = column_sums(owner, sums**2, number=raters)
    error = _ratio(np.sqrt(squares * topics / np.maximum(topics - 1, 1)), scale)
    error[topics < LEAST_TOPICS] = np.nan
    margin = special.stdtrit(np.maximum(topics - 1, 1), 0.5 + confidence / 2.0) * error
    told = shared >= LEAST_SHARED
    spread = np.sqrt(spread2 * shared / np.maximum(shared - 1, 1))
    return Severity(
        shared,
        np.where(told, _ratio(column_sums(who, weight * same, number=raters), scale), np.nan),
        *(np.where(told, each, np.nan) for each in (bias, bias - margin, bias + margin, spread)),
    )


def _ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    nothing = np.full(len(below), np.nan)
    return np.asarray(np.divide(above, below, out=nothing, where=below > 0.0))
