"""How many a Poisson number may be: quantiles, of thousands of expectations at once."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from ..arrays import FloatArray

TABLED = 1000  # numbers whose largest expectations are in the table
NEAR = 1e-9  # of these: there, rounding decides, and must be that of every other expectation


def poisson_quantiles(share: float, expected: FloatArray) -> FloatArray:
    """Return the least whole numbers that so large a share of Poisson numbers has at most, (n,).

    ceil of `scipy.special.pdtrik`, which looks for each by itself: of expectations such that 0 has
    a smaller share. Read off a table of the largest expectation that each number is enough for.
    """
    table = _largest_expectations(share)
    place = np.searchsorted(table, expected)
    found = (place + 1).astype(np.float64)
    above, below = table[np.minimum(place, TABLED - 1)], table[np.maximum(place - 1, 0)]
    gap = np.minimum(np.abs(above - expected), np.abs(below - expected))
    doubtful = np.flatnonzero((gap <= NEAR * above) | (place == TABLED))
    found[doubtful] = np.ceil(special.pdtrik(share, expected[doubtful]))
    return found


@lru_cache(maxsize=16)
def _largest_expectations(share: float) -> FloatArray:
    """Of which expectation each number from 1 on is the quantile at most, ascending."""
    numbers = np.arange(1, TABLED + 1)
    return np.asarray(special.gammainccinv(numbers + 1.0, share), dtype=np.float64)
