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
    A ratio's second-order bias, -Cov(z, D) / D, is told by the squares of what was found, as from
    other samples, and by what the model expects. Both are divided by 1 + 2 v, v the relative
    variance of the denominator: where few judgments say something of a topic, v is above 1, and the
    series does not converge. Squares see nothing of topics of which little was found (Cranfield,
    nDCG@10, 1 000 pairs: .030 of .080), a model may expect too much where few documents are
    relevant (TREC-8, AP, 5 % of the pool: .014 for .006) and knows nothing of what parts a run from
    others: where its documents are unlike theirs, its denominators err with its numerators, and it
    has less bias. That is in the squares through steady slopes (`SteadySlopes`); *mixed* are these,
    beside what the model expects, which counts for `EXPECTED` finds.

    Of AP the mean of two is taken off, of what squares say at the estimates and of what the model
    expects times the share that squares are of what it expected of them. Of Rprec it is that of the
    same two, and of nDCG that of the former and of *mixed*, each counting as much as it is large:
    either is blind to what the other may see, and shows nothing then. Squares at the estimates do
    not see ideal lists of few relevant documents (Cranfield, 8 000 pairs: .002 of .038, where
    *mixed* has .034), a model sees none that are short where it expects them to be full (TREC-8,
    1 %: 0 of .046, squares .021). Where lists are nearly full of what was found they cannot vary as
    a line says (`SteadySlopes.limited`; DL 2019, 10 %: values .010 too low without it, .006 with
    it).
    What a model is wrong about by kinds of topics none of these sees: values follow what products
    of finds say where that is sure, and intervals allow for what is left of it (`second_order`).
    Differences allow for what *mixed* is apart from what squares say at the estimates, values for
    the larger of both distances (ten runs of Cranfield, a fifth judged, AP: a neural run is told
    .022 lower than the others, and covered .56 times against them without it, .73 with it).

Below 0 and above 1
    Where a denominator is well known a ratio is as good as linear in what was found, and right on
    average: as often above what it estimates as below. Of a run whose ratios are 1 in many topics
    half of these lie above 1, and if they were taken for 1, its value would be told too low
    (TREC-8, nDCG@10: the best runs by .012 with 5 % judged, and .055 with 2 %, two standard
    errors). So they count as they are; but where a denominator is not well known, ratios are too
    large as it is, and end at 0 and 1.

By the line where denominators are not well known
    Where v is large a ratio of estimates is mostly bias, which no series tells. Linearized where
    judged pairs have their labels, and others what is expected of them, a ratio is unbiased but for
    what the model is wrong about both the denominator and the ratio of a topic, one times the
    other. The numerator of nDCG is a sum of gains, of which the model is right on average; so a
    topic has the ratio by 1 / (1 + 4 v^2), and what the line says by the rest. (Cranfield, nDCG@10,
    3 000 pairs: values .052 too high, .031 now; differences err .86 times as much.) Not AP, whose
    numerator is a sum of products, nor Rprec, whose numerator goes as far down as the denominator
    says: there a model is wrong about all topics alike (TREC-8, 1 and 2 % judged: AP .024 to .035,
    Rprec .015 to .024).

Topics without anything relevant
    A ratio of what is expected says nothing of a topic in which nothing relevant was found and of
    which little is expected: it may be as high as elsewhere, where the truth is 0 if nothing
    relevant is there. By the model that has the chance P0, the product of the chances of all pairs
    to be useless, and 0 where something was found; so the ratio counts 1 - P0 times, and
    P0 (1 - P0) times its square is added to what is expected of errors. As P0 is no better than the
    model, values allow for half of what it leaves of them as for a bias. Of 50 topics with one
    pooled document in 15, told .51 for .30 before.

Topics in which nothing was found
    There sums of r^_i are what is expected less corrections, often below 0, and a ratio of them
    says little. Where topics have one relevant document each, the best run is told far too low. How
    far, unbiased sums over all topics tell (`beyond`).

Counts that are not below what was found
    That makes denominators too large on average, and values too low: by .011 of .70 where nine
    tenths of a run's own lists are judged, four times the standard error. Ratios of what is
    estimated as it is tell by how much (`lowered`). Where a denominator is well known this is made
    up for (`MADE_UP`), 1 - 2 v times: with 10 % of TREC-8 it is as large as the second-order bias,
    and Rprec was told .0021 too low. All of it would leave AP too high by as much as nothing leaves
    it too low, with 20 % of TREC-8 and 30 % of DL 2019: half of it. Where v is larger it is itself
    little known, and of nDCG, whose lists may be full, always: there it made values err 1.2 times
    as much. What is not made up for leaves values too low, as topics without a find do, so that
    values and differences allow for their sum, as far as it is more than what the two estimates of
    the bias, apart as they are, may leave them too low by anyway (`BiasLeft.further_down`).

Variance
    Squares are passed through slopes where judged pairs have their labels and others what is
    expected of them (`SteadySlopes`). Slopes at the estimates are anything where a count came out
    next to 0 by chance: TREC-8, AP, 1 % of the pool, standard errors of 4.8 for errors of .03.

