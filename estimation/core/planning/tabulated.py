"""What many observed differences say of later ones, read off a table.

Of 129 runs there are 8 256 differences, each of them a mixture. What is told of a later one is
smooth in how large it looks and in the share of its variance that is left; so it is worked out for
few of both, and taken as a straight line between them, to less than a hundredth. Nothing else hangs
on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .shrinkage import LEAST_LEFT, SURE

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..arrays import FloatArray, IntArray
    from .shrinkage import Observed, TrueSpread

SIZES = np.append(np.linspace(0.0, 8.0, 65), np.geomspace(8.0, SURE, 13)[1:])
SHARES = 6  # of variances that are left


@dataclass(frozen=True, eq=False)
class Tabulated:
    """Observed differences, shape (n,), with the answers of `shrinkage.Observed`."""

    z: FloatArray
    spread: TrueSpread

    def decided(self, left: FloatArray, critical: float) -> FloatArray:
        """Return the chance of each later difference to be beyond a critical value, (n,)."""
        return self._read(left, lambda table, share: table.decided(share, critical))

    def expected(self, left: FloatArray) -> FloatArray:
        """Return later differences as expected, in standard errors of then, (n,)."""
        size = self._read(left, lambda table, share: table.expected(share) * _unit(share))
        return np.asarray(np.copysign(size / _unit(left), self.z))

    def _read(
        self, left: FloatArray, work: Callable[[Observed, FloatArray], FloatArray]
    ) -> FloatArray:
        """Interpolate what is worked out for the table: in size, and in the root of the share."""
        root = np.sqrt(left)
        least, step = float(root.min()), float(np.ptp(root)) / (SHARES - 1)
        shares = np.square(least + step * np.arange(SHARES))
        table = work(self._table, np.tile(shares, len(SIZES)))
        place = (root - least) / (step or 1.0)
        lower = np.minimum(place.astype(np.int64), SHARES - 2)
        rest, (at, part) = place - lower, self._places
        at = at * SHARES + lower
        low = table[at] + rest * (table[at + 1] - table[at])
        at = at + SHARES
        high = table[at] + rest * (table[at + 1] - table[at])
        return np.asarray(low + part * (high - low))

    @cached_property
    def _table(self) -> Observed:
        return self.spread.of(np.repeat(SIZES, SHARES))

    @cached_property
    def _places(self) -> tuple[IntArray, FloatArray]:
        """Between which sizes each difference lies, and where."""
        size = np.minimum(np.abs(self.z), SURE)
        at = np.minimum(np.searchsorted(SIZES, size, side="right") - 1, len(SIZES) - 2)
        return at, (size - SIZES[at]) / (SIZES[at + 1] - SIZES[at])


def _unit(left: FloatArray) -> FloatArray:
    """Standard errors of then, in those of now."""
    return np.sqrt(np.maximum(left, LEAST_LEFT))
