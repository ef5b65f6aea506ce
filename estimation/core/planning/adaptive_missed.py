"""What is expected of the squares that estimates of an adaptive round miss, now and later.

See `adaptive_ahead` for the formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import divided, share_of

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray, IntArray
    from ..measures.table import Measure
    from ..rounds.adaptive.batch_weights import Weighed
    from ..rounds.adaptive.frame import AdaptiveFrame


@dataclass(frozen=True, eq=False)
class SquaresMissed:
    """What is expected of the squares that estimates of n pairs miss, now and later.

    Attributes
    ----------
    squares : ndarray of float64, shape (n,)
        Up to now.
    variance : ndarray of float64, shape (n,)
        Of the utility, as it will be predicted.
    passed : ndarray of float64, shape (n,)
        The chance with which a pair was to be judged by now.
    open : ndarray of bool, shape (n,)
    fixed, left : ndarray of float64, shape (n,)
        As `_of_past` has them.
    """

    squares: FloatArray
    variance: FloatArray
    passed: FloatArray
    open: BoolArray
    fixed: FloatArray | float = 0.0
    left: FloatArray | float = 1.0

    @classmethod
    def of(
        cls,
        frame: AdaptiveFrame,
        before: Weighed,
        measure: Measure,
        moments: tuple[FloatArray, FloatArray],
        place: IntArray | slice = slice(None),
    ) -> SquaresMissed:
        """Of those of the pairs of a frame, `AdaptiveFrame.at`, that have these places.

        ``moments`` are what is expected of their utilities and of the squares, (n,) each.
        """
        (first, second), standing = moments, before.standing
        squares = squares_missed(before, measure, frame.at[place], first, second)
        variance = np.maximum(second - first**2, 0.0)
        fixed, left = (
            np.broadcast_to(each, len(frame.at))[place] for each in of_past(frame, before)
        )
        return cls(squares, variance, standing.passed[place], standing.open[place], fixed, left)

    def after(self, chance: FloatArray) -> FloatArray:
        """Return the same once pairs that were open had this chance to be judged, (n,)."""
        kept, to_come = parts_then(self.passed, self.open, chance, self.fixed, self.left)
        kept *= self.squares
        kept += to_come * self.variance
        return kept


def squares_missed(
    before: Weighed, measure: Measure, pairs: IntArray, first: FloatArray, second: FloatArray
) -> FloatArray:
    """Return the squares that are missed of n pairs, (n,).

    By what is expected of their utilities and of the squares of these, (n,) each.
    """
    spread = before.weights.spread[pairs]
    _, _, summed, squared = before.weights.by_mean[before.measures.index(measure)][:, pairs]
    return np.asarray(np.maximum(spread * second - 2.0 * summed * first + squared, 0.0))


def of_past(frame: AdaptiveFrame, before: Weighed) -> tuple[FloatArray | float, FloatArray | float]:
    """Return which part of the squares so far is of an earlier round, and what its shares leave.

    (n,) each, or 0 and 1 for all pairs. These shares stay what they are, whatever comes.
    """
    past = frame.past
    if past is None or past.sums is None:
        return 0.0, 1.0
    spread = past.sums.spread[frame.at]
    return share_of(spread, of=before.weights.spread[frame.at]), past.left[frame.at]


def parts_then(
    passed: FloatArray,
    still_open: BoolArray,
    chance: FloatArray,
    fixed: FloatArray | float = 0.0,
    left: FloatArray | float = 1.0,
) -> tuple[FloatArray, FloatArray]:
    """Return by how much squares so far, and the variance of utilities, count then, (n,) each.

    rho^2, and q (1 - q) / P'^2 of pairs that are open, q the chance to be judged from now on. The
    part ``fixed`` of the squares counts as it does, and what is to come ``left``^2 times as much.
    """
    open_then = 1.0 - chance
    judged = passed + (1.0 - passed) * chance
    ever = judged > 0.0
    kept = divided(open_then, judged, ever)
    to_come = divided(chance, judged, ever)
    to_come *= kept
    to_come *= still_open
    kept *= passed
    kept[~ever] = 1.0
    kept *= kept
    return fixed + (1.0 - fixed) * kept, to_come * left**2
