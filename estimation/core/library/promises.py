"""What a design promises before anything is judged, and what other budgets would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import kind_of
from ..planning.learning import LearningProspects, learns
from ..planning.planning import ExpectedPrecision, expected_half_widths, half_width_curve
from ..rounds.adaptive.state import AdaptivePlan
from ..rounds.adaptive.top_ups import unlearned
from ..sampling.designs import Design, DesignError
from ..sampling.priors import Prior
from ..tables import Columns, Tabled
from .arguments import check_pool
from .names import named_measure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..arrays import FloatArray
    from ..data.labels import LabelRows
    from ..data.pool import Pool
    from ..measures.table import Measure
    from ..rounds.rounds import AnyDesign


def expected_precision(
    pool: Pool,
    design: AnyDesign,
    *,
    measure: Measure | str | None = None,
    max_grade: int = 1,
    confidence: float = 0.95,
    labels: LabelRows | None = None,
) -> ExpectedPrecision:
    """Say what a design of pairs promises: the half width of every run's interval to expect.

    It rests on what the design's prior believes, before anything is judged. An adaptive round of
    several batches is played on drawn grades, with few relevant documents and with many
    (`planning.learning`), one that tops up what is judged on grades as its labels let expect them;
    half widths are the wider ones, on its own scale.

    Parameters
    ----------
    pool, design
        A design of pairs, or an `AdaptivePlan`.
    measure : Measure or str, optional
        By default the design's own.
    max_grade : int
        The best grade of the scale: half widths are in the unit of the measure.
    confidence : float
    labels : LabelRows, optional
        Of the judged pairs, where an `AdaptivePlan` tops them up; it needs them.

    Raises
    ------
    LabelError
        If a pair that is topped up has no label.

    Examples
    --------
    >>> pool = pool_runs(read_runs("demo/collection/runs"), depth=10)
    >>> design = make_design(pool, measure="P@10", budget=400)
    >>> expected = expected_precision(pool, design)
    >>> expected.runs == pool.runs, bool((expected.half_width < 0.2).all())
    (True, True)
    """
    pairs, wanted, prior = _believed(pool, design, measure, max_grade)
    if isinstance(design, AdaptivePlan) and learns(design):
        played = _played(pool, design, wanted, confidence, labels)
        wide = played.half_widths(wanted, [design.budget])[1, 0]
        return ExpectedPrecision(pool.runs, wide, played.every_difference(design.budget))
    return expected_half_widths(
        pool, pairs, measure=wanted, prior=prior, max_grade=max_grade, confidence=confidence
    )


@dataclass(frozen=True, eq=False, repr=False)
class PrecisionByBudget(Tabled):
    """Half widths of intervals to be expected of several budgets.

    Attributes
    ----------
    runs : tuple of str
    budgets : tuple of float
        B of them.
    half_width : ndarray of float64, shape (B, k)
        Of every run's interval; infinite for a run that the design cannot sample all of.
    """

    runs: tuple[str, ...]
    budgets: tuple[float, ...]
    half_width: FloatArray

    def columns(self) -> Columns:
        """Return budget by budget the half width of the middle run and the largest."""
        return {
            "budget": list(self.budgets),
            "middle run": np.median(self.half_width, axis=1).tolist(),
            "worst run": np.max(self.half_width, axis=1).tolist(),
        }


def precision_by_budget(
    pool: Pool,
    design: AnyDesign,
    *,
    budgets: Sequence[float],
    measure: Measure | str | None = None,
    max_grade: int = 1,
    confidence: float = 0.95,
    labels: LabelRows | None = None,
) -> PrecisionByBudget:
    """Say how precise a design of pairs would be with other budgets; see `expected_precision`.

    Examples
    --------
    >>> pool = pool_runs(read_runs("demo/collection/runs"), depth=10)
    >>> design = make_design(pool, measure="P@10", budget=400)
    >>> planned = precision_by_budget(pool, design, budgets=[200, 800])
    >>> bool((planned.half_width[1] < planned.half_width[0]).all())
    True
    """
    pairs, wanted, prior = _believed(pool, design, measure, max_grade)
    if isinstance(design, AdaptivePlan) and learns(design):
        played = _played(pool, design, wanted, confidence, labels)
        return PrecisionByBudget(pool.runs, tuple(budgets), played.half_widths(wanted, budgets)[1])
    curve = half_width_curve(
        pool,
        pairs,
        measure=wanted,
        prior=prior,
        budgets=budgets,
        max_grade=max_grade,
        confidence=confidence,
    )
    return PrecisionByBudget(pool.runs, tuple(budgets), curve)


def _played(
    pool: Pool,
    plan: AdaptivePlan,
    measure: Measure,
    confidence: float,
    labels: LabelRows | None,
) -> LearningProspects:
    return LearningProspects.of(
        pool, plan, measures=[measure], confidence=confidence, labels=labels
    )


def _believed(
    pool: Pool, design: AnyDesign, measure: Measure | str | None, max_grade: int
) -> tuple[Design, Measure, Prior]:
    """The design, or that of an adaptive round which learns nothing, with what was judged before;
    the measure that is meant; and what the design's prior believed, in the unit of the measure."""
    check_pool(pool)
    pairs = unlearned(design) if isinstance(design, AdaptivePlan) else design
    if not isinstance(pairs, Design):
        told = f"not by {kind_of(pairs)}"
        raise DesignError(f"Half widths are promised by designs of pairs, {told}.")
    wanted = pairs.measure if measure is None else named_measure(measure)
    if pairs.belief is None:
        raise DesignError("The design does not hold what its prior believed.")
    if wanted.family in ("prediction", "preference"):
        return pairs, wanted, Prior(pairs.prior, pairs.belief, pairs.belief)
    best = wanted.max_utility(max_grade)
    return pairs, wanted, Prior(pairs.prior, best * pairs.belief, best**2 * pairs.belief)
