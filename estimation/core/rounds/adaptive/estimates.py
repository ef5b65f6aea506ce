"""Totals from the batches of an adaptive round, and how far they may be off; see `sampling`.

With the shares A, means m and chances p of the batches b = 1..B, every pair i has an estimate of
its label,

    v^_i = sum_b A_bi m_bi + A_bi (v_i - m_bi) / p_bi + (1 - sum_{b'<=b} A_b'i) v_i,

the middle term where it was judged in b, and the last from then on. The values of runs are sums of
w_ij v^_i. Given the past the pairs of a batch are independent, so that

    sum_b sum_{i in b} A_bi^2 (1 - p_bi) / p_bi^2 (v_i - m_bi)^2 w_ij w_il

estimates the covariance without bias (the squares of `uncertainty`); its contributions are counted
among these terms, of which a pair that was certain to be judged is none. With what the last model
expects of every pair that was open before a batch in the place of what was found,

    sum_b sum_{i open} A_bi^2 (1 - p_bi) / p_bi E[(u_i - m_bi)^2] w_ij w_il

is what is expected. Where topics take part in a batch by chance (`sampling`), with q_b of theirs,
the pairs of a topic are not independent, and with s_b the sum of A_bi / p_bi (v_i - m_bi) w_ij over
those of a topic that were judged in b,

    sum_b sum_{i in b} A_bi^2 (q_b - p_bi) / p_bi^2 (v_i - m_bi)^2 w_ij w_il
    + sum_b sum_{topics} (1 - q_b) s_bj s_bl

estimates the covariance without bias: two pairs of a topic are judged in b with chance p p' / q. It
is the covariance of a sum, and never negative. What is expected stays as it is: of pairs that the
model tells rightly, products are 0 on average. Where several people judged a pair, their
disagreement adds s2_i / r_i times what the mean of all samples multiplies it by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ...estimates.estimators import DifferenceEstimate, contributions_and_products, finds_up_to
from ...estimates.held_products import JudgedProducts
from ...estimates.topic_sums import TopicSums, judged_sums
from ...inference.knowledge import LEAST_FINDS

if TYPE_CHECKING:
    from ...arrays import FloatArray, IntArray, SparseMatrix
    from ...data.labels import PairLabels
    from ...data.scope import Scope
    from ...measures.table import Measure
    from .batch_weights import BatchWeights, JudgedWeights


def estimate_totals(
    scope: Scope,
    weights: BatchWeights,
    at: int,
    *,
    measure: Measure,
    pairs: IntArray,
    labels: PairLabels,
) -> DifferenceEstimate:
    """Estimate the values of the runs of a scope under the measure that stands at a place.

    Parameters
    ----------
    scope : Scope
        Its sampled pool is that of the round.
    weights : BatchWeights
    at : int
        Which of the measures of `weights` it is.
    measure : Measure
        Of the family gain.
    pairs : ndarray of int64, shape (n,)
        The judged pairs of the sampled pool, ascending.
    labels : PairLabels
        Of these pairs.
    """
    pool, judged, predicted = scope.pool, weights.of_judged(pairs), weights.by_mean[at]
    find, chance, at_batch = judged.on_find, judged.chance, predicted[1][pairs]
    missed = labels.mean - at_batch
    corrected = judged.on_label * labels.mean - find * at_batch
    estimated = predicted[0].copy()
    estimated[pairs] += corrected
    place = scope.places(pairs)
    sums = judged_sums(pool, measure, place)
    of_runs = sums.weights
    by_topic = weights.predicted_totals(scope, at, measure) + sums.of(corrected)
    order, ordered = sums.many_first()
    products = JudgedProducts.of(pool, measure, place[order], ordered)
    noise = products.gram((labels.noise * judged.on_noise)[order])
    parts, squares = ordered, _alone(judged, find * missed)[order] ** 2
    if not judged.all_open:
        parts, _ = _parts(scope, weights, pairs, of_runs, find * missed)
        squares = np.ones(parts.shape[0])
    contributions, covariance = contributions_and_products(parts, squares)
    uncertain = np.where(chance < 1.0, find * missed, 0.0)
    gained = of_runs.T @ np.stack([np.maximum(uncertain, 0.0), np.maximum(-uncertain, 0.0)], axis=1)
    return DifferenceEstimate(
        value=by_topic.sum(axis=0),
        covariance=covariance + noise,
        contributions=contributions,
        noise=noise,
        sure=np.zeros(len(pool.runs)),
        by_topic=by_topic,
        expected=scope.spread(estimated),
        gains=gained[:, 0],
        losses=gained[:, 1],
        finds=finds_up_to(LEAST_FINDS, ordered, (judged.on_label * labels.mean)[order] ** 2),
    )


def variance_by_topic(
    scope: Scope,
    weights: BatchWeights,
    at: int,
    *,
    measure: Measure,
    pairs: IntArray,
    labels: PairLabels,
) -> FloatArray:
    """Split the sampling variance of `estimate_totals` by topic, shape (T, k).

    Given the past, what pairs of different topics add to a batch is independent and 0 on average,
    so that topics are uncorrelated over all batches: their variances add up, and what is told of
    each is unbiased by itself. The disagreement between assessors is not in it.

    Parameters
    ----------
    scope, weights, at, measure, pairs, labels
        As there.
    """
    sums, judged = judged_sums(scope.pool, measure, scope.places(pairs)), weights.of_judged(pairs)
    moved = judged.on_find * (labels.mean - weights.by_mean[at][1, pairs])
    if judged.all_open:
        return sums.of(_alone(judged, moved) ** 2, power=2)
    parts, topic = _parts(scope, weights, pairs, sums.weights, moved)
    once = np.ones(parts.shape[0])
    return TopicSums(parts, topic, len(scope.pool.topics)).of(once, power=2)


def _alone(judged: JudgedWeights, moved: FloatArray) -> FloatArray:
    """What each pair adds by itself: moved times what is left of the chance of its topic."""
    return np.asarray(moved * np.sqrt(np.maximum(judged.opened - judged.chance, 0.0)))


def _parts(
    scope: Scope, weights: BatchWeights, pairs: IntArray, of_runs: SparseMatrix, moved: FloatArray
) -> tuple[SparseMatrix, IntArray]:
    """Return parts of the error of every run whose squares sum to its covariance, (parts, k).

    A part for each pair, and one for each topic that took part in a batch by chance; and the topic
    of each, (parts,).
    """
    judged = weights.of_judged(pairs)
    opened = judged.opened
    topic = scope.pool.topic[scope.places(pairs)].astype(np.int64)
    alone = of_runs.copy()
    alone.data *= np.repeat(_alone(judged, moved), np.diff(alone.indptr))
    named = weights.batch[pairs] * len(scope.pool.topics) + topic
    _, first, group = np.unique(named, return_index=True, return_inverse=True)
    adding = moved * np.sqrt(1.0 - opened)
    shape = len(first), len(pairs)
    sums = sparse.csr_array((adding, (group, np.arange(len(pairs)))), shape=shape) @ of_runs
    parts = sparse.csr_array(sparse.vstack([alone, sums]))
    parts.eliminate_zeros()
    return parts, np.append(topic, topic[first])
