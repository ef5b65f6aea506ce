"""How often somebody begins with a topic, which takes longer than to go on with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, column_sums, pieces
from ..rounds.adaptive.topic_choice import choice_of

if TYPE_CHECKING:
    from ..data.pool import Pool


def expected_sittings(
    pool: Pool, chance: FloatArray, *, batches: int, minimum: float = 0.0, share: float = 1.0
) -> float:
    """Return how many topics batches are expected to have, each counted in every batch.

    Pairs are taken to be drawn independently, and as likely in each batch as in the others, which
    is about right for all ways of drawing pairs; with a minimum, as adaptive rounds draw them
    (`rounds.adaptive.topic_choice`).

    Parameters
    ----------
    pool : Pool
    chance : ndarray of float64, shape (N,)
        Of each pair to be judged in any batch.
    batches : int
    minimum : float
        Pairs of a topic in a batch that has any of it, as expected; up to 1: as it comes.
    share : float
        Of the pairs that are drawn, those that are meant.
    """
    topics, of_batch = len(pool.topics), share / batches
    if minimum <= 1.0:
        return batches * float(_with_any(pool, chance, np.full(topics, of_batch)).sum())
    part = choice_of(pool.topic, chance / batches, minimum, topics=topics, even=True).chance
    taken = part * _with_any(pool, chance, of_batch / part)
    return batches * float(taken.sum())


def _with_any(pool: Pool, chance: FloatArray, times: FloatArray) -> FloatArray:
    """The chance of each topic that one of its pairs is drawn, shape (T,), where chances are so
    many times as large as these, by topic."""
    passed = np.zeros(len(times))
    for piece in pieces(len(chance)):
        topic = pool.topic[piece]
        with np.errstate(divide="ignore"):
            each = np.log1p(-np.minimum(times[topic] * chance[piece], 1.0))
        passed += column_sums(topic, each, number=len(times))
    return -np.expm1(passed)
