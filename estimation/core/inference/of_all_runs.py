"""What all runs of a round tell of ratios together, whichever of them are asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray
    from ..estimates.ratio_labels import RatioEstimate

FINDS_OF_ALL_BELIEVED = 5.0  # so many that squares of all runs together count half
FEWEST_TO_COMPARE = 3  # of one difference the squares are all that it has


@dataclass(frozen=True)
class OfAllRuns:
    """What the runs of a round tell together, whichever of them are asked for.

    A model may expect too much of what parts runs. The squares of all runs less their mean come
    from many finds and are unbiased; so what is expected of differences is believed as far as they
    say. The mean of the runs keeps what is expected, as its squares were found too small
    (docs/decisions/0087).

    Attributes
    ----------
    share : float
        Of what is expected of differences of the goal's runs: (5 + n s) / (5 + n), s at most 1 the
        share that squares are of it, n the finds that carry a difference in the median.
    mean : float
        Expected variance of the mean of these runs.
    bias : float
        Square of what values may be off by in common beyond what differences are.
    """

    share: float = 1.0
    mean: float = 0.0
    bias: float = 0.0

    @classmethod
    def of(
        cls, expected: FloatArray, found: RatioEstimate, *, sampled: BoolArray, goal: BoolArray
    ) -> OfAllRuns:
        """Return that of a round whose runs are all estimated.

        Parameters
        ----------
        expected : ndarray of float64, shape (k, k)
            `AtOutlook.covariance`.
        found : RatioEstimate
            Of a round that learns.
        sampled, goal : ndarray of bool, shape (k,)
            Which runs are of the round, and of its goal.
        """
        bias = 0.0
        if (left := found.left) is not None:
            more = left.of_values[sampled] ** 2 - left.of_differences[sampled] ** 2
            bias = max(0.0, float(np.mean(more)))
        estimate, some = found.estimate, np.ix_(goal, goal)
        runs, expected = int(goal.sum()), expected[some]
        usual = _apart(expected) if runs >= FEWEST_TO_COMPARE else 0.0
        if not usual > 0.0:
            return cls(bias=bias)
        share = min(_apart((estimate.covariance - estimate.noise)[some]) / usual, 1.0)
        finds = float(np.median(estimate.contributions[some][np.triu_indices(runs, k=1)]))
        share = 1.0 + (share - 1.0) * finds / (finds + FINDS_OF_ALL_BELIEVED)
        return cls(share, float(expected.mean()), bias)

    def as_far_apart(self, expected: FloatArray, goal: BoolArray) -> FloatArray:
        """Return what is expected of k runs, and less of what those of the goal differ by."""
        own = np.where(goal, np.sqrt(self.share), 1.0)
        times = np.multiply.outer(own, own)
        return np.asarray(times * expected + (1.0 - times) * self.mean, dtype=np.float64)


def _apart(covariance: FloatArray) -> float:
    """The sum of the variances of values less their mean."""
    return float(np.trace(covariance) - covariance.mean() * len(covariance))
