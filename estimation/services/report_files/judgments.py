"""Every label with what a program needs to weight it."""

from operator import attrgetter
from typing import NamedTuple

from estimation import selectors
from estimation.models import EstimateSet, Round
from estimation.services.report_files.kinds import ReportKind
from judging.formats.csvfile import csv_lines
from judging.labels import PlacedPairs, label_columns
from judging.services import pseudonyms

OF_DRAWS = (
    "pair__topic__topic_id", "pair__docno", "pair__other", "round__number", "probability",
    "batch_number", "count",
)  # fmt: skip
"""What a line has from a draw."""


class WeightedLabel(NamedTuple):
    """A label as it is written, in the order of the columns."""

    topic: str
    docno: str
    other: str
    assessor: str
    grade: int
    decided_by_organizer: bool
    round: int
    probability: float
    batch: int
    draws: int


def label_lines(shown: EstimateSet) -> list[WeightedLabel]:
    """One line per label and round that drew its pair, in canonical order, by pseudonyms."""
    draws = selectors.draws_behind(shown)
    drawn = {pk: told for pk, *told in draws.values_list("pk", *OF_DRAWS)}
    labels = label_columns(PlacedPairs.of(draws, "id")).counting()
    said = zip(
        *(
            each.tolist()
            for each in (*labels.places, labels.assessor, labels.grade, labels.decided)
        ),
        strict=True,
    )
    called = pseudonyms.by_name(shown.round.campaign, labels.names)
    names = [called[name] for name in labels.names]
    lines = []
    for draw, assessor, grade, decided in said:
        topic, docno, other, *chances = drawn[draw]
        lines.append(WeightedLabel(topic, docno, other, names[assessor], grade, decided, *chances))
    return sorted(lines, key=attrgetter("topic", "docno", "other", "assessor", "round"))


def make(row: Round, shown: EstimateSet) -> str:
    return "".join(csv_lines(WeightedLabel._fields, label_lines(shown)))


JUDGMENTS = ReportKind(
    "judgments.csv",
    "Every label that counts, with its assessor’s pseudonym and inclusion probability.",
    content_type="text/csv; charset=utf-8",
    make=make,
    group="Judgments",
)
