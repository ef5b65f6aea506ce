"""Ratio measures from the batches of an adaptive round: AP, nDCG and Rprec; see `estimates.ratios`.

What is estimated of every pair is by how much of its judgments each level of utility is reached:
r^_i, as labels are (`estimates`), with what the model expects in the place of what was not judged.
Numerators and counts are sums of r^_i, and of products of two of them, which are unbiased as well:
for i != l, R_b being what the shares before batch b left,

    E[r^_i r^_l] = r_i r_l sum_b (A_bi R_(b+1)l + A_bl R_(b+1)i + A_bi A_bl) = r_i r_l,

because given the past the pairs of a batch are independent, what comes later is right on average,
and the sum is R_1i R_1l - R_(B+1)i R_(B+1)l = 1. So ratios are formed as from a sample in which
every pair were certain, each with its estimate, and err by what these err by. Counts are not taken
below what was found: that much there is.

Bias
    A ratio's second-order bias, -Cov(z, D) / D, is estimated by the squares of what was found, as
    from other samples, and divided by 1 + 2 v, v the relative variance of the denominator: where
    few judgments say something of a topic, v is above 1, and the series does not converge. Taken
    off whole it left three times as much bias, of the other sign (TREC-8, 129 runs, 1 % of the
    pool, AP: .042 in place of .013).

Weights
    How much a pair moves a ratio depends on how many relevant documents its topic has, which the
    model knows better after every batch. `ratio_weights` are the weights for the goal where every
    pair has what the model expects of it: TREC-8, AP, 20 % of the pool, error .0026 with them and
    .0033 with those of ranks alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ...arrays import FloatArray, column_sums
from ...estimates.estimators import Totals, finds_of
from ...estimates.products import cross_product
from ...estimates.ratio_labels import RatioEstimate, ReachedLevels, deviations, levels_reached
from ...estimates.ratio_lines import Frame, Gains, Tangent
from ...inference.ratio_knowledge import DAMPING, AtOutlook

if TYPE_CHECKING:
    from ...arrays import IntArray
    from ...data.labels import LabelRows
    from ...data.scope import Scope
    from ...inference.outlook import Outlook
    from ...measures.table import Measure
    from .estimates import BatchWeights
    from .sampling import AdaptiveFrame


def estimate_ratio(
    frame: AdaptiveFrame,
    scope: Scope,
    weights: BatchWeights,
    measure: Measure,
    *,
    pairs: IntArray,
    rows: LabelRows,
) -> RatioEstimate:
    """Estimate a ratio measure of every run of a scope.

    Parameters
    ----------
    frame, scope, weights : AdaptiveFrame, Scope, BatchWeights
    measure : Measure
        Of the family ratio.
    pairs : ndarray of int64, shape (n,)
        The judged pairs of the sampled pool, ascending.
    rows : LabelRows
        Their judgments, sorted, `pair` counting positions in `pairs`.
    """
    pool = scope.pool
    pool.check_measure(measure)
    labels = levels_reached(rows, len(pairs), measure, also=frame.levels)
    estimated, missed = estimated_reach(frame, weights, labels, pairs)
    uncertain = 1.0 - weights.chance[pairs]
    places, topics = scope.place[pairs], len(pool.topics)
    topic = pool.topic[places].astype(np.int64)
    squares = np.zeros_like(estimated)
    squares[:, pairs] = uncertain * missed**2
    gains = Gains(
        labels.gain,
        np.stack([scope.spread(each) for each in estimated]),
        np.arange(len(pool)),
        np.ones(len(pool)),
        np.stack([scope.spread(each) for each in squares]),
        np.stack([column_sums(topic, each, number=topics) for each in labels.reach]),
    )
    tangent = Tangent.of(Frame.of(pool, measure, gains, None), measure)
    moved = tangent.moved(places, missed)
    bias = np.minimum(_bias(tangent, places, moved, missed, uncertain), tangent.by_topic)
    by_topic = np.clip(tangent.by_topic - bias, 0.0, 1.0 / topics)
    of_labels = deviations(tangent, labels, rows, places)
    noise = cross_product(
        sparse.csr_array(of_labels.moved),
        of_labels.scale * weights.on_noise(pairs)[of_labels.pair],
    )
    stored, useful = sparse.csr_array(moved), labels.reach.any(axis=0)
    return RatioEstimate(
        estimate=Totals(
            value=by_topic.sum(axis=0),
            covariance=cross_product(stored, uncertain) + noise,
            contributions=finds_of(stored, np.ones(len(pairs))),
            noise=noise,
            sure=np.zeros(len(pool.runs)),
        ),
        by_topic=by_topic,
        bias=bias.sum(axis=0),
        found=np.bincount(topic[useful], minlength=topics),
        noise_measured=bool(np.any(labels.number >= 2)),
    )


def estimated_reach(
    frame: AdaptiveFrame, weights: BatchWeights, labels: ReachedLevels, pairs: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return r^_i of all pairs of the sampled pool, and what judged ones add by surprise.

    The first has shape (L, N), the second, (A / p) (r_i - m_i), shape (L, n).
    """
    level = np.maximum(np.searchsorted(frame.levels, labels.grade, side="right") - 1, 0)
    summed, last, _ = weights.reach[:, level]
    missed = weights.on_find[pairs] * (labels.reach - last[:, pairs])
    estimated = summed.copy()
    estimated[:, pairs] += missed
    estimated[:, pairs] += (weights.on_label - weights.on_find)[pairs] * labels.reach
    return estimated, missed


