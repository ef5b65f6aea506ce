"""Looking through judgments, pairs, and what was done: for organizers."""

import json
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render

from judging import browsing, norming, selectors
from judging.access import organized_campaign, user_of
from judging.formats.csvfile import csv_lines
from judging.forms_browse import JudgmentSearch
from judging.forms_gold import MarkForm
from judging.forms_queue import SeniorForm
from judging.models import Pair

PER_PAGE = 50
LOG_COLUMNS = ("when", "who", "action", "target", "data")


def judgment_list(request: HttpRequest, slug: str) -> HttpResponse:
    """What assessors said, with search and filters."""
    campaign = organized_campaign(user_of(request), slug)
    form = JudgmentSearch(campaign, request.GET or None)
    asked = form.asked() if form.is_bound else browsing.JudgmentFilter()
    ids = browsing.judgments(campaign, asked).values_list("pk", flat=True)
    page: Any = Paginator(ids, PER_PAGE).get_page(request.GET.get("page"))
    page.object_list = rows = browsing.in_full(list(page.object_list))
    said = browsing.others(rows)
    context = {
        "campaign": campaign,
        "form": form,
        "rows": page,
        "found": [(row, said[row.pk]) for row in rows],
        "query": _without_page(request),
    }
    return render(request, "judging/judgments.html", context)


def pair_detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """One pair: its topic and documents, and everything that was said of it."""
    campaign = organized_campaign(user_of(request), slug)
    rows = Pair.every.filter(campaign=campaign)  # a judgment of gold is looked at like any other
    pair = get_object_or_404(rows.select_related("topic", "campaign"), pk=pk)
    names = [name for name in (pair.docno, pair.other) if name]
    texts = {each.docno: each for each in selectors.documents(campaign).filter(docno__in=names)}
    context = {
        "campaign": campaign,
        "pair": pair,
        "documents": [(name, texts.get(name)) for name in names],
        "answers": browsing.answers(pair),
        "served": browsing.served_in(pair),
        "marking": None if pair.gold or pair.other else MarkForm(campaign),
        "drafts": [] if pair.gold or pair.other else norming.drafts(pair),
        "decision": selectors.decisions(campaign).filter(pair=pair).first(),
        "seniors": selectors.senior_grades(campaign).filter(pair=pair),
        "senior_form": SeniorForm(pair=pair) if pair.judged and not pair.gold else None,
    }
    return render(request, "judging/pair_detail.html", context)


def audit_log(request: HttpRequest, slug: str) -> HttpResponse:
    """What was done in the campaign, by whom."""
    campaign = organized_campaign(user_of(request), slug)
    asked = _asked_of_log(request)
    page = Paginator(browsing.log(campaign, **asked), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "campaign": campaign,
        "rows": page,
        "kinds": browsing.log_kinds(campaign),
        "asked": asked,
        "query": _without_page(request),
    }
    return render(request, "judging/audit_log.html", context)


def audit_file(request: HttpRequest, slug: str) -> HttpResponseBase:
    """What the page shows as CSV, in its order: all of it, or what is chosen there."""
    campaign = organized_campaign(user_of(request), slug)
    asked = _asked_of_log(request)
    rows = (
        (
            entry.created.isoformat(),
            entry.actor.get_username() if entry.actor else "",
            entry.action,
            entry.target,
            json.dumps(entry.data),
        )
        for entry in browsing.log(campaign, **asked).iterator(chunk_size=2000)
    )
    lines = csv_lines(LOG_COLUMNS, rows)
    answer = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{slug}-audit.csv"'
    return answer


def _asked_of_log(request: HttpRequest) -> dict[str, str]:
    asked = {name: request.GET.get(name, "")[:150] for name in ("action", "actor")}
    return {name: "".join(filter(str.isprintable, text)) for name, text in asked.items()}


def _without_page(request: HttpRequest) -> str:
    """What is asked for, to stand before the number of another page."""
    given = request.GET.copy()
    given.pop("page", None)
    return f"{given.urlencode()}&" if given else ""
