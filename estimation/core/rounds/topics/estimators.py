"""Estimators of means over topics that were drawn and judged whole (Sawade et al. 2013, eq. 6).

Notation: x a drawn topic, L_j(x) the value of run j on it, p(x) = 1/m over the m topics that have
documents to judge, q(x) the design's probability, w(x) = p(x)/q(x), c(x) how often x was drawn,
n = sum c.

Label noise
-----------
A topic that is drawn twice brings the same judgments twice. With N(x) the variance that
disagreement between assessors gives L(x), V that of one draw of w L and
C = sum_x q^2 w^2 N = sum_x p^2 N the covariance of two draws, the mean of n draws has the variance
V/n + (n - 1)/n C, while the sample variance over n expects (V - C)/n: short by exactly C. Because
C = E_q[w p N], the drawn topics estimate it without bias by (1/n) sum c w p N^, also for draws to a
budget, whose every draw is distributed as the first. The self-normalized estimator takes
sum c w p N^ / sum c w. In a census the same is sum p^2 N^, all the variance there is. How N^ comes
from the judgments of a topic stands in `topics.values`.
"""

from dataclasses import dataclass

import numpy as np

from ...arrays import FloatArray, IntArray, refuse

BLOCK_CELLS = 1_000_000  # of topics x runs x runs that are held at a time


