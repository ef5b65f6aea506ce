"""Everything that assessors said of the judged pairs, with what was not needed for numbers."""

from collections.abc import Iterator

from estimation import selectors
from estimation.models import EstimateSet, Round
from estimation.services.report_files.kinds import ReportKind
from judging.formats.csvfile import Cell, csv_lines
from judging.models import Judgment
from judging.services import pseudonyms

COLUMNS = (
    "topic", "docno", "other", "assessor", "revision", "counts", "grade", "max_grade", "comment",
    "time", "seconds",
)  # fmt: skip
ASKED = (
    "assignment__pair__topic__topic_id", "assignment__pair__docno", "assignment__pair__other",
    "assessor", "revision", "assignment__revision", "grade", "max_grade", "comment", "created",
    "seconds",
)  # fmt: skip
CHUNK = 5000


def make(row: Round, shown: EstimateSet) -> str:
    """A line per judgment, corrected ones too: of those of one assessor and pair the last counts.

    Comments are as people wrote them, and may name somebody.
    """
    drawn = selectors.draws_behind(shown).order_by().values("pair")
    said = Judgment.objects.filter(assignment__pair__in=drawn).order_by(*ASKED[:3], "pk")
    users = said.order_by().values_list("assessor", flat=True).distinct()
    names = pseudonyms.pseudonyms(row.campaign, users)

    def rows() -> Iterator[tuple[Cell, ...]]:
        for place in said.values_list(*ASKED).iterator(CHUNK):
            topic, docno, other, user, revision, counting, *grades, comment, time, seconds = place
            by = names[user], revision, revision == counting
            yield topic, docno, other, *by, *grades, comment, time.isoformat(), seconds

    return "".join(csv_lines(COLUMNS, rows()))


LABELS = ReportKind(
    "labels.csv",
    "Every judgment with its comment, time and seconds, by pseudonyms; corrected ones too.",
    content_type="text/csv; charset=utf-8",
    make=make,
    group="Judgments",
)
