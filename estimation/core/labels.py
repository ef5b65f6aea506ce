"""From grades to labels: the mean utility of a pair over its assessors."""

from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, index_array
from estimation.core.measures import Measure


class LabelError(ValueError):
    """Label rows that do not fit the sample or the grade scale."""


@dataclass(frozen=True, eq=False)
class LabelRows:
    """One row per judgment. The order of the rows has no influence on any result.

    Attributes
    ----------
    pair : ndarray of int64, shape (m,)
        The judged pair, as a position in the pool.
    grade : ndarray of int64, shape (m,)
        The grade, >= 0.
    """

    pair: IntArray
    grade: IntArray

    def __post_init__(self) -> None:
        if self.pair.shape != self.grade.shape or self.pair.ndim != 1:
            raise LabelError("pairs and grades must be vectors of one length")


@dataclass(frozen=True, eq=False)
class PairLabels:
    """What the assessors said about n sampled pairs, under one measure.

    Attributes
    ----------
    mean : ndarray of float64, shape (n,)
        Mean utility over the assessors of the pair: the label v.
    number : ndarray of int64, shape (n,)
        Number r >= 1 of judgments.
    variance : ndarray of float64, shape (n,)
        Variance s2 of the utilities within the pair, with divisor r - 1. Pairs with one
        judgment have the mean s2 of the others, or 0 if there are none.
    noise_measured : bool
        Whether any pair has two judgments or more. If not, `variance` is 0 throughout and the
        disagreement between assessors is missing from every standard error that is built on it,
        but for what shows in the spread of the labels themselves.
    """

    mean: FloatArray
    number: IntArray
    variance: FloatArray
    noise_measured: bool


def select_rows(
    labels: LabelRows, *, sampled: IntArray, prefix: IntArray, max_grade: int
) -> LabelRows:
    """Keep the rows of a prefix of batches, in canonical order, as positions in the prefix.

    Parameters
    ----------
    labels : LabelRows
        Rows of sampled pairs; those beyond the prefix are left out.
    sampled : ndarray of int64, shape (n,)
        All sampled pairs, ascending.
    prefix : ndarray of int64, shape (m,)
        The pairs of the prefix, ascending.
    max_grade : int
        The best grade of the scale.

    Returns
    -------
    LabelRows
        Sorted by (pair, grade); `pair` counts positions in `prefix`.

    Raises
    ------
    LabelError
        If a row belongs to no sampled pair, a grade is off the scale, or a pair of the prefix
        has no row: a sampled pair is never dropped silently.
    """
    if labels.grade.size and (labels.grade.min() < 0 or labels.grade.max() > max_grade):
        raise LabelError(f"a grade does not lie between 0 and {max_grade}")
    if np.any(_positions(labels.pair, sampled) < 0):
        raise LabelError("a label row belongs to a pair that was not sampled")
    position = _positions(labels.pair, prefix)
    grades = max_grade + 1
    keys = np.sort((position * grades + labels.grade)[position >= 0])
    position, grade = np.divmod(keys, grades)
    missing = int(np.count_nonzero(np.bincount(position, minlength=len(prefix)) == 0))
    if missing:
        raise LabelError(f"{missing} sampled pairs of these batches have no label")
    return LabelRows(position, grade)


def _positions(pairs: IntArray, among: IntArray) -> IntArray:
    """Where each pair stands among ascending ones; -1 if it does not."""
    if not len(among):
        return np.full(len(pairs), -1)
    place = np.searchsorted(among, pairs)
    return np.where(among[np.minimum(place, len(among) - 1)] == pairs, place, -1)


def pair_labels(rows: LabelRows, *, pairs: int, measure: Measure) -> PairLabels:
    """Average the utilities (never the grades) of the judgments of each pair.

    The mean estimates v = E[u(assessor)] without bias when assessors are assigned at random;
    a majority vote would not. The variance is unbiased for pairs with r >= 2. Filling in the
    mean for the others is right on average if which pairs get two labels was decided at random.

    Parameters
    ----------
    rows : LabelRows
        With `pair` between 0 and pairs - 1; sorted by (pair, grade), so that sums have the same
        bits whoever judged first.
    pairs : int
        Number n of pairs.
    measure : Measure

    Raises
    ------
    LabelError
        If a pair has no row.
    """
    position = index_array(rows.pair, below=pairs, name="pair")
    number = np.bincount(position, minlength=pairs)
    if np.any(number == 0):
        raise LabelError("every pair needs at least one label")
    utility = measure.utilities(rows.grade)
    mean = np.bincount(position, weights=utility, minlength=pairs) / number
    squares = np.bincount(position, weights=(utility - mean[position]) ** 2, minlength=pairs)
    repeated = number >= 2
    variance = np.where(repeated, squares / np.maximum(number - 1, 1), 0.0)
    if repeated.any():
        variance[~repeated] = variance[repeated].mean()
    return PairLabels(mean, number, variance, bool(repeated.any()))
