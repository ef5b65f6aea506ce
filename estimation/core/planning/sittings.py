"""How often somebody begins with a topic, which takes longer than to go on with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, column_sums
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
    each, topics = chance / batches, len(pool.topics)
    if minimum <= 1.0:
        return batches * float(_with_any(pool, share * each).sum())
    part = choice_of(pool.topic, each, minimum, topics=topics, even=True).chance
    taken = part * _with_any(pool, share * each / part[pool.topic])
    return batches * float(taken.sum())


def _with_any(pool: Pool, chance: FloatArray) -> FloatArray:
    """The chance of each topic that one of its pairs is drawn, shape (T,)."""
    with np.errstate(divide="ignore"):
        passed = np.log1p(-np.minimum(chance, 1.0))
    return np.asarray(-np.expm1(column_sums(pool.topic, passed, number=len(pool.topics))))
