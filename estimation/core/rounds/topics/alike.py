"""What all runs of a round, and their lists, let one expect of how values vary between topics.

Of few topics the variance of one difference says little: by P@10 two runs often differ by the same
tenth in all of four, which looks like a certainty, and of thousands of differences those that
happen to vary least would win the verdicts. But how differences vary is known from elsewhere. Two
runs differ by the documents that one of them has at a better rank, and which these are is known of
every topic, drawn or not. With y_ij what a unit of gain of document i adds to run j's value,

    E_jl = level + spread M_jl,    M_jl = (1/n) sum_x p^2/q sum_(i in x) y_ij y_il,

so that the variance of a difference is in proportion to the distance between two lists. One number,
`spread`, has the differences of all runs together vary as they do in the drawn topics; it is a few
times the variance of a gain, because documents of a topic go together. Another, `level`, is what
all runs have in common, easy topics and hard ones; no difference depends on it. Over the topics of
TREC-8, DL 2019, Cranfield and a learning-to-rank collection the true variances of differences are
within a factor of 1.3 to 1.5 of this (one standard deviation).

How much that counts for beside a run's own squares says `uncertainty`. No estimated value depends
on it, so that it biases none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ...inference.uncertainty import Pooled
from ...measures.table import document_gains
from .moments import err_slopes

if TYPE_CHECKING:
    from ...arrays import BoolArray, FloatArray, IntArray, SparseMatrix
    from ...data.labels import LabelRows
    from ...data.pool import Pool
    from ...measures.table import Measure

DEEPEST = 100  # the last rank that counts here under ratio measures
LEAST_SPREAD = 0.5  # times the variance of a gain: what documents that go together are not below


@dataclass(frozen=True)
class JudgedGains:
    """Mean and variance of the gains of what was judged in the drawn topics."""

    mean: float
    variance: float

    @classmethod
    def of(
        cls, labels: LabelRows, some: BoolArray, measure: Measure, max_grade: int
    ) -> JudgedGains:
        """Those of the judgments of some pairs, (N,); their order does not matter."""
        gains = document_gains(measure, max_grade=max_grade)
        number = np.bincount(labels.grade[some[labels.pair]], minlength=len(gains))
        share = number / max(int(number.sum()), 1)
        mean = float((share * gains).sum())
        return cls(mean, float((share * (gains - mean) ** 2).sum()))


def distances(
    pool: Pool,
    columns: IntArray,
    *,
    measure: Measure,
    judged: BoolArray,
    factor: FloatArray,
    gains: JudgedGains,
) -> FloatArray:
    """Return M of some runs, (k, k); the numbers of two runs do not depend on the others.

    ``judged``, (N,), are the pairs that are judged where their topic is drawn, ``factor``, (T,),
    what a topic counts for: p^2/q over the number of draws.
    """
    added = _added(pool, measure, gains)
    rows = np.flatnonzero(judged)
    matrix: SparseMatrix = pool.by_pair(added)[rows][:, columns]
    weighted = matrix.multiply(factor[pool.topic[rows]][:, None]).tocsr()
    products: SparseMatrix = sparse.csr_array(matrix.T) @ weighted
    found = np.asarray(products.toarray(), dtype=np.float64)
    return (found + found.T) / 2.0


def _added(pool: Pool, measure: Measure, gains: JudgedGains) -> FloatArray:
    """What a unit of gain adds to the value of a topic, by entry.

    For ERR as if every other document had the mean gain; for ratios, whose denominators are alike
    for all runs, one over the rank. Either is right up to a factor, and that is in `spread`.
    """
    if measure.is_linear:
        return pool.entry_weights(measure) * len(pool.topics)
    rank = pool.rank.astype(np.int64)
    deepest = min(measure.cutoff or DEEPEST, DEEPEST, pool.depth)
    by_rank = np.zeros(pool.depth + 1)
    if measure.family == "query":
        line = err_slopes(np.zeros((1, deepest), dtype=np.int64), np.array([gains.mean]))
        by_rank[1 : deepest + 1] = line[0]
    else:
        by_rank[1 : deepest + 1] = 1.0 / np.arange(1, deepest + 1)
    return np.asarray(by_rank[rank], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Alike:
    """Level and spread, as the runs of a round have them together.

    Attributes
    ----------
    level, spread : float
    ways : float
        In how many ways these runs differ from one another: (sum l)^2 / sum l^2 over the
        eigenvalues of M without what runs have in common; 1 of one or two runs.
    """

    level: float
    spread: float
    ways: float

    @classmethod
    def of(cls, covariance: FloatArray, apart: FloatArray, least: float) -> Alike:
        """Return what has the variances of all runs together, and of all their differences.

        ``covariance`` by the squares and M (``apart``) of k runs, (k, k); the spread is not below
        `least`. With two topics the squares may be 0 for every run.
        """
        runs = len(covariance)
        centered = apart - apart.mean(axis=0) - apart.mean(axis=1)[:, None] + apart.mean()
        total, squares = _differing(apart), float((centered**2).sum())
        spread = max(_differing(covariance) / total if total > 0.0 else 0.0, least)
        level = float(np.trace(covariance) - spread * np.trace(apart)) / runs
        ways = float(np.trace(centered)) ** 2 / squares if squares > 0.0 else 1.0
        return cls(max(level, 0.0), spread, max(ways, 1.0))

    def pooled(self, apart: FloatArray, freedom: float) -> Pooled:
        """Return what is expected of runs of which M is known, from topics worth so many draws."""
        return Pooled(self.level + self.spread * apart, freedom, self.ways, apart)


def _differing(matrix: FloatArray) -> float:
    """The sum over all pairs of runs of what a covariance says of their difference."""
    runs = len(matrix)
    total = runs * float(np.trace(matrix)) - float(matrix.sum())
    return total if total > 1e-12 * runs * float(np.trace(matrix)) else 0.0


def least_spread(measure: Measure, gains: JudgedGains) -> float:
    """Return the least spread; 0 for ratios, of which M is known up to a factor."""
    return 0.0 if measure.family == "ratio" else LEAST_SPREAD * gains.variance
