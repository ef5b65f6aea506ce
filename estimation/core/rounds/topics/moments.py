"""Moments of a topic's value under a grade model (Sawade et al. 2013, Theorem 3).

For every topic of a campaign: the expectation and the variance of a linear measure or of ERR, of
runs, and summed over what a goal compares. No function runs
through the exponentially many label vectors of a topic. Ratio measures have no closed form; theirs
are to first order (`topics.ratio_moments`), which costs precision of the design, never
correctness of an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import BoolArray, FloatArray, IntArray, column_sums, share_of
from ...measures.table import document_gains
from ...sampling.goals import Goal, effective_weights
from .grade_models import GradeModel, check_grade_model
from .ratio_moments import GradeLine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...data.pool import Pool
    from ...measures.table import Measure
    from .designs import Estimator

NEGLIGIBLE = 1e-12  # variances below this share of the second moments are rounding


@dataclass(frozen=True, eq=False)
class Moments:
    """Moments of a topic's values under a grade model, for T topics of the campaign and k runs.

    Attributes
    ----------
    mean, variance : ndarray of float64, shape (T, k)
        E[L | x] and Var[L | x] >= 0.
    """

    mean: FloatArray
    variance: FloatArray

    @property
    def second(self) -> FloatArray:
        """E[L^2 | x], shape (T, k)."""
        return self.variance + self.mean**2


def value_moments(
    pool: Pool, *, runs: Sequence[str], measure: Measure, model: GradeModel
) -> Moments:
    """Return the moments of runs' values of every topic.

    Linear measures: E L = sum lambda E u, Var L = sum lambda^2 Var u, in time O(length). ERR: in
    time O(length) as well (Sawade et al. 2013, eq. 31-34), with A_i = prod_{l<i} E(1 - g_l)^2 and
    T_i = sum_{l>i} E[g_l]/l prod_{i<m<l} E(1 - g_m):
    E L^2 = sum_i A_i (E[g_i^2]/i^2 + 2 E[g_i (1 - g_i)] T_i / i).

    Raises
    ------
    PoolError
        If the pool has no such run.
    GradeModelError
        If the model does not fit the pool.
    MeasureError
        If no grade of the model's scale counts under the measure.
    """
    columns = [pool.run_index(run) for run in runs]
    if measure.family == "ratio":
        line = GradeLine.of(pool, measure, model)
        return Moments(line.mean[:, columns], line.variance(lambda values: values[:, columns]))
    gain = GainMoments.of(pool, measure, model)
    if measure.is_linear:
        weights = pool.entry_weights(measure) * len(pool.topics)
        mean = entry_sums(pool, weights * gain.first[pool.entry_pair])
        variance = entry_sums(pool, weights**2 * gain.variance[pool.entry_pair])
        return Moments(mean[:, columns], variance[:, columns])
    found = [err_moments(ranked_pairs(pool, run, depth=measure.cutoff), gain) for run in runs]
    mean, second = (np.stack(each, axis=1) for each in zip(*found, strict=True))
    return Moments(mean, np.maximum(second - mean**2, 0.0))


@dataclass(frozen=True, eq=False)
class GainMoments:
    """Moments of the gain g of every pair; the last entry is "no document", with g = 0.

    Attributes
    ----------
    first, second, variance, missed, missed_twice, mixed : ndarray of float64, shape (N + 1,)
        E g, E g^2, Var g, E(1 - g), E(1 - g)^2, E[g (1 - g)].
    """

    first: FloatArray
    second: FloatArray
    variance: FloatArray
    missed: FloatArray
    missed_twice: FloatArray
    mixed: FloatArray

    @classmethod
    def of(cls, pool: Pool, measure: Measure, model: GradeModel) -> GainMoments:
        """Compute the moments; raise GradeModelError if the model does not fit the pool."""
        check_grade_model(pool, model)
        gains = document_gains(measure, max_grade=model.max_grade)
        none = np.zeros((1, len(gains)))
        none[0, 0] = 1.0
        chance = np.concatenate([model.probability, none])

        def expected(values: FloatArray) -> FloatArray:
            return np.asarray((chance * values).sum(axis=1))

        first = expected(gains)
        spread = (chance * (gains - first[:, None]) ** 2).sum(axis=1)
        misses = 1.0 - gains
        moments = map(expected, (misses, misses**2, gains * misses))
        return cls(first, expected(gains**2), spread, *moments)


@dataclass(frozen=True, eq=False)
class GoalMoments:
    """What the topics tell about a goal, under the model.

    The goal compares c things: values of runs, or differences D of them.

    ======== ==================================
    goal     compared
    ======== ==================================
    single   L
    absolute L_j of every run
    pair     L_1 - L_2
    baseline L_j - L_0 of every run
    ranking  L_j - mean_j L_j of every run
    ======== ==================================

    Attributes
    ----------
    mean : ndarray of float64, shape (T, c)
        E D.
    variance : ndarray of float64, shape (T,)
        sum Var D.
    """

    mean: FloatArray
    variance: FloatArray

    def squares(self, estimator: Estimator, topics: BoolArray) -> FloatArray:
        """Return what a topic contributes to the variance of an estimator, shape (T,).

        sum E (D - E D)^2 for "ratio", the asymptotic variance of Lemma 1 (E D: the model's mean
        over some topics, those that can be drawn), sum E D^2 for "unbiased".
        """
        mean = self.mean
        if estimator == "ratio":
            mean = mean - mean[topics].mean(axis=0)
        return np.asarray(self.variance + np.sum(mean**2, axis=1), dtype=np.float64)

    def level(self, topics: BoolArray) -> float:
        """Return the sum of the squared means of D over some topics."""
        return float(np.sum(self.mean[topics].mean(axis=0) ** 2))


def goal_moments(pool: Pool, *, goal: Goal, measure: Measure, model: GradeModel) -> GoalMoments:
    """Return the moments of what a goal compares, topic by topic.

    ERR needs E[L_j L_l] for every two runs of the goal "ranking", in time quadratic in them.
    """
    if measure.family == "ratio":
        mean, variance = _ratio_goal_moments(pool, goal, measure, model)
    else:
        gain = GainMoments.of(pool, measure, model)
        of_goal = _linear_moments if measure.is_linear else _err_goal_moments
        mean, variance = of_goal(pool, goal, measure, gain)
    return GoalMoments(_contrasts(goal, mean), variance)


def _contrasts(goal: Goal, values: FloatArray) -> FloatArray:
    """What the goal compares, from the values (rows, runs) of all its runs."""
    if goal.kind in ("single", "absolute"):
        return values
    if goal.kind == "ranking":
        return np.asarray(values - values.mean(axis=1, keepdims=True))
    return values[:, :-1] - values[:, -1:]


def _linear_moments(
    pool: Pool, goal: Goal, measure: Measure, gain: GainMoments
) -> tuple[FloatArray, FloatArray]:
    """Means (T, runs) of the goal's runs, and the summed variance of what it compares."""
    topics = len(pool.topics)
    expected = pool.entry_weights(measure) * gain.first[pool.entry_pair]
    means = entry_sums(pool, expected) * topics
    lambdas = effective_weights(pool, goal, measure) * topics
    variance = column_sums(pool.topic, lambdas**2 * gain.variance[:-1], number=topics)
    return means[:, [pool.run_index(tag) for tag in goal.all_runs]], variance


