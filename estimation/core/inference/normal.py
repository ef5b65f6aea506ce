"""Normal numbers, the same on every machine and whenever they are asked for."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..arrays import mixed_bits

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray


def normal_numbers(at: IntArray) -> FloatArray:
    """Return a standard normal number for each place, which is 0 or more; of any shape."""
    uniform = ((mixed_bits(at + 1) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.asarray(special.ndtri(uniform), dtype=np.float64)


@lru_cache(maxsize=8)
def normal_vectors(number: int, runs: int) -> FloatArray:
    """Return a fixed set of independent standard normal vectors, (number, runs), to be read only.

    They take longer to be made than to be used, and are asked for again at every budget and batch.
    """
    drawn = normal_numbers(np.arange(number * runs)).reshape(number, runs)
    drawn.flags.writeable = False
    return drawn


def root(covariance: FloatArray) -> FloatArray:
    """Return a matrix whose product with its transpose is a covariance, which may lack full rank.

    Parameters
    ----------
    covariance : ndarray of float64, shape (k, k)

    Returns
    -------
    ndarray of float64, shape (k, k)
    """
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2.0)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