@dataclass(frozen=True, eq=False)
class Disagreement:
    """What disagreement between assessors does to the values of u drawn topics."""

    deviation: FloatArray  # (m, k), as in `JudgedTopics`
    topic: IntArray  # (m,), ascending
    share: float  # p, the share of one topic in the mean

    def scaled(self, multiplier: FloatArray) -> FloatArray:
        """Return rows whose products add up to sum_x multiplier(x) p N^(x), shape (m, k)."""
        factor = np.sqrt(self.share * multiplier[self.topic])
        return np.asarray(self.deviation * factor[:, None], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class QueryEstimate:
    """Estimated values of k runs.

    ``contributions``: how many topics carry the variance of a difference, and on the diagonal that
    of a value (Kish); 0 if none.
    """

    value: FloatArray  # (k,)
    covariance: FloatArray  # (k, k)
    contributions: FloatArray  # (k, k)


def ratio_estimate(
    values: FloatArray,
    *,
    weight: FloatArray,
    counts: IntArray,
    disagreement: Disagreement | None = None,
) -> QueryEstimate:
    """Estimate means by the self-normalized estimator (Sawade et al. 2013, eq. 6).

    R^_j = sum c w L_j / sum c w. Consistent, with a bias of order 1/n. By the delta method (Lemma
    1), with residuals e_j = w (L_j - R^_j):
    Cov^ = n/(n - 1) sum c e_j e_l / (sum c w)^2 + sum c w p N^_jl / sum c w.

    ``values`` has L_j(x) of the u distinct drawn topics, (u, k), ``weight`` w > 0 up to a common
    factor, ``counts`` c >= 1; without ``disagreement`` judgments are taken as they are. Raises
    ValueError if shapes differ, a weight is not positive, or there are fewer than two draws.
    """
    draws = _check_draws(values, weight, counts)
    total = float(np.sum(counts * weight))
    value = np.sum((counts * weight)[:, None] * values, axis=0) / total
    residual = weight[:, None] * (values - value)
    scale = np.sqrt(counts * (draws / (draws - 1.0))) / total
    noise = None if disagreement is None else disagreement.scaled(counts * weight / total)
    return _spread_of(value, residual * scale[:, None], disagreement, noise)


def unbiased_estimate(
    values: FloatArray,
    *,
    weight: FloatArray,
    counts: IntArray,
    disagreement: Disagreement | None = None,
) -> QueryEstimate:
    """Estimate means by importance sampling without normalization.

    R^_j = (1/n) sum c w L_j: exactly unbiased, also for draws to a budget (see
    `topics.designs`), and so is Cov^ = sum c (w L_j - R^_j)(w L_l - R^_l) / (n (n - 1))
    + (1/n) sum c w p N^_jl. The better the grade model predicts the values of a design made for
    it, the more exact it is; otherwise the weights' own variation stays in it, which
    `ratio_estimate` takes out. The arguments are as there, but ``weight`` is exactly p/q.
    """
    draws = _check_draws(values, weight, counts)
    terms = weight[:, None] * values
    value = np.sum(counts[:, None] * terms, axis=0) / draws
    scale = np.sqrt(counts / (draws * (draws - 1.0)))
    noise = None if disagreement is None else disagreement.scaled(counts * weight / draws)
    return _spread_of(value, (terms - value) * scale[:, None], disagreement, noise)


def census_estimate(values: FloatArray, *, disagreement: Disagreement | None) -> QueryEstimate:
    """Return the means over all topics: nothing is uncertain but what assessors disagree on.

    Cov^ = sum p^2 N^; the arguments are those of `ratio_estimate`, of all topics.
    """
    topics = len(values)
    every = np.full(topics, 1.0 / topics)
    noise = None if disagreement is None else disagreement.scaled(every)
    found = _spread_of(values.mean(axis=0), np.zeros_like(values), disagreement, noise)
    contributions = np.where(found.contributions > 0.0, found.contributions, float(topics))
    return QueryEstimate(found.value, found.covariance, contributions)


def _spread_of(
    value: FloatArray,
    terms: FloatArray,
    disagreement: Disagreement | None,
    noise: FloatArray | None,
) -> QueryEstimate:
    """Covariance from rows whose products add up to it: terms (u, k) of draws, noise (m, k)."""
    topic = np.zeros(0, dtype=np.int64) if disagreement is None else disagreement.topic
    rows = np.zeros((0, len(value))) if noise is None else noise
    covariance = _products(terms) + _products(rows)
    return QueryEstimate(value, covariance, _contributions(terms, rows, topic))


def _products(rows: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("uj,ul->jl", rows, rows), dtype=np.float64)


def _contributions(terms: FloatArray, noise: FloatArray, topic: IntArray) -> FloatArray:
    """(sum c)^2 / sum c^2 over the topics' shares c of each variance; 0 where there is none."""
    topics, runs = terms.shape
    bounds = np.searchsorted(topic, np.arange(topics + 1)).tolist()
    total, squares = np.zeros((runs, runs)), np.zeros((runs, runs))
    size = max(1, BLOCK_CELLS // runs**2)
    for start in range(0, topics, size):
        block = terms[start : start + size]
        shares = (block[:, :, None] - block[:, None, :]) ** 2
        np.einsum("ujj->uj", shares)[:] = block**2
        for place in np.unique(topic[bounds[start] : bounds[min(start + size, topics)]]).tolist():
            shares[place - start] += _variances(noise[bounds[place] : bounds[place + 1]])
        total += shares.sum(axis=0)
        squares += (shares**2).sum(axis=0)
    return np.divide(total**2, squares, out=np.zeros_like(total), where=squares > 0.0)


def _variances(rows: FloatArray) -> FloatArray:
    """Of the differences between runs, and on the diagonal of their values."""
    products = _products(rows)
    single = np.diag(products)
    between = np.maximum(np.add.outer(single, single) - 2.0 * products, 0.0)
    np.fill_diagonal(between, single)
    return between


def _check_draws(values: FloatArray, weight: FloatArray, counts: IntArray) -> int:
    if values.ndim != 2 or not len(values) == len(weight) == len(counts):
        found = f"not {values.shape}, {weight.shape} and {counts.shape}"
        raise ValueError(f"values, weight and counts must be of the same topics, {found}")
    refuse(~np.isfinite(values), values, name="values", rule="be finite")
    unlikely = ~((weight > 0.0) & np.isfinite(weight))
    refuse(unlikely, weight, name="weight", rule="be finite and above 0")
    refuse(~(counts >= 1), counts, name="counts", rule="be at least 1")
    if counts.sum() < 2:
        raise ValueError(f"counts must add up to at least 2 draws, not {counts.sum()}")
    return int(counts.sum())
