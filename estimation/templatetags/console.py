"""The bar of a campaign: state, how far it is, and the next step. For its organizers alone."""

from typing import Any
from urllib.parse import urlsplit

from django import template
from django.http import HttpRequest
from django.template.context import RequestContext
from django.urls import reverse

from estimation.next_step import TRANSIENT, next_step
from estimation.situation import Action, Situation
from judging.access import ORGANIZER, roles, user_of
from judging.models import Campaign

register = template.Library()


@register.inclusion_tag("_campaign_bar.html", takes_context=True)
def campaign_bar(
    context: RequestContext, campaign: Campaign, *, swap: bool = False
) -> dict[str, Any]:
    """What `next_step` says of the campaign; a view that has looked already has its ``situation``
    in the context. ``here`` is the page to come back to, where the request is not for it; who is
    ``there`` already, where one can watch, is not sent to it.

    ``swap``: a part of the answer to a poll, which takes the place of the bar that is there. What
    can be focused has an id, by which the focus is found again.
    """
    request: HttpRequest = context["request"]
    if ORGANIZER not in roles(user_of(request), campaign):
        return {}
    found: Situation = context.get("situation") or Situation(campaign)
    step = next_step(found)
    current = request.get_full_path() if request.method == "GET" else ""
    here: str = context.get("here") or current
    return {
        "campaign": campaign,
        "found": found,
        "step": step,
        "swap": swap,
        "polls": step.state in TRANSIENT,
        "left": time_left(found.days_left) if found.campaign.state == "open" else "",
        "button": "btn small" if step.waits else "btn small primary",
        "here": here,
        "there": step.waits and leads_to(step.action, campaign) == urlsplit(here).path,
        "csrf_token": context.get("csrf_token"),
    }


def leads_to(action: Action | None, campaign: Campaign) -> str:
    return reverse(action.url, args=[campaign.slug, *action.arguments]) if action else ""


def time_left(days: float | None) -> str:
    """About how long it takes, as people say it; nothing where it is not told."""
    if days is None or days <= 0.0:
        return ""
    if days < 1.0:
        return "done within a day at this pace"
    return f"about {days:,.0f} more day{'' if round(days) == 1 else 's'} at this pace"
