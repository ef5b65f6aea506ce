"""A model of grades that learns from judgments where relevant documents stand.

For each level g of the scale the chance that a judgment reaches it is logistic in what is known of
a pair before it is judged: how many runs return it, how high, and which; its topic; and grades that
somebody predicted. All effects but the intercept are shrunk towards 0 (ridge regression), those of
topics and runs more, because there are many of them. In simulated rounds on three collections this
told residuals better than the products of `raking`, above all where much is judged.

Predictions enter as features, never as labels: what they are worth is learned, and useless ones
get a coefficient near 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, sparse, special

from ...arrays import FloatArray, Int32Array, IntArray, SparseMatrix, frozen
from ...data.pool_ranks import best_rank, number_of_runs

if TYPE_CHECKING:
    from ...data.pool import Pool

RIDGE, TOPIC_RIDGE, RUN_RIDGE = 1.0, 2.0, 5.0
FREE = 1e-3  # of the intercept
MOST_LEVELS = 5
MOST_FITTED = 8192  # judged pairs that a model is fitted to
LEAST_JUDGED, LEAST_FOUND = 12, 2  # before anything is learned
DECIMALS = 6  # of coefficients, so that no result hangs on the last bits of a fit
LEAST_CHANCE = 1e-4
ENOUGH = {"maxiter": 300, "ftol": 1e-8, "gtol": 1e-4}


def grade_levels(max_grade: int) -> IntArray:
    """Return the grades whose reach is modeled: all above 0, or some that are evenly spaced.

    >>> grade_levels(3).tolist(), grade_levels(10).tolist()
    ([1, 2, 3], [1, 3, 6, 8, 10])
    """
    number = min(max_grade, MOST_LEVELS)
    return np.unique(np.round(np.linspace(1, max_grade, number)).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Features:
    """What is known of pairs of a pool before anything is judged: of all N, or of n of them.

    Attributes
    ----------
    pool : Pool
    columns : ndarray of float64, shape (n, 1 + F)
        1, and F numbers with mean 0 and variance 1 over the pool.
    topic : ndarray of int32, shape (n,)
    runs : csr_array of int8, shape (n, k)
        1 where a run returns a pair.
    """

    pool: Pool
    columns: FloatArray
    topic: Int32Array
    runs: SparseMatrix

    @classmethod
    def of(cls, pool: Pool, predicted: FloatArray | None = None) -> Features:
        """Return those of a pool; `predicted` has a column of grades, (N, S), NaN for none."""
        one = np.ones(len(pool))
        numbers = [
            np.log(np.maximum(number_of_runs(pool), 1)),
            np.log(np.maximum(_reciprocal_ranks(pool), 1e-9)),
            np.log(np.asarray(best_rank(pool), dtype=np.float64)),
        ]
        for grades in () if predicted is None else predicted.T:
            numbers += _of_predicted(grades)
        columns = frozen(np.stack([one, *map(_standardized, numbers)], axis=1))
        return cls(pool, columns, pool.topic, pool.by_pair(np.ones(len(pool.run), dtype=np.int8)))

    def of_pairs(self, pairs: IntArray) -> Features:
        """Return those of n pairs, ascending."""
        if len(pairs) == len(self.topic):
            return self
        columns, topic = frozen(self.columns[pairs]), frozen(self.topic[pairs])
        return Features(self.pool, columns, topic, self.runs[pairs])

    @property
    def parameters(self) -> int:
        """Number of coefficients of a level."""
        return int(self.columns.shape[1]) + len(self.pool.topics) + len(self.pool.runs)

    @property
    def ridge(self) -> FloatArray:
        """By how much each coefficient is shrunk, shape (parameters,)."""
        numbers, pool = self.columns.shape[1] - 1, self.pool
        parts = [FREE], [RIDGE] * numbers, [TOPIC_RIDGE] * len(pool.topics)
        return np.concatenate([*parts, [RUN_RIDGE] * len(pool.runs)])

    def matrix(self) -> SparseMatrix:
        """Return all features, csr_array of shape (n, parameters)."""
        number = len(self.topic)
        place = self.topic, np.arange(number + 1)
        shape = number, len(self.pool.topics)
        of_topics = sparse.csr_array((np.ones(number), *place), shape=shape)
        return sparse.csr_array(
            sparse.hstack([sparse.csr_array(self.columns), of_topics, self.runs])
        )

    def scores(self, coefficients: FloatArray) -> FloatArray:
        """Return the linear predictor of each pair, shape (n,), sums taken in order."""
        first, topics = self.columns.shape[1], len(self.pool.topics)
        total = np.zeros(len(self.topic))
        for column, coefficient in zip(self.columns.T, coefficients[:first], strict=True):
            total += column * coefficient
        total += coefficients[first : first + topics][self.topic]
        total += self.runs @ coefficients[first + topics :]
        return total


def _reciprocal_ranks(pool: Pool) -> FloatArray:
    total = pool.by_pair(1.0 / pool.rank) @ np.ones(len(pool.runs))
    return np.asarray(total, dtype=np.float64)


def _of_predicted(grades: FloatArray) -> list[FloatArray]:
    """A grade, and by its order how rare one as high is; where nothing is predicted, the mean."""
    known = ~np.isnan(grades)
    if not known.any():
        return []
    ordered = np.sort(grades[known])
    below = np.searchsorted(ordered, grades[known], side="left")
    rare = -np.log(1.0 - below / (len(ordered) + 1.0))
    columns = []
    for numbers in (grades[known], rare):
        column = np.full(len(grades), numbers.mean())
        column[known] = numbers
        columns.append(column)
    return columns if known.all() else [*columns, known.astype(np.float64)]


def _standardized(numbers: FloatArray) -> FloatArray:
    largest = float(np.abs(numbers).max(initial=0.0)) or 1.0
    scaled = numbers / largest  # squares of what is next to infinite are not
    spread = float(scaled.std())
    if not spread > 1e-12:
        return np.zeros_like(scaled)
    return np.asarray((scaled - scaled.mean()) / spread, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Finds:
    """Judged pairs that reach a level, ascending, and the shares of their judgments, (L, f)."""

    pair: IntArray
    reach: FloatArray


@dataclass(frozen=True, eq=False)
class LearnedGrades:
    """Chances of every level: coefficients, shape (L, parameters); and what they were learned from.

    `found` is kept where sizes of pairs hang on it, which is where measures are ratios.
    """

    levels: IntArray
    coefficients: FloatArray
    found: Finds | None = None

    def reach(self, features: Features) -> FloatArray:
        """Return the expected share of judgments of each pair with at least each level, (L, n).

        Never rising from one level to the next.
        """
        reached = np.empty((len(self.levels), len(features.topic)))
        for level, coefficients in enumerate(self.coefficients):
            reached[level] = special.expit(features.scores(coefficients))
        np.clip(reached, LEAST_CHANCE, 1.0 - LEAST_CHANCE, out=reached)
        for lower, higher in pairwise(reached):
            np.minimum(lower, higher, out=higher)
        return reached


def fit_grades(
    features: Features,
    pairs: IntArray,
    reached: FloatArray,
    *,
    levels: IntArray,
    before: LearnedGrades | None = None,
) -> LearnedGrades | None:
    """Fit the model to judged pairs.

    Parameters
    ----------
    features : Features
    pairs : ndarray of int64, shape (n,)
    reached : ndarray of float64, shape (n, L)
        Share of the judgments of each pair that reach each level.
    levels : ndarray of int64, shape (L,)
    before : LearnedGrades, optional
        Of fewer judgments: where to begin, which saves half of the time.

    Returns
    -------
    LearnedGrades or None
        None where there is too little to learn from: few judgments, or (nearly) all alike.
    """
    judged, found = len(pairs), float(reached[:, 0].sum()) if len(pairs) else 0.0
    if judged < LEAST_JUDGED or not LEAST_FOUND <= found <= judged - LEAST_FOUND:
        return None
    every = max(1, -(-judged // MOST_FITTED))
    rows, ridge = features.of_pairs(pairs[::every]).matrix(), features.ridge
    begin = [None] * len(levels) if before is None else before.coefficients
    fitted = [
        _logistic(rows, column[::every], ridge, start)
        for column, start in zip(reached.T, begin, strict=True)
    ]
    return LearnedGrades(levels, frozen(np.round(np.stack(fitted), DECIMALS)))


def _logistic(
    rows: SparseMatrix, shares: FloatArray, ridge: FloatArray, start: FloatArray | None
) -> FloatArray:
    """Coefficients of a logistic ridge regression of shares between 0 and 1."""
    transposed = rows.T.tocsr()
    if start is None:
        start = np.zeros(rows.shape[1])
        start[0] = special.logit((shares.sum() + 0.5) / (len(shares) + 1.0))

    def loss(coefficients: FloatArray) -> tuple[float, FloatArray]:
        scores = rows @ coefficients
        shrunk = ridge * coefficients
        misfit = np.logaddexp(0.0, scores) - shares * scores
        slope = transposed @ (special.expit(scores) - shares) + shrunk
        return float(misfit.sum() + 0.5 * (coefficients @ shrunk)), slope

    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=ENOUGH)
    return np.asarray(found.x, dtype=np.float64)
