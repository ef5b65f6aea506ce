"""Unbiased estimates of the value of every run, with their covariance.

Notation, in all formulas: w_ij weight of pair i in the value of run j, v_i label (mean utility
over assessors), r_i number and s2_i within-pair variance of its judgments, Q_i probability of one
draw, pi_i probability to be in the sample S, y_ij = w_ij v_i. The truth is U_j = sum_i w_ij E[v_i].

Label noise
-----------
Judgments are independent between pairs. Under ``poisson``, Var(U^) = sum (1 - pi)/pi w^2 E[v]^2
+ sum w^2 Var(v)/pi. Putting the noisy label into the first-stage estimator, sum_S (1 - pi)/pi^2
w^2 v^2, gives in expectation sum (1 - pi)/pi w^2 (E[v]^2 + Var(v)): short of the variance by
sum w^2 Var(v), which sum_S w^2 s2/(r pi) estimates without bias, because E[s2/r] = Var(v).

Under ``iid`` with importance sampling, a pair that is drawn twice brings the same label twice, so
that two draws have the covariance C = sum w^2 Var(v). With V the variance of one draw, the mean
has the variance V/n + (n - 1)/n C, while the sample variance over n expects (V - C)/n: short by
exactly C, which the same sum over S estimates without bias.
"""

from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, SparseMatrix, column_sums
from estimation.core.labels import PairLabels

