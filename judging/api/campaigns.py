"""Campaigns: list, create, change, open, close."""

from collections.abc import Iterable
from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from judging import selectors
from judging.access import ORGANIZER as ORGANIZES
from judging.access import roles
from judging.api.base import MEMBER, ORGANIZER, ApiView, CampaignView
from judging.api.fields import Body, NoBody, Number, OneOf, Text, Whole, checked
from judging.api.pagination import PageQuery, Pages, page_shape
from judging.api.serializers import CampaignDetailRow, CampaignRow, OrganizedCampaignRow
from judging.models import Campaign, User
from judging.services import campaigns, deletion, duplicates

MAX_TEXT = 100_000


class Grade(Body):
    name = Text(max_length=100)
    meaning = Text(max_length=1000, default="", allow_blank=True)


class CampaignChange(Body):
    name = Text(max_length=200, required=False)
    guidelines = Text(
        max_length=MAX_TEXT, required=False, allow_blank=True, trim_whitespace=False,
        help_text="What assessors are told.",
    )  # fmt: skip
    grades = serializers.ListField(
        child=Grade(), required=False, help_text="The scale, from grade 0 upwards."
    )
    depth = Whole(required=False, help_text="How deep runs are pooled.")
    lease_minutes = Whole(required=False, help_text="How long a pair is kept for an assessor.")
    hour_cost = Number(
        required=False,
        help_text="What an hour of judging costs, to tell money beside hours; 0: not told.",
    )
    currency = Text(
        max_length=3, required=False, allow_blank=True, help_text="Three capital letters."
    )
    senior_grades = OneOf(
        Campaign.Seniors.choices, required=False,
        help_text="Whether senior grades stand beside what assessors said, or supersede it.",
    )  # fmt: skip


class CampaignBody(CampaignChange):
    name = Text(max_length=200)
    slug = serializers.SlugField(
        max_length=60, required=False, help_text="Its address; made from the name if left out."
    )


class Campaigns(ApiView):
    refusals: ClassVar = {"POST": (403,)}
    query = PageQuery

    @extend_schema(responses=page_shape(OrganizedCampaignRow))
    def get(self, request: Request) -> Response:
        """The campaigns you may see, newest first."""
        pages = Pages()
        mine = selectors.campaigns_of(self.user).select_related("created_by")
        rows = pages.paginate_queryset(mine, request) or []
        return pages.get_paginated_response(_shown(rows, self.user))

    @extend_schema(request=CampaignBody, responses={201: CampaignDetailRow})
    def post(self, request: Request) -> Response:
        """Create a campaign; you become its organizer."""
        given = checked(CampaignBody, request.data)
        row = campaigns.create(by=self.user, plan=campaigns.CampaignPlan(**given))
        return Response(_detail(row, self.user), status=201)


class CampaignDetail(CampaignView):
    access = {"GET": MEMBER, "PATCH": ORGANIZER}

    @extend_schema(responses=CampaignDetailRow)
    def get(self, request: Request, slug: str) -> Response:
        """One campaign."""
        return Response(_detail(self.campaign, self.user))

    @extend_schema(request=CampaignChange, responses=CampaignDetailRow)
    def patch(self, request: Request, slug: str) -> Response:
        """Change a campaign.

        Fields left out stay as they are. Scale and depth are fixed once a round is drawn.
        """
        given = checked(CampaignChange, request.data)
        campaigns.amend(campaign=self.campaign, by=self.user, chosen=given)
        self.campaign.refresh_from_db()
        return Response(_detail(self.campaign, self.user))


class OpenCampaign(CampaignView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses=CampaignDetailRow)
    def post(self, request: Request, slug: str) -> Response:
        """Open a campaign for judging."""
        checked(NoBody, request.data)
        campaigns.open_for_judging(campaign=self.campaign, by=self.user)
        return Response(_detail(self.campaign, self.user))


class PauseCampaign(CampaignView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses=CampaignDetailRow)
    def post(self, request: Request, slug: str) -> Response:
        """Pause a campaign: nothing is handed out; answers to pairs in hand are still taken."""
        checked(NoBody, request.data)
        campaigns.pause(campaign=self.campaign, by=self.user)
        return Response(_detail(self.campaign, self.user))


class CloseCampaign(CampaignView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses=CampaignDetailRow)
    def post(self, request: Request, slug: str) -> Response:
        """Close a campaign: nothing is judged, uploaded or drafted any more."""
        checked(NoBody, request.data)
        campaigns.close(campaign=self.campaign, by=self.user)
        return Response(_detail(self.campaign, self.user))


class ArchiveCampaign(CampaignView):
    access = {"POST": ORGANIZER, "DELETE": ORGANIZER}

    @extend_schema(request=None, responses=CampaignDetailRow)
    def post(self, request: Request, slug: str) -> Response:
        """Archive a campaign that is a draft or closed; nothing of it is lost."""
        checked(NoBody, request.data)
        campaigns.archive(campaign=self.campaign, by=self.user)
        return Response(_detail(self.campaign, self.user))

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, slug: str) -> Response:
        """Take a campaign out of the archive."""
        campaigns.unarchive(campaign=self.campaign, by=self.user)
        return Response(status=204)


class DuplicateBody(Body):
    name = Text(max_length=200)
    with_files = serializers.BooleanField(
        default=False, help_text="Whether its accepted files are read again for the new one."
    )


class DuplicateCampaign(CampaignView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=DuplicateBody, responses={201: CampaignDetailRow})
    def post(self, request: Request, slug: str) -> Response:
        """A new campaign with the settings of this one; you become its organizer."""
        given = checked(DuplicateBody, request.data)
        row = duplicates.duplicate(campaign=self.campaign, by=self.user, **given)
        return Response(_detail(row, self.user), status=201)


class DeletionBody(Body):
    name = Text(max_length=200, help_text="The name of the campaign, to be sure that it is meant.")


class DeleteCampaign(CampaignView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=DeletionBody, responses={202: None})
    def post(self, request: Request, slug: str) -> Response:
        """Delete a campaign for good, with all its judgments.

        It is there for nobody from then on; a worker removes its rows and files. It must be a draft
        or closed.
        """
        given = checked(DeletionBody, request.data)
        deletion.request(campaign=self.campaign, by=self.user, name=given["name"])
        return Response(status=202)


def _shown(rows: Iterable[Campaign], user: User) -> list[dict[str, Any]]:
    """The campaigns, each as far as the user may see it, with the user's roles."""
    mine: dict[int, set[str]] = {}
    for campaign, role in user.memberships.values_list("campaign_id", "role"):
        mine.setdefault(campaign, set()).add(role)
    always = {ORGANIZES} if user.is_superuser else set()
    return [_one(row, mine.get(row.pk, set()) | always) for row in rows]


def _one(
    row: Campaign,
    mine: set[str],
    organized: type[CampaignRow] = OrganizedCampaignRow,
) -> dict[str, Any]:
    row.roles = sorted(mine)  # type: ignore[attr-defined]
    kind = organized if ORGANIZES in mine else CampaignRow
    return dict(kind(row).data)


def _detail(row: Campaign, user: User) -> dict[str, Any]:
    mine = roles(user, row)
    if ORGANIZES in mine:
        row.material = selectors.material(row)  # type: ignore[attr-defined]
    return _one(row, mine, CampaignDetailRow)
