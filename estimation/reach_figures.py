"""What budgets reach, as pictures and as a table: of a round before anything is judged."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from estimation.charts.lines import LineChart, lines
from estimation.core.planning.reached import ReachedByBudget
from estimation.scales import common_decimals, label

ROWS = 14
"""So many budgets stand in the table, evenly spread."""


@dataclass(frozen=True)
class ReachedLine:
    budget: str
    half_width: str
    decided: str


@dataclass(frozen=True)
class ReachFigure:
    """What the chosen budget reaches, and others; ``decided`` is of the chosen one."""

    measure: str
    decided: str
    half_width: str
    widths: LineChart
    shares: LineChart
    lines: list[ReachedLine]


def reach_figure(preview: Mapping[str, Any], *, budget: int) -> ReachFigure | None:
    """None for a round whose precision nobody can tell beforehand."""
    if not preview.get("reached"):
        return None
    table, measure = ReachedByBudget.of_facts(preview["reached"]), preview["measures"][0]["measure"]
    known = [each for each in table.lines if math.isfinite(each.half_width_most)]
    digits = common_decimals(each.half_width for each in known)

    def row(at: float) -> ReachedLine:
        each = table.at(at)
        least, most = label(100 * each.decided_least, 0), label(100 * each.decided_most, 0)
        ends = (each.half_width, each.half_width_most)
        low, high = (label(width, digits) if math.isfinite(width) else "–" for width in ends)
        width = f"± {low}" if low == high else f"± {low} to {high}"
        return ReachedLine(
            f"{at:,.0f}", width, f"{most} %" if least == most else f"{least} to {most} %"
        )

    every = max(1, math.ceil(len(table.lines) / ROWS))
    chosen = row(float(budget))
    return ReachFigure(
        measure=measure,
        decided=chosen.decided,
        half_width=chosen.half_width,
        widths=lines(
            [
                ("if much more is relevant", "early", _of(known, "half_width_most")),
                ("as the prior expects", "came", _of(known, "half_width")),
            ],
            title="Half width against budget",
            description=f"Expected half width of {measure} of the middle run, between two lines.",
            chosen=float(budget),
        ),
        shares=lines(
            [
                ("at least", "early", _of(table.lines, "decided_least", 100)),
                ("at most", "came", _of(table.lines, "decided_most", 100)),
            ],
            title="Decided differences against budget",
            description="Expected share of the differences with a verdict, between two lines.",
            chosen=float(budget),
            top=100.0,
        ),
        lines=[row(each.budget) for each in table.lines[::every]],
    )


def _of(rows: Any, name: str, times: float = 1.0) -> list[tuple[float, float]]:
    return [(each.budget, times * getattr(each, name)) for each in rows]
