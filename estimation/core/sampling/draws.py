"""Drawing samples. All randomness is SHA-256 of the seed and of what is drawn.

The same seed, pool and design give the same sample on every machine, in any number of shards.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, IntArray, check_seed, frozen, pieces
from .probabilities import poisson_probabilities
from .random_numbers import permanent_random_numbers, uniform_numbers
from .samples import Sample

if TYPE_CHECKING:
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
    for piece in pieces(len(candidates)):
        numbers[piece] /= design.size[candidates[piece]]
    if design.method == "priority":
        constants = _priority_constants(numbers, design)
    entered = np.flatnonzero(numbers < constants[-1])
    batch = np.searchsorted(constants, numbers[entered], side="right") + 1
    sample = _sample(design, candidates[entered], batch, np.array([], dtype=np.int64))
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
    sizes = np.minimum(design.spending, len(ratios)).astype(np.int64)
    ordered: FloatArray = np.append(np.sort(ratios), np.inf)
    return np.asarray(ordered[sizes])


def _draw_with_replacement(pool: Pool, design: Design, seed: str) -> Sample:
    uniforms = uniform_numbers(seed, number=design.draws() or 0)
    draws = (_in_every_topic if design.by_topic else _anywhere)(pool, design, uniforms)
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
