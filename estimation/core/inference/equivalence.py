"""Runs that are as good as equal: differences that do not matter, decided like verdicts.

Before anything is drawn, an organizer may call differences up to some size negligible. Two runs are
then *equivalent* when an interval of their difference, simultaneous with those of all other pairs,
lies wholly within plus and minus that size. That is not the same as an open comparison, which says
nothing, nor does it exclude a verdict: a difference may be surely there and surely too small.

A verdict "better" is false where the true difference is 0 or of the other sign, "equivalent" where
it is larger than what is negligible. Both kinds of claims share the error a of a look (`looks`):

- verdicts, by `ranks.rank_runs`, are made with (1 - `SHARE`) a in the place of a;
- intervals for equivalence reach q standard errors (and the slack of what was out of reach) to
  either side, with q the quantile that one side of one interval misses with `SHARE` a / m, for the
  m = k (k - 1) / 2 pairs of runs.

Let d > delta be the true difference of a pair that is called equivalent. Then its interval ends at
or below delta < d, which happens with probability SHARE a / m at most; of -d likewise. There are at
most m such pairs, each with one wrong side, so P(any false equivalence) <= SHARE a (Boole), and
P(any false claim of either kind) <= (1 - SHARE) a + SHARE a = a, *whatever the claims have to do
with one another*. Had both kinds the whole error, it would not: a step-down procedure spends on the
remaining pairs what it has saved on those that are decided, and a pair that is decided as different
can still falsely be called equivalent. A claim about several pairs (all runs but one are worse or
equivalent) is false only if one about a pair is.

A guarantee (`intervals.Bound`) gives the interval where there is one, with the error SHARE a / m of
both sides together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from .unknown import Reason, Reasons

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..arrays import BoolArray, FloatArray
    from ..measures.table import Measure

SHARE = 0.2
"""Of the error, for equivalence. With 20 runs and Holm's first step verdicts take 3.70 standard
errors in place of 3.65, and intervals for equivalence 3.88; at a half, 3.82 and 3.65."""


@dataclass(frozen=True)
class Negligible:
    """Differences under a measure that do not matter: those up to a size, in its unit.

    Attributes
    ----------
    measure : Measure
    difference : float
        Above 0 and finite.

    Raises
    ------
    ValueError
        If the difference is not such a number.
    """

    measure: Measure
    difference: float

    def __post_init__(self) -> None:
        if not 0.0 < self.difference < math.inf:
            raise ValueError(f"a negligible difference must be above 0, not {self.difference}")


@dataclass(frozen=True, eq=False)
class Equivalence:
    """Which runs are as good as equal.

    Attributes
    ----------
    within : float
        Differences up to this one are negligible.
    low, high : ndarray of float64, shape (k, k)
        Ends of the intervals of the differences, row's value less column's: at most `SHARE` of the
        error is that any of them claims too much, on the side that matters for it.
    """

    within: float
    low: FloatArray
    high: FloatArray

    def turned(self, sign: float) -> Equivalence:
        """Return it of values with the other sign, if that is -1."""
        return self if sign > 0.0 else replace(self, low=-self.high, high=-self.low)

    def pairs(self, unknown: Reasons) -> BoolArray:
        """Return which pairs of runs are equivalent, (k, k); none that are not known."""
        inside = (self.low >= -self.within) & (self.high <= self.within)
        inside &= unknown == Reason.KNOWN
        np.fill_diagonal(inside, False)
        return np.asarray(inside, dtype=np.bool_)


VERDICTS = 1.0 - SHARE  # of the error, for verdicts


def verdict_confidence(confidence: float) -> float:
    """Return the confidence of verdicts that share their error with equivalence."""
    return 1.0 - VERDICTS * (1.0 - confidence)


def best_or_equivalent(verdicts: NDArray[np.int8], equivalent: BoolArray) -> BoolArray:
    """Return which runs are surely at most negligibly worse than the best, shape (k,).

    Those that are surely better than every other run or equivalent to it. ``verdicts`` as
    `Ranking.verdicts`, ``equivalent`` from `Equivalence.pairs`.
    """
    settled = (verdicts == 1) | equivalent
    np.fill_diagonal(settled, True)
    return np.asarray(settled.all(axis=1), dtype=np.bool_)
