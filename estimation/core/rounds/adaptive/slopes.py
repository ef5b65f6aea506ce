"""Ratios of adaptive rounds linearized where judged pairs have their labels; see `ratios`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import column_sums, share_of
from ...estimates.ratio_frames import Frame, Gains
from ...estimates.ratio_labels import by_levels
from ...estimates.ratio_lines import Tangent, discounted
from ...inference.ratio_outlook import AtOutlook, chance_of_nothing, levels_of

if TYPE_CHECKING:
    from ...arrays import FloatArray, IntArray
    from ...data.labels import LabelRows
    from ...data.scope import Scope
    from ...estimates.ratio_labels import ReachedLevels
    from ...inference.outlook import Outlook
    from ...measures.table import Measure
    from .batch_weights import BatchWeights

MOST_BEYOND = 3.0  # ratios, of a line
STEP = 0.5  # of the error of R: how far either way its slope is taken (Rprec)


@dataclass(frozen=True, eq=False)
class SteadySlopes:
    """A ratio linearized where judged pairs have their labels, and others what is expected of them.

    What batches found is passed through slopes that are steady: where next to nothing was judged of
    a topic its estimated count may be next to 0, and slopes at the estimates anything.

    Attributes
    ----------
    free : AtOutlook
        With slopes as they are.
    limited : AtOutlook
        With slopes of ideal lists by which these vary no more than they can: values are told by
        them, and biases.
    smooth : AtOutlook
        With slopes that tell what values err by. The numerator of Rprec goes down to rank R, and
        how steeply it moves with R is told over half of what R may be off by either way, as far
        as that is well known: whether the one document at the last rank is relevant tells little
        of the others that count if R is estimated twenty too high (TREC-8, 10 % judged: squares
        were 1.6 times what differences erred by). Over all of it what is left of the bends is
        missing where R is small (24 of 60 ranks: differences covered .931), or little known
        (Cranfield and 3 % scattered relevant documents, 3 000 pairs: .888, and two of sixteen
        campaigns with a false verdict). Biases are second derivatives, and go by *free*.
    bounds : ndarray of float64, shape (T,)
        So many times *smooth* slopes tell what topics err by (`AtOutlook.bounds`).
    labels : ReachedLevels
        Judgments of the judged pairs, by the levels of `at`.
    missed : ndarray of float64, shape (L, n)
        What they add by surprise, as `estimated_reach` has it.
    """

    free: AtOutlook
    limited: AtOutlook
    smooth: AtOutlook
    bounds: FloatArray
    labels: ReachedLevels
    missed: FloatArray

    def partly(self, by_topic: FloatArray, estimated: FloatArray) -> FloatArray:
        """Ratios of topics, (T, k), and where denominators are not well known the line instead.

        `estimated` are r^_i of the pool by the levels of `labels`, (L, M). No line lies below 0 or
        above 1 by more than `MOST_BEYOND`: of a topic of which next to nothing is expected it is as
        steep as can be.
        """
        most = 1.0 / len(by_topic)
        line = self.limited.tangent.along(estimated)
        line = np.clip(line, -MOST_BEYOND * most, (1.0 + MOST_BEYOND) * most)
        share = self.limited.straight[:, None]
        return np.asarray(line + share * (by_topic - line), dtype=np.float64)

    @cached_property
    def at(self) -> AtOutlook:
        """With slopes that tell what topics err by."""
        return self.smooth.bounded(self.bounds)

    def moved(self, places: IntArray) -> FloatArray:
        """By how much what judged pairs add by surprise moves every run, shape (n, k)."""
        return self.at.tangent.moved(places, self.missed)

    def moved_freely(self, places: IntArray, moved: FloatArray) -> FloatArray:
        """What `moved` is, (n, k), with slopes as they are."""
        if self.at is self.free:
            return moved
        if self.smooth is not self.free:
            return self.free.tangent.moved(places, self.missed)
        return share_of(moved, of=self.bounds[self.free.tangent.frame.topic[places]][:, None])

    def share_of_expected(self, moved: FloatArray, uncertain: FloatArray) -> FloatArray:
        """Squares of what was found over what was expected of them, at most 1, shape (k,).

        A model that expects too much of pairs expects as much too large a bias. `moved` are by how
        much pairs move every run, (n, k), with slopes that are not bounded.
        """
        expected = self.free.variances
        squares = (uncertain[:, None] * moved**2).sum(axis=0)
        return np.minimum(share_of(squares, of=np.maximum(expected, 0.0)), 1.0)


def at_outlook(
    scope: Scope,
    weights: BatchWeights,
    measure: Measure,
    outlook: Outlook,
    *,
    pairs: IntArray,
    rows: LabelRows,
    of_round: Scope | None = None,
) -> SteadySlopes:
    """Linearize a ratio where judged pairs have their labels, and others what is expected of them.

    What the batches may have missed of a pair is the difference from the mean of what they
    predicted of it. Slopes are bounded by the runs of the round, whoever is asked for; by default
    these are the runs of the scope.
    """
    pool, every = scope.pool, np.arange(len(scope.pool))
    levels, gain, expected = reach_expected(scope, measure, outlook)
    labels = by_levels(rows, len(pairs), gain, outlook.grades[1:][levels])
    reach = expected.copy()
    reach[:, scope.places(pairs)] = labels.reach
    spread = scope.spread(weights.spread)
    of_model = np.minimum(levels, weights.reach.shape[1] - 1)
    missed = weights.on_find[pairs] * (labels.reach - weights.reach[1, of_model][:, pairs])
    summed = np.stack([scope.spread(each) for each in weights.reach[2, of_model]])
    predicted = share_of(summed, of=spread)
    gains = Gains(gain, reach, every, np.ones(len(pool)))
    tangent = Tangent.of(Frame.of(pool, measure, gains, None), measure)
    moments = moments_about(tangent, expected, predicted)
    nothing = chance_of_nothing(tangent.frame, reach[0])
    nothing[pool.topic[scope.place[pairs[labels.reach[0] > 0.0]]]] = 0.0
    at = AtOutlook(tangent, spread, *moments, nothing)
    limited = _limited(at, measure, labels, pool.topic[scope.places(pairs)].astype(np.int64))
    smooth = at
    if measure.name == "Rprec":
        missing = expected * (1.0 - predicted) ** 2 + (1.0 - expected) * predicted**2
        squared = (STEP * at.known[pool.topic]) ** 2
        uncertain = replace(gains, variances=squared * spread * missing)
        steps = Tangent.of(Frame.of(pool, measure, uncertain, None), measure)
        smooth = replace(at, tangent=steps)
    bounds = smooth.bounds
    if of_round is not None and of_round.pool is not pool:
        whole = at_outlook(of_round, weights, measure, outlook, pairs=pairs, rows=rows)
        bounds = whole.bounds
    return SteadySlopes(at, limited, smooth, bounds, labels, missed)


def _limited(at: AtOutlook, measure: Measure, labels: ReachedLevels, topic: IntArray) -> AtOutlook:
    """The same with slopes of ideal lists by which these vary no more than they can.

    A list with a cutoff is no shorter than what was found of it, and no longer than full, however
    many documents a sample says there are. What lies between a and b and is D on average has at
    most the variance (D - a) (b - D) (Bhatia and Davis 2000, *A better bound on the variance*).
    `topic`, (n,), is that of the judged pairs.
    """
    if measure.name != "nDCG" or measure.cutoff is None:
        return at
    topics, gain = len(at.variance), at.tangent.frame.gains.gain
    found = np.stack([column_sums(topic, each, number=topics) for each in labels.reach])
    least = (gain[:, None] * discounted(measure, found)).sum(axis=0)
    most = gain.sum() * discounted(measure, np.array([float(measure.cutoff)]))
    value = share_of(np.ones(topics), of=at.tangent.reciprocal)
    possible = np.maximum(value - least, 0.0) * np.maximum(most - value, 0.0)
    share = np.where(at.variance > possible, share_of(possible, of=at.variance), 1.0)
    return at.flatter(np.sqrt(share))


def reach_expected(
    scope: Scope, measure: Measure, outlook: Outlook
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return levels of utility of an outlook, (L,), their gains, and how far pairs reach, (L, M).

    Nothing is expected of pairs that were not in the sampled pool.
    """
    known, origin = np.flatnonzero(~scope.added), scope.origin
    levels, gain = levels_of(measure, outlook)
    expected = np.zeros((len(levels), len(scope.pool)))
    expected[:, known] = outlook.reach(origin[known])[levels]
    return levels, gain, expected


def moments_about(
    tangent: Tangent, expected: FloatArray, predicted: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return E[u_i^2], E[u_i h_i] and E[h_i^2] of pairs, (M,) each, about what was predicted.

    `expected` and `predicted` say how far pairs reach each level, shape (L, M).
    """
    shares = -np.diff(expected, axis=0, prepend=1.0, append=0.0)
    steps, slopes = tangent.frame.gains.gain, tangent.level_slope[:, tangent.frame.topic]
    squares, crossed, falling = np.zeros((3, expected.shape[1]))
    for got, share in enumerate(shares):  # pairs that reach the first `got` levels
        left = (np.arange(len(steps)) < got)[:, None] - predicted
        utility, fall = steps @ left, (steps[:, None] * slopes * left).sum(axis=0)
        squares += share * utility**2
        crossed += share * utility * fall
        falling += share * fall**2
    return squares, crossed, falling
