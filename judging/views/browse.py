"""Looking through judgments and pairs: for organizers."""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from judging import browsing, norming, selectors
from judging.access import organized_campaign, user_of
from judging.forms_browse import JudgmentSearch
from judging.forms_gold import MarkForm
from judging.forms_queue import SeniorForm
from judging.models import Pair

PER_PAGE = 50


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


def _without_page(request: HttpRequest) -> str:
    """What is asked for, to stand before the number of another page."""
    given = request.GET.copy()
    given.pop("page", None)
    return f"{given.urlencode()}&" if given else ""
