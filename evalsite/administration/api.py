"""What programs are told of the whole site; for admins."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.administration.forms import period_of
from evalsite.administration.site_report import site_report
from judging.access import administrator
from judging.api.base import ApiView
from judging.api.fields import Number, Query
from judging.models import Campaign

Row = serializers.Serializer[Any]
IntegerField = serializers.IntegerField


class PeriodQuery(Query):
    since = serializers.DateField(
        required=False, help_text="The first day, in UTC; left out: 29 days before the last."
    )
    until = serializers.DateField(required=False, help_text="The last day; left out: today.")

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        period = period_of(**given)
        if period.since > period.until:
            message = "The period ends before it begins: expected a later day."
            raise serializers.ValidationError({"until": [message]})
        return given


class CampaignWorkRow(Row):
    campaign = serializers.CharField(source="campaign.slug")
    name = serializers.CharField(source="campaign.name")
    state = serializers.ChoiceField(Campaign.State.choices, source="campaign.state")
    judgments = IntegerField(help_text="Given in the period, without corrections.")
    corrections = IntegerField()
    assessors = IntegerField(help_text="Different people who judged in the period.")
    hours = Number(help_text="That assessors took for the judgments that tell it, …")
    timed = IntegerField(help_text="… which are so many.")
    same = Number(
        allow_null=True,
        help_text="Share of every two labels of a pair that are of one grade, of all labels that "
        "count so far. Null: no pair has two.",
    )
    compared = IntegerField(help_text="So many twos of labels.")
    cost = Number(
        help_text="Of what machine judges answered, in the unit of their endpoints' prices."
    )
    people_cost = Number(help_text="Of these hours, as the campaign says what one costs; or 0.")
    currency = serializers.CharField(source="campaign.currency")


class SiteReportRow(Row):
    since = serializers.DateField(source="period.since")
    until = serializers.DateField(source="period.until")
    campaigns_created = IntegerField(source="created")
    judgments = IntegerField()
    corrections = IntegerField()
    assessors = IntegerField(help_text="Different people, over all campaigns.")
    hours = Number()
    timed = IntegerField()
    same = Number(allow_null=True)
    compared = IntegerField()
    cost = Number()
    campaigns = CampaignWorkRow(
        source="rows", many=True, help_text="In which something was judged or asked."
    )


class Report(ApiView):
    section = "Site"
    query = PeriodQuery

    @extend_schema(responses=SiteReportRow)
    def get(self, request: Request) -> Response:
        """What the site did in a period. For admins."""
        administrator(self.user)
        return Response(SiteReportRow(site_report(period_of(**self.asked))).data)
