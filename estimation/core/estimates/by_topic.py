"""What is judged of every topic and run, and how much of the variance comes from where.

Both describe a sample and its estimates. Nothing is chosen, weighted or left out by them, so that
they bias nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import array_digest, frozen
from ..data.kept import kept

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from ..arrays import BoolArray, FloatArray, IntArray
    from ..data.pool import Pool
    from ..measures.table import Measure
    from .topic_sums import TopicSums


def judged_by_topic(pool: Pool, measures: Sequence[Measure], pairs: IntArray) -> list[IntArray]:
    """Count the judged pairs that say something of each run in each topic, shape (T, k) each.

    Under a measure of gains a pair counts for the runs in whose value it has a weight; under any
    other for all runs that return it. Of two runs nothing is judged in a topic where both have 0.

    Parameters
    ----------
    pool : Pool
    measures : sequence of Measure
        There is a count for each, in their order.
    pairs : ndarray of int64
        The judged pairs of the pool.
    """
    key = array_digest(pairs), tuple(measures)
    return kept(pool.kept, "judged by topic", key, lambda: _judged_by_topic(pool, measures, pairs))


def _judged_by_topic(pool: Pool, measures: Sequence[Measure], pairs: IntArray) -> list[IntArray]:
    entry, number = pool.entries_of(pairs)
    runs, topics = len(pool.runs), len(pool.topics)
    cell = np.repeat(pool.topic[pairs].astype(np.int64) * runs, number)
    cell += pool.run[entry]
    found: dict[Hashable, IntArray] = {}
    for each in measures:
        if (key := _counted(pool, each)) not in found:
            counted = cell[_counts(pool, each, entry)]
            found[key] = np.bincount(counted, minlength=topics * runs).reshape(topics, runs)
    return [frozen(found[_counted(pool, each)]) for each in measures]


def _counted(pool: Pool, measure: Measure) -> Hashable:
    """Equal for measures that count the same entries."""
    if measure.family != "gain":
        return None
    table = pool.rank_weights(measure)
    return measure if table is None else (table != 0.0).tobytes()


def _counts(pool: Pool, measure: Measure, entry: IntArray) -> BoolArray | slice:
    """Which of some entries a measure has a weight for."""
    if measure.family != "gain":
        return slice(None)
    table = pool.rank_weights(measure)
    if table is None:
        return np.asarray(pool.entry_weights(measure)[entry] != 0.0)
    if table[1:].all():
        return slice(None)
    return np.asarray((table != 0.0)[pool.rank[entry]])


def variance_by_topic(sums: TopicSums, labels: FloatArray, probability: FloatArray) -> FloatArray:
    """Split the sampling variance of Horvitz-Thompson estimates by topic, shape (T, k).

    Of a Poisson sample, whose pairs are drawn independently, so that the variances of topics add
    up: sum over the sampled pairs of a topic of (1 - pi_i)/pi_i^2 (w_ij v_i)^2, unbiased for it
    (Horvitz and Thompson 1952). The disagreement between assessors is not in it.

    Parameters
    ----------
    sums : TopicSums
        Of w_ij of the n sampled pairs, each judged, under a measure of gains; rows of pairs whose
        label is 0 may be empty.
    labels : ndarray of float64, shape (n,)
        v_i, the mean utility of a pair's judgments.
    probability : ndarray of float64, shape (n,)
        pi_i, in (0, 1].
    """
    factors = (1.0 - probability) * (labels / probability) ** 2
    return sums.of(factors, power=2)
