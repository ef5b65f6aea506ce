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

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, IntArray, SparseMatrix, refuse
from ..sampling.probabilities import drawn_probabilities
from .joint import coupled_products
from .products import (
    PowerSums,
    cross_product,
    gram,
    power_sums,
    powers_and_gram,
    root_scaled,
    with_others,
)
from .rows import found_rows
from .topic_sums import TopicSums
from .totals import Totals

if TYPE_CHECKING:
    from ..data.labels import PairLabels
    from .held_products import JudgedProducts
    from .rows import FoundRows


def importance_sampling(
    weights: SparseMatrix,
    labels: PairLabels,
    *,
    probability: FloatArray,
    counts: IntArray,
    inclusion: FloatArray | None = None,
    stratum: IntArray | None = None,
    products: JudgedProducts | None = None,
    found: FoundRows | None = None,
) -> Totals:
    """Estimate values from draws with replacement (Schnabel et al. 2016, eq. 3, 5 and 6).

    U^_j = (1/n) sum_t z_tj with z_tj = v w_ij / Q_i for the pair i of draw t; a pair that was
    drawn m times counts m times. Cov^ = sum_t (z_tj - U^_j)(z_tl - U^_l) / (n (n - 1)) plus
    sum_S w_ij w_il s2_i / (r_i pi_i) for label noise.

    Draws of several strata (topics, or batches with distributions of their own), n_b in stratum
    b, take the balance heuristic's Qbar_i = sum_b n_b Q_b(i) / n for Q_i, and the spread of z
    within strata: Cov^ = sum_b n_b/(n_b - 1) sum_t (z_tj - mean_bj)(z_tl - mean_bl) / n^2. If a
    stratum has a single draw they are taken together, which overstates the variance. What a
    pair contributes to the variance, whose number the estimate holds, has the factor
    n_b/(n_b - 1) of its stratum as well; disagreement is no part of it, as elsewhere.

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
    products : JudgedProducts, optional
        Of the same weights.
    found : tuple of csr_array and ndarray of int64, optional
        The rows that add something, as from `rows.found_rows`, where they are known.

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
    sizes = np.array([draws]) if stratum is None else np.bincount(stratum, weights=counts)
    if inclusion is None:
        inclusion = drawn_probabilities(probability, draws=draws)
    noise, likely = _noise(weights, labels, inclusion, products)
    weights, some = found or found_rows(weights, labels.mean)
    labels, probability, counts = labels.of(some), probability[some], counts[some]
    stratum = None if stratum is None else stratum[some]
    multiplier = counts * labels.mean / probability
    value = _weighted_total(weights, multiplier) / draws
    squares = counts * (labels.mean / probability) ** 2
    if stratum is None or np.any(sizes[sizes > 0] < 2):
        free = max(draws - 1, 1)
        sums = power_sums(root_scaled(weights, squares / (draws * free)).rows)
        covariance = sums.squares - np.multiply.outer(value, value) / free
    else:
        factor = (sizes / np.maximum(sizes - 1, 1))[stratum]
        sums = power_sums(root_scaled(weights, squares * factor / draws**2).rows)
        parts = TopicSums(weights, stratum, len(sizes)).of(multiplier)
        between = _dense_products(parts / np.sqrt(np.maximum(sizes - 1, 1))[:, None])
        covariance = sums.squares - between / draws**2
    more = _contributions(sums), noise, np.zeros_like(value)
    return Totals(value, covariance + noise, *more, noise_by_grades=likely)


def horvitz_thompson_poisson(
    weights: SparseMatrix,
    labels: PairLabels,
    *,
    probability: FloatArray,
    products: JudgedProducts | None = None,
    found: FoundRows | None = None,
) -> Totals:
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
    products : JudgedProducts, optional
        Of the same weights.
    found : tuple of csr_array and ndarray of int64, optional
        The rows that add something, as from `rows.found_rows`, where they are known.

    Raises
    ------
    ValueError
        If shapes differ, a weight or label is not finite, or a probability is not in (0, 1].
    """
    _check_pairs(weights, labels, probability)
    noise, likely = _noise(weights, labels, probability, products)
    weights, some = found or found_rows(weights, labels.mean)
    labels, probability = labels.of(some), probability[some]
    value = _weighted_total(weights, labels.mean / probability)
    finds = root_scaled(weights, (labels.mean / probability) ** 2)
    doubtful = root_scaled(finds.rows, 1.0 - probability[finds.pairs])
    alike = len(doubtful.pairs) == len(finds.pairs)
    sums, covariance = powers_and_gram(finds.rows, doubtful.rows, alike=alike)
    certain = probability == 1.0
    sure = _weighted_total(weights, labels.mean * certain) if certain.any() else 0.0 * value
    return Totals(
        value=value,
        covariance=covariance + noise,
        contributions=_contributions(sums),
        noise=noise,
        sure=sure,
        noise_by_grades=likely,
    )


