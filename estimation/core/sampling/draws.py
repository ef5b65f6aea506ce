"""Drawing samples. All randomness is SHA-256 of the seed and of what is drawn.

The same seed, pool and design give the same sample on every machine, in any number of shards.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import (
    FloatArray,
    IntArray,
    check_fraction,
    check_seed,
    check_whole,
    frozen,
    index_array,
)
from ..data.preferences import part_names
from .probabilities import poisson_probabilities
from .samples import Sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..data.pool import Pool
    from .designs import Design


def draw(pool: Pool, design: Design, *, seed: str, numbers: FloatArray | None = None) -> Sample:
    """Draw the sample of all batches; every prefix of batches is an exact sample of the design.

    ``poisson``: pair i enters with the first batch b for which h_i < min(1, c_b * size_i), h_i
    its permanent random number. ``priority``: the n_b pairs with the smallest h_i / size_i are in
    after batch b. ``iid``: draw t takes the pair in whose stretch of the cumulated Q the t-th
    uniform number of the seed falls; ``per-query`` does so in one topic after the other.

    Parameters
    ----------
    pool, design : Pool, Design
        The design must have been made for this pool.
    seed : str
        Any text.
    numbers : ndarray of float64, shape (N,), optional
        `permanent_random_numbers` of the pool and the seed, where somebody has them already: many
        designs may be drawn with one seed. They change nothing about the sample.

    Raises
    ------
    ValueError
        If the design belongs to another pool, the seed is no text, or the numbers are not those
        of as many pairs.
    """
    check_seed(seed)
    if design.pool_digest != pool.digest:
        raise ValueError("the design belongs to another pool")
    if numbers is not None and numbers.shape != (len(pool),):
        raise ValueError(f"numbers must be {len(pool)}, one per pair, not {numbers.shape}")
    if design.with_replacement:
        return _draw_with_replacement(pool, design, seed)
    return _draw_without_replacement(pool, design, seed, numbers)


def _draw_without_replacement(
    pool: Pool, design: Design, seed: str, known: FloatArray | None
) -> Sample:
    candidates = np.flatnonzero(design.eligible)
    constants = design.steps
    if design.method == "poisson":
        candidates = np.flatnonzero(design.inclusion() > 0.0)
    if known is None:
        numbers = permanent_random_numbers(pool, seed=seed, pairs=candidates)
    else:
        numbers = known[candidates]
    numbers = numbers / design.size[candidates]
    if design.method == "priority":
        constants = _priority_constants(numbers, design)
    entry = np.searchsorted(constants, numbers, side="right")
    entered = entry < design.batches
    sample = _sample(design, candidates[entered], entry[entered] + 1, np.array([], dtype=np.int64))
    if design.method == "poisson":
        return sample
    chance = poisson_probabilities(design.size[sample.pair], constant=float(constants[-1]))
    return replace(sample, probability=frozen(chance), constants=frozen(constants))


def _priority_constants(ratios: FloatArray, design: Design) -> FloatArray:
    """The (n_b + 1)-th smallest ratio, by batch; infinite when that is past the last pair.

    Given the other pairs' numbers, pair i is among the n smallest exactly when its ratio is below
    the n-th smallest of the others; where it is, that is the (n + 1)-th of all. So 1/pi_i weights
    by this constant are unbiased, and their products uncorrelated (Duffield, Lund and Thorup 2007).
    """
    sizes = np.minimum(
        np.append(np.arange(design.batch_size, design.budget, design.batch_size), design.budget),
        len(ratios),
    )[: design.batches]
    ordered: FloatArray = np.append(np.sort(ratios), np.inf)
    return np.asarray(ordered[sizes])


def _draw_with_replacement(pool: Pool, design: Design, seed: str) -> Sample:
    uniforms = uniform_numbers(seed, number=design.draws() or 0)
    draws = (_in_every_topic if design.method == "per-query" else _anywhere)(pool, design, uniforms)
    pairs, first = np.unique(draws, return_index=True)
    ends = design.steps * design.strata
    return _sample(design, pairs, np.searchsorted(ends, first, side="right") + 1, draws)


def _anywhere(pool: Pool, design: Design, uniforms: FloatArray) -> IntArray:
    cumulated = np.cumsum(design.size)
    cumulated /= cumulated[-1]
    return np.searchsorted(cumulated, uniforms, side="right").astype(np.int64)


def _in_every_topic(pool: Pool, design: Design, uniforms: FloatArray) -> IntArray:
    """One draw per eligible topic, and again, until the numbers are used up."""
    eligible = np.flatnonzero(design.eligible)
    topics, first = np.unique(pool.topic[eligible], return_index=True)
    cumulated = np.cumsum(design.size[eligible])
    last = np.append(first[1:], len(eligible)) - 1
    before = np.append(0.0, cumulated)[first]
    within = uniforms.reshape(-1, len(topics)) * (cumulated[last] - before)
    found = np.searchsorted(cumulated, before + within, side="right")
    # A sum that was rounded up must not carry a draw into the next topic.
    return np.asarray(eligible[np.clip(found, first, last)].ravel(), dtype=np.int64)


def _sample(design: Design, pair: IntArray, batch: IntArray, draws: IntArray) -> Sample:
    return Sample(
        pair=frozen(pair.astype(np.int64)),
        batch=frozen(batch.astype(np.int32)),
        probability=frozen(design.inclusion()[pair]),
        draws=frozen(draws),
        pool_digest=design.pool_digest,
    )


def permanent_random_numbers(pool: Pool, *, seed: str, pairs: IntArray | None = None) -> FloatArray:
    """Return the permanent random number of pairs, by default of all: SHA-256 of seed and names.

    A pair's number depends on nothing else: not on the runs, the other pairs, or the shard. It is
    uniform on the open interval (0, 1), in steps of 2^-52. ValueError if a pair is not one of the
    pool, or the seed is no text.
    """
    return _pair_numbers(pool, "pair", seed, _wanted(pool, pairs))


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
    digests = []
    for counter in range(start, start + number):
        state = stem.copy()
        state.update(counter.to_bytes(8, "big"))
        digests.append(state.digest()[:8])
    return _to_unit_interval(b"".join(digests))


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
    numbers = _pair_numbers(pool, "labels", seed, _wanted(pool, pairs))
    return labels + (numbers < share).astype(np.int64)


def _wanted(pool: Pool, pairs: IntArray | None) -> IntArray:
    if pairs is None:
        return np.arange(len(pool))
    return index_array(pairs, below=len(pool), name="pairs")


def _pair_numbers(pool: Pool, purpose: str, seed: str, pairs: IntArray) -> FloatArray:
    check_seed(seed)
    stem = hashlib.sha256(_framed(purpose) + _framed(seed))
    topics = [_followed_by(stem, _framed(topic)) for topic in pool.topics]
    digests = []
    names = part_names(pool, pairs).tolist()
    for topic, name in zip(pool.topic[pairs].tolist(), names, strict=True):
        state = topics[topic].copy()
        state.update(name)
        digests.append(state.digest()[:8])
    return _to_unit_interval(b"".join(digests))


def _framed(text: str) -> bytes:
    """A text after its length, so that no two sequences of texts give the same bytes."""
    encoded = text.encode()
    return len(encoded).to_bytes(4, "big") + encoded


def _followed_by(state: hashlib._Hash, content: bytes) -> hashlib._Hash:
    longer = state.copy()
    longer.update(content)
    return longer


def _to_unit_interval(digests: bytes) -> FloatArray:
    # 52 bits and a half: with 53 the largest value would round to 1.
    words: NDArray[np.uint64] = np.frombuffer(digests, dtype=">u8").astype(np.uint64)
    return ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
