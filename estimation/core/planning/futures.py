"""Normal numbers for what may come, the same on every machine."""

from __future__ import annotations

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
