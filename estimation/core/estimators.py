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

A pair with one judgment has no s2; its part is estimated from the pairs with more (`labels`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, SparseMatrix, column_sums, refuse
from estimation.core.labels import PairLabels

BLOCK_ROWS = 2048  # pairs whose weights are held densely at a time
NEGLIGIBLE = 1e-18  # share of a root sum of squares: 1e5 pairs of it are still 3e-16
BLOCK_CELLS = 4_000_000  # joint probabilities held at a time: 32 MB per array
# Where `_joint_terms_by_series` holds: at least so many draws, n o_i o_l at most so large; and
# how far it goes. With fewer draws there are few pairs, and the blocks are fast.
SERIES_DRAWS, SERIES_LIMIT = 1000, 0.5
SERIES_POWER, SERIES_DEGREE = 6, 20
SURE_DRAWS = 60.0  # expected draws of a pair that couples with others below 1e-14


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
    inclusion: FloatArray | None = None,
    stratum: IntArray | None = None,
) -> Estimate:
    """Estimate values from draws with replacement (Schnabel et al. 2016, eq. 3, 5 and 6).

    U^_j = (1/n) sum_t z_tj with z_tj = v w_ij / Q_i for the pair i of draw t; a pair that was
    drawn m times counts m times. Cov^ = sum_t (z_tj - U^_j)(z_tl - U^_l) / (n (n - 1)) plus
    sum_S w_ij w_il s2_i / (r_i pi_i) for label noise.

    Draws of several strata (topics, or batches with distributions of their own), n_b in stratum
    b, take the balance heuristic's Qbar_i = sum_b n_b Q_b(i) / n for Q_i, and the spread of z
    within strata: Cov^ = sum_b n_b/(n_b - 1) sum_t (z_tj - mean_bj)(z_tl - mean_bl) / n^2. If a
    stratum has a single draw they are taken together, which overstates the variance.

    Parameters
    ----------
    weights : sparse array, shape (n_pairs, k)
        Rows of the distinct drawn pairs; with strata, of the distinct (pair, stratum).
    labels : PairLabels
        Of the same pairs.
    probability : ndarray of float64, shape (n_pairs,)
        Q_i or Qbar_i, > 0.
    counts : ndarray of int64, shape (n_pairs,)
        How often each pair was drawn, at least once.
    inclusion : ndarray of float64, shape (n_pairs,), optional
        Probability to be drawn at all; by default 1 - (1 - Q_i)^n.
    stratum : ndarray of int64, shape (n_pairs,), optional
        Stratum of each row, from 0.

    Raises
    ------
    ValueError
        If shapes differ, a weight or label is not finite, a probability is not in (0, 1] or a
        count is below 1.
    """
    _check_pairs(weights, labels, probability)
    if counts.shape != probability.shape:
        raise ValueError(f"counts has the shape {counts.shape}, not {probability.shape}")
    refuse(~(counts >= 1), counts, name="counts", rule="be at least 1")
    draws = int(counts.sum())
    multiplier = counts * labels.mean / probability
    value = _weighted_total(weights, multiplier) / draws
    squares = counts * (labels.mean / probability) ** 2
    if inclusion is None:
        inclusion = -np.expm1(draws * _log1m(probability))
    noise = _noise(labels, inclusion)
    sums = _power_sums(weights, squares / draws**2 + noise)
    drawn = cross_product(weights, squares / draws**2) if noise.any() else sums.squares
    noisy = sums.squares - drawn
    sizes = np.array([draws]) if stratum is None else np.bincount(stratum, weights=counts)
    if stratum is None or np.any(sizes[sizes > 0] < 2):
        spread = drawn - np.multiply.outer(value, value) / draws
        covariance = spread * (draws / max(draws - 1, 1)) + noisy
    else:
        factor = (sizes / np.maximum(sizes - 1, 1))[stratum]
        parts = topic_contributions(weights, multiplier, topic=stratum, topics=len(sizes))
        between = _dense_products(parts / np.sqrt(np.maximum(sizes - 1, 1))[:, None])
        drawn = cross_product(weights, squares * factor) / draws**2
        covariance = drawn - between / draws**2 + noisy
    return Estimate(value, covariance, _contributions(drawn + noisy, sums))


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
        If shapes differ, a weight or label is not finite, or a probability is not in (0, 1].
    """
    _check_pairs(weights, labels, probability)
    value = _weighted_total(weights, labels.mean / probability)
    scale = (1.0 - probability) * (labels.mean / probability) ** 2 + _noise(labels, probability)
    sums = _power_sums(weights, scale)
    return Estimate(value, sums.squares, _contributions(sums.squares, sums))


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
        If shapes differ, a weight or label is not finite, a probability is not in (0, 1], or
        there are fewer draws than pairs.
    """
    _check_pairs(weights, labels, probability)
    if draws < len(probability):
        pairs = len(probability)
        raise ValueError(f"draws must be at least the number of distinct pairs, {pairs}: {draws}")
    inclusion = -np.expm1(draws * _log1m(probability))
    value = _weighted_total(weights, labels.mean / inclusion)
    scale = (1.0 - inclusion) * (labels.mean / inclusion) ** 2 + _noise(labels, inclusion)
    dependence = _joint_terms(weights, labels.mean, probability, draws)
    sums = _power_sums(weights, scale)
    return Estimate(value, sums.squares + dependence, _contributions(sums.squares, sums))


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
    runs, kept = weights.shape[1], np.flatnonzero(factors)
    scaled = _scaled(weights[kept], factors[kept])
    cells = np.repeat(topic[kept], np.diff(scaled.indptr)) * runs + scaled.indices
    return column_sums(cells, scaled.data, number=topics * runs).reshape(topics, runs)


