"""Charts as tags, so that pages and the report draw the same ones."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from itertools import groupby
from threading import Lock
from typing import Any

from django import template
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString, mark_safe

from estimation import endings, figures, forecasts, listings
from estimation.charts import bars, confusions, forests
from estimation.findings import Finding, findings
from estimation.findings import listed as listed_names
from estimation.findings import named as named_names
from estimation.models import Report, Round
from estimation.pacing import hours_told
from estimation.plans import facts_of
from estimation.report_data import ReportData
from estimation.selectors import Pairwise, RankingTable
from estimation.services.report_files.kinds import ReportKind
from estimation.services.report_files.styles import styles
from estimation.services.report_files.table import REPORTS

register = template.Library()
register.filter("further_choices", facts_of)
register.filter("hours_told", hours_told)
register.filter("ends", endings.plan_in_words)
register.filter("ended", endings.end_in_words)
register.filter("standing", endings.standing)
register.filter("still", endings.still_because)


@register.simple_tag
def forest_row(chart: forests.Forest, row: forests.ForestRow, height: int) -> SafeString:
    """One interval of a forest plot, so many pixels high."""
    return chart.drawn(row, height)


@register.inclusion_tag("estimation/_ranking_table.html")
def ranking_figure(table: RankingTable, linked: bool = True) -> dict[str, Any]:
    """The ranking with its forest plot; names link to comparisons with the largest estimate."""
    figure = figures.ranking_figure(table)
    leader, second = (*(row.tag for row in table.by_estimate[:2]), "", "")[:2]
    linked = linked and bool(second)
    return {
        "figure": figure,
        "linked": linked,
        "compare": _compared_with(table, leader) if linked else "",
        "leader": leader,
        "second": second,
        "measure": table.measure,
    }


def _compared_with(table: RankingTable, first: str) -> str:
    """The address of comparisons with a run, but for the name of the other."""
    page = reverse("compare", args=(table.round.campaign.slug, table.round.number))
    return f"{page}?{urlencode({'measure': table.measure, 'first': first})}&second="


@register.simple_tag
def pairwise_figure(table: RankingTable, pairs: Pairwise, linked: bool = True) -> SafeString:
    """The matrix of verdicts with its table: of thousands of pieces, and always the same.

    Estimates are never edited, so that it is drawn once for each set of them, and kept a while.
    """
    row, drawn = table.round, table.estimate_set
    whose = (row.campaign.slug, row.number, drawn.pk, drawn.created, drawn.digest)

    def draw() -> SafeString:
        figure = figures.pairwise_figure(table, pairs)
        context = {"figure": figure, "linked": linked, "round": row, "measure": table.measure}
        return render_to_string("estimation/_pairwise.html", context)

    return _matrices.get((*whose, table.measure, linked), draw)


class Kept:
    """The last few that were asked for."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, SafeString] = OrderedDict()
        self._guard = Lock()

    def get(self, key: Hashable, make: Callable[[], SafeString]) -> SafeString:
        with self._guard:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._guard:
            self._kept[key] = made
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return made


_matrices = Kept(16)


@register.inclusion_tag("estimation/_forecast.html")
def forecast_figure(table: RankingTable) -> dict[str, Any]:
    """What more judgments will bring, beside what was foretold and what came."""
    return {"figure": forecasts.forecast_figure(table), "campaign": table.round.campaign}


@register.inclusion_tag("estimation/_race.html")
def race_figure(table: RankingTable) -> dict[str, Any]:
    """Who was still in the race after each batch, where the round looks for the best run."""
    row = table.round
    if row.goal != Round.Goal.WINNER or table.measure != row.measure:
        return {"moments": []}
    moments = listings.race(row)
    counted = [(f"Batch {each.batches}", float(len(each.runs))) for each in moments]
    chart = bars.race_bars(counted, planned=table.estimate_set.looks)
    return {"moments": moments, "chart": chart, "measure": row.measure}


@register.inclusion_tag("charts/shares.svg")
def grades_figure(scale: list[dict[str, str]], counts: list[int]) -> dict[str, Any]:
    """How often each grade of the scale was given."""
    named = [
        (f"{grade} {known['name']}", count)
        for grade, (known, count) in enumerate(zip(scale, counts, strict=True))
    ]
    return {"chart": bars.grade_bars(named)}


@register.inclusion_tag("charts/confusion.svg")
def confusion_figure(scale: list[dict[str, str]], agreement: dict[str, Any]) -> dict[str, Any]:
    """Judged against predicted grades."""
    names = [grade["name"] for grade in scale]
    return {"chart": confusions.confusion(names, agreement["table"], agreement["counts"])}


@register.inclusion_tag("charts/confusion.svg")
def confusion_chart(chart: confusions.Confusion) -> dict[str, Any]:
    """One that is worked out already."""
    return {"chart": chart}


@register.inclusion_tag("charts/confusion.svg")
def says_figure(scale: list[dict[str, str]], table: list[list[float]]) -> dict[str, Any]:
    """What an assessor says where each grade is the true one."""
    return {"chart": confusions.told_of([grade["name"] for grade in scale], table)}


