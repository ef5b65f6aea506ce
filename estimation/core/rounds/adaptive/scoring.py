"""What the scores of runs tell of the grades that they predict: a part of the model of `grades`.

Where measures compare scores with grades, scores are predictions. A ridge regression of the grades
of judged pairs on the mean score of each pair, and on how far each run's score is from that mean,
tells the grade y_i of any pair to within t, the root mean square of what judged pairs are off
if each is left out of the fit. The log-odds of reaching level g begin at

    1.702 (y_i - (g - 1/2)) / t,

those of a logistic curve that is next to the normal one, and the logistic regression of all else
that is known adds to them. So where runs are nearly right the grade is known after few judgments: a
coefficient of a feature, which is shrunk towards 0, would have to learn that from many. A judged
pair does not count for itself, so that the rest of the model learns what others tell of it. Scores
on another scale, upside down, or of runs that say nothing are told for what they are, and if all of
them tell nothing they have no part.

It is made of judgments of earlier batches, as all of a plan, so that nothing is biased by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import frozen

if TYPE_CHECKING:
    from ...arrays import FloatArray, IntArray, SparseMatrix
    from ...data.pool import Pool

STEEP = 1.702  # logistic curve that is nowhere .01 from the normal one (Haley 1952)
PENALTIES = 0.01, 0.1, 1.0, 10.0  # of the distances of runs: the one that is off least
OF_ALL = 1e-6, 1e-3  # of the intercept, and of the mean score
LEAST_LEFT = 0.05  # of what one judgment tells of itself, so that what it is off stays finite
LEAST_OFF = 1e-3  # of a grade
MOST_ODDS = 9.2  # log-odds of next to 1 - 1e-4, beyond which no model goes
DECIMALS = 6  # so that no plan hangs on the last bits of a fit
OF_TRUST = 2  # numbers of a `Scoring` that say how far the model is trusted
OF_SCORES = OF_TRUST + 3  # those besides one for each run


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of n pairs by k runs.

    Attributes
    ----------
    mean : ndarray of float64, shape (n,)
        The mean score of each pair: 0 and 1 are mean and standard deviation of the pool's scores.
    apart : csr_array of float64, shape (n, k)
        How far each run's score is from it.
    """

    mean: FloatArray
    apart: SparseMatrix

    @classmethod
    def of(cls, pool: Pool) -> Scores:
        """Return those of a pool with scores."""
        score, number = standardized(pool.predictions), np.diff(pool.indptr)
        mean = (pool.by_pair(score) @ np.ones(len(pool.runs))) / np.maximum(number, 1)
        return cls(frozen(mean), pool.by_pair(score - np.repeat(mean, number)))

    def of_pairs(self, pairs: IntArray) -> Scores:
        """Return those of some pairs."""
        return Scores(frozen(self.mean[pairs]), self.apart[pairs])


@dataclass(frozen=True, eq=False)
class Scoring:
    """What scores told before a batch, and how far the model is trusted with errors of scores.

    Attributes
    ----------
    part, of_sizes : float
        From 0 to 1: the share of what the model predicts of runs' utilities that estimates take
        off, and the share of sizes that it plans; see `trust`.
    off : float
        t of the module's text; 0: scores have no part in the model.
    line : ndarray of float64, shape (2 + k,)
        Intercept, slope of the mean score, slopes of the distances of runs.
    """

    part: float
    of_sizes: float
    off: float
    line: FloatArray

    @classmethod
    def of(cls, numbers: FloatArray) -> Scoring:
        """Return what has these `numbers`."""
        part, of_sizes, off = numbers[: OF_TRUST + 1].tolist()
        return cls(part, of_sizes, off, frozen(numbers[OF_TRUST + 1 :]))

    @property
    def numbers(self) -> FloatArray:
        """All that it is, (5 + k,)."""
        return frozen(np.concatenate([[self.part, self.of_sizes, self.off], self.line]))

    @property
    def tells(self) -> bool:
        """Whether scores have a part in the model."""
        return self.off > 0.0

    def silent(self) -> Scoring:
        """Return the same with no part for scores."""
        return replace(self, off=0.0, line=frozen(np.zeros_like(self.line)))

    def log_odds(self, scores: Scores, levels: IntArray) -> FloatArray:
        """Return where the log-odds of reaching each level begin, (L, n)."""
        if not self.tells:
            return np.zeros((len(levels), len(scores.mean)))
        grade = self.line[0] + self.line[1] * scores.mean + scores.apart @ self.line[2:]
        return _log_odds(np.asarray(grade), self.off, levels)


def standardized(numbers: FloatArray) -> FloatArray:
    """The same with mean 0 and variance 1; 0 where all are alike."""
    largest = float(np.abs(numbers).max(initial=0.0)) or 1.0
    scaled = numbers / largest  # squares of what is next to infinite are not
    spread = float(scaled.std())
    if not spread > 1e-12:
        return np.zeros_like(scaled)
    return np.asarray((scaled - scaled.mean()) / spread, dtype=np.float64)


def fit_scores(scores: Scores, grades: FloatArray, levels: IntArray) -> tuple[Scoring, FloatArray]:
    """Fit the line to judged pairs.

    Parameters
    ----------
    scores : Scores
        Of n judged pairs.
    grades : ndarray of float64, shape (n,)
        Their mean grades.
    levels : ndarray of int64, shape (L,)

    Returns
    -------
    scoring : Scoring
        Trusted with nothing yet.
    log_odds : ndarray of float64, shape (L, n)
        Where those of each pair begin by the judgments of the others.
    """
    columns = np.column_stack([np.ones(len(grades)), scores.mean, scores.apart.toarray()])
    tried = (_Line.of(columns, grades, penalty) for penalty in PENALTIES)
    best = min(tried, key=lambda line: line.off)
    off = max(float(np.round(best.off, DECIMALS)), LEAST_OFF)
    scoring = Scoring(0.0, 0.0, off, frozen(np.round(best.line, DECIMALS)))
    return scoring, _log_odds(best.by_others, off, levels)


@dataclass(frozen=True, eq=False)
class _Line:
    """A ridge regression; the grades that it tells of each pair by the others; its error."""

    line: FloatArray
    by_others: FloatArray
    off: float

    @classmethod
    def of(cls, columns: FloatArray, grades: FloatArray, penalty: float) -> _Line:
        ridge = np.full(columns.shape[1], penalty)
        ridge[:2] = OF_ALL
        inverse = np.linalg.inv(columns.T @ columns + np.diag(ridge))
        line = inverse @ (columns.T @ grades)
        of_itself = ((columns @ inverse) * columns).sum(axis=1)
        left = (grades - columns @ line) / np.maximum(1.0 - of_itself, LEAST_LEFT)
        return cls(line, grades - left, float(np.sqrt((left**2).mean())))


def _log_odds(grade: FloatArray, off: float, levels: IntArray) -> FloatArray:
    found = STEEP * (grade - (levels[:, None] - 0.5)) / off
    return np.asarray(np.clip(found, -MOST_ODDS, MOST_ODDS))
