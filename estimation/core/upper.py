"""What stands above the diagonal of a matrix of every two runs, row by row, and back again.

There are thousands of such numbers, asked for again and again of the same runs: where they stand is
found once.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .arrays import BoolArray, FloatArray, IntArray


@lru_cache(maxsize=8)
def every_two(runs: int) -> tuple[IntArray, IntArray]:
    """Return both of every two of k runs, (k (k - 1) / 2,) each, not to be written to."""
    first, second = np.triu_indices(runs, k=1)
    return _sealed(first), _sealed(second)


@lru_cache(maxsize=8)
def _places(runs: int) -> tuple[IntArray, IntArray]:
    """Where they stand above the diagonal of a matrix, and below it."""
    first, second = every_two(runs)
    return _sealed(first * runs + second), _sealed(second * runs + first)


def above(matrix: FloatArray) -> FloatArray:
    """Return what stands above the diagonal, from (k, k) to (k (k - 1) / 2,)."""
    found: FloatArray = matrix.ravel()[_places(len(matrix))[0]]
    return found


def mirrored(numbers: FloatArray, runs: int, diagonal: float = 1.0) -> FloatArray:
    """Return the symmetric matrix, (k, k), of numbers above the diagonal."""
    matrix = np.full(runs * runs, diagonal)
    for places in _places(runs):
        matrix[places] = numbers
    return matrix.reshape(runs, runs)


@lru_cache(maxsize=8)
def _below(runs: int) -> BoolArray:
    return _sealed(np.tri(runs, k=-1, dtype=bool))


def with_below(upper: FloatArray) -> FloatArray:
    """Return the symmetric matrices, (..., k, k), of what stands on the diagonal and above it."""
    return np.where(_below(upper.shape[-1]), np.swapaxes(upper, -1, -2), upper)


def _sealed(array: NDArray[Any]) -> NDArray[Any]:
    array.flags.writeable = False
    return array
