"""What precision a design over whole topics promises before anything is judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..arrays import FloatArray, check_confidence, refuse
from ..inference.intervals import student_quantile
from ..rounds.topics.moments import value_moments
from .planning import largest_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..data.pool import Pool
    from ..measures.table import Measure
    from ..rounds.topics.designs import QueryDesign
    from ..rounds.topics.grade_models import GradeModel


def expected_query_half_widths(
    pool: Pool,
    design: QueryDesign,
    *,
    measure: Measure,
    model: GradeModel,
    budgets: Sequence[float],
    confidence: float = 0.95,
) -> FloatArray:
    """Predict half widths of the unbiased estimates from the grade model, before any judgment.

    Var = (sum_x p^2/q E[L_j^2 | x] - (sum_x p E[L_j | x])^2) / n by the normal approximation, with
    n = budget / sum_x cost q draws. Half widths end at half of `largest_values`.

    Parameters
    ----------
    budgets : sequence of float
        In the unit of the costs, each positive.
    model : GradeModel
        The one the design is made from.

    Returns
    -------
    ndarray of float64, shape (len(budgets), len(design.runs))

    Raises
    ------
    ValueError
        If a budget is not a positive number, or the design belongs to another pool.
    """
    if design.pool_digest != pool.digest:
        raise ValueError("the design belongs to another pool")
    check_confidence(confidence)
    given = np.asarray(budgets, dtype=np.float64)
    refuse(~(given > 0.0), given, name="budgets", rule="be above 0")
    eligible = design.eligible
    number = int(np.count_nonzero(eligible))
    share = number / len(eligible)
    moments = value_moments(pool, runs=design.runs, measure=measure, model=model)
    second = moments.second[eligible] / design.probability[eligible, None]
    spread = second.sum(axis=0) / number**2 - moments.mean[eligible].mean(axis=0) ** 2
    draws = given / float(design.cost @ design.probability)
    quantile = float(student_quantile(np.array([np.inf]), confidence=confidence)[0])
    widths = share * quantile * np.sqrt(np.maximum(spread, 0.0)[None, :] / draws[:, None])
    widths = np.minimum(widths, _largest(pool, design, measure, model) / 2.0)
    census = given[:, None] >= design.cost.sum()
    return np.where(census, 0.0, widths)


def _largest(pool: Pool, design: QueryDesign, measure: Measure, model: GradeModel) -> FloatArray:
    gains = measure.family == "gain"
    best = measure.max_utility(model.max_grade) if gains else 1.0
    at = [pool.run_index(tag) for tag in design.runs]
    return largest_values(pool, measure, best=best)[at]
