"""One queue of what needs an organizer: pairs that wait, disagreements, comments; what is done."""

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST

from judging import selectors
from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.forms import RestForm
from judging.forms_queue import SeenForm
from judging.models import Campaign
from judging.qrels_left import qrels_left
from judging.queue import APART, COMMENT, KINDS, WAITING, in_full, queue
from judging.services import seen

PER_PAGE = 50
DONE = "done"
LABELS = {
    "": "All",
    WAITING: "Waiting",
    APART: "Disagreements",
    COMMENT: "Comments",
    DONE: "Done",
}
DECISIONS_SHOWN = 200


@dataclass(frozen=True)
class Filter:
    url: str
    label: str
    count: int
    current: bool


def todo(request: HttpRequest, slug: str) -> HttpResponse:
    """All of it, or one kind."""
    asked = request.GET.get("kind", "")
    return shown(request, slug, asked if asked in LABELS else "")


def waiting(request: HttpRequest, slug: str) -> HttpResponse:
    return shown(request, slug, WAITING)


def comments(request: HttpRequest, slug: str) -> HttpResponse:
    return shown(request, slug, COMMENT)


def shown(request: HttpRequest, slug: str, kind: str) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    return page(request, campaign, kind, RestForm(campaign=campaign))


def page(request: HttpRequest, campaign: Campaign, kind: str, form: RestForm) -> HttpResponse:
    found = queue(campaign)
    done = kind == DONE
    keys = [key for key, _ in found.done] if done else found.of(kind)
    rows = Paginator(keys, PER_PAGE).get_page(request.GET.get("page"))
    first = rows.start_index() - 1 if keys else 0
    marks = [mark for _, mark in found.done[first : first + len(rows)]] if done else None
    settled, known = _settled(campaign), campaign.known_grades.count()
    count = len(found.done) + settled["taken_count"] + settled["senior_count"]
    context = {
        "campaign": campaign,
        "kind": kind,
        "filters": _filters(campaign, kind, found.counts, count),
        "todo": len(found.todo),
        "rows": rows,
        "items": in_full(campaign, list(rows), marks),
        "query": f"kind={kind}&" if kind else "",
        "drawn": selectors.is_drawn(campaign),
        "known": known,
        "left": qrels_left(campaign) if known and kind == WAITING else None,
        "working": selectors.bulk_jobs(campaign),
        "form": form,
        **(settled if done else {}),
    }
    return render(request, "judging/queue.html", context, status=400 if form.errors else 200)


def _settled(campaign: Campaign) -> dict[str, Any]:
    """What was decided, the latest first, and how much of it there is."""
    taken = selectors.decisions(campaign).order_by("-pk")
    senior = selectors.senior_grades(campaign).filter(ended=None)
    return {
        "taken": taken[:DECISIONS_SHOWN],
        "taken_count": taken.count(),
        "senior": senior[:DECISIONS_SHOWN],
        "senior_count": senior.count(),
    }


def _filters(campaign: Campaign, kind: str, counts: dict[str, int], done: int) -> list[Filter]:
    numbers = {"": sum(counts.values()), **counts, DONE: done}
    base = reverse("queue", args=[campaign.slug])
    return [
        Filter(f"{base}?kind={name}" if name else base, label, numbers[name], name == kind)
        for name, label in LABELS.items()
    ]


@require_POST
def mark(request: HttpRequest, slug: str) -> HttpResponse:
    """Looked at: it stands apart from now on."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    form = SeenForm(request.POST)
    if not form.is_valid():
        raise UserError("item_invalid", "Say what was looked at.")
    seen.mark(campaign=campaign, by=user, **form.cleaned_data)
    messages.success(request, "Marked as seen. It stands under Done.")
    return _back(request, slug)


@require_POST
def unmark(request: HttpRequest, slug: str) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    form = SeenForm(request.POST)
    if not form.is_valid():
        raise UserError("item_invalid", "Say what is to be looked at again.")
    given = form.cleaned_data
    seen.unmark(campaign=campaign, by=user, kind=given["kind"], target=given["target"])
    messages.success(request, "It is to be looked at again.")
    return _back(request, slug)


def _back(request: HttpRequest, slug: str) -> HttpResponse:
    kind = request.POST.get("from", "")
    query = f"?kind={kind}" if kind in (*KINDS, DONE) else ""
    return redirect(f"{reverse('queue', args=[slug])}{query}#next")