Weights
    How much a pair moves a ratio depends on how many relevant documents its topic has, which is
    better known after every batch: `weights.ratio_weights`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ...arrays import FloatArray, added, column_sums, share_of
from ...estimates.estimators import finds_of
from ...estimates.products import cross_product
from ...estimates.ratio_frames import Frame, Gains
from ...estimates.ratio_labels import (
    BiasLeft,
    RatioEstimate,
    ReachedLevels,
    levels_reached,
)
from ...estimates.ratio_lines import Tangent, denominator
from ...estimates.ratio_moments import RatioNoise
from ...estimates.totals import Totals
from ...inference.ratio_outlook import DAMPING
from ...inference.second_order import SecondMoments, followed, to_second_order
from .beyond import Beyond, share_at_most

if TYPE_CHECKING:
    from ...arrays import IntArray
    from ...data.labels import LabelRows
    from ...data.scope import Scope
    from ...measures.table import Measure
    from .batch_weights import BatchWeights
    from .frame import AdaptiveFrame
    from .slopes import SteadySlopes


MOST_TOO_LARGE = 0.5  # of a denominator, because counts are not taken below what was found
STRAIGHT = 5.0  # times the relative variance of a denominator: by how much less ratios are linear
MADE_UP = {"AP": 0.5, "Rprec": 1.0, "nDCG": 0.0}  # of what counts that were raised take
EXPECTED = 20.0  # finds that what a model expects of a bias counts for


