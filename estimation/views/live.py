"""The pages people look at while others judge. Nothing is computed in a request."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlencode

from estimation import comparisons, listings, report_data, selectors, versions
from estimation.figures import comparison_figure, label_figure
from estimation.history_figures import history_figure
from estimation.models import EstimateSet, Round
from estimation.selectors import RankingTable, RoundProgress
from estimation.situation import Situation
from estimation.topic_figures import difference_chart, topic_figure
from estimation.views.reports import exports
from estimation.views.rounds import round_of
from estimation.work import OF_NUMBERS, FailedWork, failed_for
from judging.access import (
    beside_campaign,
    organized_campaign,
    organized_campaign_and,
    user_of,
)
from judging.models import Campaign


@dataclass(frozen=True)
class Shown:
    """What every tab of a round shows: how far it is, and its latest estimates, if any."""

    campaign: Campaign
    round: Round
    progress: RoundProgress
    estimate_set: EstimateSet | None
    measure: str
    failed: list[FailedWork]

    @cached_property
    def table(self) -> RankingTable | None:
        """Not looked at where nothing has changed since the last poll."""
        if self.estimate_set is None:
            return None
        return selectors.ranking_table(self.round, self.measure, self.estimate_set)

    @property
    def numbers(self) -> str:
        """Changes when the estimates do."""
        return str(self.estimate_set.number if self.estimate_set else 0)

    def body(self, page: str) -> str:
        """The same and, of the tab of labels, when a worker has looked at them, which is later."""
        if page != "live-labels" or self.estimate_set is None:
            return self.numbers
        found = repr(selectors.label_quality(self.estimate_set))
        return f"{self.numbers}-{hashlib.sha256(found.encode()).hexdigest()[:10]}"


def shown_round(request: HttpRequest, campaign: Campaign, number: int) -> Shown | None:
    """The round of the address; None while it is only drafted."""
    row = round_of(campaign, number)
    if not row.is_drawn:
        return None
    row.campaign = campaign
    latest = selectors.latest_estimates(row)
    asked = request.GET.get("measure")
    measure = asked if asked in selectors.measures_of(row) else row.measure
    progress, failed = selectors.round_progress(row), failed_for(row, OF_NUMBERS)
    return Shown(campaign, row, progress, latest, measure, failed)


def live_current(request: HttpRequest, slug: str) -> HttpResponse:
    """To the ranking of the round that is judged now."""
    campaign = organized_campaign(user_of(request), slug)
    row = selectors.current_round(campaign)
    return redirect("live", slug, row.number) if row else redirect("round-list", slug)


def live(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    return _tab(request, "live", slug, number)


def live_pairs(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    return _tab(request, "live-pairs", slug, number)


def live_topics(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    return _tab(request, "live-topics", slug, number)


def live_history(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    return _tab(request, "live-history", slug, number)


def live_batches(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    return _tab(request, "live-batches", slug, number)


def live_labels(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    return _tab(request, "live-labels", slug, number)


def compare(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Two runs side by side: by default the two best."""
    return _tab(request, "compare", slug, number)


TABS = {
    "live": "Ranking",
    "live-pairs": "Pairs",
    "live-topics": "Topics",
    "live-history": "History",
    "live-batches": "Batches",
    "live-labels": "Quality",
}

WITHOUT_RANKING = ("live-batches", "live-labels")
"""Tabs of which nothing follows from it, so that it is not read for them."""

KEPT = ("first", "second", "all", "by", "run")
"""What an address asks for beside the measure, which a poll asks for again."""
_POLLED = beside_campaign(versions.VERSION)


