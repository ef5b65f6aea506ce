"""Geometry of the charts; templates/charts draws it.

Positions across are percentages of the drawing's width and positions down are pixels, so that a
chart fills whatever room it gets and its text keeps its size. Lines that need a path live in a
square of 100 by 100 that is stretched over the plot. Every chart has a title and a description;
the numbers stand in a table beside it.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from estimation.scales import (
    CHARACTER,
    Scale,
    Tick,
    around,
    common_decimals,
    down,
    finite,
    from_zero,
    label,
    levels,
    polyline,
)

PLOT_HEIGHT = 200.0
PANEL_HEIGHT = 88.0
MAX_GUTTER = 220.0
HALF_BAR = 1.5
"""Percent across: half the width of a band that has only one moment."""
FEW = 10
"""Forest plots of fewer runs always show every interval whole."""
EACH_CELL_UP_TO = 24
NAMED_ROW = 14.0
"""Rows of a matrix at least so high have the names of their runs; lower ones only ranks."""
"""Matrices of more runs are drawn as bands of equal verdicts, without symbols."""


# ---------------------------------------------------------------------------------- forest plot


@dataclass(frozen=True)
class Interval:
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


def forest(rows: Sequence[Interval], *, title: str, description: str) -> Forest:
    """Intervals under each other on one scale; ``zero`` is where 0 lies, if it is in sight.

    A few intervals much wider than the others run off the edge instead of squeezing them, and so do
    those of values that are not known.
    """
    scale = _forest_scale([row for row in rows if not row.faint] or rows)
    zero = scale.at(0.0) if scale.low < 0.0 < scale.high else None
    placed = tuple(_forest_row(row, scale) for row in rows)
    return Forest(title, description, scale.ticks(), placed, zero)


def _forest_scale(rows: Sequence[Interval]) -> Scale:
    whole = around(end for row in rows for end in (row.value, row.low, row.high))
    lows = sorted(low for row in rows if (low := finite(row.low)) is not None)
    highs = sorted(high for row in rows if (high := finite(row.high)) is not None)
    if min(len(lows), len(highs)) < FEW:
        return whole
    usual = [*lows[len(lows) // 10 :], *highs[: len(highs) - len(highs) // 10]]
    most = around([*usual, *(row.value for row in rows)])
    return most if whole.high - whole.low > 1.5 * (most.high - most.low) else whole


def _forest_row(row: Interval, scale: Scale) -> ForestRow:
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
    rows = [Interval(tag, None, None if width is None else -width, width) for tag, width in widths]
    description = (
        f"Expected half width of the 95 % interval of {measure} for each of {len(rows)} runs, "
        "drawn around the value that is not known yet."
    )
    return forest(rows, title=f"What the budget buys: {measure}", description=description)


# ------------------------------------------------------------------------------- budget curve


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


# --------------------------------------------------------------------------------------- bars


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
class Bars:
    title: str
    description: str
    height: float
    bars: tuple[Bar, ...]
    y_ticks: tuple[Tick, ...]


def topic_bars(values: Sequence[tuple[str, float]]) -> Bars:
    """Expected pairs of each topic, as upright bars in the order of the topics."""
    upright = from_zero(value for _, value in values)
    height = PLOT_HEIGHT / 2
    room = 100 / max(1, len(values))
    bars = tuple(
        Bar(
            label=topic,
            value=value,
            x=round(room * (index + 0.1), 3),
            width=round(room * 0.8, 3),
            y=down(upright, height, value),
            height=round(height - down(upright, height, value), 2),
        )
        for index, (topic, value) in enumerate(values)
    )
    description = f"Expected number of pairs to judge for each of {len(values)} topics."
    return Bars("Pairs per topic", description, height, bars, levels(upright, height, 2))


@dataclass(frozen=True)
class Share:
    label: str
    count: int
    percent: float
    width: float


@dataclass(frozen=True)
class Shares:
    title: str
    description: str
    rows: tuple[Share, ...]


def grade_bars(counts: Sequence[tuple[str, int]]) -> Shares:
    """How often each grade was given: lying bars, the longest over the whole width."""
    total = sum(count for _, count in counts)
    most = max((count for _, count in counts), default=0) or 1
    rows = tuple(
        Share(name, count, 100 * count / (total or 1), round(100 * count / most, 2))
        for name, count in counts
    )
    return Shares("Grades given", f"How often each grade was given, of {total:,} labels.", rows)


# ------------------------------------------------------------------------------------- history

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
class History:
    title: str
    description: str
    height: float
    batches: tuple[int, ...]
    panels: tuple[Panel, ...]
    y_ticks: tuple[Tick, ...]

    @property
    def has_gaps(self) -> bool:
        """Whether some value was not known after some batch."""
        return any(NOT_KNOWN in panel.values for panel in self.panels)


@dataclass(frozen=True)
class Moment:
    """A run's value after a number of batches; None if it was not known."""

    batches: int
    value: float | None
    low: float
    high: float