def effective_sample_size(weights: SparseMatrix, *, probability: FloatArray) -> FloatArray:
    """Return (sum_S w/pi)^2 / sum_S (w/pi)^2 of each run (Kish), shape (k,).

    The number of equally weighted pairs that the sample is worth for the run; 0 if no sampled
    pair has a weight in it.

    Raises
    ------
    ValueError
        If a probability is not in (0, 1].
    """
    unlikely = ~((probability > 0.0) & (probability <= 1.0))
    refuse(unlikely, probability, name="probability", rule="lie in (0, 1]")
    total = _weighted_total(weights, 1.0 / probability)
    squares = _weighted_total(weights.power(2), 1.0 / probability**2)
    return kish(total, squares)


def kish(total: FloatArray, squares: FloatArray) -> FloatArray:
    """Return the squared sum of weights over the sum of their squares; 0 without any weight."""
    return np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0.0)


def _check_pairs(weights: SparseMatrix, labels: PairLabels, probability: FloatArray) -> None:
    pairs = weights.shape[0]
    if not pairs == len(labels.mean) == len(probability):
        found = f"{pairs}, {len(labels.mean)} and {len(probability)}"
        raise ValueError(f"weights, labels and probability must be of the same pairs, not {found}")
    unlikely = ~((probability > 0.0) & (probability <= 1.0))
    refuse(unlikely, probability, name="probability", rule="lie in (0, 1]")
    refuse(~np.isfinite(weights.data), weights.data, name="weights", rule="be finite")
    refuse(~np.isfinite(labels.mean), labels.mean, name="labels.mean", rule="be finite")
    refuse(~(labels.number >= 1), labels.number, name="labels.number", rule="be at least 1")
    bad = ~(np.isfinite(labels.variance) & (labels.variance >= 0.0))
    refuse(bad, labels.variance, name="labels.variance", rule="be finite and at least 0")