def estimate_ratio(
    frame: AdaptiveFrame,
    scope: Scope,
    weights: BatchWeights,
    measure: Measure,
    line: SteadySlopes,
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
    line : SteadySlopes
        The measure where judged pairs have their labels, and others what is expected of them.
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
    places, topics = scope.places(pairs), len(pool.topics)
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
    bias = _bias(tangent, places, missed, uncertain)
    moved, more = line.moved(places), uncertain * line.at.more[topic]
    stored, useful = sparse.csr_array(moved), labels.reach.any(axis=0)
    covariance = cross_product(stored, more)
    contributions = finds_of(stored, np.ones(len(pairs)))
    highest = np.clip(tangent.by_topic, 0.0, 1.0 / topics)
    taken = _at_most(bias, highest, topics)
    told = _told_by_steady_slopes(line, measure, places, moved, uncertain, np.diag(contributions))
    usual, mixed = (_at_most(useful.any() * each, highest, topics) for each in told)
    nothing = np.zeros(topics) if line.at.nothing is None else line.at.nothing
    outside = outside_of(tangent, highest, line.limited.relative_variance)
    other = mixed if measure.name == "nDCG" else usual
    off = (taken + other) / 2.0 if measure.name == "AP" else _by_size(taken, other)
    counts = weights.of_judged(pairs).on_noise
    of_labels = RatioNoise.of(line.at.tangent, line.labels, rows, places, counts)
    (noise, by_grades), by_labels = of_labels.covariances(), of_labels.bias(measure)
    low = lowered(tangent, measure, highest)
    made_up = MADE_UP[measure.name] * line.free.known[:, None] * low
    by_topic = highest + outside - off - made_up
    of_line, _ = estimated_reach(frame, weights, line.labels, pairs)
    reach = np.stack([scope.spread(each) for each in of_line])
    products = by_topic
    if useful.any():
        products = _as_products_say(line, measure, places, uncertain, reach)
        if measure.name == "nDCG":
            by_topic = line.partly(by_topic, reach)
    some = 1.0 - nothing[:, None]
    by_topic, products = (some * (each - by_labels) for each in (by_topic, products))
    by_topic, rest = followed(by_topic, products, np.maximum(np.diag(covariance), 0.0))
    left, of_value = ((each - taken).sum(axis=0) for each in (mixed, usual))
    further = np.where(np.abs(of_value) > np.abs(left), of_value, left)
    further = np.where(further < 0.0, -1.0, 1.0) * np.sqrt(further**2 + rest.of_values)
    unsure_of_nothing = (nothing[:, None] * by_topic).sum(axis=0) / 2.0
    found = np.bincount(topic[useful], minlength=topics)
    beyond = Beyond.of(
        scope,
        measure,
        np.flatnonzero(found == 0),
        estimated=scope.spread(added(labels.gain, estimated)),
        likely=line.at.tangent.frame.gains.utility,
        judged=places,
        squares=uncertain * added(labels.gain, missed) ** 2,
    )
    likely = share_at_most(nothing, measure)
    told_low = beyond.told_low(by_topic, line.at.tangent.by_topic, likely)
    return RatioEstimate(
        estimate=Totals(
            value=by_topic.sum(axis=0),
            covariance=covariance + noise,
            contributions=contributions,
            noise=noise,
            sure=np.zeros(len(pool.runs)),
            noise_by_grades=by_grades,
        ),
        by_topic=by_topic,
        bias=(highest + outside - by_topic).sum(axis=0),
        found=found,
        noise_measured=bool(np.any(labels.number >= 2)),
        left=BiasLeft(
            left,
            further + np.where(further < 0.0, -1.0, 1.0) * unsure_of_nothing,
            told_low + (low - made_up).sum(axis=0),
            rest.of_differences,
        ),
    )


def outside_of(tangent: Tangent, highest: FloatArray, relative_variance: FloatArray) -> FloatArray:
    """By how much estimated ratios lie below 0 or above 1, as far as that counts, (T, k).

    Nothing does of topics whose denominator has a relative variance of 1 / `STRAIGHT` or more,
    and nowhere more than 1.
    """
    topics = len(relative_variance)
    counts = np.maximum(1.0 - STRAIGHT * relative_variance, 0.0)
    apart = np.clip(tangent.by_topic - highest, -1.0 / topics, 1.0 / topics)
    return np.asarray(counts[:, None] * apart, dtype=np.float64)


def lowered(tangent: Tangent, measure: Measure, highest: FloatArray) -> FloatArray:
    """By how much ratios are lower as counts are not taken below what was found, <= 0, (T, k).

    Counts are right on average as they are estimated: where some are not taken as far down as they
    lie, there are others that lie as far above the truth, and count. A topic whose count was raised
    tells what those lose: what it would, if its denominator were too large by what as many
    documents more add to it. (Not by what those add that it was raised by: an ideal list that is
    full gains nothing from more documents, and misses much with fewer.)
    """
    frame, gains = tangent.frame, tangent.frame.gains
    least = np.zeros((len(gains.gain), 1)) if gains.least is None else gains.least
    count = np.stack([frame.per_topic(each) for each in gains.reach])
    raised = np.clip(least - count, 0.0, least)  # no true count lies below 0
    more = np.where(raised > 0.0, least + raised - count, 0.0) / np.maximum(frame.sizes, 1)
    above = gains.reach + more[:, frame.topic]
    larger = denominator(replace(frame, gains=replace(gains, reach=above, least=None)), measure)
    too_large = raised.any(axis=0) * (larger.value * tangent.reciprocal - 1.0)
    times = 1.0 / (1.0 - np.clip(too_large, 0.0, MOST_TOO_LARGE))
    ratio = np.minimum(highest * times[:, None], 1.0 / len(times))
    return np.asarray(highest - ratio, dtype=np.float64)


def _at_most(bias: FloatArray, value: FloatArray, topics: int) -> FloatArray:
    """A bias that leaves the ratio of a topic between 0 and 1."""
    return np.asarray(np.clip(bias, value - 1.0 / topics, value))


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


def _told_by_steady_slopes(
    line: SteadySlopes,
    measure: Measure,
    places: IntArray,
    moved: FloatArray,
    uncertain: FloatArray,
    finds: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return two biases by topic and run, (T, k) both.

    What a model expects, as far as the squares are what it expected of them; and what these squares
    say, beside what a model expects, which counts for `EXPECTED` finds. Of nDCG both are this.
    """
    at = line.limited
    expected = at.bias_by_topic()
    steady = _bias(at.tangent, places, line.missed, uncertain, at.relative_variance)
    mixed = (finds * steady + EXPECTED * expected) / (finds + EXPECTED)
    if measure.name == "nDCG":
        return mixed, mixed
    return line.share_of_expected(line.moved_freely(places, moved), uncertain) * expected, mixed


def _as_products_say(
    line: SteadySlopes,
    measure: Measure,
    places: IntArray,
    uncertain: FloatArray,
    reach: FloatArray,
) -> FloatArray:
    """Ratios over T by topic and run, (T, k), to the second order; `reach` is estimated, (L, m)."""
    at, reached = line.free.tangent, line.labels.reach
    found = SecondMoments.of(at, places, missed=line.missed, reached=reached, uncertain=uncertain)
    return to_second_order(measure, at, reach, found)


def _by_size(bias: FloatArray, other: FloatArray) -> FloatArray:
    """The mean of two biases by topic and run, each counting as much as its total of a run is."""
    total, rest = (np.maximum(each.sum(axis=0), 0.0) for each in (bias, other))
    share = np.where(total + rest > 0.0, share_of(total, of=total + rest), 0.5)
    return np.asarray(share * bias + (1.0 - share) * other, dtype=np.float64)


def _bias(
    tangent: Tangent,
    places: IntArray,
    reach: FloatArray,
    factor: FloatArray,
    relative_variance: FloatArray | None = None,
) -> FloatArray:
    """The second-order bias by topic, damped, shape (T, k).

    By the squares of what judged pairs add by surprise: `reach`, (L, n), to the counts, each
    `factor` times. These tell the relative variances of D, too, unless it is known better, (T,).
    """
    crossed, variance = tangent.moments(places, reach, factor)
    if relative_variance is None:
        relative_variance = variance * tangent.reciprocal**2
    bias = tangent.bend + tangent.bias(crossed, variance)
    return np.asarray(bias / (1.0 + DAMPING * relative_variance)[:, None], dtype=np.float64)
