"""The curve of half widths against budgets."""

from collections.abc import Sequence
from dataclasses import dataclass

from estimation.scales import (
    PLOT_HEIGHT,
    Scale,
    Tick,
    down,
    from_zero,
    levels,
    polyline,
)


@dataclass(frozen=True)
class Curve:
    title: str
    description: str
    height: float
    line: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    chosen: tuple[float, float] | None


def budget_curve(
    points: Sequence[tuple[float, float | None]], *, chosen: float, measure: str
) -> Curve:
    """Half width against budget; ``chosen`` is the budget whose point is marked."""
    usable = [(budget, width) for budget, width in points if width is not None]
    budgets = [budget for budget, _ in points] or [1.0]
    across = Scale(min(budgets), max(budgets), logarithmic=True)
    upright = from_zero(width for _, width in usable)
    line = polyline((across.at(budget), 100 - upright.at(width)) for budget, width in usable)
    marked = [(x, y) for x, y in usable if x == chosen]
    return Curve(
        title="Half width against budget",
        description=f"Mean expected half width of {measure} over the runs, by number of pairs.",
        height=PLOT_HEIGHT,
        line=line,
        x_ticks=across.ticks(),
        y_ticks=levels(upright, PLOT_HEIGHT),
        chosen=next(((across.at(x), down(upright, PLOT_HEIGHT, y)) for x, y in marked), None),
    )
