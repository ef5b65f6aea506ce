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

    sum_b sum_{i in b} A_bi^2 (1 - c_b) / q_b (q_b - p_bi) / p_bi^2 (v_i - m_bi)^2 w_ij w_il
    + sum_b sum_{topics} c_b s_bj s_bl

estimates the covariance: two pairs of a topic are judged in b with chance p p' / q. Without bias
if every topic takes part by a coin of its own, with c = 1 - q. By classes c = a (1 - q), and on
average it is never below the covariance: what it says of the choice of topics is what coins would
give, times a, and what it says of pairs inside of topics is unbiased (`topic_choice`). It is the
covariance of a sum, and never negative. What is expected stays as it is: of pairs that the
model tells rightly, products are 0 on average. Where several people judged a pair, their
disagreement adds s2_i / r_i times what the mean of all samples multiplies it by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...estimates.estimators import contributions_and_products, finds_up_to
from ...estimates.held_products import JudgedProducts
from ...estimates.products import with_others
from ...estimates.topic_sums import TopicSums, judged_sums
from ...estimates.totals import DifferenceEstimate
from ...inference.knowledge import LEAST_FINDS
from .error_parts import moved_alone, parts_of_error

if TYPE_CHECKING:
    from ...arrays import FloatArray, IntArray
    from ...data.labels import PairLabels
    from ...data.scope import Scope
    from ...measures.table import Measure
    from .batch_weights import BatchWeights


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
    scale, likely = (labels.noise * judged.on_noise)[order], labels.likely_noise
    noise = products.gram(scale)
    if likely is not None:
        likely = with_others(noise, ordered, scale, (likely * judged.on_noise)[order])
    parts, squares = ordered, moved_alone(judged, find * missed)[order] ** 2
    if not judged.all_open:
        parts, _ = parts_of_error(scope, weights, pairs, of_runs, find * missed)
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
        noise_by_grades=likely,
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
    each is unbiased by itself. Where topics take part by classes, a class has a little less than
    its topics' variances add up to; what is told of each is a times its own, and that adds up to
    what is told of all. The disagreement between assessors is not in it.

    Parameters
    ----------
    scope, weights, at, measure, pairs, labels
        As there.
    """
    sums, judged = judged_sums(scope.pool, measure, scope.places(pairs)), weights.of_judged(pairs)
    moved = judged.on_find * (labels.mean - weights.by_mean[at][1, pairs])
    if judged.all_open:
        return sums.of(moved_alone(judged, moved) ** 2, power=2)
    parts, topic = parts_of_error(scope, weights, pairs, sums.weights, moved)
    once = np.ones(parts.shape[0])
    return TopicSums(parts, topic, len(scope.pool.topics)).of(once, power=2)
