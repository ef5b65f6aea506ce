"""What every page needs: campaign navigation, links that may not exist yet, grades as chips."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol

from django import template
from django.forms import BaseForm, BoundField
from django.http import HttpRequest
from django.template.context import RequestContext
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince

from judging.access import ASSESSOR, ORGANIZER, roles, user_of
from judging.models import Campaign, preference_scale
from judging.queue import todo_count

register = template.Library()

QUEUE = "To do"
PLACES: dict[str, dict[str, tuple[tuple[str, str], ...]]] = {
    ORGANIZER: {
        "Overview": (("campaign-home", "Overview"),),
        "Data": (
            ("material", "Files"),
            ("run-list", "Runs"),
            ("topic-list", "Topics"),
            ("document-list", "Documents"),
            ("prediction-list", "Predictions"),
            ("machine-list", "Machine judges"),
        ),
        "Plan": (("round-list", "Rounds"),),
        "Judging": (
            ("people", "People"),
            ("crowd-links", "Crowd links"),
            ("training-set", "Training"),
            ("norming-sessions", "Norming"),
            ("gold", "Gold and rules"),
            ("judgment-list", "Judgments"),
            ("queue", QUEUE),
        ),
        "Results": (("live", "Ranking"), ("report-list", "Export")),
        "Settings": (("campaign-settings", "Settings"), ("audit-log", "Audit log")),
    },
    ASSESSOR: {"Judge": (("judge", "Judge"),), "My judgments": (("own-work", "My judgments"),)},
}
"""The places of a campaign, each with its pages; a place's link leads to the first of them."""
CHAPTERS = {
    "home": "your-campaigns",
    "account": "your-account",
    "password": "your-account",
    "confirm-it-is-you": "your-account",
    "factors": "your-account",
    "address": "your-account",
    "address-confirm": "your-account",
    "factor-codes": "your-account",
    "factor-passkeys": "your-account",
    "factor-recovery": "your-account",
    "campaign-new": "campaign",
    "campaign-home": "the-next-step",
    "campaign-settings": "campaign",
    "campaign-delete": "campaign",
    "audit-log": "audit-log",
    "material": "data",
    "upload-detail": "data",
    "run-list": "data",
    "run-detail": "a-run",
    "run-withdraw": "a-run",
    "topic-list": "data",
    "topic-detail": "a-topic",
    "document-list": "data",
    "document-detail": "data",
    "prediction-list": "predicted-grades",
    "prediction-detail": "predicted-grades",
    "machine-list": "machine-judges",
    "machine-new": "machine-judges",
    "machine-detail": "machine-judges",
    "round-list": "rounds-one-after-another",
    "round-new": "round",
    "round-detail": "round",
    "people": "people",
    "people-many": "people",
    "person": "people",
    "person-exclude": "people",
    "exclusion-back": "people",
    "crowd-links": "crowd-links",
    "crowd-link": "crowd-links",
    "gold": "gold-and-rules",
    "training-set": "training",
    "norming": "norming",
    "norming-desk": "norming",
    "norming-discussion": "norming",
    "norming-pair": "norming",
    "norming-comment": "norming",
    "norming-sessions": "norming",
    "norming-session": "norming",
    "norming-add": "norming",
    "norming-people": "norming",
    "gold-add": "gold-and-rules",
    "gold-rules": "gold-and-rules",
    "gold-mark": "gold-and-rules",
    "person-hold": "people",
    "queue": "queue",
    "judgment-list": "judging",
    "pair-detail": "judging",
    "decisions": "queue",
    "comments": "queue",
    "live": "ranking",
    "live-pairs": "ranking",
    "live-topics": "two-runs-side-by-side",
    "live-history": "while-people-judge",
    "live-batches": "judging",
    "live-labels": "quality-of-the-judgments",
    "compare": "two-runs-side-by-side",
    "compare-topic": "two-runs-side-by-side",
    "reports": "reports",
    "report-view": "reports",
    "own-work": "for-assessors",
    "work": "for-assessors",
    "work-done": "for-assessors",
    "api-docs": "for-programs",
    "site-campaigns": "for-admins",
    "site-people": "for-admins",
    "site-person": "for-admins",
    "site-storage": "for-admins",
    "site-work": "for-admins",
    "site-report": "for-admins",
}
"""The chapter of the guide that each page opens."""
REFUSED = "when-something-fails"
"""That of pages which say that something did not work."""
SECTIONS = {"live": "live", "compare": "live", "report": "report-list", "reports": "report-list"}
SECTIONS |= {"decisions": "queue", "decide": "queue", "comments": "queue"}
SECTIONS |= {"person": "people", "exclusion": "people", "norming": "norming-sessions"}
NOTICES = {"success": "ok", "warning": "warn", "error": "bad"}
RAMP = 4
FIELDS_IN_SIGHT = 2


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
    count: int = 0


