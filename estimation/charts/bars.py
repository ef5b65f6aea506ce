"""Bars: upright ones of topics and batches, lying ones of grades."""

from collections.abc import Sequence
from dataclasses import dataclass

from estimation.scales import (
    PLOT_HEIGHT,
    Tick,
    down,
    from_zero,
    levels,
)

LEAST_ROOM = 10  # bars of batches, so that few of them are no slabs


@dataclass(frozen=True)
class Bar:
    """``x`` and ``width`` in percent across, ``y`` and ``height`` in pixels down."""

    label: str
    value: float
    x: float
    width: float
    y: float
    height: float


@dataclass(frozen=True)
class BarChart:
    title: str
    description: str
    height: float
    bars: tuple[Bar, ...]
    y_ticks: tuple[Tick, ...]


def topic_bars(values: Sequence[tuple[str, float]]) -> BarChart:
    """Expected pairs of each topic, as upright bars in the order of the topics."""
    description = f"Expected number of pairs to judge for {_each(values)}."
    return _upright("Pairs per topic", description, values)


def _each(values: Sequence[tuple[str, float]]) -> str:
    return f"each of {len(values)} topics" if len(values) > 1 else "the one topic"


def result_bars(title: str, values: Sequence[tuple[str, float]]) -> BarChart:
    """A number of each topic, in the order given."""
    description = f"{title} of {_each(values)}, in the order of the table."
    return _upright(title, description, values, room_for=LEAST_ROOM)


def race_bars(values: Sequence[tuple[str, float]], *, planned: int) -> BarChart:
    """How many runs are still in the race after each batch, with room for the planned ones."""
    description = f"Number of runs that may be the best, after each of {len(values)} batches."
    return _upright("Still in the race", description, values, room_for=max(planned, LEAST_ROOM))


def day_bars(values: Sequence[tuple[str, float]]) -> BarChart:
    """Judgments of each day, in the order of the days."""
    description = f"Number of judgments on each of the last {len(values)} days."
    return _upright("Judgments a day", description, values)


@dataclass(frozen=True)
class StackedPart:
    """``x`` and ``width`` in percent across."""

    name: str
    count: int
    x: float
    width: float


@dataclass(frozen=True)
class StackedBar:
    """What a whole is made of, side by side."""

    description: str
    parts: tuple[StackedPart, ...]


def stacked(parts: Sequence[tuple[str, int]]) -> StackedBar:
    total = sum(count for _, count in parts) or 1
    description = ", ".join(f"{count:,} {name}" for name, count in parts)
    found, x = [], 0.0
    for name, count in parts:
        width = 100 * count / total
        found.append(StackedPart(name, count, round(x, 3), round(width, 3)))
        x += width
    return StackedBar(description, tuple(found))


def _upright(
    title: str, description: str, values: Sequence[tuple[str, float]], *, room_for: int = 1
) -> BarChart:
    upright = from_zero(value for _, value in values)
    height = PLOT_HEIGHT / 2
    room = 100 / max(room_for, len(values))
    bars = tuple(
        Bar(
            label=name,
            value=value,
            x=round(room * (index + 0.1), 3),
            width=round(room * 0.8, 3),
            y=down(upright, height, value),
            height=round(height - down(upright, height, value), 2),
        )
        for index, (name, value) in enumerate(values)
    )
    return BarChart(title, description, height, bars, levels(upright, height, 2))


@dataclass(frozen=True)
class Share:
    label: str
    count: int
    percent: float
    width: float


@dataclass(frozen=True)
class ShareChart:
    title: str
    description: str
    rows: tuple[Share, ...]


def grade_bars(counts: Sequence[tuple[str, int]]) -> ShareChart:
    """How often each grade was given: lying bars, the longest over the whole width."""
    total = sum(count for _, count in counts)
    most = max((count for _, count in counts), default=0) or 1
    rows = tuple(
        Share(name, count, 100 * count / (total or 1), round(100 * count / most, 2))
        for name, count in counts
    )
    labels = "1 label" if total == 1 else f"{total:,} labels"
    return ShareChart("Grades given", f"How often each grade was given, of {labels}.", rows)
