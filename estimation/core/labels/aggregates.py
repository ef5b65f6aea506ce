"""One grade for each pair, other than by the mean: to see what hangs on the choice, and no more.

The value v(x, y) that evalsite estimates is the mean of what assessors say, and the mean of the
labels estimates it without bias. None of these does (with three labels of two grades, the majority
has the expectation 3 v^2 - 2 v^3): they answer another question, and say whether the ranking would
be another.

Majority
    The grade given most often; of several, the nearest to the mean, then the lower.
Dawid-Skene
    The grade that is most likely the true one.
Adjusted mean
    The mean of y_a - b_a, with the leniency b_a of each rater from y_ia = v_i + b_a + noise by
    least squares, drawn towards 0 by as much as `SHRUNK` judgments: sum over judgments of
    (y - v - b)^2 plus `SHRUNK` sum of b^2 has one minimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import column_sums
from ..data.labels import LabelRows

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from .dawid_skene import DawidSkene
    from .ratings import Ratings

SHRUNK = 5.0
STEPS, TOLERANCE = 1000, 1e-9
PARTS = 20
"""A grade between two is told as so many rows of them: to a twentieth, as far as there are any."""


def majority(counts: IntArray) -> IntArray:
    """Return one grade per pair from counts of grades, shape (n, G); -1 without any."""
    number = counts.sum(axis=1)
    grade = np.arange(counts.shape[1])
    mean = (counts * grade).sum(axis=1) / np.maximum(number, 1)
    off = np.abs(grade - mean[:, None])
    off[counts < counts.max(axis=1, keepdims=True)] = np.inf
    return np.where(number > 0, off.argmin(axis=1), -1).astype(np.int64)


def most_likely(model: DawidSkene, counts: IntArray) -> IntArray:
    """Return the grade of each pair that is most likely the true one; -1 without a judgment."""
    likely = model.posterior.argmax(axis=1)
    return np.where(counts.sum(axis=1) > 0, likely, -1).astype(np.int64)


def leniency(ratings: Ratings) -> FloatArray:
    """Return b of each rater, in grades, shape (raters,); 0 for whoever shares no pair."""
    several = ratings.several[ratings.pair]
    pair, who = ratings.pair[several], ratings.rater[several]
    grade = ratings.grade[several].astype(np.float64)
    number = np.maximum(np.bincount(pair, minlength=ratings.pairs), 1)
    given = np.bincount(who, minlength=ratings.raters) + SHRUNK
    found = np.zeros(ratings.raters)
    for _ in range(STEPS):
        value = column_sums(pair, grade - found[who], number=ratings.pairs) / number
        moved = column_sums(who, grade - value[pair], number=ratings.raters) / given
        change = float(np.abs(moved - found).max(initial=0.0))
        found = moved
        if change < TOLERANCE:
            break
    return found


def adjusted_mean(ratings: Ratings) -> FloatArray:
    """Return the mean grade of each pair without its raters' leniency, within the scale, shape
    (pairs,); nan without a judgment."""
    lenient = leniency(ratings)
    number = np.bincount(ratings.pair, minlength=ratings.pairs)
    total = column_sums(ratings.pair, ratings.grade - lenient[ratings.rater], number=ratings.pairs)
    nothing = np.full(ratings.pairs, np.nan)
    mean = np.divide(total, number, out=nothing, where=number > 0)
    return np.asarray(np.clip(mean, 0.0, ratings.grades - 1.0))


def rows_of_grades(grade: FloatArray | IntArray) -> LabelRows:
    """Return label rows of pairs with these grades; a grade between two as `PARTS` rows of both.

    Pairs with nan or a grade below 0 have none. The gain of such a pair then lies between those of
    its neighbors, in proportion.
    """
    known = np.flatnonzero(np.nan_to_num(grade.astype(np.float64), nan=-1.0) >= 0.0)
    value = grade[known].astype(np.float64)
    lower = np.floor(value).astype(np.int64)
    if np.all(value == lower):
        return LabelRows(known, lower)
    upper = np.round((value - lower) * PARTS).astype(np.int64)
    pair = np.repeat(known, PARTS)
    place = np.tile(np.arange(PARTS), len(known))
    return LabelRows(pair, np.repeat(lower, PARTS) + (place < np.repeat(upper, PARTS)))
