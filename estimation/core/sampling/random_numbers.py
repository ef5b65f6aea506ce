"""Random numbers: all are SHA-256 of a seed and of what they are for, the same on every machine."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import check_fraction, check_seed, check_whole, index_array, pieces
from ..data.preferences import part_names

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from ..arrays import FloatArray, IntArray
    from ..data.pool import Pool


def permanent_random_numbers(pool: Pool, *, seed: str, pairs: IntArray | None = None) -> FloatArray:
    """Return the permanent random number of pairs, by default of all: SHA-256 of seed and names.

    A pair's number depends on nothing else: not on the runs, the other pairs, or the shard. It is
    uniform on the open interval (0, 1), in steps of 2^-52. ValueError if a pair is not one of the
    pool, or the seed is no text.
    """
    return _pair_numbers(pool, "pair", seed, _wanted(pool, pairs))


def batch_random_numbers(pool: Pool, *, seed: str, batch: int, pairs: IntArray) -> FloatArray:
    """Return numbers of pairs for one batch alone, independent of those for others; else as
    `permanent_random_numbers`."""
    return _pair_numbers(pool, f"batch {batch}", seed, _wanted(pool, pairs))


def topic_random_numbers(pool: Pool, *, seed: str, batch: int) -> FloatArray:
    """Return a number for each topic of a pool and one batch, independent of those of pairs."""
    check_seed(seed)
    stem = hashlib.sha256(_framed(f"topics of batch {batch}") + _framed(seed))
    return _to_unit_interval(_followed_by(stem, _framed(topic)) for topic in pool.topics)


def class_random_numbers(*, seed: str, batch: int, classes: int) -> FloatArray:
    """Return a number for each class of topics of a batch, independent of all others."""
    check_seed(seed)
    stem = hashlib.sha256(_framed(f"classes of batch {batch}") + _framed(seed))
    return _to_unit_interval(_followed_by(stem, each.to_bytes(8, "big")) for each in range(classes))


def folds(pool: Pool, *, number: int, pairs: IntArray | None = None) -> IntArray:
    """Cut the pairs of a pool into folds by a hash of topic and docno, whatever was drawn.

    Parameters
    ----------
    pool : Pool
    number : int
        Number of folds, at least 2.
    pairs : ndarray of int64, shape (n,), optional
        By default all N pairs.

    Returns
    -------
    ndarray of int64, shape (n,)
        The fold of each pair, below `number`.

    Raises
    ------
    ValueError
        If there are fewer than 2 folds, or a pair is not one of the pool.
    """
    check_whole(number, name="number", least=2)
    hashed = _pair_numbers(pool, "fold", "", _wanted(pool, pairs))
    return np.asarray(np.floor(hashed * number), dtype=np.int64)


def uniform_numbers(seed: str, *, number: int, start: int = 0) -> FloatArray:
    """Return uniform numbers start..start+number-1 of a seed: SHA-256 in counter mode.

    On the open interval (0, 1). ValueError if number or start is negative, or the seed is no text.
    """
    check_seed(seed)
    check_whole(number, name="number", least=0)
    check_whole(start, name="start", least=0)
    stem = hashlib.sha256(_framed("draw") + _framed(seed))
    counters = range(start, start + number)
    return _to_unit_interval(_followed_by(stem, each.to_bytes(8, "big")) for each in counters)


def extra_labels(pool: Pool, *, seed: str, pairs: IntArray, labels: int, share: float) -> IntArray:
    """Decide how many labels each pair gets: `labels`, or one more for a share of the pairs.

    Parameters
    ----------
    pool : Pool
    seed : str
        The same seed as for the draw may be used: these numbers are independent of it.
    pairs : ndarray of int64, shape (n,)
    labels : int
        At least 1.
    share : float
        Probability, between 0 and 1, that a pair gets one label more.

    Returns
    -------
    ndarray of int64, shape (n,)

    Raises
    ------
    ValueError
        If labels or share is out of range, a pair is not one of the pool, or the seed no text.
    """
    check_whole(labels, name="labels")
    check_fraction(share, name="share")
    return labels + (label_numbers(pool, seed=seed, pairs=pairs) < share).astype(np.int64)


def label_numbers(pool: Pool, *, seed: str, pairs: IntArray) -> FloatArray:
    """Return the random numbers by which pairs get one label more, (n,), on (0, 1).

    They are independent of those of the draw with the same seed. ValueError as `extra_labels`.
    """
    return _pair_numbers(pool, "labels", seed, _wanted(pool, pairs))


def _wanted(pool: Pool, pairs: IntArray | None) -> IntArray:
    if pairs is None:
        return np.arange(len(pool))
    return index_array(pairs, below=len(pool), name="pairs")


def _pair_numbers(pool: Pool, purpose: str, seed: str, pairs: IntArray) -> FloatArray:
    """Names are looked at piece by piece: as Python's bytes all are several times as large."""
    check_seed(seed)
    stem = hashlib.sha256(_framed(purpose) + _framed(seed))
    topics = [_followed_by(stem, _framed(topic)) for topic in pool.topics]
    numbers = np.empty(len(pairs))
    for piece in pieces(len(pairs)):
        some = pairs[piece]
        names = part_names(pool, some).tolist()
        states = [topics[topic] for topic in pool.topic[some].tolist()]
        hashes = []
        for state, name in zip(states, names, strict=True):  # written out: most of a draw's time
            longer = state.copy()
            longer.update(name)
            hashes.append(longer)
        numbers[piece] = _to_unit_interval(hashes)
    return numbers


def _framed(text: str) -> bytes:
    """A text after its length, so that no two sequences of texts give the same bytes."""
    encoded = text.encode()
    return len(encoded).to_bytes(4, "big") + encoded


def _followed_by(state: hashlib._Hash, content: bytes) -> hashlib._Hash:
    longer = state.copy()
    longer.update(content)
    return longer


def _to_unit_interval(hashes: Iterable[hashlib._Hash]) -> FloatArray:
    digests = b"".join([each.digest() for each in hashes])
    # 52 bits and a half: with 53 the largest value would round to 1.
    words: NDArray[np.uint64] = np.frombuffer(digests, dtype=">u8")[::4].astype(np.uint64)
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
