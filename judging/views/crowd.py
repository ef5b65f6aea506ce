"""Crowd links: made, closed, looked at, and what their guests are due."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from judging import payments as figures
from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.formats.csvfile import csv_lines
from judging.forms import blame
from judging.forms_crowd import CrowdLinkForm
from judging.models import Campaign, CrowdLink
from judging.services import crowd_links
from judging.views.already import leads_back

COLUMNS = (
    "participant",
    "submission",
    "guest",
    "state",
    "minutes",
    "judgments",
    "skipped",
    "pay",
    "bonus",
    "total",
    "currency",
    "code",
    "excluded",
    "look_at",
)
PROLIFIC = "?" + "&".join(
    f"{name}={{{{%{name}%}}}}" for name in ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
)
"""What Prolific is to put behind the address."""


def links(request: HttpRequest, slug: str) -> HttpResponse:
    """All of a campaign, and the form that makes one."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    form = CrowdLinkForm(request.POST or None)
    if form.is_valid():
        try:
            made = crowd_links.make(campaign=campaign, by=user, plan=form.plan())
        except UserError as error:
            blame(form, error)
        else:
            messages.success(request, "The link is open. Put its address into the platform.")
            return redirect("crowd-link", slug=slug, pk=made.pk)
    context = {
        "campaign": campaign,
        "links": figures.links(campaign),
        "form": form,
    }
    return render(request, "judging/crowd_links.html", context, status=400 if form.errors else 200)


@require_GET
def link(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """One of them: its address, who came, and what they are due."""
    campaign = organized_campaign(user_of(request), slug)
    row = _found(campaign, pk)
    address = request.build_absolute_uri(reverse("work", args=[row.token]))
    context = {
        "campaign": campaign,
        "link": row,
        "address": address,
        "prolific": address + PROLIFIC,
        "payments": figures.payments(row),
    }
    return render(request, "judging/crowd_link.html", context)


def _found(campaign: Campaign, pk: int) -> CrowdLink:
    row = get_object_or_404(campaign.crowd_links, pk=pk)
    row.campaign = campaign
    return row


@require_POST
@leads_back("crowd-link", "slug", "pk")
def close(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    row = _found(organized_campaign(user, slug), pk)
    crowd_links.close(link=row, by=user)
    messages.success(request, "Nobody new comes by this link. Who has begun goes on.")
    return redirect("crowd-link", slug=slug, pk=pk)


@require_POST
@leads_back("crowd-link", "slug", "pk")
def reopen(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    row = _found(organized_campaign(user, slug), pk)
    crowd_links.reopen(link=row, by=user)
    messages.success(request, "People may come by this link again.")
    return redirect("crowd-link", slug=slug, pk=pk)


@require_GET
def payments_file(request: HttpRequest, slug: str, pk: int) -> HttpResponseBase:
    """The payment table as CSV, with the sums in its last row."""
    row = _found(organized_campaign(user_of(request), slug), pk)
    lines = csv_lines(COLUMNS, _cells(figures.payments(row)))
    answer = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{slug}-payments-{row.pk}.csv"'
    return answer


def _cells(table: figures.Payments) -> list[tuple[str | int | bool | None, ...]]:
    """Amounts are written with their cents."""
    rows: list[tuple[str | int | bool | None, ...]] = [
        (
            each.guest.participant,
            each.guest.submission,
            each.name,
            each.state,
            str(each.minutes),
            each.judgments,
            each.skipped,
            str(each.pay),
            str(each.bonus),
            str(each.total),
            table.currency,
            each.guest.told_code,
            each.excluded,
            "; ".join(each.alike),
        )
        for each in table.rows
    ]
    sums = [str(each) for each in (table.pay, table.bonus, table.total)]
    counted = (str(table.minutes), table.judgments, table.skipped)
    rows.append(("sum", "", "", "", *counted, *sums, table.currency, "", None, ""))
    return rows
