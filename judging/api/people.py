"""Members of a campaign, and what was done in it."""

from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from judging import selectors
from judging.api.base import ORGANIZER, CampaignView, page
from judging.api.fields import Body, Text, checked
from judging.api.pagination import PageQuery, page_shape
from judging.api.serializers import AuditRow, MemberRow, NewMemberRow
from judging.models import Membership, User
from judging.services import members


class MemberBody(Body):
    username = Text(max_length=150)
    role = serializers.ChoiceField(Membership.Role.choices)


class Members(CampaignView):
    section = "People"
    query = PageQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}

    @extend_schema(responses=page_shape(MemberRow))
    def get(self, request: Request, slug: str) -> Response:
        """The members of a campaign, with how much they have judged."""
        return page(request, selectors.members(self.campaign), MemberRow)

    @extend_schema(request=MemberBody, responses={200: NewMemberRow, 201: NewMemberRow})
    def post(self, request: Request, slug: str) -> Response:
        """Make somebody a member; an account that is not there yet is made.

        200: was a member already. An account without a password comes with an invitation: the
        address where its owner sets one. Pass it on; whoever has it first has the account.
        """
        given = checked(MemberBody, request.data)
        row, created = members.add(campaign=self.campaign, by=self.user, **given)
        row.invitation = self._invitation(row.user)  # type: ignore[attr-defined]
        return Response(NewMemberRow(row).data, status=201 if created else 200)

    def _invitation(self, user: User) -> str | None:
        link = members.invitation(user, by=self.user)
        return self.request.build_absolute_uri(reverse("join", args=link)) if link else None


class Member(CampaignView):
    section = "People"
    access = {"DELETE": ORGANIZER}

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, slug: str, member: int) -> Response:
        """End a membership. Pairs in hand go back; judgments stay."""
        rows = self.campaign.memberships.select_related("user", "campaign")
        members.remove(membership=get_object_or_404(rows, pk=member), by=self.user)
        return Response(status=204)


class Audit(CampaignView):
    section = "People"
    query = PageQuery
    access = {"GET": ORGANIZER}

    @extend_schema(responses=page_shape(AuditRow))
    def get(self, request: Request, slug: str) -> Response:
        """Who did what in this campaign, latest first."""
        rows = self.campaign.audit.select_related("actor").order_by("-pk")
        return page(request, rows, AuditRow)
