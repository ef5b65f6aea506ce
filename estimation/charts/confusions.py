"""The table of judged against predicted grades, as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass

from estimation.scales import CHARACTER, Tick

SIDE = 44.0
MAX_GUTTER = 200.0
LEAST_SHADE = 0.06
"""Of a cell with anything in it, so that it can be told from an empty one."""
MOST_SHADE = 0.55
"""Of a whole row: numbers in ink can still be read on it, in light and in the dark."""


@dataclass(frozen=True)
class GradeCell:
    """``shade``: how much of the color it has, in proportion to its share of the row."""

    x: float
    y: float
    shade: float
    label: str
    sentence: str
    equal: bool


@dataclass(frozen=True)
class Confusion:
    """Rows are grades that were given, columns those beside them; ``words`` say which are which.

    Positions in pixels, of a fixed size.
    """

    title: str
    description: str
    left: float
    top: float
    size: float
    cells: tuple[GradeCell, ...]
    columns: tuple[Tick, ...]
    rows: tuple[Tick, ...]
    words: tuple[str, str]
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
    total = sum(map(sum, counts))
    equal = sum(table[grade][grade] for grade in range(len(names)))
    description = (
        f"Of {total:,} judgments, weighted, {100 * equal:.0f} % are equal to the predicted "
        "grade. Each row is a grade that people gave; the darker a cell, the larger its share "
        "of the row."
    )
    title = "Judged against predicted grades"
    return _confusion(names, table, counts, ("judged", "predicted"), title, description)


def beside(
    names: Sequence[str], table: Sequence[Sequence[float]], counts: Sequence[Sequence[int]]
) -> Confusion:
    """Where one person gave the row's grade: the share of others' grades for the same pairs."""
    total = sum(map(sum, counts))
    equal = sum(counts[grade][grade] for grade in range(len(names)))
    description = (
        f"Of {total:,} comparisons of two people, {100 * equal / max(1, total):.0f} % are of one "
        "grade. Each row is a grade that one of them gave; the darker a cell, the larger its share "
        "of what others gave beside it."
    )
    title = "Grades given beside each grade"
    return _confusion(names, table, counts, ("one said", "another"), title, description)


def told_of(names: Sequence[str], table: Sequence[Sequence[float]]) -> Confusion:
    """What somebody says (column) where a grade is the true one (row), by a model, in shares."""
    counts = [[1 if share >= 0.005 else 0 for share in line] for line in table]
    description = (
        "Each row is a grade that the model takes for the true one; the darker a cell, the more "
        "often they give the grade of its column then."
    )
    title = "What they say where a grade is true"
    return _confusion(names, table, counts, ("true", "they say"), title, description, counted=False)


def _confusion(
    names: Sequence[str],
    table: Sequence[Sequence[float]],
    counts: Sequence[Sequence[int]],
    words: tuple[str, str],
    title: str,
    description: str,
    *,
    counted: bool = True,
) -> Confusion:
    count = len(names)
    rows = tuple(Tick((row + 0.5) * SIDE, f"{row} {names[row]}") for row in range(count))
    longest = max((len(row.label) for row in rows), default=1)
    return Confusion(
        title=title,
        description=description,
        left=min(MAX_GUTTER, CHARACTER * longest + 12),
        top=40.0,
        size=count * SIDE,
        cells=tuple(
            _cell(row, column, names, table[row], counts[row][column], words, counted)
            for row in range(count)
            for column in range(count)
        ),
        columns=tuple(Tick((column + 0.5) * SIDE, str(column)) for column in range(count)),
        rows=rows,
        words=words,
    )


def _cell(
    row: int,
    column: int,
    names: Sequence[str],
    line: Sequence[float],
    count: int,
    words: tuple[str, str],
    counted: bool,
) -> GradeCell:
    total = sum(line)
    share = line[column] / total if total > 0 else 0.0
    times = f"{count:,} judgment{'' if count == 1 else 's'}, " if counted else ""
    return GradeCell(
        x=column * SIDE,
        y=row * SIDE,
        shade=round(max(LEAST_SHADE, MOST_SHADE * share), 3) if count else 0.0,
        label=f"{100 * share:.0f}" if count else "",
        sentence=(
            f"{words[0].capitalize()} {row} {names[row]}, {words[1]} {column} {names[column]}: "
            f"{times}{100 * share:.0f} % of the row"
        ),
        equal=row == column,
    )
