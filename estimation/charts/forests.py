"""Forest plots: intervals under each other on one scale."""

from collections.abc import Sequence
from dataclasses import dataclass

from estimation.scales import (
    Scale,
    Tick,
    around,
    finite,
)

FEW = 10
"""Forest plots of fewer runs always show every interval whole."""


@dataclass(frozen=True)
class ForestValue:
    """A value with its limits; None or infinite where there is none. ``faint``: not known."""

    label: str
    value: float | None
    low: float | None
    high: float | None
    marked: bool = False
    faint: bool = False


@dataclass(frozen=True)
class ForestRow:
    """One interval. ``open_left`` and ``open_right``: it goes on beyond the edge."""

    label: str
    x: float | None
    left: float
    right: float
    open_left: bool
    open_right: bool
    marked: bool
    faint: bool = False

    @property
    def width(self) -> float:
        return round(self.right - self.left, 3)


@dataclass(frozen=True)
class Forest:
    title: str
    description: str
    ticks: tuple[Tick, ...]
    rows: tuple[ForestRow, ...]
    zero: float | None


def forest(rows: Sequence[ForestValue], *, title: str, description: str) -> Forest:
    """Intervals under each other on one scale; ``zero`` is where 0 lies, if it is in sight.

    A few intervals much wider than the others run off the edge instead of squeezing them, and so do
    those of values that are not known.
    """
    scale = _forest_scale([row for row in rows if not row.faint] or rows)
    zero = scale.at(0.0) if scale.low < 0.0 < scale.high else None
    placed = tuple(_forest_row(row, scale) for row in rows)
    return Forest(title, description, scale.ticks(), placed, zero)


def _forest_scale(rows: Sequence[ForestValue]) -> Scale:
    whole = around(end for row in rows for end in (row.value, row.low, row.high))
    lows = sorted(low for row in rows if (low := finite(row.low)) is not None)
    highs = sorted(high for row in rows if (high := finite(row.high)) is not None)
    if min(len(lows), len(highs)) < FEW:
        return whole
    usual = [*lows[len(lows) // 10 :], *highs[: len(highs) - len(highs) // 10]]
    most = around([*usual, *(row.value for row in rows)])
    return most if whole.high - whole.low > 1.5 * (most.high - most.low) else whole


def _forest_row(row: ForestValue, scale: Scale) -> ForestRow:
    low, value, high = finite(row.low), finite(row.value), finite(row.high)
    return ForestRow(
        label=row.label,
        x=None if value is None else scale.at(value),
        left=0.0 if low is None else scale.at(low),
        right=100.0 if high is None else scale.at(high),
        open_left=low is None or low < scale.low,
        open_right=high is None or high > scale.high,
        marked=row.marked,
        faint=row.faint,
    )


def widths_forest(widths: Sequence[tuple[str, float | None]], *, measure: str) -> Forest:
    """Expected intervals around values that nobody knows yet: all centered at zero."""
    rows = [
        ForestValue(tag, None, None if width is None else -width, width) for tag, width in widths
    ]
    description = (
        f"Expected half width of the 95 % interval of {measure} for each of {len(rows)} runs, "
        "drawn around the value that is not known yet."
    )
    return forest(rows, title=f"What the budget buys: {measure}", description=description)
