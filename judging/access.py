"""Who may do what to which campaign: the one place that says so.

Campaigns a user does not belong to look as if they did not exist (404); a member who lacks the
role is told so (403).
"""

from typing import cast

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest
from rest_framework.request import Request

from judging.models import Campaign, Membership, User

ORGANIZER = Membership.Role.ORGANIZER
ASSESSOR = Membership.Role.ASSESSOR


def user_of(request: HttpRequest | Request) -> User:
    """The signed-in user; views are reached by nobody else (LoginRequiredMiddleware)."""
    return cast(User, request.user)


def address_of(request: HttpRequest | Request) -> str:
    """Where a request comes from; a forwarding header counts only behind a declared proxy."""
    if settings.BEHIND_PROXY and (hops := request.META.get("HTTP_X_FORWARDED_FOR")):
        return str(hops).rsplit(",", 1)[-1].strip()
    return str(request.META.get("REMOTE_ADDR", ""))


def roles(user: User, campaign: Campaign) -> set[str]:
    """The user's roles in the campaign; an admin organizes every campaign."""
    mine = set(campaign.memberships.filter(user=user).values_list("role", flat=True))
    return mine | {ORGANIZER} if user.is_superuser else mine


def member_campaign(user: User, slug: str) -> Campaign:
    """The campaign, if the user is a member of it in any role."""
    return _campaign(user, slug, {ORGANIZER, ASSESSOR})


def organized_campaign(user: User, slug: str) -> Campaign:
    """The campaign, if the user organizes it."""
    return _campaign(user, slug, {ORGANIZER})


def assessed_campaign(user: User, slug: str) -> Campaign:
    """The campaign, if the user is one of its assessors."""
    return _campaign(user, slug, {ASSESSOR})


def _campaign(user: User, slug: str, allowed: set[Membership.Role]) -> Campaign:
    campaign = Campaign.objects.filter(slug=slug).first()
    mine = roles(user, campaign) if campaign else set()
    if campaign is None or not mine:
        raise Http404("No such campaign.")
    if not mine & allowed:
        raise PermissionDenied("Your role in this campaign does not allow this.")
    return campaign
