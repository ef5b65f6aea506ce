"""Tables of the rows, as they stand in docs/benchmarks.md."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from pathlib import Path

import numpy as np

from benchmarks.judgments.cells import Row
from benchmarks.judgments.charts import CHARTS, DRAWN, drawing
from benchmarks.judgments.material import REPEATED
from benchmarks.judgments.players import METHODS

BEGIN, END = "<!-- figures: python -m benchmarks.judgments -->", "<!-- end of figures -->"
BESIDE = "iid"  # the papers' Q*, which others are compared with
WANTED = 0.05  # error of which the table says how many judgments it takes
APART = 0.1  # of the budget: more or less is marked
NONE = "–"

Cells = Mapping[tuple[str, int, str], Row]


def write_page(path: Path, rows: Sequence[Row]) -> None:
    """Put the tables between the marks of a page, and the charts into its folder of images."""
    before, _, rest = path.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    if not after:
        raise ValueError(f"{path} lacks the marks {BEGIN} and {END}")
    text = "\n".join([before + BEGIN, "", *tables(rows), "", END + after])
    path.write_text(text, "utf-8")
    images = path.parent / "images"
    images.mkdir(exist_ok=True)
    for name, chart in CHARTS.items():
        (images / f"benchmarks-{name}.svg").write_text(drawing(chart, rows), "utf-8")


def tables(rows: Sequence[Row]) -> list[str]:
    """Return the lines of all tables: two over all collections, four for every one."""
    lines = [*_summary(rows), "", *_needed(rows)]
    for name, group in groupby(rows, key=lambda row: row.collection):
        lines += ["", *_of_collection(name, list(group))]
    return lines


# -------------------------------------------------------------------------------------- summary


def _summary(rows: Sequence[Row]) -> Iterator[str]:
    """Means over the cells that all drawn methods have."""
    cells = {row.key: row for row in rows if row.collection not in REPEATED}
    places = sorted({(row.collection, row.budget) for row in cells.values()})
    common = [at for at in places if all((*at, method) in cells for method in DRAWN)]
    yield f"### Over all collections: means of {len(common)} cells"
    yield ""
    yield (
        "Of the cells that all of these methods have. *Over the papers'*: the error as a multiple "
        "of that of independent draws in the same cell, geometric mean, and the worst. *Covered*: "
        "share of intervals that hold the truth, and that of the least cell. *Decided*: true "
        "verdicts of all pairs of runs. *False*: false verdicts in a trial; *any false*, *any "
        "reversed*: share of trials with one, and with one for the run that is truly worse, and "
        "that of the worst cell."
    )
    yield ""
    if not common:
        yield "No cell has been played by all of the methods that are compared here."
        return
    yield (
        "| method | error | over the papers' | worst of it | bias | covered (least) | decided | "
        "false | any false (most) | any reversed (most) | tau |"
    )
    yield "| --- " + "| ---: " * 10 + "|"
    for method in DRAWN:
        yield _summed(method, [cells[*at, method] for at in common], [
            cells[*at, BESIDE] for at in common
        ])  # fmt: skip


def _summed(method: str, rows: Sequence[Row], beside: Sequence[Row]) -> str:
    ratios = [row.error / other.error for row, other in zip(rows, beside, strict=True)]
    covered = [row.coverage for row in rows if row.coverage is not None]
    decided = [row.decided for row in rows if row.decided is not None]
    wrong = [row.false for row in rows if row.false is not None]
    mistaken = [row.any_false for row in rows if row.any_false is not None]
    reversed_ = [row.any_reversed for row in rows if row.any_reversed is not None]
    cells = [
        METHODS[method].label,
        f"{100 * np.mean([row.error for row in rows]):.1f} %",
        f"{np.exp(np.mean(np.log(ratios))):.2f}",
        f"{max(ratios):.2f}",
        f"{100 * np.mean([row.bias for row in rows]):+.1f} %",
        f"{np.mean(covered):.3f} ({min(covered):.3f})" if covered else NONE,
        f"{100 * np.mean(decided):.0f} %",
        f"{np.mean(wrong):.2f}",
        f"{np.mean(mistaken):.3f} ({max(mistaken):.2f})",
        f"{np.mean(reversed_):.3f} ({max(reversed_):.2f})",
        f"{np.mean([row.tau for row in rows]):.3f}",
    ]
    return f"| {' | '.join(cells)} |"


def _needed(rows: Sequence[Row]) -> Iterator[str]:
    names = [name for name, _ in groupby(rows, lambda row: row.collection) if name not in REPEATED]
    yield f"### Judged pairs until the error of the values is {100 * WANTED:.0f} %"
    yield ""
    yield "| method | " + " | ".join(names) + " |"
    yield "| --- " + "| ---: " * len(names) + "|"
    for method in DRAWN:
        found = [
            _pairs_needed([row for row in rows if (row.collection, row.method) == (name, method)])
            for name in names
        ]
        yield f"| {METHODS[method].label} | {' | '.join(found)} |"
    yield ""
    yield "Between the budgets that were played by straight lines in logarithms, to two digits."


def _pairs_needed(rows: Sequence[Row]) -> str:
    """The first crossing of the wanted error; of rows by budget."""
    if not rows:
        return NONE
    if rows[0].error <= WANTED:
        return f"below {rows[0].budget}"
    for before, after in pairwise(rows):
        if after.error <= WANTED:
            share = np.log(WANTED / before.error) / np.log(after.error / before.error)
            number = before.budget * (after.budget / before.budget) ** share
            return _spaced(int(float(f"{number:.1e}")))
    return f"above {rows[-1].budget}"


# ------------------------------------------------------------------------------- one collection


def _error(row: Row) -> str:
    return f"{100 * row.error:.1f} ({100 * row.bias:+.1f})"


def _covered(row: Row) -> str:
    if row.coverage is None or row.worst_coverage is None:
        return NONE
    return f"{row.coverage:.3f} ({row.worst_coverage:.2f})"


def _decided(row: Row) -> str:
    if row.decided is None:
        return NONE
    return f"{100 * row.decided:.0f} ({row.false:.2g})"


def _tau(row: Row) -> str:
    return f"{row.tau:.3f}"


KINDS: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("Error of the values in % (bias)", _error),
    ("Intervals that hold the truth (worst run)", _covered),
    ("True verdicts in % of all pairs of runs (false verdicts in a trial)", _decided),
    ("Kendall's tau", _tau),
)


def _of_collection(name: str, rows: Sequence[Row]) -> Iterator[str]:
    first = rows[0]
    trials = sorted({row.trials for row in rows})
    played = str(trials[0]) if len(trials) == 1 else f"{trials[0]} to {trials[-1]}"
    yield f"### {name}: {first.measure}"
    yield ""
    yield (
        f"{first.runs} runs, {_spaced(first.pool)} pairs that can be judged; of "
        f"{_spaced(first.pairs)} pairs of runs one is truly better; {played} trials."
    )
    budgets = sorted({row.budget for row in rows})
    cells = {row.key: row for row in rows}
    methods = [method for method in METHODS if any(row.method == method for row in rows)]
    for title, shown in KINDS:
        if not any(shown(row) != NONE for row in rows):
            continue
        yield ""
        yield f"| {title} | " + " | ".join(f"{budget}" for budget in budgets) + " |"
        yield "| --- " + "| ---: " * len(budgets) + "|"
        for method in methods:
            found = [cells.get((name, budget, method)) for budget in budgets]
            line = [NONE if row is None else shown(row) + _mark(row) for row in found]
            if any(cell != NONE for cell in line):
                yield f"| {METHODS[method].label} | {' | '.join(line)} |"
    yield from _notes(rows)


def _spaced(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _mark(row: Row) -> str:
    return " †" if abs(row.judged - row.budget) > APART * row.budget and row.judged else ""


def _notes(rows: Sequence[Row]) -> Iterator[str]:
    marked = [row for row in rows if _mark(row)]
    if marked:
        listed = "; ".join(
            f"{METHODS[row.method].label} at {row.budget}: {row.judged:.0f}" for row in marked
        )
        yield ""
        yield f"† not the budget, but as many pairs as it happened to be: {listed}."
