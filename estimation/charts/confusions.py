"""The table of judged against predicted grades, as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass

from estimation.scales import CHARACTER, Tick

SIDE = 44.0
MAX_GUTTER = 200.0
LEAST_SHADE = 0.06
"""Of a cell with anything in it, so that it can be told from an empty one."""
DARK = 0.5
"""Shade from which on a cell's number is written in the color of the ground."""


@dataclass(frozen=True)
class GradeCell:
    """``shade``: from 0 to 1, the share of its row."""

    x: float
    y: float
    shade: float
    label: str
    sentence: str
    equal: bool

    @property
    def dark(self) -> bool:
        return self.shade >= DARK


@dataclass(frozen=True)
class Confusion:
    """Rows are judged grades, columns predicted ones. Positions in pixels, of a fixed size."""

    title: str
    description: str
    left: float
    top: float
    size: float
    cells: tuple[GradeCell, ...]
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    side: float = SIDE

    @property
    def width(self) -> float:
        return self.left + self.size

    @property
    def height(self) -> float:
        return self.top + self.size


def confusion(
    names: Sequence[str], table: Sequence[Sequence[float]], counts: Sequence[Sequence[int]]
) -> Confusion:
    """Shares of judgments (that sum to 1) by judged (row) and predicted (column) grade."""
    count = len(names)
    rows = tuple(Tick((row + 0.5) * SIDE, f"{row} {names[row]}") for row in range(count))
    longest = max((len(row.label) for row in rows), default=1)
    equal = sum(table[grade][grade] for grade in range(count))
    total = sum(map(sum, counts))
    return Confusion(
        title="Judged against predicted grades",
        description=(
            f"Of {total:,} judgments, weighted, {100 * equal:.0f} % are equal to the predicted "
            "grade. Each row is a grade that people gave; the darker a cell, the larger its share "
            "of the row."
        ),
        left=min(MAX_GUTTER, CHARACTER * longest + 12),
        top=40.0,
        size=count * SIDE,
        cells=tuple(
            _cell(row, column, names, table[row], counts[row][column])
            for row in range(count)
            for column in range(count)
        ),
        columns=tuple(Tick((column + 0.5) * SIDE, str(column)) for column in range(count)),
        rows=rows,
    )


def _cell(
    row: int, column: int, names: Sequence[str], line: Sequence[float], count: int
) -> GradeCell:
    total = sum(line)
    share = line[column] / total if total > 0 else 0.0
    return GradeCell(
        x=column * SIDE,
        y=row * SIDE,
        shade=round(max(LEAST_SHADE, share), 3) if count else 0.0,
        label=f"{100 * share:.0f}" if count else "",
        sentence=(
            f"Judged {row} {names[row]}, predicted {column} {names[column]}: {count:,} "
            f"judgment{'' if count == 1 else 's'}, {100 * share:.0f} % of the row"
        ),
        equal=row == column,
    )
