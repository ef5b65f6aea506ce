"""Half widths to be expected, as previews store them; and those of a round that learns."""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from estimation import scales
from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.measures.table import Measure
from estimation.core.planning.learning import LearningProspects
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.models import Round
from estimation.services import designing
from estimation.services.sittings import as_judged

CURVE_POINTS = 12


def of_learning(
    row: Round, pool: Pool, plan: AdaptivePlan, labels: LabelRows | None
) -> dict[str, Any]:
    """What a round buys that learns, as ranges: half widths are the wide ones, and those at best
    stand beside them. Nobody knows yet what later batches let a judgment count for. `labels` are
    those of what a top-up adds to."""
    measures = designing.measures_of(row)
    prospects = LearningProspects.of(pool, plan, measures=measures, labels=labels)
    around = budgets(row, prospects.whole)
    reached = prospects.reached(
        work=plan.costs if row.costs == Round.Costs.LENGTH else None,
        besides=partial(as_judged, row, pool),
    )
    return {
        "measures": [_played(prospects, each) for each in prospects.measures],
        "curve": points(around, prospects.half_widths(plan.measure, around)[1]),
        "reached": reached.facts(),
        "guaranteed": None,
        "largest": None,
        "learns": True,
    }


def _played(prospects: LearningProspects, measure: Measure) -> dict[str, Any]:
    budget = prospects.plan.budget
    narrow, wide = prospects.half_widths(measure, [budget])[:, 0]
    least, most = prospects.differences(measure, budget)
    found = widths(measure, prospects.pool.runs, wide, difference=most)
    for line, width in zip(found["half_widths"], narrow.tolist(), strict=True):
        line["half_width_least"] = scales.finite(width)
    return found | {"difference_least": scales.finite(least)}


def widths(
    measure: Measure, runs: Sequence[str], half_widths: np.ndarray, *, difference: float = np.inf
) -> dict[str, Any]:
    """Half widths of runs under a measure, and of a difference; None where there is none."""
    return {
        "measure": str(measure),
        "half_widths": [
            {"run": tag, "half_width": scales.finite(width)}
            for tag, width in zip(runs, half_widths.tolist(), strict=True)
        ],
        "difference": scales.finite(difference),
    }


def budgets(row: Round, most: float) -> list[int]:
    """Budgets around the chosen one, which is among them; the last may be for everything."""
    highest = math.ceil(min(row.budget * 4, most))
    least = max(1, min(row.budget // 8, highest))
    points = np.unique(np.geomspace(least, highest, CURVE_POINTS).astype(int)).tolist()
    return sorted({*points, min(row.budget, highest)})


def points(around: Sequence[int], half_widths: np.ndarray) -> list[dict[str, Any]]:
    """The mean half width of the runs at each budget."""
    return [
        {"budget": budget, "half_width": scales.finite(float(np.mean(line)))}
        for budget, line in zip(around, half_widths, strict=True)
    ]
