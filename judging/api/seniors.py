"""Senior grades: what organizers say of pairs that assessors have judged."""

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.fields import BooleanField, CharField, DateTimeField, IntegerField
from rest_framework.request import Request
from rest_framework.response import Response

from judging import selectors
from judging.api.base import ORGANIZER, CampaignView, page
from judging.api.fields import Body, Text, Whole, checked
from judging.api.pagination import PageQuery, page_shape
from judging.api.serializers import PREFERENCE, Row, second_docno
from judging.models import SeniorGrade
from judging.services import seniors


class SeniorGradeRow(Row):
    id = IntegerField(source="pk")
    pair = IntegerField(source="pair_id")
    topic = CharField(source="pair.topic.topic_id")
    docno = CharField(source="pair.docno")
    other = second_docno("pair.other")
    grade = IntegerField(help_text=PREFERENCE)
    reason = CharField()
    counts = BooleanField(help_text="Whether it is the pair's only label; else it stands beside.")
    given_by = CharField(source="given_by.username")
    created = DateTimeField()
    ended = DateTimeField(allow_null=True, help_text="Null: it is in force.")
    ended_by = CharField(source="ended_by.username", default=None, allow_null=True)
    ended_reason = CharField()


class SeniorBody(Body):
    pair = Whole()
    grade = Whole(help_text=PREFERENCE)
    reason = Text(max_length=500)


class BackBody(Body):
    reason = Text(max_length=500)


class SeniorGrades(CampaignView):
    section = "Decisions"
    query = PageQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}

    @extend_schema(responses=page_shape(SeniorGradeRow))
    def get(self, request: Request, slug: str) -> Response:
        """Those in force, and those before them; the latest first."""
        return page(request, selectors.senior_grades(self.campaign), SeniorGradeRow)

    @extend_schema(request=SeniorBody, responses={201: SeniorGradeRow})
    def post(self, request: Request, slug: str) -> Response:
        """Say what is right of a pair that assessors have judged; it replaces the one before.

        Whether it counts in place of their labels, the campaign's `senior_grades` says.
        """
        given = checked(SeniorBody, request.data)
        rows = self.campaign.pairs.select_related("campaign", "topic")
        pair = get_object_or_404(rows, pk=given.pop("pair"))
        row = seniors.give(pair=pair, by=self.user, **given)
        row.refresh_from_db()
        return Response(SeniorGradeRow(row).data, 201)


class SeniorGradeBack(CampaignView):
    section = "Decisions"
    access = {"POST": ORGANIZER}

    @extend_schema(request=BackBody, responses=SeniorGradeRow)
    def post(self, request: Request, slug: str, senior_grade: int) -> Response:
        """Take a senior grade back: what assessors said counts."""
        given = checked(BackBody, request.data)
        row: SeniorGrade = get_object_or_404(
            selectors.senior_grades(self.campaign), pk=senior_grade
        )
        seniors.take_back(senior=row, by=self.user, **given)
        row.refresh_from_db()
        return Response(SeniorGradeRow(row).data)
