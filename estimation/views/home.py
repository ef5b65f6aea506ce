"""The campaign's home, and the list of its runs."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from estimation import activity, listings, overview
from estimation.models import Run
from estimation.services import withdrawals
from estimation.situation import Situation
from judging.access import ORGANIZER, member_campaign, organized_campaign, roles, user_of


def campaign_home(request: HttpRequest, slug: str) -> HttpResponse:
    """The next step, what is known, what needs a person; who only judges goes on to judging."""
    campaign = member_campaign(user_of(request), slug)
    if ORGANIZER not in roles(user_of(request), campaign):
        return redirect("judge", slug)
    facts = Situation(campaign)
    context = {
        "campaign": campaign,
        "situation": facts,
        "cards": overview.cards(facts),
        "attention": overview.attention(facts),
        "outcome": overview.outcome(facts),
        "days": overview.days(facts),
        "happened": activity.lately(campaign),
    }
    return render(request, "estimation/home.html", context)


def campaign_bar(request: HttpRequest, slug: str) -> HttpResponse:
    """The bar alone, asked for again while something is under way that ends by itself."""
    campaign = organized_campaign(user_of(request), slug)
    context = {"campaign": campaign, "here": request.GET.get("here", "")}
    return render(request, "_campaign_bar_alone.html", context)


def run_list(request: HttpRequest, slug: str) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    context = {"campaign": campaign, "runs": listings.runs_of(campaign)}
    return render(request, "estimation/runs.html", context)


@require_POST
def run_withdraw(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Leaves a run out of all rankings."""
    run = _run(request, slug, pk)
    withdrawals.withdraw(run=run, by=user_of(request))
    messages.success(request, f"{run.tag} is withdrawn: rankings are computed anew without it.")
    return redirect("run-list", slug)


@require_POST
def run_back(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Takes a withdrawn run back."""
    run = _run(request, slug, pk)
    withdrawals.take_back(run=run, by=user_of(request))
    messages.success(request, f"{run.tag} is back: rankings are computed anew with it.")
    return redirect("run-list", slug)


def _run(request: HttpRequest, slug: str, pk: int) -> Run:
    return get_object_or_404(organized_campaign(user_of(request), slug).runs, pk=pk)
