"""Small multiples: values of runs by batch."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from estimation.scales import (
    PLOT_HEIGHT,
    Scale,
    Tick,
    around,
    common_decimals,
    label,
    levels,
    polyline,
)

PANEL_HEIGHT = 88.0
HALF_BAR = 1.5
"""Percent across: half the width of a band that has only one moment."""
NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Panel:
    """One run's values by batch, in a square of 100 by 100.

    ``lines`` and ``bands`` are interrupted where the value is not known; only a last value that is
    known has a dot.
    """

    label: str
    lines: tuple[str, ...]
    bands: tuple[str, ...]
    dots: tuple[tuple[float, float], ...]
    values: tuple[str, ...]
    marked: bool


@dataclass(frozen=True)
class HistoryChart:
    title: str
    description: str
    height: float
    batches: tuple[int, ...]
    panels: tuple[Panel, ...]
    y_ticks: tuple[Tick, ...]

    @cached_property
    def grid(self) -> SafeString:
        """A line for each level, the same in every panel."""
        line = '<line class="grid" x1="0" x2="100%" y1="{}" y2="{}"/>'
        return format_html_join("", line, ((tick.at, tick.at) for tick in self.y_ticks))

    @cached_property
    def level_labels(self) -> SafeString:
        """What each level is, beside every panel."""
        text = '<text x="-6" y="{}" dy="4" text-anchor="end">{}</text>'
        return format_html_join("", text, ((tick.at, tick.label) for tick in self.y_ticks))

    @property
    def has_gaps(self) -> bool:
        """Whether some value was not known after some batch."""
        return any(NOT_KNOWN in panel.values for panel in self.panels)


@dataclass(frozen=True)
class PanelPoint:
    """A run's value after a number of batches; None if it was not known."""

    batches: int
    value: float | None
    low: float
    high: float


def history(
    runs: Mapping[str, Sequence[PanelPoint]], *, measure: str, marked: Iterable[str] = ()
) -> HistoryChart:
    """Values by batch as small multiples on one scale, in the order of ``runs``.

    The scale covers the intervals of the later half of the batches; those of the first are so wide
    that nothing else could be seen, and run off the edge.
    """
    every = [moment for line in runs.values() for moment in line]
    batches = sorted({moment.batches for moment in every})
    moments = [moment for moment in every if moment.value is not None]
    upright = _later(moments, batches)
    across = _across(batches)
    digits = common_decimals((moment.high - moment.low) / 2 for moment in moments)
    chosen = set(marked)
    panels = tuple(
        _panel(tag, line, across, upright, digits, tag in chosen)
        for tag, line in runs.items()
        if line
    )
    return HistoryChart(
        title=f"{measure} by batch",
        description=f"Estimates of {_runs(len(panels))} after each batch, with 95 % intervals.",
        height=PANEL_HEIGHT,
        batches=tuple(batches),
        panels=panels,
        y_ticks=levels(upright, PANEL_HEIGHT, 3),
    )


@dataclass(frozen=True)
class OverviewLine:
    label: str
    parts: tuple[str, ...]
    marked: bool


@dataclass(frozen=True)
class OverviewChart:
    """All runs on one scale, without intervals; the marked ones are drawn last, over the others."""

    title: str
    description: str
    height: float
    lines: tuple[OverviewLine, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]

    @cached_property
    def drawn(self) -> SafeString:
        """All lines in one piece, as there may be hundreds."""
        line = (
            '<polyline class="line{}" points="{}" vector-effect="non-scaling-stroke">'
            "<title>{}</title></polyline>"
        )
        parts = (
            (" marked" if each.marked else "", part, each.label)
            for each in self.lines
            for part in each.parts
        )
        return format_html_join("", line, parts)


def overview(
    runs: Mapping[str, Sequence[PanelPoint]], *, measure: str, marked: Iterable[str] = ()
) -> OverviewChart:
    """Values of all runs by batch as lines, interrupted where a value is not known."""
    every = [moment for line in runs.values() for moment in line]
    batches = sorted({moment.batches for moment in every})
    upright = around([moment.value for moment in every])
    scale, across, chosen = _scale_of(batches), _across(batches), set(marked)

    def drawn(tag: str, line: Sequence[PanelPoint]) -> OverviewLine:
        grouped = groupby(line, key=lambda moment: moment.value is not None)
        known = [list(part) for is_known, part in grouped if is_known]
        parts = [
            [(across[m.batches], round(100 - upright.at(m.value or 0.0), 3)) for m in part]
            for part in known
        ]
        return OverviewLine(tag, tuple(polyline(_widened(part)) for part in parts), tag in chosen)

    lines = sorted((drawn(*each) for each in runs.items()), key=lambda line: line.marked)
    return OverviewChart(
        title=f"{measure} by batch, all runs",
        description=(
            f"Estimates of {_runs(len(lines))} after each batch, {len(chosen)} highlighted."
        ),
        height=PLOT_HEIGHT,
        lines=tuple(lines),
        x_ticks=scale.ticks(min(5, max(1, round(scale.high - scale.low)))),
        y_ticks=levels(upright, PLOT_HEIGHT),
    )


def _scale_of(batches: Sequence[int]) -> Scale:
    return Scale(batches[0] if batches else 0, batches[-1] if batches else 1)


def _across(batches: Sequence[int]) -> dict[int, float]:
    """Where each batch is, for all runs."""
    scale = _scale_of(batches)
    return {number: scale.at(number) for number in batches}


def _later(moments: Sequence[PanelPoint], batches: Sequence[int]) -> Scale:
    """A scale over all values, and over the intervals of the later half of the batches."""
    half = batches[len(batches) // 2] if batches else 0
    later = [moment for moment in moments if moment.batches >= half]
    ends = [end for moment in later for end in (moment.low, moment.high)]
    return around([*(moment.value for moment in moments), *ends])


def _panel(
    tag: str,
    line: Sequence[PanelPoint],
    across: Mapping[int, float],
    upright: Scale,
    digits: int,
    marked: bool,
) -> Panel:
    def place(batches: int, value: float, beyond: float) -> tuple[float, float]:
        shown = value if math.isfinite(value) else beyond
        return across[batches], round(100 - upright.at(shown), 3)

    def band(part: list[PanelPoint]) -> str:
        upper = [place(moment.batches, moment.high, upright.high) for moment in part]
        lower = [place(moment.batches, moment.low, upright.low) for moment in part]
        return polyline([*_widened(upper), *reversed(_widened(lower))])

    grouped = groupby(line, key=lambda moment: moment.value is not None)
    parts = [list(part) for known, part in grouped if known]
    middles = [[place(m.batches, m.value or 0.0, upright.low) for m in part] for part in parts]
    last = middles[-1][-1:] if line[-1].value is not None else []
    return Panel(
        label=tag,
        lines=tuple(filter(None, map(polyline, middles))),
        bands=tuple(map(band, parts)),
        dots=tuple((x, round(y * PANEL_HEIGHT / 100, 2)) for x, y in last),
        values=tuple(NOT_KNOWN if m.value is None else label(m.value, digits) for m in line),
        marked=marked,
    )


def _widened(edge: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """A band or line of one moment is a bar or a dash: nothing would be seen of it."""
    if len(edge) != 1:
        return edge
    ((x, y),) = edge
    return [(max(0.0, x - HALF_BAR), y), (min(100.0, x + HALF_BAR), y)]


def _runs(number: int) -> str:
    return "1 run" if number == 1 else f"{number} runs"
