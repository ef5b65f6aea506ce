"""Who may do what to which campaign: the one place that says so.

Campaigns a user does not belong to, and those that are being deleted, look as if they did not exist
(404); a member who lacks the role is told so (403).
"""

from typing import Any, cast

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.db.models import Exists, OuterRef
from django.http import Http404, HttpRequest
from rest_framework.request import Request

from judging import norming
from judging.models import (
    Assignment,
    Campaign,
    CrowdLink,
    Membership,
    NormingPerson,
    Pair,
    Topic,
    User,
)
from judging.statements import Row, Slot, Statement, beside, columns_of, reads, row_of

ORGANIZER = Membership.Role.ORGANIZER
ASSESSOR = Membership.Role.ASSESSOR


def _is(role: Membership.Role, campaign: str) -> Exists:
    """Whether the user has the role in the campaign that a column of the row names."""
    there = Membership.objects.filter(campaign=OuterRef(campaign), user=Slot("user"), role=role)
    return Exists(there)


_CAMPAIGN = reads(
    lambda: (
        Campaign.objects.filter(slug=Slot("slug"))
        .exclude(state=Campaign.State.DELETING)
        .order_by()
        .annotate(organizes=_is(ORGANIZER, "pk"), assesses=_is(ASSESSOR, "pk"))
        .values_list(*columns_of(Campaign), "organizes", "assesses")
    )
)
_OWN = (
    (Assignment, ""),
    (Pair, "pair__"),
    (Topic, "pair__topic__"),
    (Campaign, "pair__campaign__"),
)
_ASSIGNMENT = reads(
    lambda: Assignment.objects.filter(
        _is(ASSESSOR, "pair__campaign"),
        pk=Slot("pk"),
        assessor=Slot("user"),
        pair__campaign__slug=Slot("slug"),
    ).values_list(*(name for kind, prefix in _OWN for name in columns_of(kind, prefix)))
)


def user_of(request: HttpRequest | Request) -> User:
    """The signed-in user; views are reached by nobody else (SignInMiddleware)."""
    return cast(User, request.user)


def address_of(request: HttpRequest | Request) -> str:
    """Where a request comes from; a forwarding header counts only behind a declared proxy."""
    if settings.BEHIND_PROXY and (hops := request.META.get("HTTP_X_FORWARDED_FOR")):
        return str(hops).rsplit(",", 1)[-1].strip()
    return str(request.META.get("REMOTE_ADDR", ""))


def administrator(user: User) -> User:
    """The user, if they administer the site; others are told no, as its pages are no secret."""
    if not user.is_superuser:
        raise PermissionDenied("Only admins of the site may see this.")
    return user


def roles(user: User, campaign: Campaign) -> set[str]:
    """The user's roles in the campaign; an admin organizes every campaign.

    They are known of a campaign that was read for this user: nothing is read again then.
    """
    if campaign.asked_by and campaign.asked_by[0] == user.pk:
        return campaign.asked_by[1]
    mine = set(campaign.memberships.filter(user=user).values_list("role", flat=True))
    return mine | {ORGANIZER} if user.is_superuser else mine


def member_campaign(user: User, slug: str) -> Campaign:
    """The campaign, if the user is a member of it in any role."""
    return _campaign(user, slug, {ORGANIZER, ASSESSOR})


def organized_campaign(user: User, slug: str) -> Campaign:
    """The campaign, if the user organizes it.

    Its topics and documents too: assessors read what they are handed.
    """
    return _campaign(user, slug, {ORGANIZER})


def assessed_campaign(user: User, slug: str) -> Campaign:
    """The campaign, if the user is one of its assessors."""
    return _campaign(user, slug, {ASSESSOR})


def norming_seat(user: User, slug: str, pk: int) -> norming.Seat:
    """A norming session, for who organizes the campaign, or takes part and is an assessor there.

    That of others is not there (404), and neither is a draft for who takes part.
    """
    campaign = member_campaign(user, slug)
    mine = roles(user, campaign)
    person = norming.of_person(campaign, user, pk) if ASSESSOR in mine else None
    session = person.session if person else None
    if ORGANIZER in mine:
        session = campaign.norming_sessions.filter(pk=pk).first()
    if session is None:
        raise Http404("No such session.")
    session.campaign = campaign
    return norming.Seat(session, user, ORGANIZER in mine, person)


def norming_part(user: User, slug: str, pk: int) -> NormingPerson:
    """The part of an assessor in a norming session; 404 if they have none."""
    campaign = assessed_campaign(user, slug)
    person = norming.of_person(campaign, user, pk)
    if person is None:
        raise Http404("No such session.")
    person.session.campaign = campaign
    return person


def crowd_link(token: str) -> CrowdLink:
    """The link of the address: it is there for whoever knows it, signed in or not."""
    rows = CrowdLink.objects.select_related("campaign", "created_by")
    link = rows.exclude(campaign__state=Campaign.State.DELETING).filter(token=token).first()
    if link is None:
        raise Http404("No such link.")
    return link


def assessed_assignment(user: User, slug: str, pk: int) -> Assignment:
    """The user's own assignment, with its pair, topic and campaign, if they are an assessor there.

    Anybody else's is not there (404).
    """
    if row := _ASSIGNMENT.first(user=user.pk, slug=slug, pk=pk):
        return _with_its_own(row)
    assessed_campaign(user, slug)
    raise Http404("No such assignment.")


def _with_its_own(row: Row) -> Assignment:
    assignment, pair, topic, campaign = _instances(row)
    pair.topic, pair.campaign, assignment.pair = topic, campaign, pair
    return assignment


def _instances(row: Row) -> tuple[Assignment, Pair, Topic, Campaign]:
    """In the order of ``_OWN``."""
    found, place = [], 0
    for kind, _prefix in _OWN:
        width = len(columns_of(kind))
        found.append(row_of(kind, row[place : place + width]))
        place += width
    return cast(tuple[Assignment, Pair, Topic, Campaign], tuple(found))


def beside_campaign(more: Statement) -> Statement:
    """What else is read of a campaign of that slug, in the one statement that finds it."""
    return beside(_CAMPAIGN, more)


def organized_campaign_and(
    user: User, slug: str, found: Statement, **values: Any
) -> tuple[Campaign, Row]:
    """The campaign, if the user organizes it, and a row of what is ``found`` beside it."""
    row = found.first(user=user.pk, slug=slug, **values)
    width = _CAMPAIGN.compiled.columns
    return _allowed(user, row and row[:width], {ORGANIZER}), row[width:] if row else ()


def _campaign(user: User, slug: str, allowed: set[Membership.Role]) -> Campaign:
    return _allowed(user, _CAMPAIGN.first(user=user.pk, slug=slug), allowed)


def _allowed(user: User, row: Row | None, allowed: set[Membership.Role]) -> Campaign:
    organizes, assesses = (row[-2] or user.is_superuser, row[-1]) if row else (False, False)
    mine = {str(role) for role, has in ((ORGANIZER, organizes), (ASSESSOR, assesses)) if has}
    if row is None or not mine:
        raise Http404("No such campaign.")
    if not mine & allowed:
        raise PermissionDenied("Your role in this campaign does not allow this.")
    found = row_of(Campaign, row[:-2])
    found.asked_by = user.pk, mine
    return found
