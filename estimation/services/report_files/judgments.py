"""Every label with what a program needs to weight it."""

from estimation.models import EstimateSet, Round
from estimation.services.report_files.kinds import ReportKind
from estimation.services.report_files.labels import label_lines
from judging.formats.csvfile import csv_lines

COLUMNS = (
    "topic", "docno", "other", "assessor", "grade", "decided_by_organizer", "round", "probability",
    "batch", "draws",
)  # fmt: skip


def make(row: Round, shown: EstimateSet) -> str:
    rows = [[line[c] for c in COLUMNS] for line in label_lines(shown)]
    return "".join(csv_lines(COLUMNS, rows))


JUDGMENTS = ReportKind(
    "judgments.csv",
    "Every label with its assessor and inclusion probability.",
    content_type="text/csv; charset=utf-8",
    make=make,
)