def entry_sums(pool: Pool, values: FloatArray) -> FloatArray:
    """Add up values of entries by topic and run, shape (T, k)."""
    topics, runs = len(pool.topics), len(pool.runs)
    return column_sums(pool.entry_cell, values, number=topics * runs).reshape(topics, runs)


def _err_goal_moments(
    pool: Pool, goal: Goal, measure: Measure, gain: GainMoments
) -> tuple[FloatArray, FloatArray]:
    slots = [ranked_pairs(pool, tag, depth=measure.cutoff) for tag in goal.all_runs]
    moments = [err_moments(each, gain) for each in slots]
    mean = np.stack([first for first, _ in moments], axis=1)
    contrasts = _contrasts(goal, np.eye(len(slots)))
    gram = np.einsum("jc,lc->jl", contrasts, contrasts)
    variance, scale = np.zeros(len(mean)), np.zeros(len(mean))
    for j, (_, second) in enumerate(moments):
        variance += gram[j, j] * (second - mean[:, j] ** 2)
        scale += gram[j, j] * second
        for other in np.flatnonzero(gram[j, :j]):
            product = err_product(slots[j], slots[other], gain)
            variance += 2.0 * gram[j, other] * (product - mean[:, j] * mean[:, other])
    return mean, np.where(variance > NEGLIGIBLE * scale, variance, 0.0)


def _ratio_goal_moments(
    pool: Pool, goal: Goal, measure: Measure, model: GradeModel
) -> tuple[FloatArray, FloatArray]:
    columns = [pool.run_index(tag) for tag in goal.all_runs]
    line = GradeLine.of(pool, measure, model)
    variance = line.variance(lambda values: _contrasts(goal, values[:, columns]))
    return line.mean[:, columns], variance.sum(axis=1)


# --------------------------------------------------------------- ranked lists and their moments


