"""Every estimate as a row."""

from estimation.models import EstimateSet, Round
from estimation.numbers import estimate_lines
from estimation.services.report_files.kinds import ReportKind
from judging.formats.csvfile import csv_lines

COLUMNS = (
    "run", "measure", "estimator", "primary", "value", "se", "df", "low", "high",
    "rank", "rank_low", "rank_high", "support", "sample_size", "late", "unknown", "unknown_why",
)  # fmt: skip


def make(row: Round, shown: EstimateSet) -> str:
    """A value that is not known is an empty cell: who overlooks the reason finds no number."""
    lines = estimate_lines(row, shown)
    rows = [[getattr(line, column) for column in COLUMNS] for line in lines]
    return "".join(csv_lines(COLUMNS, rows))


ESTIMATES_CSV = ReportKind(
    "estimates.csv",
    "Every run, measure and estimator, for spreadsheets.",
    content_type="text/csv; charset=utf-8",
    make=make,
    group="Numbers",
)
