"""How wide guaranteed intervals will be, before anything is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, check_confidence
from ..inference.basis import Foreseen
from ..inference.guarantees import GUARANTEED
from ..inference.out_of_reach import OutOfReach
from ..sampling.methods import check_interval

if TYPE_CHECKING:
    from ..data.pool import Pool
    from ..measures.table import Measure
    from ..sampling.designs import Design
    from ..sampling.interval_kinds import IntervalKind
    from ..sampling.priors import Prior


def guaranteed_half_widths(
    pool: Pool,
    design: Design,
    *,
    kind: IntervalKind,
    measure: Measure,
    prior: Prior,
    max_grade: int,
    confidence: float = 0.95,
) -> FloatArray:
    """Predict half widths of a kind of guaranteed intervals, for all batches.

    Those of ``hoeffding``, ``hoeffding-paper`` and ``bernstein`` are known, but for where they are
    cut: they follow from the design. ``empirical-bernstein`` and ``chernoff`` depend on what will
    be found, and are given for the spread of the draws, and the values, that the prior expects.

    Parameters
    ----------
    pool, design : Pool, Design
    kind : IntervalKind
        One that the design's method allows, but ``student``.
    measure : Measure
        Of the family gain.
    prior : Prior
    max_grade : int
        The best grade of the scale.
    confidence : float
        Strictly between 0 and 1.

    Returns
    -------
    ndarray of float64, shape (k,)
        Half the length of each run's interval around the value that the prior expects, as far as
        values can lie; infinite for a run with weight on pairs that the design cannot sample.

    Raises
    ------
    ValueError
        If the design belongs to another pool, or kind, measure or confidence do not fit.
    """
    _check(pool, design, kind, measure, confidence)
    reached = np.flatnonzero(design.eligible)
    weights, best = pool.weights(measure, reached), measure.max_utility(max_grade)
    chance = design.size[reached] if design.with_replacement else design.inclusion()[reached]
    foreseen = Foreseen(
        weights=weights,
        chance=chance,
        best=best,
        draws=design.draws() or 0,
        value=np.asarray(weights.T @ prior.expected[reached]),
        second_moment=prior.second_moment[reached],
    )
    bound, value = GUARANTEED[kind].values(foreseen), foreseen.value
    low, high = value - bound.below(confidence), value + bound.above(confidence)
    most = np.asarray(weights.sum(axis=0)) * best
    widths = (np.minimum(high, most) - np.maximum(low, 0.0)) / 2.0
    return np.where(OutOfReach.of(pool, design.eligible).support(measure) < 1.0, np.inf, widths)


def _check(
    pool: Pool, design: Design, kind: IntervalKind, measure: Measure, confidence: float
) -> None:
    if design.pool_digest != pool.digest:
        raise ValueError("the design belongs to another pool")
    check_interval(kind, method=design.method)
    if kind == "student":
        raise ValueError("kind must be one of guaranteed intervals, not 'student'")
    if measure.family != "gain":
        raise ValueError(f"measure must be a sum of gains, not {measure}")
    check_confidence(confidence)