@register.inclusion_tag("_campaign_nav.html", takes_context=True)
def campaign_nav(context: RequestContext, campaign: Campaign) -> dict[str, Any]:
    """The campaign's places for the user's roles; that which has the page shown is current."""
    request: HttpRequest = context["request"]
    mine = roles(user_of(request), campaign)
    places = [
        (label, _links(campaign, pages))
        for role in (ORGANIZER, ASSESSOR)
        if role in mine
        for label, pages in PLACES[role].items()
    ]
    best = _shown(request, campaign, [url for _, links in places for url, _ in links])
    return {
        "places": [
            Link(links[0][0], label, best in [url for url, _ in links])
            for label, links in places
            if links
        ],
    }


@register.inclusion_tag("_place_tabs.html", takes_context=True)
def place_tabs(context: RequestContext, campaign: Campaign, place: str) -> dict[str, Any]:
    """The pages of one of the organizer's places; that whose address fits best is current."""
    links = _links(campaign, PLACES[ORGANIZER][place])
    best = _shown(context["request"], campaign, [url for url, _ in links])
    counts = {}
    if place == "Judging":
        todo = context["todo"] if "todo" in context else todo_count(campaign)
        counts = {QUEUE: todo}
    tabs = [Link(url, label, url == best, counts.get(label, 0)) for url, label in links]
    return {"label": place, "tabs": tabs}


@register.inclusion_tag("_help.html", takes_context=True)
def guide_link(context: RequestContext, *, refused: bool = False) -> dict[str, str]:
    """A way to where the guide tells of the page shown, or of what did not work on it."""
    request: HttpRequest = context["request"]
    name = request.resolver_match.url_name if request.resolver_match else None
    return {"chapter": REFUSED if refused else CHAPTERS.get(name or "", REFUSED)}


def _links(campaign: Campaign, pages: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    found = [(address(name, campaign.slug), label) for name, label in pages]
    return [(url, label) for url, label in found if url]


def _shown(request: HttpRequest, campaign: Campaign, urls: list[str]) -> str:
    return _section(request, campaign) or _longest(request, urls)


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
def is_long(form: BaseForm) -> bool:
    """Whether a wrong field may be out of sight when the form comes back."""
    return len(form.visible_fields()) > FIELDS_IN_SIGHT


@register.filter
def wrong_fields(form: BaseForm) -> list[BoundField]:
    """The fields to mend, for the summary over a long form; a short one shows them itself."""
    return [field for field in form.visible_fields() if field.errors] if is_long(form) else []


@register.filter
def anchor(field: BoundField) -> str:
    """The id to which a link to the field leads: of several boxes, the first."""
    return field.id_for_label or f"{field.auto_id}_0"


@register.filter
def ago(when: datetime) -> str:
    """In its largest unit: "3 days ago"."""
    if timezone.now() - when < timedelta(minutes=1):
        return "just now"
    return f"{timesince(when, depth=1)} ago"


@register.filter
def seconds_ago(when: datetime) -> int:
    return round((timezone.now() - when).total_seconds())


@register.filter
def amount(value: Decimal) -> str:
    """An amount of money with its cents, and with what is smaller if there is any."""
    whole, _, part = f"{value:.4f}".partition(".")
    return f"{whole}.{part.rstrip('0').ljust(2, '0')}"


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