@register.filter
def report_kind(row: Report) -> ReportKind:
    """What is declared of a report file."""
    return REPORTS[row.name]


@register.filter
def by_group(rows: list[Report]) -> list[tuple[str, list[Report]]]:
    """Report files by what they are good for; those of a group stand together already."""
    groups = groupby(rows, key=lambda row: REPORTS[row.name].group)
    return [(group, list(several)) for group, several in groups]


@register.simple_tag
def conclusions(table: RankingTable, pairs: Pairwise) -> list[Finding]:
    """What may be concluded, as sentences."""
    return findings(table, pairs)


@register.filter
def with_pairwise(report: ReportData) -> list[tuple[RankingTable, Pairwise]]:
    """Each measure's ranking with its verdicts."""
    return list(zip(report.tables, report.pairwise, strict=True))


@register.filter
def listed(names: list[str]) -> str:
    """Names as a sentence lists them: a, b and c."""
    return listed_names(names)


@register.filter
def named(names: list[str]) -> str:
    """Names as a sentence lists them; of many, the first and how many more."""
    return named_names(names)


@register.filter
def percent(share: float) -> str:
    """A share in percent; no line breaks before the sign."""
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


@register.filter
def percent_across(share: float) -> str:
    """A share as the width of a bar, in percent."""
    return f"{100 * share:.2f}"


@register.filter
def thousands(number: float) -> str:
    """A whole number with its thousands set apart."""
    return f"{number:,.0f}"


@register.filter
def signed(difference: float) -> str:
    """A difference in three decimals, with its sign."""
    return figures.signed(difference, 3)


@register.filter
def two_signed(difference: float) -> str:
    """A difference in two decimals, with its sign."""
    return figures.signed(difference, 2)


@register.filter
def two_decimals(value: float | None) -> str:
    """A number in two decimals; a dash where it is not known."""
    return figures.number(value, 2)


@register.filter
def goal_sentence(row: Round) -> str:
    """What the sample was optimized for."""
    run, baseline = row.run, row.baseline
    return {
        Round.Goal.ABSOLUTE: "the values of all runs, each as precise as the budget allows",
        Round.Goal.RANKING: "the ranking of all runs, that is, all differences between them",
        Round.Goal.WINNER: "the best run, that is, the differences between the run that leads and "
        "those that are still in the race",
        Round.Goal.BASELINE: f"the differences of all runs to the baseline {baseline}",
        Round.Goal.PAIR: f"the difference of {run} and {baseline}",
        Round.Goal.SINGLE: f"the value of {run}",
    }[Round.Goal(row.goal)]


@register.filter
def method_sentence(row: Round) -> str:
    """How the sample was drawn, and from what its probabilities were made."""
    smoothed = row.eps and "eps" in row.sampling.options
    drawn = row.sampling.sentence + (f" smoothed by {row.eps:g}" if smoothed else "")
    if not row.sampling.for_goal:
        return f"{drawn}."
    fixed = "they were fixed before the first judgment"
    sentence = f"{drawn}. The probabilities were made for {goal_sentence(row)}, by {row.measure}"
    costs = "" if row.costs == Round.Costs.EQUAL else ", and lowered by the root of a pair's cost"
    if row.sampling.draws == "batches":
        fixed = f"those of the first batch were fixed before it; {_learned(row)}"
    return f"{sentence}, from {_belief(row)}{costs}; {fixed}."


def _learned(row: Round) -> str:
    """What the batches of an adaptive round after the first were planned from, and counted by."""
    given = row.predicted_by
    helped = f" and from the predicted grades {listed_names(given)}" if given else ""
    if row.goal == Round.Goal.WINNER:
        helped += ", and the estimates from them said which runs were still in the race"
    apart = (
        f"; topics took part in a batch by chance, so that it had about {row.topic_minimum} pairs "
        "of each that did, on average, for which the intervals allow"
        if row.topic_minimum > 1
        else ""
    )
    if row.keeps_hours:
        apart += (
            "; batches after the first had as many pairs as the hours that were left paid for, by "
            "the pace of the judgments before them, which were other pairs"
        )
    return (
        f"before each later batch the model learned from all judgments so far{helped}. Every batch "
        "corrects what the model expected by what was judged, so that a wrong model makes no "
        f"number wrong either{apart}"
    )


def _belief(row: Round) -> str:
    if row.sampling.draws == "topics":
        alike = "a model that takes all grades for equally likely"
        return f"the predicted grades {row.predictions}" if row.predictions else alike
    return {
        Round.Prior.RANK: "a prior that expects relevance to fall with rank",
        Round.Prior.FUSION: "a prior that expects relevance where many runs agree",
        Round.Prior.SCORES: f"the predicted grades {listed_names(row.predicted_by or [''])}",
        Round.Prior.CONSTANT: "a prior that expects all pairs alike",
    }[Round.Prior(row.prior)]


@register.simple_tag
def stylesheet(*paths: str) -> SafeString:
    """The site's style files as text, for a document that must look right by itself."""
    return mark_safe(styles(*paths))  # noqa: S308 (our own files)
