"""Guaranteed intervals of an estimate: a kind of interval, put together for what was drawn.

What holds is said in `bounds` (draws with replacement) and `poisson_bounds`. All of it is for the
mean over assessors, who may disagree: under ``iid`` part of the permitted error pays for that. A
pair that is never drawn has no part in a bound, as it has none in the estimate: the intervals are
then of the lower bound that the estimate is of.

Verdicts rest on the same bounds. A difference has the p-value p if the interval of the kind
excludes 0 at every confidence below 1 - p; p-values are then adjusted by Holm over all pairs of
runs, so that verdicts and possible ranks hold at once. No verdict is lost that each difference
alone at 1 - alpha / (number of pairs) would give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .basis import Found
from .bounds import OF_DRAWS
from .poisson_bounds import OF_POISSON

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..arrays import FloatArray
    from ..data.pool import Pool
    from ..estimates.drawn import Drawn
    from ..estimates.terms import Terms
    from ..measures.table import Measure
    from ..sampling.interval_kinds import IntervalKind
    from .basis import Guaranteed
    from .intervals import Bound

GUARANTEED: Mapping[IntervalKind, Guaranteed] = {**OF_DRAWS, **OF_POISSON}
"""All kinds but ``student``."""


@dataclass(frozen=True, eq=False)
class RunBounds:
    """Bounds for the values of k runs, and for all differences between them."""

    values: Bound
    differences: Bound


def guarantee(
    kind: IntervalKind,
    *,
    pool: Pool,
    drawn: Drawn,
    terms: Terms,
    value: FloatArray,
    measure: Measure,
    max_grade: int,
) -> RunBounds | None:
    """Put a kind of interval together.

    Parameters
    ----------
    kind : IntervalKind
        One that the sampling method allows.
    pool, drawn : Pool, Drawn
    terms : Terms
        What the drawn pairs contribute under the measure.
    value : ndarray of float64, shape (k,)
        The estimates: importance sampling under ``iid``, Horvitz-Thompson under ``poisson``.
    measure, max_grade

    Returns
    -------
    RunBounds or None
        None for ``student``, and for measures without a bound: all but those of gains.
    """
    if kind == "student" or measure.family != "gain":
        return None
    reached = np.flatnonzero(drawn.inclusion > 0.0)
    chance = drawn.inclusion if drawn.draws is None else drawn.expected / drawn.draws
    found = Found(
        weights=pool.weights(measure, reached),
        chance=np.minimum(chance[reached], 1.0),
        best=measure.max_utility(max_grade),
        draws=drawn.draws or 0,
        value=value,
        drawn=drawn,
        terms=terms,
    )
    built = GUARANTEED[kind]
    return RunBounds(built.values(found), built.differences(found))
