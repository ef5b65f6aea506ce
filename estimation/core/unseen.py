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
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from estimation.core.arrays import FloatArray, IntArray, SparseMatrix, mixed_bits
from estimation.core.drawn import Drawn
from estimation.core.estimators import cross_product
from estimation.core.measures import Measure
from estimation.core.outlook import Outlook
from estimation.core.pool import Pool

# Rows beyond this number of entries are added up in so many sums of random signs.
MOST_ENTRIES, BUCKETS = 2_000_000, 8192


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


def unseen(pool: Pool, drawn: Drawn, outlook: Outlook, *, measure: Measure) -> Unseen:
    """Work out what is expected of the pairs that were not certain to be sampled.

    Parameters
    ----------
    pool, drawn : Pool, Drawn
    outlook : Outlook
        Of the pairs of the pool.
    measure : Measure
        Of the family gain, prediction or preference.

    Raises
    ------
    MeasureError
        If the pool lacks what the measure is about.
    """
    factor = _factors(drawn)
    pairs = np.flatnonzero(factor > 0.0)
    runs = len(pool.runs)
    covariance, mean = np.zeros((runs, runs)), np.zeros((len(pool.topics), runs))
    by_topic = sparse.csr_array(
        (np.ones(len(pairs)), (pool.topic[pairs], np.arange(len(pairs)))),
        shape=(len(pool.topics), len(pairs)),
    )
    for rows, first, second in _terms(pool, measure, outlook, pairs):
        covariance += _gram(rows, factor[pairs] * second, pairs)
        scaled = sparse.csr_array(by_topic.multiply(first[None, :]))
        mean += (scaled @ rows).toarray()
    total = np.asarray(mean.sum(axis=0), dtype=np.float64)
    if drawn.counts is not None:
        covariance = covariance - _of_means(drawn, mean, total)
    return Unseen(covariance, total, _doubt(pool, drawn, measure, factor))


def unseen_residuals(pool: Pool, drawn: Drawn, *, measure: Measure, squares: FloatArray) -> Unseen:
    """Work out the same of what predictions leave over, for the difference estimator.

    Parameters
    ----------
    pool, drawn : Pool, Drawn
        Of the method ``poisson``.
    measure : Measure
        Of the family gain.
    squares : ndarray of float64, shape (N,)
        The expected square of the residual of every pair.
    """
    factor = _factors(drawn)
    pairs = np.flatnonzero(factor > 0.0)
    covariance = _gram(pool.weights(measure, pairs), (factor * squares)[pairs], pairs)
    nothing = np.zeros(len(pool.runs))
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


def _of_means(drawn: Drawn, mean: FloatArray, total: FloatArray) -> FloatArray:
    """What draws do not vary by: their mean, or the means of the topics that they are drawn in."""
    draws = drawn.draws or 1
    if not drawn.per_topic:
        return np.multiply.outer(total, total) / draws
    each = max(1.0, draws / max(1, int(np.count_nonzero(mean.any(axis=1)))))
    return cross_product(sparse.csr_array(mean), np.full(len(mean), 1.0 / each))


def _terms(
    pool: Pool, measure: Measure, outlook: Outlook, pairs: IntArray
) -> Iterator[tuple[SparseMatrix, FloatArray, FloatArray]]:
    """Rows y_ij of pairs, and by how much they count in sums of y and of products of two y.

    Where the utility depends on the run, there is a set of rows for every grade.
    """
    if measure.family == "gain":
        first, second = outlook.moments(measure, pairs)
        yield pool.weights(measure, pairs), first, second
        return
    weights, shares = pool.entry_weights(measure), outlook.shares(pairs)
    for grade, share in zip(outlook.grades.tolist(), shares, strict=True):
        terms = weights * pool.entry_utilities(measure, grade)
        yield pool.by_pair(terms)[pairs], share, share


def _gram(rows: SparseMatrix, factors: FloatArray, pairs: IntArray) -> FloatArray:
    """sum_i factor_i y_ij y_il.

    Of very many entries, by their sums in buckets with random signs, which has this expectation
    and, of every run and of every difference of runs, a relative standard error below
    sqrt(2 / BUCKETS), 1.6 %: what is near 0 stays near 0.
    """
    if rows.nnz <= MOST_ENTRIES:
        return cross_product(rows, factors)
    mixed = mixed_bits(pairs)
    signs = np.where(mixed & np.uint64(1), 1.0, -1.0) * np.sqrt(factors)
    bucket = ((mixed >> np.uint64(1)) % np.uint64(BUCKETS)).astype(np.int64)
    place = bucket, np.arange(len(pairs))
    sums = sparse.csr_array((signs, place), shape=(BUCKETS, len(pairs))) @ rows
    return cross_product(sparse.csr_array(sums), np.ones(BUCKETS))


def _doubt(pool: Pool, drawn: Drawn, measure: Measure, factor: FloatArray) -> FloatArray:
    """sqrt(sum_i factor_i b_i w_ij^2) over b sum_i w_ij, b_i the belief and b that of a sample."""
    belief = np.ones(len(pool)) if drawn.belief is None else drawn.belief
    usual = float((drawn.inclusion * belief).sum() / max(drawn.inclusion.sum(), 1e-300))
    weights = pool.weights(measure)
    total = weights.T @ np.full(len(pool), usual)
    squares = weights.power(2).T @ (factor * belief)
    doubt = np.divide(np.sqrt(squares), total, out=np.zeros_like(total), where=total > 0.0)
    return np.asarray(doubt, dtype=np.float64)
