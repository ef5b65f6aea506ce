"""Charts as tags, so that pages and the report draw the same ones."""

from functools import lru_cache
from typing import Any

from django import template
from django.contrib.staticfiles import finders
from django.utils.safestring import SafeString, mark_safe

from estimation import charts, figures
from estimation.findings import Finding, findings
from estimation.models import Report, Round
from estimation.selectors import Pairwise, RankingTable, ReportData
from judging.models import Campaign

register = template.Library()


@register.inclusion_tag("estimation/_ranking_table.html")
def ranking_figure(table: RankingTable, linked: bool = True) -> dict[str, Any]:
    """The ranking with its forest plot; names link to comparisons with the leader."""
    figure = figures.ranking_figure(table)
    leader, second = (*(row.tag for row in table.rows[:2]), "", "")[:2]
    return {
        "figure": figure,
        "linked": linked and second,
        "leader": leader,
        "second": second,
        "round": table.round,
        "measure": table.measure,
    }


@register.inclusion_tag("estimation/_pairwise.html")
def pairwise_figure(table: RankingTable, pairs: Pairwise, linked: bool = True) -> dict[str, Any]:
    """The matrix of verdicts with its table."""
    figure = figures.pairwise_figure(table, pairs)
    return {"figure": figure, "linked": linked, "round": table.round, "measure": table.measure}


@register.inclusion_tag("charts/shares.svg")
def grades_figure(campaign: Campaign, counts: list[int]) -> dict[str, Any]:
    """How often each grade of the scale was given."""
    named = [
        (f"{grade} {known['name']}", count)
        for grade, (known, count) in enumerate(zip(campaign.grades, counts, strict=True))
    ]
    return {"chart": charts.grade_bars(named)}


@register.simple_tag
def conclusions(table: RankingTable, pairs: Pairwise) -> list[Finding]:
    """What may be concluded, as sentences."""
    return findings(table, pairs)


@register.filter
def with_pairwise(report: ReportData) -> list[tuple[RankingTable, Pairwise]]:
    """Each measure's ranking with its verdicts."""
    return list(zip(report.tables, report.pairwise, strict=True))


@register.filter
def percent(share: float) -> str:
    return f"{100 * share:.0f} %"


@register.filter
def thousands(number: float) -> str:
    """A whole number with its thousands set apart."""
    return f"{number:,.0f}"


PURPOSES = {
    Report.Name.HTML: "To read and to print: what was evaluated, how, and what came out.",
    Report.Name.ESTIMATES_CSV: "Every run, measure and estimator, for spreadsheets.",
    Report.Name.ESTIMATES_JSON: "The same with covariances, verdicts and the design.",
    Report.Name.JUDGMENTS: "Every label with its assessor and inclusion probability.",
    Report.Name.QRELS: "Mean grades as trec_eval reads them; scoring runs on them is no estimate.",
}


@register.filter
def purpose(name: str) -> str:
    """What a report's file is good for."""
    return PURPOSES[Report.Name(name)]


@register.filter
def goal_sentence(row: Round) -> str:
    """What the sample was optimized for."""
    run, baseline = row.run, row.baseline
    return {
        Round.Goal.ABSOLUTE: "the values of all runs, each as precise as the budget allows",
        Round.Goal.RANKING: "the ranking of all runs, that is, all differences between them",
        Round.Goal.BASELINE: f"the differences of all runs to the baseline {baseline}",
        Round.Goal.PAIR: f"the difference of {run} and {baseline}",
        Round.Goal.SINGLE: f"the value of {run}",
    }[Round.Goal(row.goal)]


@register.simple_tag
def stylesheet(*paths: str) -> SafeString:
    """The site's style files as text, for a document that must look right by itself."""
    return mark_safe("\n".join(_style(path) for path in paths))  # noqa: S308 (our own files)


@lru_cache(maxsize=8)
def _style(path: str) -> str:
    found = finders.find(path)
    if not isinstance(found, str):
        raise FileNotFoundError(path)
    with open(found, encoding="utf-8") as file:
        return file.read()
