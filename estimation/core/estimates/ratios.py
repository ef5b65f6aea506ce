"""Ratio measures, AP, nDCG and Rprec, from a sample, with delta-method covariances.

Notation, for a topic x and a run: f_i = 1/pi_i, u_i the mean utility of the sampled pair i over its
judgments, r_i its rank, R^ = sum f_i u_i over *all* sampled pairs of the topic, also those that the
run does not return. Topics without any utility found count 0, as in trec_eval; the value of a run
is the mean over all topics of the campaign.

AP
    [sum_i f_i u_i / r_i + sum_{i, l above i} f_il u_i u_l / r_i] / R^, f_il = 1/pi_il. A document
    is a pair with itself with its own probability, not its square, which Li and Kanoulas (2017)
    print. For ``poisson`` and ``priority`` f_il = f_i f_l: Poisson samples are independent, and
    priority samples have uncorrelated 1/pi weights (Duffield, Lund and Thorup 2007). For draws with
    replacement pi_il = pi_i + pi_l - 1 + (1 - Q_i - Q_l)^n; under ``per-query`` with the draws of
    the topic, of which a single one shows no two documents: the sum over l is then missing.
nDCG
    sum_i f_i u_i / log(1 + r_i) over sum_g (u_g - u_(g-1)) G(R^_g), R^_g = sum_i f_i [share of the
    judgments of i with a grade of at least g], G(n) the discounts of the first n ranks, linear
    between whole n. With whole counts this is the DCG of the ideal list.
Rprec
    sum_i f_i u_i clip(R^ - r_i + 1, 0, 1) / R^.

Judgments of different pairs are independent, so that u_i u_l is right for i != l.

Bias
----
Numerators (of Rprec: for a known R) and counts are unbiased; ratios are not, and are too large as
a rule. Their bias to second order, -Cov(z, D)/D with z as below and D the denominator, for nDCG
also what the curve of G adds, is estimated twice: pair by pair from what was found, where the
unlikely relevant documents are too few as a rule, and from what is expected of all pairs
(`ratio_outlook`). The mean of both is taken off, of each at most the whole ratio of a topic. It
hangs on the model of grades as adaptive rounds do (`rounds.adaptive.ratios`), but by what a ratio
of unbiased parts is off, and by half of what the model says of that. TREC-8, 129 runs, 50 topics,
depth 100 (108 819 pairs), Poisson, goal *absolute*, means over the runs and 24 campaigns; coverage
by the covariance below alone:

======== ======= ============ ============= ============= =========
measure  judged  plain bias   bias left     sd            coverage
======== ======= ============ ============= ============= =========
AP       5 000   0.0138       0.0009        0.0101        85 %
AP       10 000  0.0064       -0.0008       0.0069        82 %
AP       20 000  0.0022       -0.0010       0.0037        86 %
nDCG     5 000   0.0212       0.0006        0.0130        88 %
nDCG     10 000  0.0099       -0.0010       0.0107        81 %
nDCG     20 000  0.0034       -0.0012       0.0054        89 %
Rprec    5 000   0.0119       -0.0038       0.0148        79 %
Rprec    10 000  0.0043       -0.0047       0.0093        80 %
Rprec    20 000  0.0020       -0.0017       0.0048        89 %
nDCG@10  5 000   0.0015       0.0013        0.0086        89 %
======== ======= ============ ============= ============= =========

That covariance is too small, the more, the fewer relevant documents were found (22 per topic at
5 000, 35 at 10 000), and some of the bias is left. Intervals and verdicts go by what may have been
missed as well, and are withheld where that is too much: `ratio_knowledge`. Draws with replacement
whose Q has no `eps` almost never reach deep pairs: 10 000 draws (4 508 pairs) left a bias of 0.019
in AP at an sd of 0.012, by what was found alone.

Where assessors disagree, what they disagree by moves numerators and denominators as well, and is
known from pairs with two judgments: the same formula takes it off, whole, of AP and nDCG
(`ratio_moments.RatioNoise`). Cranfield to rank 10, all pairs judged, every fourth judgment of a
relevant document and every fiftieth of another wrong, by how much values of AP (.30) and nDCG@10
(.50) are off, root mean square over the runs of means of 60 trials: two judgments each .0027 and
.0027 without, .0018 and .0017 with it; four .0012 and .0015, .0004 and .0003.

Draws with replacement are estimated from the distinct pairs: how often a pair came carries no
information, and 1/pi tends to 1 as the draws become many, the mean over draws does not.

Covariance
----------
Ratios are replaced by the totals of z_ij = (a_ij u_i - b_xj h_i), a_ij what a unit of f_i u_i moves
through the numerator, b_xj h_i through the denominator; the design's own covariance of these
totals, plus the disagreement between assessors passed through the same derivatives: of
every judged pair, as one that was found useless may be useful to somebody else. Where the function
of a count has kinks (G at the cutoff, clip in Rprec) its slope is that between R^ - s and R^ + s, s
the standard error of R^.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..arrays import share_of
from ..data.labels import LabelRows, PairLabels
from .estimators import horvitz_thompson_iid, horvitz_thompson_poisson
from .ratio_frames import MANY, DrawChances, Frame, Gains
from .ratio_labels import FoundParts, RatioEstimate, ReachedLevels, deviations, levels_reached
from .ratio_lines import Tangent
from .ratio_moments import RatioNoise

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray, IntArray, SparseMatrix
    from ..data.pool import Pool
    from ..measures.table import Measure
    from .drawn import Drawn
    from .totals import Totals


def estimate_ratios(
    pool: Pool,
    measure: Measure,
    *,
    drawn: Drawn,
    rows: LabelRows,
    expected_bias: FloatArray,
    more: FloatArray,
) -> RatioEstimate:
    """Estimate a ratio measure of every run.

    Parameters
    ----------
    pool, measure, drawn : Pool, Measure, Drawn
    rows : LabelRows
        The judgments of the drawn pairs, sorted by (pair, grade); `pair` counts positions in
        `drawn.pair`.
    expected_bias : ndarray of float64, shape (T, k)
        Before correction, by what is expected of all pairs, as contributions to the values
        (`AtOutlook.bias_by_topic`).
    more : ndarray of float64, shape (T,)
        How many times the squares of the linearized totals of each topic vary, by what they leave
        out (`AtOutlook.more`).

    Raises
    ------
    MeasureError
        If the pool lacks what the measure is about.
    """
    pool.check_measure(measure)
    labels = levels_reached(rows, len(drawn.pair), measure)
    useful: BoolArray = np.any(labels.reach, axis=0)
    disputed = np.any(labels.number >= 2)  # another may find useful what nobody found so far
    counting = np.flatnonzero(useful | disputed)
    gains, places = _gains_of(pool, drawn, labels, counting)
    frame = Frame.of(pool, measure, gains, _draws_of(drawn, counting))
    tangent = Tangent.of(frame, measure)
    uncertain = np.flatnonzero(useful & (drawn.inclusion[drawn.pair] < 1.0))
    number, uncertain = labels.number[uncertain], places[uncertain]
    z = tangent.moved(uncertain, gains.reach[:, uncertain])
    bent = np.sqrt(more)[frame.topic[uncertain], None]
    total = _horvitz_thompson(z * bent, frame, uncertain, number)
    found = np.bincount(pool.topic[drawn.pair[useful]], minlength=len(pool.topics))
    squared, expected = (
        np.minimum(each, tangent.by_topic)
        for each in (_bias(tangent), expected_bias * (found > 0)[:, None])
    )
    often = 1.0 / drawn.inclusion[drawn.pair]
    of_labels = RatioNoise.of(tangent, labels, rows, places, often)
    (noise, by_grades), by_labels = of_labels.covariances(), of_labels.bias(measure)
    bias = np.minimum((squared + expected) / 2.0 + by_labels, tangent.by_topic)
    by_topic = tangent.by_topic - bias
    return RatioEstimate(
        estimate=replace(
            total,
            value=by_topic.sum(axis=0),
            covariance=total.covariance + noise,
            noise=noise,
            noise_by_grades=by_grades,
        ),
        by_topic=by_topic,
        bias=bias.sum(axis=0),
        found=found,
        noise_measured=bool(np.any(labels.number >= 2)),
        gains=_stored(np.maximum(z, 0.0)).T @ (1.0 / gains.inclusion[uncertain]),
        parts=_parts(tangent) if measure.name == "nDCG" and measure.cutoff else None,
    )


def _parts(tangent: Tangent) -> FoundParts:
    """For measures whose ideal lists may be full, which no linearization sees."""
    frame, gains = tangent.frame, tangent.frame.gains
    often = gains.utility * gains.inclusion
    there = frame.per_cell(tangent.slope, often)
    certain = np.minimum(share_of(there, of=tangent.by_topic), 1.0)
    return FoundParts(share_of(there * certain, of=tangent.reciprocal[:, None]), tangent.reciprocal)


def _gains_of(
    pool: Pool, drawn: Drawn, labels: ReachedLevels, counting: IntArray
) -> tuple[Gains, IntArray]:
    """What drawn pairs reach, and where they stand among the pairs that have it, (n,).

    Those at the positions `counting`; where they are many, all of the pool: lists of all pairs are
    at hand, and the others reach nothing.
    """
    judged, places = drawn.pair[counting], np.full(len(drawn.pair), -1)
    if drawn.counts is None and MANY * len(judged) >= len(pool):
        places[counting] = judged
        pairs, inclusion = np.arange(len(pool)), np.ones(len(pool))
        reach = np.zeros((len(labels.gain), len(pool)))
        reach[:, judged], inclusion[judged] = labels.reach[:, counting], drawn.inclusion[judged]
        return Gains(labels.gain, reach, pairs, inclusion), places
    places[counting] = np.arange(len(counting))
    return Gains(labels.gain, labels.reach[:, counting], judged, drawn.inclusion[judged]), places


def _draws_of(drawn: Drawn, useful: IntArray) -> DrawChances | None:
    """The draws with replacement that the useful ones of the sampled pairs come from."""
    if drawn.counts is None:
        return None
    chance, total = drawn.probability[useful], int(drawn.counts.sum())
    if drawn.stratum is None:
        return DrawChances(chance, total, False)
    strata = len(np.unique(drawn.stratum))  # every eligible topic has equally many draws
    return DrawChances(np.minimum(chance * strata, 1.0), total // strata, True)


@dataclass(frozen=True, eq=False)
class JudgedRatios:
    """Ratios of topics whose pairs are all judged.

    Attributes
    ----------
    value : ndarray of float64, shape (T, k)
        Of every topic and run; 0 for topics without a judgment. Where assessors of a pair
        disagree, the function of its mean utility that stands in the module's text, less its bias.
    deviation : ndarray of float64, shape (m, k)
        RatioNoise between assessors: sum over a topic's rows of d_j d_l estimates, by the delta
        method, the covariance that it gives the topic's values of runs j and l.
    topic : ndarray of int64, shape (m,)
        The topic of each row, ascending.
    likely : ndarray of float64, shape (k, k), or None
        What grades let one expect of these covariances, added up over the topics; None where no
        pair has two judgments.
    """

    value: FloatArray
    deviation: FloatArray
    topic: IntArray
    likely: FloatArray | None


def judged_ratios(pool: Pool, measure: Measure, *, rows: LabelRows) -> JudgedRatios:
    """Return the ratio of every topic and run from judgments of all pairs of some topics.

    Rows are sorted by (pair, grade), `pair` counting positions in the pool; pairs without a row
    are taken for useless. MeasureError if the pool lacks what the measure is about.
    """
    pool.check_measure(measure)
    judged, place = np.unique(rows.pair, return_inverse=True)
    placed = rows.placed(place)
    labels = levels_reached(placed, len(judged), measure)
    disputed = bool(np.any(labels.number >= 2))
    counting = np.flatnonzero(labels.reach.any(axis=0) | disputed)
    pairs = judged[counting]
    gains = Gains(labels.gain, labels.reach[:, counting], pairs, np.ones(len(pairs)))
    tangent = Tangent.of(Frame.of(pool, measure, gains, None), measure)
    places = _places(counting, len(judged))
    found = deviations(tangent, labels, placed, places)
    noise = RatioNoise.of(tangent, labels, placed, places, np.ones(len(judged)))
    topics = len(pool.topics)
    return JudgedRatios(
        value=(tangent.by_topic - noise.bias(measure)) * topics,
        deviation=found.moved * (topics * np.sqrt(found.scale))[:, None],
        topic=pool.topic[judged[found.pair]].astype(np.int64),
        likely=noise.covariances()[1] * topics**2 if disputed else None,
    )


def ratios_of_shares(
    pool: Pool, measure: Measure, *, gain: FloatArray, reach: FloatArray
) -> FloatArray:
    """Return the ratio of every topic and run where judgments of each pair go so far, (T, k).

    Parameters
    ----------
    pool, measure : Pool, Measure
    gain : ndarray of float64, shape (L,)
        By how much each level of utility exceeds the one below.
    reach : ndarray of float64, shape (L, N)
        The share of all judgments of each pair that reach each level, between 0 and 1.

    Raises
    ------
    MeasureError
        If the pool lacks what the measure is about.
    """
    pool.check_measure(measure)
    tangent = _of_all_pairs(pool, measure, gain, reach)
    return np.asarray(tangent.by_topic * len(pool.topics))


def _of_all_pairs(pool: Pool, measure: Measure, gain: FloatArray, reach: FloatArray) -> Tangent:
    gains = Gains(gain, reach, np.arange(len(pool)), np.ones(len(pool)))
    return Tangent.of(Frame.of(pool, measure, gains, None), measure)


@dataclass(frozen=True, eq=False)
class PriorSlopes:
    """Derivatives of the runs' values by the utility of pairs, c_ij = slope - topic_slope.

    Attributes
    ----------
    slope : csr_array, shape (N, k)
        Through the numerator: for pairs that the run returns.
    topic_slope : ndarray of float64, shape (T, k)
        Through the denominator: for every pair of the topic.
    """

    slope: SparseMatrix
    topic_slope: FloatArray


def prior_slopes(pool: Pool, measure: Measure, *, expected: FloatArray, best: float) -> PriorSlopes:
    """Linearize a ratio measure where every pair has its expected utility, > 0, shape (N,).

    A pair has the utility `best`, that of the best grade, or none.
    """
    pool.check_measure(measure)
    tangent = _of_all_pairs(pool, measure, np.array([best]), (expected / best)[None, :])
    return PriorSlopes(tangent.slopes, tangent.topic_slope * tangent.level_slope[0][:, None])


# ----------------------------------------------------------------------------- bias, covariance


def _bias(tangent: Tangent) -> FloatArray:
    """-Cov(z, D) / D and what a curved D adds, by topic: the second-order bias, shape (T, k)."""
    gains, every = tangent.frame.gains, np.arange(len(tangent.frame.topic))
    moments = tangent.moments(every, gains.reach, gains.spread)
    return np.asarray(tangent.bend + tangent.bias(*moments))


def _stored(rows: FloatArray) -> SparseMatrix:
    count, runs = rows.shape
    columns, bounds = np.tile(np.arange(runs), count), np.arange(count + 1) * runs
    return sparse.csr_array((rows.ravel(), columns, bounds), shape=rows.shape)


def _horvitz_thompson(z: FloatArray, frame: Frame, pairs: IntArray, number: IntArray) -> Totals:
    """The design's estimate of totals of z, without disagreement between assessors."""
    weights, draws = _stored(z), frame.draws
    labels = PairLabels(np.ones(len(z)), number, np.zeros(len(z)), False)
    if draws is not None and not draws.per_topic:
        chance = draws.chance[pairs]
        return horvitz_thompson_iid(weights, labels, probability=chance, draws=draws.number)
    inclusion = frame.gains.inclusion[pairs]
    whole = horvitz_thompson_poisson(weights, labels, probability=inclusion)
    if draws is None:
        return whole
    bounds = np.searchsorted(frame.topic[pairs], np.arange(len(frame.sizes) + 1)).tolist()
    expanded, covariance = z / inclusion[:, None], whole.covariance
    for start, stop in pairwise(bounds):
        overlap = draws.overlap(pairs[start:stop])
        covariance = covariance + _dependence(overlap, expanded[start:stop])
    return replace(whole, covariance=covariance)


def _dependence(overlap: FloatArray, expanded: FloatArray) -> FloatArray:
    """sum over i != l of (pi_il - pi_i pi_l) / pi_il times z_ij / pi_i times z_lj' / pi_l."""
    shares = 1.0 - overlap
    np.fill_diagonal(shares, 0.0)
    # A sparse array times a dense one adds in a fixed order, on every machine and core.
    product = sparse.csr_array(expanded.T) @ (sparse.csr_array(shares) @ expanded)
    return np.asarray((product + product.T) / 2.0, dtype=np.float64)


def _places(useful: IntArray, pairs: int) -> IntArray:
    """Where n pairs stand among the useful ones; -1 of the others."""
    places = np.full(pairs, -1)
    places[useful] = np.arange(len(useful))
    return places
