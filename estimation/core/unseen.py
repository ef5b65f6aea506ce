"""The variance to be expected of a sample, over all pairs that it could have missed.

The squares of the pairs that happened to be found estimate the variance of a value without bias,
and say next to nothing where little was found: they are 0 if nothing was. What a sample may have
missed follows from its design, if the grades are those of an `Outlook`: for ``poisson`` and
``priority``

    Cov(U^_j, U^_l) = sum_i (1 - pi_i) / pi_i E[y_ij y_il],

y_ij = w_ij u_ij what pair i adds to run j, and for draws with replacement, e_i being how often a
pair is expected,

    Cov(U^_j, U^_l) = sum_i E[y_ij y_il] / e_i - U_j U_l / n,

with U the expected values; under ``per-query``, topic by topic. All pairs of the pool count, not
only sampled ones, which makes this stable where the squares are not.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from scipy import sparse

from estimation.core.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    SparseMatrix,
    column_sums,
    mixed_bits,
)
from estimation.core.drawn import Drawn
from estimation.core.estimators import cross_product
from estimation.core.measures import Measure
from estimation.core.outlook import Outlook
from estimation.core.pool import Pool
from estimation.core.products import gram
from estimation.core.reach import Reach

Numbers = TypeVar("Numbers", FloatArray, IntArray)

# Of more uncertain pairs than these, sums with random signs are added up; see `_Rows.gram`.
MOST_PAIRS, BUCKETS = 90_000, 4096


@dataclass(frozen=True, eq=False)
class Unseen:
    """What is expected of the pairs that were not certain to be sampled.

    Attributes
    ----------
    covariance : ndarray of float64, shape (k, k)
        Of the estimated values, without disagreement between assessors.
    mean : ndarray of float64, shape (k,)
        What the uncertain pairs add to each value.
    doubt : ndarray of float64, shape (k,)
        Standard error of each value as the prior alone has it, as a share of the value that the run
        would have if the belief in all its documents were that in the pairs of a sample, on
        average. It depends neither on judgments, so that whether a value counts as known does not
        (the values for which much was found would be the lucky ones), nor on other runs.
    goes_both_ways : bool
        Whether pairs that were not found may lower a value as well as raise it.
    """

    covariance: FloatArray
    mean: FloatArray
    doubt: FloatArray
    goes_both_ways: bool = False


def unseen(reach: Reach, drawn: Drawn, outlook: Outlook, *, measure: Measure) -> Unseen:
    """Work out what is expected of the pairs that were not certain to be sampled.

    Parameters
    ----------
    reach, drawn : Reach, Drawn
        Of one pool.
    outlook : Outlook
        Of the pairs of the pool.
    measure : Measure
        Of the family gain, prediction or preference.

    Raises
    ------
    MeasureError
        If the pool lacks what the measure is about.
    """
    pool, factor = reach.pool, _factors(drawn)
    runs = len(pool.runs)
    rows = _Rows.of(reach, measure, factor > 0.0)
    covariance, mean = np.zeros((runs, runs)), np.zeros((len(pool.topics), runs))
    for each, first, second in _terms(rows, measure, outlook):
        covariance += each.gram(factor[rows.pair] * second)
        mean += each.by_topic(first)
    total = np.asarray(mean.sum(axis=0), dtype=np.float64)
    if drawn.counts is not None:
        topics = len(np.unique(pool.topic[factor > 0.0]))
        covariance = covariance - _of_means(drawn, mean, topics)
    doubt = _doubt(rows, drawn, factor, total=reach.total_weights(measure))
    return Unseen(covariance, total, doubt)


def unseen_residuals(
    reach: Reach, drawn: Drawn, *, measure: Measure, squares: FloatArray
) -> Unseen:
    """Work out the same of what predictions leave over, for the difference estimator.

    Parameters
    ----------
    reach, drawn : Reach, Drawn
        Of one pool, by the method ``poisson``.
    measure : Measure
        Of the family gain.
    squares : ndarray of float64, shape (N,)
        The expected square of the residual of every pair.
    """
    factor = _factors(drawn)
    rows = _Rows.of(reach, measure, factor > 0.0)
    nothing = np.zeros(len(reach.pool.runs))
    covariance = rows.gram((factor * squares)[rows.pair])
    return Unseen(covariance, nothing, nothing, goes_both_ways=True)


def _factors(drawn: Drawn) -> FloatArray:
    """What E[y_ij y_il] is multiplied by, shape (N,); 0 of certain pairs and of those out of reach.

    With replacement no pair is certain.
    """
    if drawn.counts is None:
        chance = drawn.inclusion
        uncertain = (chance > 0.0) & (chance < 1.0)
        return np.divide(1.0 - chance, chance, out=np.zeros_like(chance), where=uncertain)
    expected = drawn.expected
    return np.divide(1.0, expected, out=np.zeros_like(expected), where=expected > 0.0)


def _of_means(drawn: Drawn, mean: FloatArray, topics: int) -> FloatArray:
    """What draws do not vary by: their mean, or those of the topics that they are drawn in."""
    draws = float(drawn.draws or 1)
    if drawn.per_topic:
        return cross_product(sparse.csr_array(mean), np.full(len(mean), topics / draws))
    total = mean.sum(axis=0)
    return np.asarray(np.multiply.outer(total, total) / draws, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Rows:
    """What m pairs add to each run, one row a pair: entries (pair, run) that add something.

    Attributes
    ----------
    pair : ndarray of int64, shape (m,)
        Ascending.
    entry : ndarray of int64, shape (e,)
        Entries of the pool.
    matrix : csr_array, shape (m, k)
    are_many : bool
        Whether very many pairs are uncertain, in rows or not: no matter which runs are asked for.
    """

    pool: Pool
    pair: IntArray
    entry: IntArray
    matrix: SparseMatrix
    are_many: bool

    @classmethod
    def of(cls, reach: Reach, measure: Measure, wanted: BoolArray) -> "_Rows":
        """The weights of wanted pairs that return something."""
        pool = reach.pool
        entries, pairs = reach.entries(measure)
        kept = np.flatnonzero(wanted[pairs])
        entries, pairs = entries[kept], pairs[kept]
        table = pool.rank_weights(measure)
        weights = (
            pool.entry_weights(measure)[entries] if table is None else table[pool.rank[entries]]
        )
        starts = np.flatnonzero(np.diff(pairs, prepend=-1))
        place = pool.run[entries], np.append(starts, len(pairs))
        matrix = sparse.csr_array((weights, *place), shape=(len(starts), len(pool.runs)))
        are_many = bool(np.count_nonzero(wanted) > MOST_PAIRS)
        return cls(pool, pairs[starts], entries, matrix, are_many)

    def times(self, utility: FloatArray) -> "_Rows":
        """The same, each entry multiplied by a number."""
        place = self.matrix.indices, self.matrix.indptr
        matrix = sparse.csr_array((self.matrix.data * utility, *place), self.matrix.shape)
        return replace(self, matrix=matrix)

    def spread(self, of_pairs: Numbers) -> Numbers:
        """Numbers of the pairs, (m,), for each entry."""
        return np.repeat(of_pairs, np.diff(self.matrix.indptr))

    def by_topic(self, factors: FloatArray) -> FloatArray:
        """sum_i factor_i y_ij over the pairs of each topic, shape (T, k)."""
        topics, runs = len(self.pool.topics), len(self.pool.runs)
        cells = self.spread(self.pool.topic[self.pair].astype(np.int64)) * runs
        cells += self.matrix.indices
        terms = self.matrix.data * self.spread(factors)
        return column_sums(cells, terms, number=topics * runs).reshape(topics, runs)

    def gram(self, factors: FloatArray) -> FloatArray:
        """sum_i factor_i y_ij y_il, shape (k, k).

        Of very many pairs, by their sums in buckets with random signs, which has this
        expectation and, for every run and every difference of runs, a relative standard error of
        sqrt(2 / BUCKETS), 2.2 %, at most: what is near 0 stays near 0. Buckets and signs depend on
        the place of the pair in the pool alone.
        """
        if not self.are_many:
            return cross_product(self.matrix, factors)
        mixed, runs = mixed_bits(self.pair), len(self.pool.runs)
        signed = np.where(mixed & np.uint64(1), 1.0, -1.0) * np.sqrt(factors)
        bucket = ((mixed >> np.uint64(1)) % np.uint64(BUCKETS)).astype(np.int64) * runs
        cells = self.spread(bucket) + self.matrix.indices
        sums = column_sums(cells, self.matrix.data * self.spread(signed), number=BUCKETS * runs)
        return gram(sparse.csr_array(sums.reshape(BUCKETS, runs)))


def _terms(
    rows: _Rows, measure: Measure, outlook: Outlook
) -> Iterator[tuple[_Rows, FloatArray, FloatArray]]:
    """Rows y_ij, and by how much a pair counts in sums of y and of products of two y.

    Where the utility depends on the run, there is a set of rows for every grade.
    """
    if measure.family == "gain":
        yield rows, *outlook.moments(measure, rows.pair)
        return
    pool, shares = rows.pool, outlook.shares(rows.pair)
    for grade, share in zip(outlook.grades.tolist(), shares, strict=True):
        yield rows.times(pool.entry_utilities(measure, grade)[rows.entry]), share, share


def _doubt(rows: _Rows, drawn: Drawn, factor: FloatArray, *, total: FloatArray) -> FloatArray:
    """sqrt(sum_i factor_i b_i w_ij^2) over b sum_i w_ij, b_i the belief and b that of a sample."""
    pool, runs = rows.pool, len(rows.pool.runs)
    belief = np.ones(len(pool)) if drawn.belief is None else drawn.belief
    usual = float((drawn.inclusion * belief).sum() / max(drawn.inclusion.sum(), 1e-300))
    total = usual * total
    terms = rows.matrix.data**2 * rows.spread((factor * belief)[rows.pair])
    squares = column_sums(rows.matrix.indices, terms, number=runs)
    return np.divide(np.sqrt(squares), total, out=np.zeros(runs), where=total > 0.0)
