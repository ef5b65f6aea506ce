"""Every label with what a program needs to weight it."""

from operator import itemgetter
from typing import Any

from estimation import selectors
from estimation.models import EstimateSet, Round
from estimation.services.report_files.kinds import ReportKind
from judging import selectors as judging
from judging.formats.csvfile import csv_lines

COLUMNS = (
    "topic", "docno", "other", "assessor", "grade", "decided_by_organizer", "round", "probability",
    "batch", "draws",
)  # fmt: skip
OF_DRAWS = {
    "topic": "pair__topic__topic_id",
    "docno": "pair__docno",
    "other": "pair__other",
    "round": "round__number",
    "probability": "probability",
    "batch": "batch_number",
    "draws": "count",
}
"""Columns of `label_lines` that a draw gives, and where they stand: rounds hold much beside."""


def label_lines(shown: EstimateSet) -> list[dict[str, Any]]:
    """One line per label and round that drew its pair, in canonical order."""
    draws = selectors.draws_behind(shown)
    by_pair: dict[int, list[dict[str, Any]]] = {}
    for pair, *values in draws.values_list("pair_id", *OF_DRAWS.values()):
        by_pair.setdefault(pair, []).append(dict(zip(OF_DRAWS, values, strict=True)))
    lines = [
        {
            **drawn,
            "assessor": label.assessor,
            "grade": label.grade,
            "decided_by_organizer": label.decided,
        }
        for label in judging.labels(draws.values("pair"))
        for drawn in by_pair[label.pair]
    ]
    return sorted(lines, key=itemgetter("topic", "docno", "other", "assessor", "round"))


def make(row: Round, shown: EstimateSet) -> str:
    rows = map(itemgetter(*COLUMNS), label_lines(shown))
    return "".join(csv_lines(COLUMNS, rows))


JUDGMENTS = ReportKind(
    "judgments.csv",
    "Every label with its assessor and inclusion probability.",
    content_type="text/csv; charset=utf-8",
    make=make,
)