def history(
    runs: Mapping[str, Sequence[Moment]], *, measure: str, marked: Iterable[str] = ()
) -> History:
    """Values by batch as small multiples on one scale, in the order of ``runs``.

    The scale covers the intervals of the later half of the batches; those of the first are so wide
    that nothing else could be seen, and run off the edge.
    """
    every = [moment for line in runs.values() for moment in line]
    batches = sorted({moment.batches for moment in every})
    moments = [moment for moment in every if moment.value is not None]
    upright = _later(moments, batches)
    across = Scale(batches[0] if batches else 0, batches[-1] if batches else 1)
    digits = common_decimals((moment.high - moment.low) / 2 for moment in moments)
    chosen = set(marked)
    panels = tuple(
        _panel(tag, line, across, upright, digits, tag in chosen)
        for tag, line in runs.items()
        if line
    )
    return History(
        title=f"{measure} by batch",
        description=f"Estimates of {len(panels)} runs after each batch, with 95 % intervals.",
        height=PANEL_HEIGHT,
        batches=tuple(batches),
        panels=panels,
        y_ticks=levels(upright, PANEL_HEIGHT, 3),
    )


def _later(moments: Sequence[Moment], batches: Sequence[int]) -> Scale:
    """A scale over all values, and over the intervals of the later half of the batches."""
    half = batches[len(batches) // 2] if batches else 0
    later = [moment for moment in moments if moment.batches >= half]
    ends = [end for moment in later for end in (moment.low, moment.high)]
    return around([*(moment.value for moment in moments), *ends])


def _panel(
    tag: str, line: Sequence[Moment], across: Scale, upright: Scale, digits: int, marked: bool
) -> Panel:
    def place(batches: int, value: float, beyond: float) -> tuple[float, float]:
        shown = value if math.isfinite(value) else beyond
        return across.at(batches), round(100 - upright.at(shown), 3)

    def band(part: list[Moment]) -> str:
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
    """A band of one moment is a bar: it would have no width."""
    if len(edge) != 1:
        return edge
    ((x, y),) = edge
    return [(max(0.0, x - HALF_BAR), y), (min(100.0, x + HALF_BAR), y)]


# ------------------------------------------------------------------------------ verdict matrix

BETTER, WORSE, UNDECIDED, UNKNOWN = "better", "worse", "undecided", "unknown"
_NAMES = {1: BETTER, -1: WORSE, 0: UNDECIDED, None: UNKNOWN}
SYMBOLS = {BETTER: "▲", WORSE: "▽", UNDECIDED: "·", UNKNOWN: "?"}
_SAID = {
    BETTER: "is surely better than",
    WORSE: "is surely worse than",
    UNDECIDED: "cannot be told from",
}
Verdict: TypeAlias = int | None
"""1 better, -1 worse, 0 undecided; None: the difference is not known."""


@dataclass(frozen=True)
class Cell:
    """``span`` equal verdicts of one row; ``second`` is empty if they are several."""

    first: str
    second: str
    span: int
    verdict: str
    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.x + self.width

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    @property
    def symbol(self) -> str:
        return SYMBOLS[self.verdict]

    @property
    def sentence(self) -> str:
        other = self.second or f"{self.span} runs"
        if self.verdict == UNKNOWN:
            return f"{self.first} against {other}: not known"
        return f"{self.first} {_SAID[self.verdict]} {other}"


@dataclass(frozen=True)
class Matrix:
    """Rows against columns, both in rank order. Positions in pixels of a drawing of fixed size.

    ``left`` and ``top`` are the room for labels beside and above the square of side ``size``.
    """

    title: str
    description: str
    size: float
    side: float
    left: float
    top: float
    each: bool
    unknown: bool
    cells: tuple[Cell, ...]
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]

    @property
    def width(self) -> float:
        return self.left + self.size

    @property
    def height(self) -> float:
        return self.top + self.size


