"""Differences that do not matter: when later intervals are expected to say so.

The rule is that of `inference.equivalence`: an interval of a difference that reaches so many
standard errors to either side, and the slack of what is out of reach, lies wholly within plus and
minus what is negligible. How many it reaches hardly changes from one look to the next, but for the
planned end, where there is more error to spend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from ..inference.equivalence import SHARE, best_or_equivalent
from ..upper import above

if TYPE_CHECKING:
    from ..arrays import FloatArray
    from ..rounds.results import MeasureResult
    from .shrinkage import Later


@dataclass(frozen=True, eq=False)
class Near:
    """What is negligible, in the units that forecasts have.

    Attributes
    ----------
    within : float
        Differences up to this one do not matter, in the measure's unit.
    size : ndarray of float64, shape (n,)
        The same less what is out of reach, in standard errors of now of every difference; infinite
        where there is no error.
    now, end : float
        Standard errors that an interval reaches, now and at the end of the budget.
    """

    within: float
    size: FloatArray
    now: float
    end: float

    @classmethod
    def of(
        cls, result: MeasureResult, slack: FloatArray, error: float, *, exact: float = 1.0
    ) -> Near | None:
        """Return that of a result; None where all differences matter.

        ``slack``, (k, k), is what is out of reach, ``error`` that of all claims together; standard
        errors are told in units of ``exact`` of them.
        """
        found, se = result.equivalence, result.ranking.difference_se
        if found is None or len(se) < 2:
            return None
        reach = above((found.high - found.low - slack - slack.T) / 2.0)
        errors, room = above(se), found.within - above(np.maximum(slack, slack.T))
        there = errors > 0.0
        end = -special.ndtri(SHARE * error / len(errors))
        now = float(np.median(reach[there] / errors[there])) if there.any() else end
        size = np.divide(room, errors, out=np.full_like(errors, np.inf), where=there)
        return cls(found.within, size / exact, now / exact, float(end) / exact)

    def short(self, step: int, end: int) -> float:
        """Return the standard errors that an interval reaches at a later step, as interpolated."""
        return float(np.interp(step, [-1, end], [self.now, self.end]))

    def settled(
        self, later: Later, decided: FloatArray, critical: float, short: float
    ) -> FloatArray:
        """Return the chance of each difference to have a verdict then or not to matter, (n,).

        ``decided`` are the chances of verdicts, beyond the ``critical`` value.
        """
        size = self.size - short * later.unit
        chance = np.minimum(decided + later.within(size), 1.0)
        return np.where(size >= critical * later.unit, 1.0, chance)


def settled_now(result: MeasureResult) -> tuple[float | None, float | None]:
    """How many differences are settled, and whether one run is as good as the best (1 or 0)."""
    if result.equivalence is None:
        return None, None
    ranking = result.ranking
    equivalent = result.equivalence.pairs(ranking.unknown)
    pairs = np.count_nonzero(np.triu((ranking.verdicts != 0) | equivalent, 1))
    return float(pairs), float(best_or_equivalent(ranking.verdicts, equivalent).any())
