"""From grades to labels: the mean utility of a pair over its assessors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import BoolArray, FloatArray, IntArray, check_integers, index_array, refuse
from ..measures.kinds import MAX_GRADE

if TYPE_CHECKING:
    from ..measures.table import Measure
    from .pool import Pool

OTHERS = 3.0  # pairs judged twice that the mean over all grades counts for, of one grade
DENSE = 16  # possible numbers for each number, up to which counting is faster than sorting


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
    repeated : ndarray of float64, shape (m,), or None
        With which chance the pair of each row was to have two judgments or more, given that it was
        sampled (`sampling.overlap`). None: the same for all pairs.

    Raises
    ------
    LabelError
        If these are not vectors of one length, pairs and grades of integers, or a chance does not
        lie in (0, 1].
    """

    pair: IntArray
    grade: IntArray
    repeated: FloatArray | None = None

    def __post_init__(self) -> None:
        for name in ("pair", "grade"):
            if not isinstance(getattr(self, name), np.ndarray):  # a list, say
                values = np.asarray(getattr(self, name))
                whole = values if values.size else values.astype(np.int64)
                object.__setattr__(self, name, whole)
        if self.pair.shape != self.grade.shape or self.pair.ndim != 1:
            shapes = f"{self.pair.shape} and {self.grade.shape}"
            raise LabelError(f"pair and grade must be vectors of one length, not {shapes}")
        check_integers(self.pair, name="pair", error=LabelError)
        check_integers(self.grade, name="grade", error=LabelError)
        if self.repeated is not None:
            if self.repeated.shape != self.pair.shape:
                raise LabelError(f"repeated has the shape {self.repeated.shape}, not one per row")
            wrong = ~((self.repeated > 0.0) & (self.repeated <= 1.0))
            refuse(wrong, self.repeated, name="repeated", rule="lie in (0, 1]", error=LabelError)

    def chosen(self, kept: BoolArray | IntArray) -> LabelRows:
        """Return some of the rows."""
        repeated = None if self.repeated is None else self.repeated[kept]
        return LabelRows(self.pair[kept], self.grade[kept], repeated)

    def placed(self, pair: IntArray) -> LabelRows:
        """Return the rows with these as their pairs."""
        return LabelRows(pair, self.grade, self.repeated)

    @cached_property
    def _selected(self) -> list[tuple[IntArray, IntArray, int, LabelRows]]:
        """What `select_rows` chose of these last, and for which pairs and grades."""
        return []

    @cached_property
    def _labels(self) -> dict[tuple[int, bytes], PairLabels]:
        """What `pair_labels` made of these, by number of pairs and utility of each grade."""
        return {}


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
        Variance s2 of the utilities within the pair, with divisor r - 1; 0 with one judgment.
    noise_measured : bool
        Whether any pair has two judgments or more. If not, `variance` is 0 throughout and the
        disagreement between assessors is missing from every standard error that is built on it,
        but for what shows in the spread of the labels themselves.
    singles : float or ndarray of float64, shape (n,)
        Pairs with one judgment that each pair with more stands for.
    expected : ndarray of float64, shape (n,), or None
        The variance that is expected within each pair, by the grades of its judgments. None where
        nothing is measured.
    """

    mean: FloatArray
    number: IntArray
    variance: FloatArray
    noise_measured: bool
    singles: float | FloatArray = 0.0
    expected: FloatArray | None = None

    def of(self, some: IntArray) -> PairLabels:
        """Return the same of some of the pairs."""
        singles = self.singles[some] if isinstance(self.singles, np.ndarray) else self.singles
        mean, number, variance = self.mean[some], self.number[some], self.variance[some]
        expected = None if self.expected is None else self.expected[some]
        return PairLabels(mean, number, variance, self.noise_measured, singles, expected)

    def with_expected(self) -> PairLabels:
        """Return the same, where every pair speaks for itself: one judgment by what is expected.

        Of a difference between two runs the pairs that count differently in both tell the noise.
        Where few of them have two judgments, these may agree by chance, and the difference would be
        taken for exact. What the grade lets one expect comes from all pairs with two.
        """
        if self.expected is None:
            return self
        variance = np.where(self.number >= 2, self.variance, self.expected)
        return replace(self, variance=variance, singles=0.0)

    @property
    def wanted(self) -> BoolArray:
        """Which pairs add to a value or to what is told or expected of its error, shape (n,)."""
        adding = (self.mean > 0.0) | (self.variance > 0.0)
        return adding if self.expected is None else adding | (self.expected > 0.0)

    @property
    def noise(self) -> FloatArray:
        """What disagreement adds to the variance of the means, shape (n,), for sums over pairs.

        s2 (1/r + singles): a pair with two judgments or more speaks for itself and for its share
        of the pairs with one, whose mean has the variance s2. Which pairs get two judgments was
        decided at random, so that sums of weight * noise over the sample are unbiased, whatever
        disagreement has to do with weight. With chances q of their own, a pair stands for
        (1 - q) / q with one: q s2 (1/r + (1 - q) / q) is what the two cases give on average.
        """
        return np.asarray(self.variance * (1.0 / self.number + self.singles), dtype=np.float64)

    @property
    def likely_noise(self) -> FloatArray | None:
        """The same as the grades of all judgments let one expect it, shape (n,).

        For what is expected, never for an estimate of a variance, which it would bias. Pairs that
        agree by chance leave no `noise`, and a run that counts in these alone would be exact. None
        where nothing is measured.
        """
        return None if self.expected is None else np.asarray(self.expected / self.number)


def singles_per_repeated(number: IntArray) -> float:
    """Return the pairs with one judgment per pair with more; 0 if there is none with more."""
    repeated = np.count_nonzero(number >= 2)
    return (len(number) - repeated) / repeated if repeated else 0.0


def singles_of(rows: LabelRows, number: IntArray) -> float | FloatArray:
    """Return how many pairs with one judgment each of n pairs stands for if it has more.

    From the chances of two judgments where these are known, as Horvitz and Thompson's estimator
    would have it; otherwise as many for each, by how many there are.
    """
    if rows.repeated is None:
        return singles_per_repeated(number)
    chance = np.ones(len(number))
    chance[rows.pair] = rows.repeated
    return np.asarray((1.0 - chance) / chance)


def pair_name(pair: int, pool: Pool | None = None) -> str:
    """Return what messages call a pair: "document 'd3' of topic '401'", or "pair 7"."""
    if pool is None or not 0 <= pair < len(pool):
        return f"pair {pair}" if pool is None else f"pair {pair}, outside 0 to {len(pool) - 1},"
    topic, docno = pool.topics[pool.topic[pair]], pool.docno[pair].decode()
    if pool.other is None:
        return f"document {docno!r} of topic {topic!r}"
    return f"documents {docno!r} and {pool.other[pair].decode()!r} of topic {topic!r}"


def check_grades(
    grades: IntArray, *, pairs: int, most: int = MAX_GRADE, error: type[ValueError] = ValueError
) -> None:
    """Raise an error unless there is one grade from 0 to `most` for each pair of a pool."""
    if grades.shape != (pairs,):
        shape = f"they have the shape {grades.shape}"
        raise error(f"grades must hold one grade per pair of the pool, {pairs}; {shape}")
    index_array(grades, below=most + 1, name="grades", error=error)


def checked_positions(
    labels: LabelRows, sampled: IntArray, max_grade: int, pool: Pool | None
) -> IntArray:
    """Return where the pair of each row stands among the sampled ones.

    Raises LabelError unless all rows are of sampled pairs, their grades from 0 to `max_grade`.
    """
    if labels.grade.size and (labels.grade.min() < 0 or labels.grade.max() > max_grade):
        row = int(np.argmax((labels.grade < 0) | (labels.grade > max_grade)))
        given = f"grade {labels.grade[row]} of {pair_name(int(labels.pair[row]), pool)}"
        raise LabelError(f"{given} does not lie between 0 and {max_grade} (row {row})")
    position = _positions(labels.pair, sampled)
    if position.min(initial=0) < 0:
        row = int(np.argmax(position < 0))
        name = pair_name(int(labels.pair[row]), pool)
        raise LabelError(f"{name} was judged but not sampled (row {row})")
    return position


def select_rows(
    labels: LabelRows,
    *,
    sampled: IntArray,
    prefix: IntArray,
    max_grade: int,
    pool: Pool | None = None,
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
    pool : Pool, optional
        For messages that name topics and docnos.

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
    for every, some, best, chosen in labels._selected:
        same = np.array_equal(sampled, every) and np.array_equal(prefix, some)
        if same and max_grade == best:
            return chosen
    chosen = _select(labels, sampled, prefix, max_grade, pool)
    labels._selected[:] = [(sampled, prefix, max_grade, chosen)]
    return chosen


def judged_of(labels: LabelRows, pairs: IntArray) -> tuple[IntArray, LabelRows]:
    """Return those of some pairs that are judged, ascending, and their judgments.

    Sorted by (pair, grade), `pair` counting positions among them. Others may lack a judgment.
    """
    rows = labels.chosen(np.isin(labels.pair, pairs))
    judged, place = np.unique(rows.pair, return_inverse=True)
    return judged, rows.placed(place).chosen(np.lexsort((rows.grade, place)))


def _select(
    labels: LabelRows, sampled: IntArray, prefix: IntArray, max_grade: int, pool: Pool | None
) -> LabelRows:
    position = checked_positions(labels, sampled, max_grade, pool)
    if len(prefix) < len(sampled):
        position = _positions(sampled, prefix)[position]
    grades = max_grade + 1
    keys = _sorted((position * grades + labels.grade)[position >= 0], len(prefix) * grades)
    position = keys // grades
    grade = keys - position * grades
    missing = np.flatnonzero(np.bincount(position, minlength=len(prefix)) == 0)
    if len(missing):
        all_of_them = f"{len(missing)} sampled pairs of these batches have no label"
        raise LabelError(f"{all_of_them}; the first is {pair_name(int(prefix[missing[0]]), pool)}")
    if labels.repeated is None:
        return LabelRows(position, grade)
    chance = np.ones(int(labels.pair.max(initial=-1)) + 1)
    chance[labels.pair] = labels.repeated
    return LabelRows(position, grade, chance[prefix[position]])


def _sorted(keys: IntArray, below: int) -> IntArray:
    """Sort whole numbers from 0 on; those that are dense by counting them, which is faster."""
    if below > DENSE * len(keys):
        return np.sort(keys)
    return np.repeat(np.arange(below), np.bincount(keys, minlength=below))


def _positions(pairs: IntArray, among: IntArray) -> IntArray:
    """Where each pair stands among ascending ones, which are >= 0; -1 if it does not.

    Looked up in a table: judgments come in any order, in which a search would take long.
    """
    if not len(among):
        return np.full(len(pairs), -1)
    table = np.full(int(among[-1]) + 2, -1, dtype=np.int32)
    table[among] = np.arange(len(among))
    known = (pairs >= 0) & (pairs <= among[-1])
    return table[np.where(known, pairs, -1)].astype(np.int64)


def pair_labels(rows: LabelRows, *, pairs: int, measure: Measure) -> PairLabels:
    """Average the utilities (never the grades) of the judgments of each of n pairs.

    The mean estimates v = E[u(assessor)] without bias when assessors are assigned at random;
    a majority vote would not. The variance is unbiased for pairs with r >= 2. Rows are sorted by
    (pair, grade), so that sums have the same bits whoever judged first. LabelError if a pair has
    none. What measures of the same utilities have in common is worked out once.
    """
    least, most = (int(end(initial=0)) for end in (rows.grade.min, rows.grade.max))
    utilities = measure.utilities(np.arange(least, most + 1))
    key = pairs, utilities.tobytes()
    if key not in rows._labels:
        rows._labels[key] = _pair_labels(rows, pairs, utilities)
    return rows._labels[key]


def _pair_labels(rows: LabelRows, pairs: int, utilities: FloatArray) -> PairLabels:
    position = index_array(rows.pair, below=pairs, name="pair")
    number = np.bincount(position, minlength=pairs)
    if np.any(number == 0):
        first = int(np.argmin(number))
        raise LabelError(f"every pair needs at least one label; pair {first} has none")
    utility = utilities[rows.grade]
    mean = np.bincount(position, weights=utility, minlength=pairs) / number
    repeated, variance = number >= 2, np.zeros(pairs)
    measured = bool(repeated.any())
    if measured:
        again = np.flatnonzero(repeated[position])
        apart = (utility[again] - mean[position[again]]) ** 2
        squares = np.bincount(position[again], weights=apart, minlength=pairs)
        np.divide(squares, number - 1, out=variance, where=repeated)
    labels = PairLabels(mean, number, variance, measured, singles_of(rows, number))
    if not measured:
        return labels
    step = float(np.diff(np.unique(utilities)).mean()) if np.ptp(utilities) > 0.0 else 0.0
    by_grade = expected_by_grade(
        rows, number, variance[repeated, None], apart=np.array([step**2 / 2.0])
    )
    expected = np.bincount(position, weights=by_grade[rows.grade, 0], minlength=pairs) / number
    return replace(labels, expected=expected)


def expected_by_grade(
    rows: LabelRows, number: IntArray, spread: FloatArray, *, apart: FloatArray
) -> FloatArray:
    """What a judgment lets one expect of the spread within its pair, by its grade, (G, c).

    The mean of the spread over pairs with two judgments or more, in which each counts as often as
    it has the grade and for as many pairs as it stands for: what it is on average for pairs of
    which a judgment chosen at random has the grade, as that of a pair with one is. Of few such
    pairs the mean over all grades counts for `OTHERS`; and as if one pair more had been judged
    twice, whose judgments are one step apart, because agreement of a few says little of many.

    Parameters
    ----------
    rows : LabelRows
        Of n pairs.
    number : ndarray of int64, shape (n,)
        Judgments of each, some of them two.
    spread : ndarray of float64, shape (m, c)
        Of the judgments of each pair with two or more, in order: s2, or a covariance.
    apart : ndarray of float64, shape (c,)
        The spread of two judgments that are one step apart.

    Returns
    -------
    ndarray of float64, shape (G, c)
        Of grades from 0 to the largest of the rows.
    """
    repeated = number >= 2
    place, again = np.cumsum(repeated) - 1, repeated[rows.pair]
    pair, given = rows.pair[again], rows.grade[again]
    often = np.broadcast_to(np.asarray(singles_of(rows, number)), number.shape)[pair]
    weight = (often if often.any() else 1.0) / number[pair]
    weight = weight * (len(spread) / weight.sum())
    shape = int(rows.grade.max()) + 1, len(spread)
    times = sparse.csr_array((weight, (given, place[pair])), shape=shape)
    sums, seen = times @ spread, times.sum(axis=1)[:, None]
    of_all = (sums.sum(axis=0) + apart) / (seen.sum() + 1.0)
    return np.asarray((sums + OTHERS * of_all) / (seen + OTHERS), dtype=np.float64)