def verdict_matrix(
    tags: Sequence[str],
    verdicts: Sequence[Sequence[Verdict]],
    *,
    measure: str,
    ranked: int | None = None,
) -> Matrix:
    """Verdicts of every two runs, the diagonal left out; only the first ``ranked`` have a rank."""
    count = len(tags)
    each, known = count <= EACH_CELL_UP_TO, count if ranked is None else ranked
    side = 26.0 if each else max(4.0, math.floor(900 / count))
    columns = _rank_ticks(count, side, known)
    named = side >= NAMED_ROW
    names = tuple(
        Tick((row + 0.5) * side, f"{tag}  {_place(row + 1, known)}") for row, tag in enumerate(tags)
    )
    longest = max((len(name.label) for name in names), default=0) if named else 3
    return Matrix(
        title=f"Verdicts by {measure}",
        description=_counted(verdicts),
        size=count * side,
        side=side,
        left=min(MAX_GUTTER, CHARACTER * longest + 12),
        top=22.0,
        each=each,
        unknown=any(verdict is None for line in verdicts for verdict in line),
        cells=tuple(
            cell for row in range(count) for cell in _cells(row, tags, verdicts[row], side, each)
        ),
        columns=columns,
        rows=names if named else columns,
    )


def _counted(verdicts: Sequence[Sequence[Verdict]]) -> str:
    count = len(verdicts)
    decided = sum(bool(verdict) for line in verdicts for verdict in line) // 2
    unknown = sum(verdict is None for line in verdicts for verdict in line) // 2
    rest = f"; {unknown:,} {'is' if unknown == 1 else 'are'} not known" if unknown else ""
    return f"{decided:,} of {count * (count - 1) // 2:,} pairs of runs are decided{rest}."


def _cells(
    row: int, tags: Sequence[str], line: Sequence[Verdict], side: float, each: bool
) -> Iterator[Cell]:
    """The row's cells; if not ``each``, neighbors with the same verdict are one."""
    parts = [(column, line[column]) for column in range(len(tags)) if column != row]
    groups = groupby(parts, key=lambda part: (part[1], part[0] > row, each and part[0]))
    for (verdict, _, _), members in groups:
        columns = [column for column, _ in members]
        yield Cell(
            first=tags[row],
            second=tags[columns[0]] if len(columns) == 1 else "",
            span=len(columns),
            verdict=_NAMES[verdict],
            x=columns[0] * side,
            y=row * side,
            width=len(columns) * side,
            height=side,
        )


def _rank_ticks(count: int, side: float, ranked: int) -> tuple[Tick, ...]:
    """Ranks whose labels have room: all of them, or the first and every tenth or so."""
    step = next(nice for nice in (1, 5, 10, 20, 50, 100, 1000, 10**6) if nice >= 20 / side)
    places = [place for place in range(1, count + 1) if place == 1 or place % step == 0]
    return tuple(Tick((place - 0.5) * side, _place(place, ranked)) for place in places)


def _place(place: int, ranked: int) -> str:
    """A rank; for a run that has none its place among the rows, in brackets."""
    return str(place) if place <= ranked else f"({place})"
