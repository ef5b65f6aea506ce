"""What tests of pages share: clients in a role, addresses, the text a reader sees."""

import re

from django.http import HttpResponse
from django.test import Client
from django.urls import reverse

from judging.models import Campaign, User
from tests.support import factories

SIGN_IN, OK, FORBIDDEN, MISSING = 302, 200, 403, 404
ORGANIZING = {
    "anonymous": SIGN_IN,
    "assessor": FORBIDDEN,
    "other": MISSING,
    "organizer": OK,
    "admin": OK,
}
TABS = (
    "live", "live-pairs", "live-topics", "live-history", "live-batches", "live-labels", "compare",
)  # fmt: skip
HTMX = {"HX-Request": "true"}


def as_role(role: str, campaign: Campaign) -> Client:
    client = Client()
    if role == "assessor":
        client.force_login(factories.assessors(campaign, "the-assessor")[0])
    elif role == "organizer":
        client.force_login(campaign.created_by)
    elif role == "other":
        client.force_login(factories.campaign(slug="other").created_by)
    elif role == "admin":
        client.force_login(User.objects.create_superuser("the-admin"))
    return client


def address(name: str, campaign: Campaign, *more: int) -> str:
    return reverse(name, args=[campaign.slug, *more])


def text(response: HttpResponse) -> str:
    """What a reader sees: tags away, white space as one blank."""
    visible = re.sub(
        r"<svg.*?</svg>|<select.*?</select>", " ", response.content.decode(), flags=re.S
    )
    return re.sub(r"\s+|&nbsp;", " ", re.sub(r"<[^>]*>", "", visible))
