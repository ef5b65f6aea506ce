"""What every page needs: campaign navigation, links that may not exist yet, grades as chips."""

from dataclasses import dataclass
from typing import Any, Protocol

from django import template
from django.http import HttpRequest
from django.template.context import RequestContext
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from judging import selectors
from judging.access import ASSESSOR, ORGANIZER, roles, user_of
from judging.models import Campaign, preference_scale

register = template.Library()

PAGES = {
    ORGANIZER: (
        ("campaign-home", "Overview"),
        ("material", "Material"),
        ("round-list", "Rounds"),
        ("live", "Results"),
        ("report-list", "Reports"),
        ("people", "People"),
        ("decisions", "Decisions"),
        ("comments", "Comments"),
        ("campaign-settings", "Settings"),
    ),
    ASSESSOR: (("judge", "Judge"), ("own-work", "My judgments")),
}
SECTIONS = {"live": "live", "compare": "live", "report": "report-list", "reports": "report-list"}
NOTICES = {"success": "ok", "warning": "warn", "error": "bad"}
RAMP = 4


class Named(Protocol):
    """What names the document of a pair, or its two documents."""

    @property
    def docno(self) -> str: ...

    @property
    def other(self) -> str: ...


@dataclass(frozen=True)
class Link:
    url: str
    label: str
    current: bool


@register.inclusion_tag("_campaign_nav.html", takes_context=True)
def campaign_nav(context: RequestContext, campaign: Campaign) -> dict[str, Any]:
    """The campaign's pages for the user's roles; that whose address fits best is current."""
    request: HttpRequest = context["request"]
    mine = roles(user_of(request), campaign)
    wanted = [page for role in (ORGANIZER, ASSESSOR) if role in mine for page in PAGES[role]]
    links = [(address(name, campaign.slug), label) for name, label in wanted]
    best = _section(request, campaign) or _longest(request, [url for url, _ in links])
    return {
        "pages": [Link(url, label, url == best) for url, label in links if url],
        "campaign": campaign,
        "organizes": ORGANIZER in mine,
        "drawn": ORGANIZER in mine and selectors.is_drawn(campaign),
        "here": request.get_full_path() if request.method == "GET" else "",
        "csrf_token": context.get("csrf_token"),
    }


def _section(request: HttpRequest, campaign: Campaign) -> str:
    """The page to which a page elsewhere belongs: a round's ranking is among the results."""
    name = request.resolver_match.url_name if request.resolver_match else None
    section = SECTIONS.get((name or "").split("-", maxsplit=1)[0])
    return address(section, campaign.slug) if section else ""


def _longest(request: HttpRequest, urls: list[str]) -> str:
    return max((url for url in urls if url and request.path.startswith(url)), key=len, default="")


@register.simple_tag
def campaign_url(campaign: Campaign) -> str:
    """Where the campaign begins for whoever may see it."""
    return address("campaign-home", campaign.slug) or reverse("home")


def address(name: str, *args: str | int) -> str:
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return ""


@register.filter
def notice_class(level: str) -> str:
    """The class of a notice for a level of django.contrib.messages."""
    return NOTICES.get(level, "")


@register.filter
def grade_level(grade: int, campaign: Campaign) -> int:
    """Where the grade lies on the color ramp: 0 for grade 0, else 1 to 4."""
    return 0 if grade <= 0 else max(1, round(RAMP * grade / campaign.max_grade))


@register.simple_tag
def grade_chip(campaign: Campaign, grade: int) -> SafeString:
    """A grade with its name, colored by the scale."""
    known = 0 <= grade <= campaign.max_grade
    name = campaign.grades[grade]["name"] if known else "not in the scale"
    level = grade_level(grade, campaign) if known else 0
    return format_html('<span class="grade grade-{}">{} {}</span>', level, grade, name)


@register.simple_tag
def answer_chip(campaign: Campaign, pair: Named, grade: int) -> SafeString:
    """What was said of a pair: a grade of the scale, or which of two documents is better."""
    if not pair.other:
        return grade_chip(campaign, grade)
    name = preference_scale(pair.docno, pair.other)[grade]["name"]
    return format_html('<span class="grade preference">{}</span>', name)