BLOCK_ROWS = 2048  # pairs whose weights are held densely at a time
BLOCK_CELLS = 4_000_000  # joint probabilities held at a time: 32 MB per array


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimated values of k runs.

    Attributes
    ----------
    value : ndarray of float64, shape (k,)
        U^_j, unbiased for U_j when every pair with a weight in run j can be sampled.
    covariance : ndarray of float64, shape (k, k)
        Estimated covariance of the values, label noise included; symmetric.
    contributions : ndarray of float64, shape (k, k)
        How many pairs carry the variance of a difference U^_j - U^_l, and on the diagonal that
        of U^_j: (sum_i c_i)^2 / sum_i c_i^2 over their shares c_i in it (Kish). 0 if none.
    """

    value: FloatArray
    covariance: FloatArray
    contributions: FloatArray


def importance_sampling(
    weights: SparseMatrix,
    labels: PairLabels,
    *,
    probability: FloatArray,
    counts: IntArray,
) -> Estimate:
    """Estimate values from draws with replacement (Schnabel et al. 2016, eq. 3 and 6).

    U^_j = (1/n) sum_t z_tj with z_tj = v w_ij / Q_i for the pair i of draw t; a pair that was
    drawn m times counts m times. Cov^ = sum_t (z_tj - U^_j)(z_tl - U^_l) / (n (n - 1)) plus
    sum_S w_ij w_il s2_i / (r_i pi_i) for label noise.

    Parameters
    ----------
    weights : sparse array, shape (n_pairs, k)
        Rows of the distinct drawn pairs.
    labels : PairLabels
        Of the same pairs.
    probability : ndarray of float64, shape (n_pairs,)
        Q_i > 0.
    counts : ndarray of int64, shape (n_pairs,)
        How often each pair was drawn, at least once.

    Raises
    ------
    ValueError
        If shapes differ, a probability is not in (0, 1] or a count is below 1.
    """
    _check_pairs(weights, labels, probability)
    if counts.shape != probability.shape or np.any(counts < 1):
        raise ValueError("every pair must have been drawn at least once")
    draws = int(counts.sum())
    value = _weighted_total(weights, counts * labels.mean / probability) / draws
    squares = counts * (labels.mean / probability) ** 2
    inclusion = -np.expm1(draws * _log1m(probability))
    noise = _noise(labels, inclusion)
    drawn, noisy = cross_product(weights, squares), cross_product(weights, noise)
    spread = drawn - draws * np.multiply.outer(value, value)
    covariance = spread / (draws * max(draws - 1, 1)) + noisy
    scale = squares / draws**2 + noise
    return Estimate(value, covariance, _contributions(weights, scale, drawn / draws**2 + noisy))


def horvitz_thompson_poisson(
    weights: SparseMatrix, labels: PairLabels, *, probability: FloatArray
) -> Estimate:
    """Estimate values from a Poisson sample (Horvitz and Thompson 1952).

    U^_j = sum_S y_ij / pi_i, Cov^ = sum_S (1 - pi_i)/pi_i^2 y_ij y_il + sum_S w_ij w_il s2_i /
    (r_i pi_i); both unbiased, see the module's text.

    Parameters
    ----------
    weights : sparse array, shape (n_pairs, k)
        Rows of the sampled pairs.
    labels : PairLabels
        Of the same pairs.
    probability : ndarray of float64, shape (n_pairs,)
        pi_i, in (0, 1].

    Raises
    ------
    ValueError
        If shapes differ or a probability is not in (0, 1].
    """
    _check_pairs(weights, labels, probability)
    value = _weighted_total(weights, labels.mean / probability)
    scale = (1.0 - probability) * (labels.mean / probability) ** 2 + _noise(labels, probability)
    covariance = cross_product(weights, scale)
    return Estimate(value, covariance, _contributions(weights, scale, covariance))


def horvitz_thompson_iid(
    weights: SparseMatrix, labels: PairLabels, *, probability: FloatArray, draws: int
) -> Estimate:
    """Estimate values from the distinct pairs of n draws with replacement.

    U^_j = sum_S y_ij / pi_i with pi_i = 1 - (1 - Q_i)^n. Cov^ = sum over i, l in S of
    (pi_il - pi_i pi_l) / (pi_il pi_i pi_l) y_ij y_lj', with pi_ii = pi_i and otherwise the exact
    pi_il = pi_i + pi_l - 1 + (1 - Q_i - Q_l)^n; plus sum_S w_ij w_il s2_i / (r_i pi_i). Unbiased;
    as every estimator of this form it can come out negative on the diagonal.

    Parameters
    ----------
    weights, labels, probability
        As in `importance_sampling`.
    draws : int
        Number n of draws.

    Raises
    ------
    ValueError
        If shapes differ, a probability is not in (0, 1], or there are fewer draws than pairs.
    """
    _check_pairs(weights, labels, probability)
    if draws < len(probability):
        raise ValueError("there cannot be more distinct pairs than draws")
    inclusion = -np.expm1(draws * _log1m(probability))
    value = _weighted_total(weights, labels.mean / inclusion)
    scale = (1.0 - inclusion) * (labels.mean / inclusion) ** 2 + _noise(labels, inclusion)
    dependence = _joint_terms(weights, labels.mean, probability, draws)
    totals = cross_product(weights, scale)
    return Estimate(value, totals + dependence, _contributions(weights, scale, totals))


def topic_contributions(
    weights: SparseMatrix, factors: FloatArray, *, topic: IntArray, topics: int
) -> FloatArray:
    """Split estimates into what each topic contributes.

    Parameters
    ----------
    weights : csr_array, shape (n, k)
        Weights w_ij of the sampled pairs.
    factors : ndarray of float64, shape (n,)
        What the estimator multiplies them by: v/pi, or v times the share of draws over Q.
    topic : ndarray of int, shape (n,)
        Topic of each pair, below `topics`.

    Returns
    -------
    ndarray of float64, shape (topics, k)
        Columns sum, but for rounding, to the estimated values.
    """
    runs = weights.shape[1]
    cells = np.repeat(topic, np.diff(weights.indptr)) * runs + weights.indices
    scaled = _scaled(weights, factors)
    return column_sums(cells, scaled.data, number=topics * runs).reshape(topics, runs)


def effective_sample_size(weights: SparseMatrix, *, probability: FloatArray) -> FloatArray:
    """Return (sum_S w/pi)^2 / sum_S (w/pi)^2 of each run (Kish), shape (k,).

    The number of equally weighted pairs that the sample is worth for the run; 0 if no sampled
    pair has a weight in it.
    """
    total = _weighted_total(weights, 1.0 / probability)
    squares = column_sums(
        weights.indices,
        (weights.data / np.repeat(probability, np.diff(weights.indptr))) ** 2,
        number=weights.shape[1],
    )
    return np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0.0)


def _check_pairs(weights: SparseMatrix, labels: PairLabels, probability: FloatArray) -> None:
    if not weights.shape[0] == len(labels.mean) == len(probability):
        raise ValueError("weights, labels and probabilities must describe the same pairs")
    if np.any(probability <= 0.0) or np.any(probability > 1.0):
        raise ValueError("the probability of a sampled pair must lie in (0, 1]")


def _log1m(probability: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log1p(-probability)


def _noise(labels: PairLabels, inclusion: FloatArray) -> FloatArray:
    """s2 / (r pi): what each pair's disagreement between assessors adds, per squared weight."""
    return np.asarray(labels.variance / (labels.number * inclusion), dtype=np.float64)


