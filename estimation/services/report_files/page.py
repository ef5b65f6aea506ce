"""A report that reads like the evaluation section of a paper."""

from dataclasses import replace

from django.template.loader import render_to_string

from estimation import report_data
from estimation.models import EstimateSet, Round
from estimation.services.report_files.kinds import ReportKind
from judging.services import pseudonyms


def make(row: Round, shown: EstimateSet) -> str:
    """Assessors are told of by their pseudonyms."""
    context = report_data.report(row, shown)
    excluded = [each.who for each in context.exclusions]
    called = pseudonyms.by_name(row.campaign, [*context.assessors, *excluded])
    by_pseudonym = {called[name]: labels for name, labels in context.assessors.items()}
    context = replace(
        context,
        assessors=dict(sorted(by_pseudonym.items())),
        exclusions=[replace(each, who=called[each.who]) for each in context.exclusions],
    )
    return render_to_string("estimation/report_document.html", {"report": context})


PAGE = ReportKind(
    "report.html",
    "To read and to print: what was evaluated, how, and what came out.",
    content_type="text/html; charset=utf-8",
    make=make,
    group="To read",
    is_page=True,
)
