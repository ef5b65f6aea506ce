"""A report that reads like the evaluation section of a paper."""

from django.template.loader import render_to_string

from estimation import report_data
from estimation.models import EstimateSet, Round
from estimation.services.report_files.kinds import ReportKind


def make(row: Round, shown: EstimateSet) -> str:
    context = report_data.report(row, shown)
    return render_to_string("estimation/report_document.html", {"report": context})


PAGE = ReportKind(
    "report.html",
    "To read and to print: what was evaluated, how, and what came out.",
    content_type="text/html; charset=utf-8",
    make=make,
    is_page=True,
)
