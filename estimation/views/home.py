"""The campaign's home, and its bar."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from estimation import activity, overview
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
