"""What a sample reaches: effective sample size, upper limits, entries of pairs.

None of it depends on grades. It does depend on the weight of every entry of the sampled pairs,
millions where runs are deep, so that sums over entries are taken once for all measures: `Reach`
adds up what pairs have by run and rank, and a measure's weight of a rank is multiplied in later.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, IntArray, array_digest, frozen
from ..data.kept import kept
from ..data.pool_ranks import rank_sums, total_weights, weights_by_rank
from ..estimates.estimators import effective_sample_size, kish
from .out_of_reach import OutOfReach

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ..data.pool import Pool
    from ..measures.table import Measure

MOST_KEPT = 64  # measures and samples of which a number of each run is kept with a pool


@dataclass(frozen=True, eq=False)
class Reach:
    """What a design can sample of a pool, and what it did.

    Attributes
    ----------
    pool : Pool
    pair : ndarray of int64, shape (n,)
        Sampled pairs.
    inclusion : ndarray of float64, shape (N,)
        Probability of every pair of the pool to be among them.
    """

    pool: Pool
    pair: IntArray
    inclusion: FloatArray

    @cached_property
    def out(self) -> OutOfReach:
        """What could not be sampled."""
        return OutOfReach.of(self.pool, self.inclusion > 0.0)

    def effective_sample_size(self, measure: Measure) -> FloatArray:
        """Return (sum_S w/pi)^2 / sum_S (w/pi)^2 of each run, shape (k,); see the estimators'.

        Kept with the pool: corrections and second judgments leave the sampled pairs as they are.
        """
        return kept(
            self.pool.kept,
            "sample sizes",
            (measure, self._key),
            lambda: frozen(self._effective_sample_size(measure)),
            most=MOST_KEPT,
        )

    @cached_property
    def _key(self) -> Hashable:
        """What tells apart any two samples with their probabilities, in one process."""
        return array_digest(self.pair), array_digest(self.inclusion[self.pair])

    def _effective_sample_size(self, measure: Measure) -> FloatArray:
        weights = weights_by_rank(self.pool, measure)
        if weights is None:
            chance = self.inclusion[self.pair]
            return effective_sample_size(self.pool.weights(measure, self.pair), probability=chance)
        first, second = self._inverse_chances
        return kish(_run_sums(first * weights), _run_sums(second * weights**2))

    def largest_values(self, measure: Measure, max_grade: int) -> FloatArray:
        """Return the value of every run, (k,), under a measure of gains, at the best grades."""
        return total_weights(self.pool, measure) * measure.max_utility(max_grade)

    @cached_property
    def _inverse_chances(self) -> list[FloatArray]:
        """By run and rank: 1/pi and 1/pi^2 of the sampled pairs."""
        inverse = 1.0 / self.inclusion[self.pair]
        return rank_sums(self.pool, self.pair, [inverse, inverse**2])


def _run_sums(by_rank: FloatArray) -> FloatArray:
    return np.asarray(by_rank.sum(axis=1), dtype=np.float64)
