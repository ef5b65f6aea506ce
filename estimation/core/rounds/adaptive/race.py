"""Who is still in the race for the best run, as the batches so far tell.

The goal "winner" asks for differences from the leader, the run with the best estimate. How much
each of them matters for the next batch follows from the estimated difference d_j, and its variance
V_j as verdicts have it,

    r_j = V_j / (d_j^2 + V_j),        q_j in proportion to r_j^2 / (d_j^2 + V_j):

what decides a race is the largest of the V_j / d_j^2, and q_j is the slope of the sum of their
cubes, a smooth form of it, with d_j^2 + V_j in the place of d_j^2, because a difference is not
known better than by its standard error. (The largest itself is what best-arm identification
minimizes: Garivier and Kaufmann 2016, and Soare, Lazaric and Munos 2014 where runs share pairs, as
here.) It lets a run go that lies four standard errors behind, and at once takes it back when it
catches up; runs that a verdict has put out are not struck off, because a verdict of one batch may
be gone with the next. Those of which what was judged settles that they are worse are: it stays so.

Where differences up to some size are negligible, the race is over as well when this one is surely
smaller than that: what is to be told apart from 0 is then the larger of d_j and of what is left of
the negligible difference. A difference that too few finds carry is as uncertain as it is large.

Why this biases nothing: priorities are a function of what was judged in the batches before, as the
model of grades is, and the estimates are unbiased whatever the chances of a batch are, as long as
they are fixed before it and above 0 (`sampling`). No run of the goal has the priority 0, so that no
pair on which the runs of the goal differ has the weight 0, not even without a floor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import frozen
from ...inference.intervals import ROUNDING
from ...inference.uncertainty import variances, variances_of_differences
from ...inference.unknown import Reason
from ...sampling.goals import Race

if TYPE_CHECKING:
    from ...arrays import FloatArray
    from ...sampling.goals import Goal
    from ..results import MeasureResult

WHOLE = 1_000_000  # what all priorities add up to, but for rounding: no last bits are kept
LEAST_SHARE = 0.001  # of it is for all runs alike


def race_of(found: MeasureResult, goal: Goal, *, negligible: float = 0.0) -> Race | None:
    """Return who is in the race.

    Parameters
    ----------
    found : MeasureResult
        From all judged batches, of all runs of the pool, in its order.
    goal : Goal
    negligible : float
        Differences up to this one do not matter.

    Returns
    -------
    Race or None
        None where no difference from the leader is in doubt.
    """
    inside = np.isin(found.runs, goal.runs)
    leader = next(run for run in found.ranking.order.tolist() if inside[run])
    inside[leader] = False
    doubts = np.where(inside, _doubts(found, leader, negligible), 0.0)
    if not doubts.any():
        return None
    share = (1.0 - LEAST_SHARE) * doubts / doubts.sum() + LEAST_SHARE / np.count_nonzero(inside)
    whole = np.maximum(np.round(WHOLE * share), 1.0).astype(np.int64)
    return Race(leader, frozen(np.where(inside, whole, 0)))


def _doubts(found: MeasureResult, leader: int, negligible: float) -> FloatArray:
    """How much each difference from the leader matters, (k,), up to a factor.

    Nothing where it is certain: where the runs return the same, say, or where what was judged
    settles it (`inference.settled`).
    """
    shown = found.estimate
    behind = np.abs(found.ranking.difference[leader])
    variance = variances_of_differences(shown.covariance, shown.expected, shown.finds)[leader]
    if shown.difference_least is not None:
        variance = np.maximum(variance, shown.difference_least[leader] ** 2)
    single = variances(shown.covariance, shown.expected)
    open_ = variance > 2.0 * ROUNDING * (single + single[leader])
    open_ &= found.ranking.adjusted_p[leader] > 0.0
    gap = np.maximum(behind, negligible - behind) ** 2
    known = shown.difference_unknown[leader] == Reason.KNOWN
    if shown.difference_few is not None:
        known &= ~shown.difference_few[leader]
    variance = np.where(known, variance, np.maximum(variance, gap))
    both = np.where(open_, gap + variance, 1.0)
    return np.where(open_, (variance / both) ** 2 / both, 0.0)
