"""What was drawn: every judged pair with its probability."""

from statistics import fmean

from estimation import selectors
from estimation.models import EstimateSet, Round
from estimation.services.report_files.judgments import OF_DRAWS, label_lines
from estimation.services.report_files.kinds import ReportKind
from judging.formats.csvfile import csv_lines

COLUMNS = (
    "topic", "docno", "other", "round", "probability", "batch", "draws", "labels", "mean_grade",
)  # fmt: skip


def make(row: Round, shown: EstimateSet) -> str:
    """A line per pair and round that drew it; the mean is of grades, and not rounded."""
    grades: dict[tuple[str, str, str, int], list[int]] = {}
    for line in label_lines(shown):
        place = (line.topic, line.docno, line.other, line.round)
        grades.setdefault(place, []).append(line.grade)
    drawn = selectors.draws_behind(shown).values_list(*OF_DRAWS)
    rows = [(*told, grades.get(told[:4], [])) for told in drawn]
    rows.sort(key=lambda each: each[:4])
    cells = [(*told, len(said), fmean(said) if said else None) for *told, said in rows]
    return "".join(csv_lines(COLUMNS, cells))


PAIRS = ReportKind(
    "pairs.csv",
    "Every drawn pair with its probability, batch and mean grade.",
    content_type="text/csv; charset=utf-8",
    make=make,
    group="Judgments",
)
