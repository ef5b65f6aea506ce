"""The estimates as a workbook, with every comparison of two runs."""

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from estimation import selectors
from estimation.models import EstimateSet, Round
from estimation.numbers import EstimateLine, estimate_lines
from estimation.services.report_files.estimates_csv import COLUMNS
from estimation.services.report_files.kinds import NotForThisRound, ReportKind
from estimation.unknown import purpose_of

if TYPE_CHECKING:
    from xlsxwriter.workbook import Workbook

MOST_RUNS = 1400
"""Of which all comparisons fit into the 2**20 rows of a sheet."""
COMPARED = ("run", "other", "difference", "margin", "verdict", "unknown_why")
VERDICTS = {1: "better", -1: "worse", 0: "not decided"}
NOT_IN_NAMES = str.maketrans("", "", "[]:*?/\\'")
NAME_LENGTH = 31


def make(row: Round, shown: EstimateSet) -> bytes:
    """Ids come from uploads: text is written as text, which no program takes for a formula."""
    from xlsxwriter import Workbook  # noqa: PLC0415  (for workers, where such a file is made)

    buffer = io.BytesIO()
    as_text = {"strings_to_formulas": False, "strings_to_urls": False, "strings_to_numbers": False}
    with Workbook(buffer, {"in_memory": True, **as_text}) as book:
        book.set_properties({"title": f"{row.campaign.slug}, round {row.number}",
                             "created": shown.created})  # fmt: skip
        _sheet(book, "About", ("what", "value"), _about(row, shown))
        lines = estimate_lines(row, shown)
        estimates = [[getattr(line, column) for column in COLUMNS] for line in lines]
        _sheet(book, "Estimates", COLUMNS, estimates)
        for number, measure in enumerate(selectors.measures_of(row), 1):
            name = f"{number} {measure}".translate(NOT_IN_NAMES)[:NAME_LENGTH]
            _sheet(book, name, COMPARED, _compared(row, shown, measure, lines))
    return buffer.getvalue()


def _about(row: Round, shown: EstimateSet) -> list[tuple[str, Any]]:
    made = shown.provenance
    return [
        ("campaign", row.campaign.name),
        ("round", row.number),
        ("batches", shown.batches),
        ("pairs", shown.pair_count),
        ("labels", shown.label_count),
        ("computed", shown.created.isoformat()),
        ("seed", row.seed),
        ("pool digest", row.pool.digest if row.pool else ""),
        ("digest of the labels", shown.label_digest),
        ("digest of the estimates", shown.digest),
        ("evalsite", made.get("evalsite", "")),
        ("NumPy", made.get("numpy", "")),
        ("intervals", "95 % for each run alone; verdicts and ranks hold for all runs at once"),
    ]


def _compared(
    row: Round, shown: EstimateSet, measure: str, lines: Iterable[EstimateLine]
) -> Iterator[Sequence[Any]]:
    """Every two runs once, with the interval of their difference taken alone."""
    pairs = selectors.pairwise(shown, measure)
    if len(pairs.runs) > MOST_RUNS:
        message = f"estimates.xlsx has room for {MOST_RUNS:,} runs. estimates.json has all."
        raise NotForThisRound(message)
    purpose = purpose_of(row, shown, measure, {line.run for line in lines if line.late})
    value = {line.run: line.value for line in lines if line.primary and line.measure == measure}
    margins, equivalent = pairs.shown_margin, pairs.equivalent
    for i, j in combinations(range(len(pairs.runs)), 2):
        runs, reason = (pairs.runs[i], pairs.runs[j]), int(pairs.unknown[i, j])
        first, second = (value.get(run) for run in runs)
        if reason or first is None or second is None:
            yield *runs, None, None, "not known", purpose.of_difference(reason, *runs)
            continue
        verdict = VERDICTS[int(pairs.verdicts[i, j])]
        alike = "equivalent" if equivalent[i, j] and not pairs.verdicts[i, j] else verdict
        yield *runs, first - second, float(margins[i, j]), alike, None


def _sheet(
    book: "Workbook", name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    sheet = book.add_worksheet(name)
    bold = book.add_format({"bold": True, "bottom": 1})
    for at, title in enumerate(header):
        sheet.write_string(0, at, title, bold)
    sheet.freeze_panes(1, 1)
    sheet.set_column(0, 0, 26)
    sheet.set_column(1, len(header), 14)
    for number, cells in enumerate(rows, 1):
        for at, cell in enumerate(cells):
            _write(sheet, number, at, cell)


def _write(sheet: Any, row: int, column: int, cell: Any) -> None:
    """By the type of the value; what Excel has no number for is text, and None is nothing."""
    if cell is None:
        return
    if isinstance(cell, bool):
        sheet.write_boolean(row, column, cell)
    elif isinstance(cell, int | float) and math.isfinite(cell):
        sheet.write_number(row, column, cell)
    else:
        sheet.write_string(row, column, str(cell))


ESTIMATES_XLSX = ReportKind(
    "estimates.xlsx",
    "The same as a workbook, with every comparison of two runs.",
    content_type="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    make=make,
    group="Numbers",
)
