"""What needs an organizer: pairs that wait, disagreements, comments; and what was looked at."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from judging.api.base import ORGANIZER, CampaignView
from judging.api.fields import Body, OneOf, Text, Whole, checked
from judging.api.pagination import PageQuery, Pages, page_shape
from judging.api.serializers_people import ItemRow
from judging.models import SeenItem
from judging.queue import KINDS, in_full, queue
from judging.services import seen


class WhichItems(PageQuery):
    kind = OneOf(KINDS, required=False, help_text="One kind; else all.")
    done = serializers.BooleanField(default=False, help_text="Those that were marked as seen.")


class SeenBody(Body):
    kind = OneOf(SeenItem.Kind.choices)
    target = Whole(min_value=1)
    version = Text(
        max_length=40, help_text="As it was read: where it has changed since, it comes back."
    )


class UnseenBody(Body):
    kind = OneOf(SeenItem.Kind.choices)
    target = Whole(min_value=1)


class Queue(CampaignView):
    section = "Decisions"
    query = WhichItems
    access = {"GET": ORGANIZER}

    @extend_schema(responses=page_shape(ItemRow))
    def get(self, request: Request, slug: str) -> Response:
        """What needs you: first what waits, then by disagreement times weight, then comments.

        Waiting pairs are decided on or asked again with the operations above; the others are
        marked as seen.
        """
        found, pages = queue(self.campaign), Pages()
        marks = dict(found.done)
        kind = self.asked.get("kind", "")
        keys = [key for key in marks if not kind or key.kind == kind]
        rows = pages.paginate_queryset(keys if self.asked["done"] else found.of(kind), request)
        seen_items = [marks[key] for key in rows or []] if self.asked["done"] else None
        items = in_full(self.campaign, list(rows or []), seen_items)
        return pages.get_paginated_response(ItemRow(items, many=True).data)


class Seen(CampaignView):
    section = "Decisions"
    access = {"POST": ORGANIZER}

    @extend_schema(request=SeenBody, responses={204: None})
    def post(self, request: Request, slug: str) -> Response:
        """Mark a disagreement or a comment as seen; no label changes."""
        seen.mark(campaign=self.campaign, by=self.user, **checked(SeenBody, request.data))
        return Response(status=204)


class Unseen(CampaignView):
    section = "Decisions"
    access = {"POST": ORGANIZER}

    @extend_schema(request=UnseenBody, responses={204: None})
    def post(self, request: Request, slug: str) -> Response:
        """Have it looked at again."""
        seen.unmark(campaign=self.campaign, by=self.user, **checked(UnseenBody, request.data))
        return Response(status=204)