def _bias(
    tangent: Tangent, places: IntArray, moved: FloatArray, reach: FloatArray, factor: FloatArray
) -> FloatArray:
    """-Cov(z, D) / D and what a curved D adds, by topic and damped, shape (T, k)."""
    topic, topics = tangent.frame.topic[places], len(tangent.frame.sizes)
    falling = tangent.falling(places, reach) * tangent.reciprocal[topic]
    relative_variance = column_sums(topic, factor * falling**2, number=topics)
    shape = topics, len(places)
    sums = sparse.csr_array((factor * falling, (topic, np.arange(len(places)))), shape=shape)
    damping = 1.0 + DAMPING * relative_variance
    return np.asarray((tangent.bend - sums @ moved) / damping[:, None], dtype=np.float64)


def at_outlook(
    scope: Scope,
    weights: BatchWeights,
    measure: Measure,
    outlook: Outlook,
    *,
    pairs: IntArray,
    rows: LabelRows,
) -> AtOutlook:
    """Linearize a ratio where judged pairs have their labels, and others what is expected of them.

    What the batches may have missed of a pair is the difference from the mean of what they
    predicted of it. No topic is overlooked: the model expects something of every pair.
    """
    pool, every = scope.pool, np.arange(len(scope.pool))
    known, origin = np.flatnonzero(~scope.added), scope.origin
    gain = np.diff(measure.utilities(outlook.grades))
    levels = np.flatnonzero(gain > 0.0) if gain.any() else np.array([0])
    expected = np.zeros((len(levels), len(pool)))
    expected[:, known] = outlook.reach(origin[known])[levels]
    number = np.maximum(np.bincount(rows.pair, minlength=len(pairs)), 1)
    reach = expected.copy()
    for each, grade in zip(reach, outlook.grades[1:][levels].tolist(), strict=True):
        reached = np.bincount(rows.pair[rows.grade >= grade], minlength=len(pairs))
        each[scope.place[pairs]] = reached / number
    gains = Gains(gain[levels], reach, every, np.ones(len(pool)))
    tangent = Tangent.of(Frame.of(pool, measure, gains, None), measure)
    spread = scope.spread(weights.spread)
    of_model = np.minimum(levels, weights.reach.shape[1] - 1)
    predicted = np.stack([scope.spread(each) for each in weights.reach[2, of_model]])
    predicted = np.divide(predicted, spread, out=np.zeros_like(predicted), where=spread > 0.0)
    shares = -np.diff(expected, axis=0, prepend=1.0, append=0.0)
    steps, slopes = gains.gain, tangent.level_slope[:, tangent.frame.topic]
    squares, crossed, falling = np.zeros((3, len(pool)))
    for got, share in enumerate(shares):  # pairs that reach the first `got` levels
        left = (np.arange(len(steps)) < got)[:, None] - predicted
        utility, fall = steps @ left, (steps[:, None] * slopes * left).sum(axis=0)
        squares += share * utility**2
        crossed += share * utility * fall
        falling += share * fall**2
    return AtOutlook(tangent, spread, squares, crossed, falling)
