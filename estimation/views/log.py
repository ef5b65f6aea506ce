"""What was done in a campaign: for its organizers."""

import json
from typing import Any

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.http import urlencode

from estimation import logged
from judging import browsing
from judging.access import organized_campaign, user_of
from judging.formats.csvfile import csv_lines
from judging.models import AuditEntry, Campaign

PER_PAGE = 50
COLUMNS = ("when", "who", "action", "target", "data")
ASKED = ("action", "actor", "round")


def audit_log(request: HttpRequest, slug: str) -> HttpResponse:
    """What was done in the campaign, by whom."""
    campaign = organized_campaign(user_of(request), slug)
    asked = _asked(request)
    page: Any = Paginator(_rows(campaign, asked), PER_PAGE).get_page(request.GET.get("page"))
    page.object_list = logged.named(page.object_list)
    query = urlencode(asked)
    context = {
        "campaign": campaign,
        "rows": page,
        "kinds": browsing.log_kinds(campaign),
        "rounds": logged.numbers(campaign),
        "asked": asked,
        "query": f"{query}&" if query else "",
    }
    return render(request, "estimation/audit_log.html", context)


def audit_file(request: HttpRequest, slug: str) -> HttpResponseBase:
    """What the page shows as CSV, in its order: all of it, or what is chosen there."""
    campaign = organized_campaign(user_of(request), slug)
    rows = (
        (
            each.entry.created.isoformat(),
            each.entry.actor.get_username() if each.entry.actor else "",
            each.entry.action,
            each.of,
            json.dumps(each.details),
        )
        for each in logged.all_named(_rows(campaign, _asked(request)))
    )
    lines = csv_lines(COLUMNS, rows)
    answer = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{slug}-audit.csv"'
    return answer


def _asked(request: HttpRequest) -> dict[str, str]:
    """What was asked for, without what is empty."""
    given = {name: request.GET.get(name, "")[:150] for name in ASKED}
    found = {name: "".join(filter(str.isprintable, text)) for name, text in given.items()}
    if not found["round"].isdecimal() or len(found["round"]) > 9:
        found["round"] = ""
    return {name: text for name, text in found.items() if text}


def _rows(campaign: Campaign, asked: dict[str, str]) -> QuerySet[AuditEntry]:
    number = int(asked["round"]) if "round" in asked else None
    kind, actor = asked.get("action", ""), asked.get("actor", "")
    return logged.log(campaign, action=kind, actor=actor, number=number)
