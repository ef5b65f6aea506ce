"""Dots of the grades that several people gave to one pair, before and after they talked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from estimation.scales import Tick

LINE, GROUND = 26.0, 18.0
"""Height of a line of dots, and of the labels below them, in pixels."""
RADII = ((7, 9.0), (11, 7.5), (99, 5.5))
"""Of a dot, on a scale of at most so many grades."""
DIGIT, GAP, NARROWEST = 7.0, 1.0, 100.0
"""Of labels and of the smallest chart, in pixels across."""
NUMBERED = 7.0
"""Radius from which a dot has room for how many people it stands for."""


@dataclass(frozen=True)
class GradeDot:
    """``x`` in percent across. ``label``: how many people, where there are several."""

    x: float
    label: str
    sentence: str


@dataclass(frozen=True)
class DotLine:
    """Positions in pixels down. ``name``: of the line, if there are two."""

    name: str
    y: float
    dots: tuple[GradeDot, ...]


@dataclass(frozen=True)
class DotChart:
    title: str
    description: str
    height: float
    radius: float
    lines: tuple[DotLine, ...]
    ticks: tuple[Tick, ...]


def grade_dots(first: Sequence[int], now: Sequence[int], *, highest: int) -> DotChart:
    """A dot for each grade that was given; a second line if somebody has changed theirs."""
    highest = max([highest, *first, *now])
    lines = [("", first)] if list(first) == list(now) else [("Before", first), ("After", now)]
    radius = next(size for most, size in RADII if highest < most)
    return DotChart(
        title="Grades given",
        description=". ".join(_sentence(name, grades) for name, grades in lines),
        height=LINE * len(lines) + GROUND,
        radius=radius,
        lines=tuple(
            DotLine(name, LINE * (row + 0.5), _dots(grades, highest, radius))
            for row, (name, grades) in enumerate(lines)
        ),
        ticks=_ticks(highest),
    )


def _ticks(highest: int) -> tuple[Tick, ...]:
    """Of long scales every second grade, or every third and so on, so that none hides another."""
    needed = len(str(highest)) * DIGIT + GAP
    every = ceil(needed * (highest + 1) / NARROWEST)
    return tuple(
        Tick(_across(grade, highest), str(grade)) for grade in range(0, highest + 1, every)
    )


def _across(grade: int, highest: int) -> float:
    return round(100 * (grade + 0.5) / (highest + 1), 2)


def _dots(grades: Sequence[int], highest: int, radius: float) -> tuple[GradeDot, ...]:
    return tuple(
        GradeDot(
            x=_across(grade, highest),
            label=str(count) if count > 1 and radius >= NUMBERED else "",
            sentence=f"{grade}: {_people(count)}",
        )
        for grade, count in sorted(Counter(grades).items())
    )


def _sentence(name: str, grades: Sequence[int]) -> str:
    told = ", ".join(f"{_people(n)} {grade}" for grade, n in sorted(Counter(grades).items()))
    return f"{name}: {told}" if name else told or "Nobody answered"


def _people(count: int) -> str:
    return f"{count} {'person' if count == 1 else 'people'}"