def _log1m(probability: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.log1p(-probability)


def _noise(labels: PairLabels, inclusion: FloatArray) -> FloatArray:
    """s2 / (r pi): what each pair's disagreement between assessors adds, per squared weight."""
    return np.asarray(labels.noise / inclusion, dtype=np.float64)


def _scaled(weights: SparseMatrix, factors: FloatArray) -> SparseMatrix:
    """Multiply the rows of a sparse array."""
    scaled = weights.copy()
    scaled.data = weights.data * np.repeat(factors, np.diff(weights.indptr))
    return scaled


def _weighted_total(weights: SparseMatrix, factors: FloatArray) -> FloatArray:
    """sum_i w_ij f_i for every run j, added from the first pair to the last."""
    return np.asarray(weights.T @ factors, dtype=np.float64)


def cross_product(weights: SparseMatrix, scale: FloatArray) -> FloatArray:
    """sum_i scale_i w_ij w_il for all pairs of runs; exactly symmetric (scale >= 0)."""
    total = np.zeros((weights.shape[1], weights.shape[1]))
    for block in _blocks(_root_scaled(weights, scale)):
        total += block.T @ block.toarray()
    return total


def _blocks(rows: SparseMatrix) -> Iterator[SparseMatrix]:
    """Cut an array into pieces that are small enough to be held densely.

    A sparse array times a dense one runs in one thread and in a fixed order, so that the sums
    have the same bits everywhere; a product of two dense ones would not.
    """
    for start in range(0, rows.shape[0], BLOCK_ROWS):
        yield rows[start : start + BLOCK_ROWS]


def _root_scaled(weights: SparseMatrix, scale: FloatArray) -> SparseMatrix:
    """sqrt(scale_i) w_ij of the pairs that count: most sampled pairs are not relevant."""
    kept = np.flatnonzero(scale > 0.0)
    return _scaled(weights[kept], np.sqrt(scale[kept]))


@dataclass(frozen=True, eq=False)
class _PowerSums:
    """Sums over pairs i for all pairs of runs, shape (k, k), with a_ij = sqrt(scale_i) w_ij."""

    squares: FloatArray  # a_ij a_il
    fourths: FloatArray  # a_ij^2 a_il^2
    thirds: FloatArray  # a_ij^3 a_il


def _power_sums(weights: SparseMatrix, scale: FloatArray) -> _PowerSums:
    """Add up the powers that the covariance and the number of its contributions need.

    Entries below `NEGLIGIBLE` of their run's root sum of squares are left out: they cannot
    change a sum by more than rounding, and their powers are denormal, which is slow.
    """
    rows = _root_scaled(weights, scale)
    squared = np.square(rows.data)
    norm = column_sums(rows.indices, squared, number=rows.shape[1])
    rows.data[squared < NEGLIGIBLE**2 * norm[rows.indices]] = 0.0
    rows.eliminate_zeros()
    squares, fourths, thirds = np.zeros((3, rows.shape[1], rows.shape[1]))
    for block in _blocks(rows):
        dense = block.toarray()
        squares += block.T @ dense
        thirds += block.power(3).T @ dense
        fourths += block.power(2).T @ np.square(dense)
    return _PowerSums(squares, fourths, thirds)


def _dense_products(rows: FloatArray) -> FloatArray:
    """sum_b rows_bj rows_bl, added in order; a product of BLAS would depend on threads."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for row in rows:
        total += np.multiply.outer(row, row)
    return total


def _contributions(totals: FloatArray, sums: _PowerSums) -> FloatArray:
    """Kish's number of the terms (a_ij - a_il)^2, and of a_ij^2 for j = l.

    `totals` are the sums that are to be taken apart: those of the squares.
    """
    single, single_fourth = np.diag(totals).copy(), np.diag(sums.fourths).copy()
    squares = np.add.outer(single, single) - 2.0 * totals
    scale_of = np.add.outer(single_fourth, single_fourth)
    powers = scale_of + 6.0 * sums.fourths - 4.0 * (sums.thirds + sums.thirds.T)
    np.fill_diagonal(squares, single)
    np.fill_diagonal(powers, single_fourth)
    measurable = powers > 1e-12 * scale_of
    return np.divide(squares**2, powers, out=np.zeros_like(squares), where=measurable)


def _joint_terms(
    weights: SparseMatrix, label: FloatArray, probability: FloatArray, draws: int
) -> FloatArray:
    """Sum (pi_il - pi_i pi_l) / (pi_il pi_i pi_l) y_ij y_lj' over pairs i != l.

    Pairs that are all but sure to be drawn are left out: coupled with l they add, relative to
    the standard errors of y_i / pi_i and y_l / pi_l, at most x exp(-x / 2) / n with x = n Q_i.
    """
    sure = (draws >= SERIES_DRAWS) & (draws * probability > SURE_DRAWS)
    rows = np.flatnonzero((label > 0.0) & (np.diff(weights.indptr) > 0) & ~sure)
    values, chances = _scaled(weights[rows], label[rows]), probability[rows]
    largest = float(np.max(chances, initial=0.0))
    if draws >= SERIES_DRAWS and draws * largest**2 <= SERIES_LIMIT * (1.0 - largest) ** 2:
        return _joint_terms_by_series(values, chances, draws)
    return _joint_terms_by_blocks(values, chances, draws)


def _joint_terms_by_blocks(values: SparseMatrix, chances: FloatArray, draws: int) -> FloatArray:
    """Work through all i and l: the time grows with the square of the number of pairs."""
    total = np.zeros((values.shape[1], values.shape[1]))
    step = max(1, BLOCK_CELLS // max(1, len(chances)))
    transposed = values.T.tocsr()
    for start in range(0, len(chances), step):
        block = slice(start, min(start + step, len(chances)))
        odds, absence, present = _odds(chances, draws)
        factors = _dependence(
            np.multiply.outer(odds[block], odds),
            np.multiply.outer(absence[block], absence),
            np.multiply.outer(present[block], present),
            draws,
        )
        rows = np.arange(block.start, block.stop)
        factors[rows - block.start, rows] = 0.0
        total += values[block].T.tocsr() @ (transposed @ factors.T).T
    return (total + total.T) / 2.0


def _odds(chances: FloatArray, draws: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Q / (1 - Q), and the probabilities of not being among the draws and of being there."""
    with np.errstate(divide="ignore"):
        logs = draws * _log1m(chances)
        return chances / (1.0 - chances), np.exp(logs), -np.expm1(logs)


def _dependence(
    odds: FloatArray, absent: FloatArray, present: FloatArray, draws: int
) -> FloatArray:
    """(pi_il - pi_i pi_l) / (pi_il pi_i pi_l), from the products of what `_odds` returns.

    pi_il - pi_i pi_l = (1 - Q_i)^n (1 - Q_l)^n ((1 - o_i o_l)^n - 1) with the odds
    o = Q / (1 - Q), which loses no digits however small Q is.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        difference = absent * np.expm1(draws * np.log1p(-odds))
        return np.asarray(difference / ((present + difference) * present), dtype=np.float64)


def _joint_terms_by_series(values: SparseMatrix, chances: FloatArray, draws: int) -> FloatArray:
    """Expand what couples i and l into products of one factor each, then add up each factor.

    With g = (1 - Q)^n / pi and the odds o, the factor of `_dependence` is z / (1 + z) / (pi_i
    pi_l), z = g_i g_l ((1 - x/n)^n - 1) = -(b_i b_l / n) h(x), x = n o_i o_l, b = n o g, and
    h(x) = 1 - (n - 1)/n x/2! + ... Because (1 + o)^n >= 1 + n o, b <= 1, so that z^q adds at
    most n^-q: every factor is -sum_q (b_i b_l / n)^q h(x)^q / (pi_i pi_l) to its last digits.
    """
    odds, absent, present = _odds(chances, draws)
    powers, ranks, coefficients = _series(draws, draws * float(np.max(odds, initial=0.0)) ** 2)
    b, root = draws * odds * absent / present, np.sqrt(draws) * odds
    terms = b[:, None] ** powers * root[:, None] ** ranks / present[:, None]
    total = np.zeros((values.shape[1], values.shape[1]))
    for coefficient, sums in zip(coefficients.tolist(), (values.T @ terms).T, strict=True):
        total -= coefficient * np.multiply.outer(sums, sums)
    return total + cross_product(values, -_dependence(odds**2, absent**2, present**2, draws))


def _series(draws: int, limit: float) -> tuple[IntArray, IntArray, FloatArray]:
    """Exponents q and r, and coefficients, of the (b_i b_l)^q x^r that matter for x <= limit.

    Left out is what is below 1e-18 of the first term; with `SERIES_DRAWS` and `SERIES_LIMIT` all
    of it together, and what the exponents do not reach, is below 1e-16 of every factor.
    """
    h = [1.0]
    for r in range(1, SERIES_DEGREE + 1):
        h.append(-h[-1] * (draws - r) / (draws * (r + 1.0)))
    power, found = [1.0] + [0.0] * SERIES_DEGREE, []
    for q in range(1, SERIES_POWER + 1):
        power = [sum(power[s] * h[r - s] for s in range(r + 1)) for r in range(len(h))]
        found += [(q, r, power[r] * float(draws) ** -q) for r in range(len(h))]
    kept = [(q, r, c) for q, r, c in found if abs(c) * limit**r * draws > 1e-18]
    powers, ranks, coefficients = zip(*kept, strict=True)
    return np.array(powers), np.array(ranks), np.array(coefficients)