def _scaled(weights: SparseMatrix, factors: FloatArray) -> SparseMatrix:
    """Multiply the rows of a sparse array."""
    scaled = weights.copy()
    scaled.data = weights.data * np.repeat(factors, np.diff(weights.indptr))
    return scaled


def _weighted_total(weights: SparseMatrix, factors: FloatArray) -> FloatArray:
    """sum_i w_ij f_i for every run j, added from the first pair to the last."""
    return column_sums(weights.indices, _scaled(weights, factors).data, number=weights.shape[1])


def cross_product(weights: SparseMatrix, scale: FloatArray) -> FloatArray:
    """sum_i scale_i w_ij w_il for all pairs of runs; exactly symmetric (scale >= 0)."""
    kept = scale > 0.0
    scaled = _scaled(weights[kept], np.sqrt(scale[kept]))
    return _run_products(scaled, scaled)


def _run_products(left: SparseMatrix, right: SparseMatrix) -> FloatArray:
    """sum_i left_ij right_il for all pairs of runs.

    A sparse array times a dense one runs in one thread and in a fixed order, so that the sums
    have the same bits everywhere; a product of two dense ones would not.
    """
    total = np.zeros((left.shape[1], right.shape[1]))
    for start in range(0, left.shape[0], BLOCK_ROWS):
        block = slice(start, start + BLOCK_ROWS)
        total += left[block].T @ right[block].toarray()
    return total


def _contributions(weights: SparseMatrix, scale: FloatArray, totals: FloatArray) -> FloatArray:
    """Kish's number of the terms scale_i (w_ij - w_il)^2, and of scale_i w_ij^2 for j = l.

    `totals` is the cross product of the same weights and scale.
    """
    kept = scale > 0.0
    first = _scaled(weights[kept], np.sqrt(scale[kept]))
    second = first.power(2)
    fourths, thirds = _run_products(second, second), _run_products(first.power(3), first)
    single, single_fourth = np.diag(totals).copy(), np.diag(fourths).copy()
    squares = np.add.outer(single, single) - 2.0 * totals
    powers = np.add.outer(single_fourth, single_fourth) + 6.0 * fourths - 4.0 * (thirds + thirds.T)
    np.fill_diagonal(squares, single)
    np.fill_diagonal(powers, single_fourth)
    scale_of = np.add.outer(single_fourth, single_fourth)
    measurable = powers > 1e-12 * scale_of
    return np.divide(squares**2, powers, out=np.zeros_like(squares), where=measurable)


def _joint_terms(
    weights: SparseMatrix, label: FloatArray, probability: FloatArray, draws: int
) -> FloatArray:
    """Sum (pi_il - pi_i pi_l) / (pi_il pi_i pi_l) y_ij y_lj' over pairs i != l, by blocks."""
    rows = np.flatnonzero((label > 0.0) & (np.diff(weights.indptr) > 0))
    values = _scaled(weights, label)[rows]
    chances = probability[rows]
    total = np.zeros((weights.shape[1], weights.shape[1]))
    step = max(1, BLOCK_CELLS // max(1, len(rows)))
    transposed = values.T.tocsr()
    for start in range(0, len(rows), step):
        block = slice(start, min(start + step, len(rows)))
        factors = _dependence(chances, block, draws)
        total += values[block].T.tocsr() @ (transposed @ factors.T).T
    return (total + total.T) / 2.0


def _dependence(probability: FloatArray, block: slice, draws: int) -> FloatArray:
    """(pi_il - pi_i pi_l) / (pi_il pi_i pi_l) for i in a block and all l; 0 for i = l.

    pi_il - pi_i pi_l = (1 - Q_i)^n (1 - Q_l)^n ((1 - o_i o_l)^n - 1) with the odds
    o = Q / (1 - Q), which loses no digits however small Q is.
    """
    rows = np.arange(block.start, block.stop)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        odds = probability / (1.0 - probability)
        logs = draws * _log1m(probability)
        absent, present = np.exp(logs), -np.expm1(logs)
        joint_change = np.expm1(draws * np.log1p(-np.multiply.outer(odds[block], odds)))
        difference = np.multiply.outer(absent[block], absent) * joint_change
        independent = np.multiply.outer(present[block], present)
        factors = difference / ((independent + difference) * independent)
    factors[rows - block.start, rows] = 0.0
    return np.asarray(factors, dtype=np.float64)
