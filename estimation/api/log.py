"""What was done in a campaign."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from estimation import logged
from judging.api.base import ORGANIZER, CampaignView
from judging.api.fields import Text
from judging.api.pagination import PageQuery, Pages, page_shape


class AuditRow(serializers.Serializer[Any]):
    id = serializers.IntegerField(source="entry.pk")
    actor = serializers.CharField(allow_null=True, source="entry.actor.username", default=None)
    action = serializers.CharField(source="entry.action")
    target = serializers.CharField(
        source="of",
        help_text="What it was done to, as pages call it: a pair by topic and document.",
    )
    data = serializers.DictField(source="entry.data")  # type: ignore[assignment]
    created = serializers.DateTimeField(source="entry.created")


class WhichEntries(PageQuery):
    action = Text(max_length=150, default="", allow_blank=True, help_text="Of one kind; else all.")
    actor = Text(
        max_length=150, default="", allow_blank=True, help_text="Of one user name; else of all."
    )
    round = serializers.IntegerField(
        required=False, min_value=1, help_text="Of the round of this number, and of its batches."
    )


class Audit(CampaignView):
    section = "People"
    query = WhichEntries
    access = {"GET": ORGANIZER}

    @extend_schema(responses=page_shape(AuditRow))
    def get(self, request: Request, slug: str) -> Response:
        """Who did what in this campaign, latest first."""
        asked = {name: self.asked[name] for name in ("action", "actor")}
        pages = Pages()
        rows = logged.log(self.campaign, **asked, number=self.asked.get("round"))
        shown = logged.named(pages.paginate_queryset(rows, request) or [])
        return pages.get_paginated_response(AuditRow(shown, many=True).data)