def ranked_pairs(pool: Pool, run: str, *, depth: int | None) -> IntArray:
    """Return the pairs of a run in rank order, shape (T, longest list); -1 for no document."""
    entries = np.flatnonzero(pool.run == pool.run_index(run))
    entries = entries[pool.rank[entries] <= (depth or pool.depth)]
    pairs, rank = pool.entry_pair[entries], pool.rank[entries]
    slots = np.full((len(pool.topics), int(rank.max(initial=0))), -1, dtype=np.int64)
    slots[pool.topic[pairs], rank - 1] = pairs
    return slots


def err_values(slots: IntArray, gain: FloatArray) -> FloatArray:
    """Return ERR of ranked lists from the gain g of their documents, shape (T,).

    ``slots`` are from `ranked_pairs`; ``gain`` has g of every pair, and 0 as the last entry.
    """
    gains = gain[slots]
    ranks = np.arange(1, slots.shape[1] + 1)
    return np.asarray((_before(1.0 - gains) * gains / ranks).sum(axis=1))


def err_slopes(slots: IntArray, gain: FloatArray) -> FloatArray:
    """Return the derivative of ERR by the gain of each document, shape (T, L).

    prod_{l<i} (1 - g_l) (1/i - sum_{l>i} g_l/l prod_{i<m<l} (1 - g_m)); `slots` and `gain` as for
    `err_values`.
    """
    gains = gain[slots]
    ranks = np.arange(1, slots.shape[1] + 1)
    later = _later(gains / ranks, 1.0 - gains)
    return np.asarray(_before(1.0 - gains) * (1.0 / ranks - later))


def _before(factors: FloatArray) -> FloatArray:
    """Products of the factors of all earlier ranks."""
    products = np.ones_like(factors)
    np.cumprod(factors[:, :-1], axis=1, out=products[:, 1:])
    return products


def _later(stopped: FloatArray, missed: FloatArray) -> FloatArray:
    """T_i = sum_{l>i} stopped_l prod_{i<m<l} missed_m of every rank i."""
    later = np.zeros_like(stopped)
    for place in range(stopped.shape[1] - 2, -1, -1):
        following = missed[:, place + 1] * later[:, place + 1]
        later[:, place] = stopped[:, place + 1] + following
    return later


def err_moments(slots: IntArray, gain: GainMoments) -> tuple[FloatArray, FloatArray]:
    """Return E ERR and E ERR^2 of ranked lists, each of shape (T,); see `value_moments`."""
    ranks = np.arange(1, slots.shape[1] + 1)
    stopped, missed = gain.first[slots] / ranks, gain.missed[slots]
    mean = (_before(missed) * stopped).sum(axis=1)
    later = _later(stopped, missed)
    terms = gain.second[slots] / ranks**2 + 2.0 * gain.mixed[slots] / ranks * later
    return mean, (_before(gain.missed_twice[slots]) * terms).sum(axis=1)


def err_product(first: IntArray, second: IntArray, gain: GainMoments) -> FloatArray:
    """Return E[ERR_1 ERR_2 | x] of two runs' ranked lists, shape (T,).

    The sum over ranks (a, b) of 1/(ab) times a product over the documents of the two prefixes
    (Sawade et al. 2013, eq. 39-46), in time proportional to the product of the two lengths: goes
    through the ranks of the first run, with all topics and ranks of the second at once. A document
    is taken out of a product by division; where E(1 - g) is 0, which ERR does not know, all that
    stands below it in either list has no chance anyway.
    """
    place = _places(second, first)  # where the documents of the second run stand in the first
    back = _places(first, second)
    missed, mean = gain.missed[second], gain.first[second]
    shared, stopped = (share_of(m[second], of=missed) for m in (gain.missed_twice, gain.mixed))
    ranks = np.arange(1, second.shape[1] + 1)
    before = _before(gain.missed[first])
    total = np.zeros(len(first))
    for at in range(first.shape[1]):
        z = first[:, at]
        prefix = _before(np.where(place == at, 1.0, np.where(place < at, shared, missed)))
        seen = back[:, at, None] < ranks - 1
        own = np.where(seen, gain.mixed[z][:, None], gain.first[z][:, None])
        stops = own * np.where(place < at, stopped, mean)
        stops = np.where(place == at, gain.second[z][:, None], stops)
        total += before[:, at] / (at + 1) * (prefix * stops / ranks).sum(axis=1)
    return total


def _places(slots: IntArray, other: IntArray) -> IntArray:
    """0-based rank in the other lists of each document; past every rank if it is not there."""
    absent = np.iinfo(np.int64).max
    size = 1 + max(int(slots.max(initial=-1)), int(other.max(initial=-1)))
    rank_of = np.full(size + 1, absent, dtype=np.int64)
    held = other >= 0
    rank_of[other[held]] = np.nonzero(held)[1]
    return np.where(slots >= 0, rank_of[slots], absent)
