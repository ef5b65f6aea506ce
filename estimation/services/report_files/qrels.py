"""The judged pairs for trec_eval."""

import math

from estimation.models import EstimateSet, Round
from estimation.services.report_files.judgments import label_lines
from estimation.services.report_files.kinds import NO_GRADE, NotForThisRound, ReportKind
from judging.formats.qrels import qrels_lines


def make(row: Round, shown: EstimateSet) -> str:
    """The judged pairs with their mean grade, rounded to a whole one, as trec_eval reads them.

    Judged pairs are not a sample of equal chances: scoring runs on this file with trec_eval is
    not an estimate. judgments.csv has the probabilities.
    """
    grades: dict[tuple[str, str], list[int]] = {}
    for line in label_lines(shown):
        if not line.other:  # a preference is no grade of a document
            grades.setdefault((line.topic, line.docno), []).append(line.grade)
    if not grades:
        raise NotForThisRound(NO_GRADE)
    rows = [
        (topic, docno, math.floor(sum(given) / len(given) + 0.5))
        for (topic, docno), given in sorted(grades.items())
    ]
    return "".join(qrels_lines(rows))


QRELS = ReportKind(
    "qrels.txt",
    "Mean grades as trec_eval reads them; scoring runs on them is no estimate.",
    content_type="text/plain; charset=utf-8",
    make=make,
    group="Judgments",
)
