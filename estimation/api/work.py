"""Work in the background that failed."""

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from estimation import work
from estimation.api.serializers import FailedWorkRow
from estimation.services import retrying
from judging.api.base import ORGANIZER, CampaignView
from judging.api.fields import NoBody, checked
from judging.api.serializers import JobRow
from judging.models import Job


class FailedWork(CampaignView):
    access = {"GET": ORGANIZER}

    @extend_schema(responses=FailedWorkRow(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Work in the background that failed, latest first."""
        return Response(FailedWorkRow(work.failed(self.campaign), many=True).data)


class WorkRetry(CampaignView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses={202: JobRow})
    def post(self, request: Request, slug: str, job: int) -> Response:
        """Try failed work again. A draw that failed is asked for at its round, a draft again."""
        checked(NoBody, request.data)
        found = get_object_or_404(Job, campaign=self.campaign, pk=job)
        return Response(JobRow(retrying.retry(job=found, by=self.user)).data, 202)
