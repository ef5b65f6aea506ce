"""The matrix of verdicts between runs."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from estimation.scales import (
    CHARACTER,
    Tick,
    decided_of,
    shortened,
)

MAX_GUTTER = 330.0
LEFT_TO_RIGHT = "\u200e"
LONGEST = int((MAX_GUTTER - 12) / CHARACTER) - 5
"""Characters of a run's name in the gutter, beside its place."""
EACH_CELL_UP_TO = 24
"""Matrices of more runs are drawn as bands of equal verdicts, without symbols."""
EDGE = 10.0
"""Room to the right and below, for the half of the last label."""
NAMED_ROW = 14.0
"""Rows of a matrix at least so high have the names of their runs; lower ones only ranks."""
BETTER, WORSE, UNDECIDED, UNKNOWN = "better", "worse", "undecided", "unknown"
EQUIVALENT, ALIKE = "equivalent", 2
_NAMES = {1: BETTER, -1: WORSE, 0: UNDECIDED, ALIKE: EQUIVALENT, None: UNKNOWN}
SYMBOLS = {BETTER: "▲", WORSE: "▽", UNDECIDED: "·", EQUIVALENT: "≈", UNKNOWN: "?"}
_SAID = {
    BETTER: "is surely better than",
    WORSE: "is surely worse than",
    UNDECIDED: "cannot be told from",
    EQUIVALENT: "is equivalent to",
}
Verdict: TypeAlias = int | None
"""1 better, -1 worse, 0 undecided, `ALIKE` equivalent; None: the difference is not known."""


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
class Bands:
    """All bands of one verdict as one outline: hundreds of rectangles would each cost time."""

    verdict: str
    outline: str

    @property
    def said(self) -> str:
        """What is said of two runs there, but for their names: the second stands for the dots."""
        if self.verdict == UNKNOWN:
            return "against …: not known"
        return f"{_SAID[self.verdict]} …" if self.verdict in _SAID else ""


@dataclass(frozen=True)
class MatrixRow:
    """One run against all others, in words."""

    y: float
    sentence: str


@dataclass(frozen=True)
class VerdictMatrix:
    """Rows against columns, both in rank order. Positions in pixels of a drawing of fixed size.

    Where cells are drawn together, the link to a pair stands at ``opening``: the first two runs.

    ``left`` and ``top`` are the room for labels beside and above the square of side ``size``;
    ``lined``: where lines across bands help the eye from a label, under the run of that rank.
    """

    title: str
    description: str
    size: float
    side: float
    left: float
    top: float
    each: bool
    unknown: bool
    alike: bool
    cells: tuple[Cell, ...]
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    bands: tuple[Bands, ...] = ()
    said: tuple[MatrixRow, ...] = ()
    lined: tuple[float, ...] = ()
    opening: Cell | None = None

    @property
    def width(self) -> float:
        return self.left + self.size + EDGE

    @property
    def height(self) -> float:
        return self.top + self.size + EDGE


def verdict_matrix(
    tags: Sequence[str],
    verdicts: Sequence[Sequence[Verdict]],
    *,
    measure: str,
    ranked: int | None = None,
) -> VerdictMatrix:
    """Verdicts of every two runs, the diagonal left out; only the first ``ranked`` have a rank."""
    count = len(tags)
    each, known = count <= EACH_CELL_UP_TO, count if ranked is None else ranked
    side = 26.0 if each else max(4.0, math.floor(900 / count))
    columns = _rank_ticks(count, side, known)
    named = side >= NAMED_ROW
    names = tuple(
        Tick((row + 0.5) * side, f"{_named(tag)}  {_place(row + 1, known)}")
        for row, tag in enumerate(tags)
    )
    longest = max((len(name.label) for name in names), default=0) if named else 3
    cells = tuple(
        cell for row in range(count) for cell in _cells(row, tags, verdicts[row], side, each)
    )
    return VerdictMatrix(
        title=f"Verdicts by {measure}",
        description=_counted(verdicts),
        size=count * side,
        side=side,
        left=min(MAX_GUTTER, CHARACTER * longest + 12),
        top=22.0,
        each=each,
        unknown=any(verdict is None for line in verdicts for verdict in line),
        alike=any(verdict == ALIKE for line in verdicts for verdict in line),
        cells=cells,
        columns=columns,
        rows=names if named else columns,
        bands=() if each else _bands(cells),
        said=() if each else _said(tags, verdicts, side, known),
        opening=next(_cells(0, tags, verdicts[0], side, True), None) if tags and not each else None,
        lined=() if each or named else tuple(round(t.at + side / 2, 3) for t in columns[1:]),
    )


def _bands(cells: Sequence[Cell]) -> tuple[Bands, ...]:
    """What is drawn of many cells; a line through the middle of those that are not known."""
    parts: dict[str, list[str]] = {}
    for cell in cells:
        box = f"M{cell.x:g} {cell.y:g}h{cell.width:g}v{cell.height:g}h-{cell.width:g}z"
        parts.setdefault(cell.verdict, []).append(box)
        if cell.verdict == UNKNOWN:
            line = f"M{cell.x:g} {cell.middle:g}h{cell.width:g}"
            parts.setdefault(f"{UNKNOWN} middle", []).append(line)
    return tuple(Bands(verdict, "".join(boxes)) for verdict, boxes in parts.items())


def _said(
    tags: Sequence[str], verdicts: Sequence[Sequence[Verdict]], side: float, ranked: int
) -> tuple[MatrixRow, ...]:
    found = []
    for row, (tag, line) in enumerate(zip(tags, verdicts, strict=True)):
        open_pairs = line.count(0) - (line[row] == 0)
        told = f"better than {line.count(1)}, worse than {line.count(-1)}, not told from"
        sentence = f"{_place(row + 1, ranked)} {tag}: {told} {open_pairs}"
        found.append(MatrixRow(row * side, sentence))
    return tuple(found)


def _counted(verdicts: Sequence[Sequence[Verdict]]) -> str:
    count = len(verdicts)
    decided = sum(verdict in (1, -1) for line in verdicts for verdict in line) // 2
    alike = sum(verdict == ALIKE for line in verdicts for verdict in line) // 2
    unknown = sum(verdict is None for line in verdicts for verdict in line) // 2
    rest = f"; {unknown:,} {'is' if unknown == 1 else 'are'} not known" if unknown else ""
    equal = f", {alike:,} more equivalent" if alike else ""
    return f"{decided_of(decided, count * (count - 1) // 2)}{equal}{rest}."


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
    apart = 20 if count < 100 else 36  # pixels, for so many digits
    step = next(nice for nice in (1, 5, 10, 20, 50, 100, 1000, 10**6) if nice >= apart / side)
    places = [place for place in range(1, count + 1) if place == 1 or place % step == 0]
    return tuple(Tick((place - 0.5) * side, _place(place, ranked)) for place in places)


def _named(tag: str) -> str:
    """The run before its place: of a name from right to left the place would be the beginning."""
    short = shortened(tag, LONGEST)
    return short if short.isascii() else short + LEFT_TO_RIGHT


def _place(place: int, ranked: int) -> str:
    """A rank; for a run that has none its place among the rows, in brackets."""
    return str(place) if place <= ranked else f"({place})"
