"""What the pages for admins share."""

from dataclasses import dataclass

from django import template
from django.http import HttpRequest
from django.template.context import RequestContext
from django.urls import reverse

register = template.Library()

PAGES = {
    "site-campaigns": "Campaigns",
    "site-people": "People",
    "site-storage": "Storage",
    "site-work": "Work",
    "site-report": "Report",
}


WITHIN = {"site-person": "site-people"}
"""Pages that are looked at from another one."""


@dataclass(frozen=True)
class SiteTab:
    url: str
    label: str
    current: bool


@register.simple_tag(takes_context=True)
def site_tabs(context: RequestContext) -> list[SiteTab]:
    request: HttpRequest = context["request"]
    shown = request.resolver_match.url_name if request.resolver_match else None
    shown = WITHIN.get(shown or "", shown)
    return [SiteTab(reverse(name), label, name == shown) for name, label in PAGES.items()]


@register.filter
def share_of(part: float, whole: float) -> str:
    """In percent, as drawings take it."""
    return f"{100 * part / whole:.2f}" if whole else "0"


@register.filter
def hours_of(seconds: float) -> float:
    return seconds / 3600
