"""The rounds of a campaign one after another, and what is done with one that is drawn."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from estimation.endings import still_because
from estimation.forms import ExtendForm
from estimation.material import can_be_pooled
from estimation.services import extending, pausing, stopping
from estimation.timeline import timeline
from estimation.views.rounds import round_of
from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.views.already import leads_back


def round_list(request: HttpRequest, slug: str) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    ready = can_be_pooled(campaign)
    context = {"campaign": campaign, "found": timeline(campaign), "ready": ready}
    return render(request, "estimation/rounds.html", context)


@require_POST
@leads_back("round-list", "slug")
def round_pause(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Keeps the batches of a round back while others go on."""
    campaign = organized_campaign(user_of(request), slug)
    pausing.pause(row=round_of(campaign, number), by=user_of(request))
    messages.success(request, f"Round {number} pauses: what is in hand may still be judged.")
    return redirect("round-list", slug)


@require_POST
@leads_back("round-list", "slug")
def round_resume(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    pausing.resume(row=round_of(campaign, number), by=user_of(request))
    still = still_because(round_of(campaign, number))
    said = f"Round {number} pauses no more, but stands still: {still}."
    messages.success(request, said if still else f"Round {number} goes on.")
    return redirect("round-list", slug)


@require_POST
def round_extend(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Drafts the round that adds to what is judged, and shows what it buys."""
    campaign, form = organized_campaign(user_of(request), slug), ExtendForm(request.POST)
    row = round_of(campaign, number)
    try:
        more = extending.extend(row=row, by=user_of(request), budget=form.asked())
    except UserError as error:
        messages.warning(request, error.message)
        return redirect("round-list", slug)
    messages.success(
        request, f"Round {more.number} goes on from round {number}. Nothing is drawn yet."
    )
    return redirect("round-detail", slug, more.number)


@require_POST
@leads_back("round-detail", "slug", "number")
def round_end(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Ends a round that is judged, before its budget is spent."""
    campaign = organized_campaign(user_of(request), slug)
    row = round_of(campaign, number)
    stopping.by_hand(row=row, by=user_of(request))
    messages.success(request, f"Round {number} is being ended: its complete batches count.")
    return redirect("round-detail", slug, number)