def horvitz_thompson_iid(
    weights: SparseMatrix,
    labels: PairLabels,
    *,
    probability: FloatArray,
    draws: int,
    count_contributions: bool = True,
    products: JudgedProducts | None = None,
    found: FoundRows | None = None,
) -> Totals:
    """Estimate values from the distinct pairs of n draws with replacement.

    U^_j = sum_S y_ij / pi_i with pi_i = 1 - (1 - Q_i)^n. Cov^ = sum over i, l in S of
    (pi_il - pi_i pi_l) / (pi_il pi_i pi_l) y_ij y_lj', with pi_ii = pi_i and otherwise the exact
    pi_il = pi_i + pi_l - 1 + (1 - Q_i - Q_l)^n; plus sum_S w_ij w_il s2_i / (r_i pi_i). Unbiased;
    as every estimator of this form it can come out negative on the diagonal.

    Parameters
    ----------
    weights, labels, probability, products, found
        As in `importance_sampling`.
    draws : int
        Number n of draws.
    count_contributions : bool
        False leaves them at 0, as if there were none, and saves more than half of the time.

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
    inclusion = drawn_probabilities(probability, draws=draws)
    noise, likely = _noise(weights, labels, inclusion, products)
    weights, some = found or found_rows(weights, labels.mean)
    labels, probability, inclusion = labels.of(some), probability[some], inclusion[some]
    value = _weighted_total(weights, labels.mean / inclusion)
    kept = root_scaled(weights, (1.0 - inclusion) * (labels.mean / inclusion) ** 2)
    label = labels.mean[kept.pairs] / kept.roots
    covariance = coupled_products(kept.rows, label, probability[kept.pairs], draws)
    contributions = np.zeros_like(covariance)
    if count_contributions:
        contributions = _contributions(power_sums(kept.rows))
    more = contributions, noise, np.zeros_like(value)
    return Totals(value, covariance + noise, *more, noise_by_grades=likely)


def finds_of(weights: SparseMatrix, squares: FloatArray) -> FloatArray:
    """Return `Totals.contributions` of n pairs that add w_ij times the roots of `squares`."""
    return _contributions(power_sums(root_scaled(weights, squares).rows))


def finds_up_to(enough: float, weights: SparseMatrix, squares: FloatArray) -> FloatArray:
    """Return `finds_of` where it is below a number, and elsewhere one from there on up to it.

    Terms are not negative, so that no difference is larger than the largest of them, and Kish's
    number is at least the sum of its squares over the square of that. Fourth powers are added up
    for the other runs alone.
    """
    rows = root_scaled(weights, squares).rows
    sums = gram(rows)
    finds = _squares_apart(sums) / (float(rows.data.max(initial=0.0)) ** 2 or 1.0)
    some = np.flatnonzero(np.any(finds < enough, axis=0))
    if len(some):
        few = np.ix_(some, some)
        of_some = rows if len(some) == len(sums) else rows[:, some]
        exact = _contributions(power_sums(of_some, squares=sums[few]))
        finds[few] = np.where(finds[few] < enough, exact, finds[few])
    return finds


def contributions_and_products(
    weights: SparseMatrix, squares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return `finds_of` and the sums of products sum_i squares_i w_ij w_il, in one pass."""
    sums = power_sums(root_scaled(weights, squares).rows)
    return _contributions(sums), sums.squares


def effective_sample_size(weights: SparseMatrix, *, probability: FloatArray) -> FloatArray:
    """Return (sum_S w/pi)^2 / sum_S (w/pi)^2 of each run (Kish), shape (k,).

    The number of equally weighted pairs that the sample is worth for the run; 0 if no sampled
    pair has a weight in it. ValueError if a probability is not in (0, 1].
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


def _noise(
    weights: SparseMatrix,
    labels: PairLabels,
    inclusion: FloatArray,
    products: JudgedProducts | None,
) -> tuple[FloatArray, FloatArray | None]:
    """sum_S w_ij w_il s2 / (r pi), (k, k): what disagreement between assessors adds, and the same
    by what grades let one expect of it."""
    scale, likely = labels.noise / inclusion, labels.likely_noise
    noise = cross_product(weights, scale) if products is None else products.gram(scale)
    if likely is None:
        return noise, None
    return noise, with_others(noise, weights, scale, likely / inclusion)


def _weighted_total(weights: SparseMatrix, factors: FloatArray) -> FloatArray:
    """sum_i w_ij f_i for every run j, added from the first pair to the last."""
    return np.asarray(weights.T @ factors, dtype=np.float64)


def _dense_products(rows: FloatArray) -> FloatArray:
    """sum_b rows_bj rows_bl, added in order; a product of BLAS would depend on threads."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for row in rows:
        total += np.multiply.outer(row, row)
    return total


def _squares_apart(products: FloatArray) -> FloatArray:
    """sum_i (a_ij - a_il)^2 from the sums of a_ij a_il, and of a_ij^2 for j = l, shape (k, k)."""
    single = np.diag(products).copy()
    squares = np.add.outer(single, single) - 2.0 * products
    np.fill_diagonal(squares, single)
    return squares


def _contributions(sums: PowerSums) -> FloatArray:
    """Kish's number of the terms (a_ij - a_il)^2, and of a_ij^2 for j = l."""
    single_fourth = np.diag(sums.fourths).copy()
    squares = _squares_apart(sums.squares)
    scale_of = np.add.outer(single_fourth, single_fourth)
    powers = scale_of + 6.0 * sums.fourths - 4.0 * (sums.thirds + sums.thirds.T)
    np.fill_diagonal(powers, single_fourth)
    measurable = powers > 1e-12 * scale_of
    return np.divide(squares**2, powers, out=np.zeros_like(squares), where=measurable)
