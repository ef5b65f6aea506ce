"""Forest plots: intervals under each other on one scale."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.safestring import SafeString, mark_safe

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

    @property
    def marks(self) -> SafeString:
        """Whiskers and point as SVG: made of numbers alone, and faster than by a template."""
        left, right = self.left, self.right
        whole = _line("whisker", left, right, "50%", "50%")
        start = _beyond(left, "start", "◂") if self.open_left else _whisker_end(left)
        end = _beyond(right, "end", "▸") if self.open_right else _whisker_end(right)
        point = "" if self.x is None else f'<circle class="point" cx="{self.x}%" cy="50%" r="4"/>'
        return mark_safe(f"{whole}{start}{end}{point}")  # noqa: S308 (numbers)


@dataclass(frozen=True)
class Forest:
    title: str
    description: str
    ticks: tuple[Tick, ...]
    rows: tuple[ForestRow, ...]
    zero: float | None

    @cached_property
    def grid(self) -> SafeString:
        """The lines behind every row, as SVG."""
        drawn = [_line("grid", tick.at, tick.at, "0", "100%") for tick in self.ticks]
        if self.zero is not None:
            drawn.append(_line("zero", self.zero, self.zero, "0", "100%"))
        return mark_safe("".join(drawn))  # noqa: S308 (numbers)

    def drawn(self, row: ForestRow, height: int) -> SafeString:
        """A row of its own as SVG, so many pixels high: there may be hundreds on a page."""
        style = " marked" if row.marked else " faint" if row.faint else ""
        size = f'width="100%" height="{height}" aria-hidden="true"'
        return mark_safe(  # noqa: S308 (numbers)
            f'<svg class="chart forest{style}" {size}>{self.grid}{row.marks}</svg>'
        )


def _line(style: str, left: float, right: float, top: str, bottom: str) -> str:
    return f'<line class="{style}" x1="{left}%" x2="{right}%" y1="{top}" y2="{bottom}"/>'


def _whisker_end(at: float) -> str:
    return _line("whisker", at, at, "35%", "65%")


def _beyond(at: float, anchor: str, arrow: str) -> str:
    """The interval goes on beyond the edge."""
    place = f'x="{at}%" y="50%" dy="4" text-anchor="{anchor}"'
    return f'<text class="beyond" {place}>{arrow}</text>'


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
