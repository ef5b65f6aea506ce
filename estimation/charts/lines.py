"""Several lines over one axis: what came and what was foretold, or what a budget buys."""

from collections.abc import Sequence
from dataclasses import dataclass

from estimation.scales import PLOT_HEIGHT, Scale, Tick, down, from_zero, levels, polyline, with_end

FAR = 1.5
"""Times the highest point: a level above that is not drawn."""
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class DrawnLine:
    """A line and a dot for each of its points; ``style`` is a class of the style sheet."""

    name: str
    style: str
    points: str
    dots: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class LineChart:
    title: str
    description: str
    height: float
    lines: tuple[DrawnLine, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    chosen: float | None
    level: float | None


def lines(
    named: Sequence[tuple[str, str, Points]],
    *,
    title: str,
    description: str,
    chosen: float | None = None,
    level: float | None = None,
    top: float | None = None,
    dotted: Sequence[str] = (),
) -> LineChart:
    """LineChart, each with its name, its style and its points; x is shown logarithmically.

    ``chosen`` is an x that is marked, ``level`` a y, unless it lies far above all lines; ``top`` is
    the end of the upright axis if it is known, and ``dotted`` are the styles whose points have
    dots.
    """
    every = [point for _, _, points in named for point in points]
    along = [max(x, 1.0) for x, _ in every] or [1.0]
    across = Scale(min(along), max(along), logarithmic=True)
    highest = max((y for _, y in every), default=0.0)
    marked = level if level is not None and level <= FAR * highest else None
    upright = Scale(0.0, top) if top else from_zero([*(y for _, y in every), marked or 0.0])

    def line(name: str, style: str, points: Points) -> DrawnLine:
        path = polyline((across.at(x), 100 - upright.at(y)) for x, y in points)
        shown = points if style in dotted else ()
        dots = tuple((across.at(x), down(upright, PLOT_HEIGHT, y)) for x, y in shown)
        return DrawnLine(name, style, path, dots)

    return LineChart(
        title=title,
        description=description,
        height=PLOT_HEIGHT,
        lines=tuple(line(*each) for each in named if each[2]),
        x_ticks=with_end(across),
        y_ticks=levels(upright, PLOT_HEIGHT),
        chosen=None if chosen is None else across.at(chosen),
        level=None if marked is None else down(upright, PLOT_HEIGHT, marked),
    )