def _tab(request: HttpRequest, page: str, slug: str, number: int) -> HttpResponse:
    """The whole page; for a poll only what has changed since what the reader has, or nothing."""
    by = user_of(request)
    campaign, row = organized_campaign_and(by, slug, _POLLED, number=number)
    version = versions.told(row)  # first: what changes now is told next time
    polled = request.htmx and "head" in request.GET  # type: ignore[attr-defined]
    if polled and version and request.GET["head"] == version:
        return HttpResponse(status=204)
    shown = shown_round(request, campaign, number)
    if shown is None:
        return redirect("round-detail", slug, number)
    body = version if page == "live-batches" else shown.body(page)
    context = _context(request, shown, page) | {"head_token": version, "body_token": body}
    if not polled:
        results = listings.results_of(campaign)
        context |= {"results": results, "apart": not any(each.counting for each in results)}
        context |= {"exports": exports(shown.round, shown.estimate_set)}
        return render(request, "estimation/live.html", context | _body(request, shown, page))
    context["here"] = request.htmx.current_url_abs_path or request.path  # type: ignore[attr-defined]
    if request.GET.get("body") != body:
        context |= {"swap_body": True} | _body(request, shown, page)
    return render(request, "estimation/_live_update.html", context)


def _context(request: HttpRequest, shown: Shown, page: str) -> dict[str, Any]:
    """What the head of the page says."""
    query = {"measure": shown.measure} if shown.estimate_set else {}
    picked = {name: request.GET.getlist(name) for name in KEPT if name in request.GET}
    return {
        "campaign": shown.campaign,
        "situation": Situation(shown.campaign, {shown.round.pk: shown.progress}),
        "round": shown.round,
        "progress": shown.progress,
        "failed": shown.failed,
        "estimates": shown.estimate_set,
        "table": None if page in WITHOUT_RANKING else shown.table,
        "measure": shown.measure,
        "measures": selectors.measures_of(shown.round) if shown.estimate_set else [],
        "page": page,
        "tabs": TABS,
        "query": f"?{urlencode(query)}" if query else "",
        "poll": urlencode({**query, **picked}, doseq=True),
    }


def _body(request: HttpRequest, shown: Shown, page: str) -> dict[str, Any]:
    """What the tab itself shows; nothing before the first estimates."""
    if page == "live-labels":
        return _labels(shown)
    table = None if page in WITHOUT_RANKING else shown.table
    if table is None:
        return {}
    if page == "live-history":
        return _history(request, shown.round, table)
    if page == "live-topics":
        return {"topics": topic_figure(table, request.GET.get("by", ""))}
    return _compared(request, table) if page == "compare" else {"pairs": table.pairs}


def _history(request: HttpRequest, row: Round, table: RankingTable) -> dict[str, Any]:
    whole, chosen = "all" in request.GET, request.GET.getlist("run")
    points = listings.history(row, table.measure)
    figure = history_figure(table, points, whole=whole, chosen=chosen)
    return {"figure": figure, "history": figure.drawn, "whole": whole, "chosen": chosen}


def _labels(shown: Shown) -> dict[str, Any]:
    latest, measure = shown.estimate_set, shown.measure
    if latest is None:
        return {}
    compared = selectors.label_comparison(latest, measure)
    quality = report_data.quality_of(shown.round, latest)
    return {
        "labels": report_data.label_facts(shown.round, latest),
        "quality": quality,
        "advice": label_figure(compared) if compared else None,
        "noise": report_data.noise_of(shown.round, latest, measure, quality),
        "without": report_data.without_exclusions(shown.round, latest),
    }


def _compared(request: HttpRequest, table: RankingTable) -> dict[str, Any]:
    tags = [row.tag for row in table.by_estimate]
    first = request.GET.get("first") or tags[0]
    second = request.GET.get("second") or next((tag for tag in tags if tag != first), first)
    found = comparisons.compare(table, first, second) if first != second else None
    return {
        "first": first,
        "second": second,
        "absent": [tag for tag in dict.fromkeys((first, second)) if tag not in tags],
        "found": comparison_figure(found) if found else None,
        "asked": urlencode({"measure": table.measure, "first": first, "second": second}),
        "differences": difference_chart(found) if found and found.topics else None,
    }
