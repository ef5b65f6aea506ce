"""What is known of two documents before it is judged which of them is better: features of `grades`.

Which one comes first is a matter of their names, so that features have a sign: who is ranked above
the other, how far and by which runs, and which of the two was preferred to others of the topic. A
second number tells, whichever is better, how often either was found to be as good as another one.
As of neighbors, a judged pair does not count for itself: what is told of a pair that was not judged
hangs on judgments of other pairs alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ...arrays import column_sums, share_of

if TYPE_CHECKING:
    from ...arrays import FloatArray, IntArray
    from ...data.pool import Pool
    from .finds import Finds

AS_USUAL = 2.0  # comparisons of each document that count as if they were as usual


def numbers_of_two(pool: Pool) -> list[FloatArray]:
    """Return how high both stand, by how much the first is above the second, and how often, (N,).

    Of a pool of preferences.
    """
    if pool.other_rank is None:
        raise ValueError("the pool is not one of preferences")
    ones = np.ones(len(pool.runs))
    first, second = 1.0 / pool.rank, 1.0 / pool.other_rank
    height = pool.by_pair(first + second) @ ones
    above = pool.by_pair(first - second) @ ones
    signs = pool.by_pair(pool.predictions) @ ones
    number = np.diff(pool.indptr).astype(np.float64)
    return [np.log(np.maximum(height, 1e-9)), above, share_of(signs, of=number)]


def documents_of_two(pool: Pool) -> IntArray:
    """Return the numbers of the first and of the second document of each pair, (N, 2).

    From 0 on; documents of two topics have two.
    """
    if pool.other is None:
        raise ValueError("the pool is not one of preferences")
    names = np.concatenate([pool.docno, pool.other])
    _, name = np.unique(names, return_inverse=True)
    topics = np.tile(pool.topic.astype(np.int64), 2)
    _, number = np.unique(topics * (name.max(initial=0) + 1) + name, return_inverse=True)
    return np.stack(np.split(number.astype(np.int64), 2), axis=1)


def told_by_comparisons(
    documents: IntArray, judged: IntArray, itself: IntArray, own: IntArray | slice, finds: Finds
) -> FloatArray:
    """Return what comparisons with others tell of n pairs, (n, 2).

    How much rather the first was preferred than the second, and how often either made a difference,
    as logarithms of odds; 0 where neither was compared with another one.

    Parameters
    ----------
    documents : ndarray of int64, shape (n, 2)
        Of these pairs.
    judged : ndarray of int64, shape (m, 2)
        Of all judged pairs, in the order of `Finds.judged`.
    itself, own : ndarray of int64, ndarray of int64 or slice
        Which of the n pairs were judged, and which of the m they are.
    finds : Finds
    """
    number = 1 + int(max(documents.max(initial=0), judged.max(initial=0)))
    decided = _decided(finds)
    rate = (decided.sum() + 0.5) / (len(decided) + 1.0)
    preferred, differed = np.zeros((2, len(documents)))
    shares = finds.share, 1.0 - finds.share
    both = shares, (decided, decided), (np.ones(len(judged)),) * 2
    counts = [_by_document(judged, each, number) for each in both]
    for side, sign in enumerate((1.0, -1.0)):
        won, told, compared = (each[documents[:, side]] for each in counts)
        won[itself] -= shares[side][own]
        told[itself] -= decided[own]
        compared[itself] -= 1.0
        preferred += sign * _log_odds(won, compared, 0.5)
        differed += _log_odds(told, compared, rate)
    return np.stack([preferred, differed], axis=1)


def _by_document(
    judged: IntArray, numbers: tuple[FloatArray, FloatArray], documents: int
) -> FloatArray:
    """Add up numbers of the first and of the second documents of pairs by document."""
    first, second = (
        column_sums(judged[:, side], numbers[side], number=documents) for side in (0, 1)
    )
    return first + second


def _log_odds(counted: FloatArray, of: FloatArray, rate: float) -> FloatArray:
    """Of so many of some, over those of a rate."""
    others = np.maximum(of - counted, 0.0) + AS_USUAL * (1.0 - rate)
    odds = (np.maximum(counted, 0.0) + AS_USUAL * rate) / others
    return np.asarray(np.log(odds) - special.logit(rate))


def _decided(finds: Finds) -> FloatArray:
    """The share of judgments of each judged pair that one document is better, (m,)."""
    found = np.ones(len(finds.judged))
    same = finds.reach[0] - finds.reach[-1] if len(finds.reach) > 1 else 0.0
    found[np.searchsorted(finds.judged, finds.pair)] -= same
    return found
