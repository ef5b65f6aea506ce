"""Pages for admins: all campaigns, people, storage, work, and what the site did."""

from dataclasses import asdict
from typing import Any

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_POST

from estimation.services import retrying
from estimation.services.report_files import pdf
from estimation.work import NAMES
from evalsite.administration import overviews, site_report, storage
from evalsite.administration.forms import PeriodForm, RightsForm
from judging.access import administrator, user_of
from judging.errors import UserError
from judging.formats.csvfile import csv_lines
from judging.models import Campaign, Job, User
from judging.services import factors
from judging.services.rights import Rights, change
from judging.workers import serving

PER_PAGE = 50
PDF_SECONDS = 30
MOST_SHOWN = 100
"""Campaigns on the page of storage."""


def campaign_list(request: HttpRequest) -> HttpResponse:
    administrator(user_of(request))
    asked = _words(request)
    page = Paginator(overviews.campaigns(asked), PER_PAGE).get_page(request.GET.get("page"))
    found = overviews.listed_campaigns(list(page.object_list))
    room = storage.kept()
    lines = [(each, room.sizes.get(each.pk)) for each in found]
    context = {"rows": page, "lines": lines, "room": room, **_search(page, asked, "campaign")}
    return render(request, "administration/campaigns.html", context)


def person_list(request: HttpRequest) -> HttpResponse:
    administrator(user_of(request))
    asked = _words(request)
    page = Paginator(overviews.people(asked), PER_PAGE).get_page(request.GET.get("page"))
    found = overviews.listed_people(list(page.object_list))
    context = {"rows": page, "people": found, **_search(page, asked, "account")}
    return render(request, "administration/people.html", context)


def person_rights(request: HttpRequest, pk: int) -> HttpResponse:
    """What an account may do, and changing it."""
    by = administrator(user_of(request))
    user = get_object_or_404(User, pk=pk)
    form = RightsForm(request.POST if request.method == "POST" else None, initial=_rights(user))
    status = 200
    if request.method == "POST" and form.is_valid():
        try:
            done = change(user=user, by=by, rights=Rights(**form.cleaned_data))
        except UserError as error:
            form.add_error(None, error.message)
            status = error.status
        else:
            told = "can do what is ticked" if done else "could do so already"
            messages.success(request, f"{user.username} {told}.")
            return redirect("site-people")
    (person,) = overviews.listed_people([user])
    kinds = list(user.factors.order_by("pk").values_list("name", flat=True))
    context = {"person": person, "form": form, "is_self": user == by, "factors": kinds}
    return render(request, "administration/person.html", context, status=status)


@require_POST
def factors_off(request: HttpRequest, pk: int) -> HttpResponse:
    """For somebody who lost them: their password alone opens the account again."""
    by = administrator(user_of(request))
    user = get_object_or_404(User, pk=pk)
    factors.take_off(user=user, by=by)
    messages.success(request, f"{user.username} has no second factor any more.")
    return redirect("site-person", pk=pk)


def _rights(user: User) -> dict[str, bool]:
    return asdict(Rights.of(user))


def storage_page(request: HttpRequest) -> HttpResponse:
    administrator(user_of(request))
    room = storage.kept()
    largest = sorted(room.sizes.items(), key=lambda each: (-each[1], each[0]))[:MOST_SHOWN]
    named = Campaign.objects.in_bulk([pk for pk, _ in largest])
    context = {
        "room": room,
        "workers": serving(storage.MEASURE),
        "storage": room.found,
        "campaigns": [(named[pk], size) for pk, size in largest if pk in named],
        "most": max((size for _, size in largest), default=0) or 1,
    }
    return render(request, "administration/storage.html", context)


def work_page(request: HttpRequest) -> HttpResponse:
    administrator(user_of(request))
    return render(request, "administration/work.html", {"work": overviews.work()})


@require_POST
def work_retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Has failed work of any campaign done once more."""
    by = administrator(user_of(request))
    job = get_object_or_404(Job, pk=pk)
    try:
        retrying.retry(job=job, by=by)
        messages.success(request, f"{NAMES.get(job.kind, job.kind)} is tried again.")
    except UserError as error:
        messages.error(request, error.message)
    return redirect("site-work")


def report_page(request: HttpRequest) -> HttpResponse:
    administrator(user_of(request))
    form = PeriodForm(request.GET or None)
    period = form.period()
    shown = {"since": period.since, "until": period.until}
    report = site_report.site_report(period)
    context = {
        "form": form if form.is_bound and not form.is_valid() else PeriodForm(initial=shown),
        "report": report,
        "query": _query(**shown),
    }
    return render(request, "administration/report.html", context)


def report_file(request: HttpRequest) -> HttpResponseBase:
    """The same as CSV."""
    administrator(user_of(request))
    period = PeriodForm(request.GET).period()
    report = site_report.site_report(period)
    lines = csv_lines(site_report.COLUMNS, report.csv_rows())
    answer = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    name = f"site-{period.since}-{period.until}.csv"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def report_paper(request: HttpRequest) -> HttpResponse:
    """The same as PDF, made while the browser waits: a table and a few numbers, in bounded time."""
    administrator(user_of(request))
    period = PeriodForm(request.GET).period()
    context = {"report": site_report.site_report(period)}
    try:
        made = pdf.printed(
            render_to_string("administration/report_paper.html", context), seconds=PDF_SECONDS
        )
    except UserError as error:
        messages.error(request, error.message)
        return redirect(f"{reverse('site-report')}?{request.GET.urlencode()}")
    answer = HttpResponse(made, content_type="application/pdf")
    name = f"site-{period.since}-{period.until}.pdf"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _words(request: HttpRequest) -> str:
    return "".join(filter(str.isprintable, request.GET.get("q", "")[:200]))


def _search(page: Page[Any], asked: str, thing: str) -> dict[str, str]:
    """What the field to search in, and the links to other pages, say."""
    things = thing if page.paginator.count == 1 else f"{thing}s"
    return {"asked": asked, "things": things, "query": _query(q=asked)}


def _query(**asked: object) -> str:
    """To stand before the number of another page, or after a question mark."""
    given = {name: str(value) for name, value in asked.items() if value}
    return f"{urlencode(given)}&" if given else ""
