"""Who gave which grade to which pair: what agreement and competence are worked out from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, check_whole, frozen, index_array


@dataclass(frozen=True, eq=False)
class Ratings:
    """One row per judgment, at most one of a rater for a pair. Their order has no influence.

    Attributes
    ----------
    pair : ndarray of int64, shape (m,)
        From 0 to `pairs` - 1; pairs without a row are allowed, and say nothing.
    rater : ndarray of int64, shape (m,)
        From 0 to `raters` - 1.
    grade : ndarray of int64, shape (m,)
        From 0 to `grades` - 1.
    pairs, raters, grades : int

    Raises
    ------
    ValueError
        If the arrays are not of one length, a number is out of range, or a rater graded a pair
        twice.
    """

    pair: IntArray
    rater: IntArray
    grade: IntArray
    pairs: int
    raters: int
    grades: int

    def __post_init__(self) -> None:
        check_whole(self.grades, name="grades", least=2)
        if len({len(each) for each in (self.pair, self.rater, self.grade)}) > 1:
            raise ValueError("pair, rater and grade must be of one length")
        pair = index_array(self.pair, below=self.pairs, name="pair")
        rater = index_array(self.rater, below=self.raters, name="rater")
        grade = index_array(self.grade, below=self.grades, name="grade")
        key = pair * max(self.raters, 1) + rater
        order = np.argsort(key, kind="stable")
        if np.any(np.diff(key[order]) == 0):
            at = int(np.argmax(np.diff(key[order]) == 0))
            who, what = int(rater[order][at]), int(pair[order][at])
            raise ValueError(f"rater {who} graded pair {what} twice")
        for name, column in (("pair", pair), ("rater", rater), ("grade", grade)):
            object.__setattr__(self, name, frozen(column[order]))

    def __len__(self) -> int:
        """Return the number of judgments."""
        return len(self.pair)

    @cached_property
    def counts(self) -> IntArray:
        """How often each pair was given each grade, shape (pairs, grades)."""
        cells = self.pair * self.grades + self.grade
        counted = np.bincount(cells, minlength=self.pairs * self.grades)
        return counted.reshape(self.pairs, self.grades)

    @cached_property
    def several(self) -> BoolArray:
        """Which pairs two raters or more have graded, shape (pairs,)."""
        return np.asarray(self.counts.sum(axis=1) >= 2)

    def part(self, rows: BoolArray) -> Ratings:
        """Return some of the rows; pairs, raters and grades keep their numbers."""
        chosen = self.pair[rows], self.rater[rows], self.grade[rows]
        return Ratings(*chosen, self.pairs, self.raters, self.grades)

    @cached_property
    def twos(self) -> TwoRatings:
        """Every two judgments of one pair, the rater with the lower number first."""
        nothing = np.zeros(0, dtype=np.int64)
        parts = [(nothing, nothing)]
        most = int(self.counts.sum(axis=1).max(initial=0))
        for apart in range(1, most):  # judgments of a pair stand together
            at = np.flatnonzero(self.pair[apart:] == self.pair[:-apart])
            parts.append((at, at + apart))
        first, second = (np.concatenate(each) for each in zip(*parts, strict=True))
        return TwoRatings(
            self.pair[first],
            self.rater[first],
            self.rater[second],
            self.grade[first],
            self.grade[second],
        )


@dataclass(frozen=True, eq=False)
class OneAgainstOthers:
    """One rater held against the others of each pair, and these not against one another.

    Attributes
    ----------
    grade : ndarray of int64, shape (pairs,)
        Of the one; -1 where they gave none.
    counts : ndarray of int64, shape (pairs, grades)
        How often the others gave each grade.

    Raises
    ------
    ValueError
        If there is not one grade for each pair, or one is out of range.
    """

    grade: IntArray
    counts: IntArray

    def __post_init__(self) -> None:
        if self.grade.shape != (len(self.counts),):
            raise ValueError("grade must have one value for each pair of counts")
        index_array(self.grade + 1, below=self.counts.shape[1] + 1, name="grade + 1")

    @property
    def pairs(self) -> int:
        """Return the number of pairs, with those that say nothing."""
        return len(self.counts)

    @property
    def several(self) -> BoolArray:
        """Which pairs the one and somebody else have graded, shape (pairs,)."""
        return np.asarray((self.grade >= 0) & (self.counts.sum(axis=1) >= 1))


@dataclass(frozen=True, eq=False)
class TwoRatings:
    """Pairs of judgments of one pair by two raters, shape (t,) each."""

    pair: IntArray
    first: IntArray
    second: IntArray
    first_grade: IntArray
    second_grade: IntArray


def checked_weight(weight: FloatArray | None, pairs: int) -> FloatArray:
    """Return the weight of each pair; 1 each without any.

    Raises
    ------
    ValueError
        Unless there is a finite weight of at least 0 for each pair.
    """
    if weight is None:
        return np.ones(pairs)
    if weight.shape != (pairs,) or not np.all(np.isfinite(weight) & (weight >= 0.0)):
        raise ValueError(f"weight must be {pairs} finite numbers of at least 0")
    return weight
