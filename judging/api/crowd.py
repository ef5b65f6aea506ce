"""Crowd links, and what their guests are due."""

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from judging import payments
from judging.api.base import ORGANIZER, CampaignView, page
from judging.api.fields import NoBody, checked
from judging.api.pagination import PageQuery, page_shape
from judging.api.serializers_crowd import CrowdLinkBody, CrowdLinkRow, PaymentsRow
from judging.models import CrowdLink
from judging.services import crowd_links
from judging.services.crowd_links import LinkPlan


class LinkView(CampaignView):
    section = "People"

    def link(self, pk: int) -> CrowdLink:
        """With its counts, as it is now."""
        return get_object_or_404(payments.links(self.campaign), pk=pk)

    def told(self, pk: int, status: int = 200) -> Response:
        row = CrowdLinkRow(self.link(pk), context={"request": self.request})
        return Response(row.data, status)


class CrowdLinks(LinkView):
    query = PageQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}

    @extend_schema(responses=page_shape(CrowdLinkRow))
    def get(self, request: Request, slug: str) -> Response:
        """Addresses by which people without an account come to judge; the latest first."""
        return page(request, payments.links(self.campaign), CrowdLinkRow)

    @extend_schema(request=CrowdLinkBody, responses={201: CrowdLinkRow})
    def post(self, request: Request, slug: str) -> Response:
        """Make a link, open at once: whoever opens its address and agrees is a guest."""
        plan = LinkPlan(**checked(CrowdLinkBody, request.data))
        made = crowd_links.make(campaign=self.campaign, by=self.user, plan=plan)
        return self.told(made.pk, 201)


class CrowdLinkDetail(LinkView):
    access = {"GET": ORGANIZER}

    @extend_schema(responses=CrowdLinkRow)
    def get(self, request: Request, slug: str, link: int) -> Response:
        """One of them, with how many came."""
        return self.told(link)


class CloseCrowdLink(LinkView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses=CrowdLinkRow)
    def post(self, request: Request, slug: str, link: int) -> Response:
        """Let nobody new come by it. Who has begun goes on, and gets their code."""
        checked(NoBody, request.data)
        crowd_links.close(link=self.link(link), by=self.user)
        return self.told(link)


class ReopenCrowdLink(LinkView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses=CrowdLinkRow)
    def post(self, request: Request, slug: str, link: int) -> Response:
        """Let people come by it again."""
        checked(NoBody, request.data)
        crowd_links.reopen(link=self.link(link), by=self.user)
        return self.told(link)


class CrowdPayments(LinkView):
    access = {"GET": ORGANIZER}

    @extend_schema(responses=PaymentsRow)
    def get(self, request: Request, slug: str, link: int) -> Response:
        """What its guests are due: minutes, judgments, pay, bonus and code of each, and sums."""
        row = self.link(link)
        row.campaign = self.campaign
        table = payments.payments(row)
        return Response(PaymentsRow(table).data)
