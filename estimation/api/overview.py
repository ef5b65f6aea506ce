"""How a campaign stands: what its overview and the bar of its pages say."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from estimation import activity, overview
from estimation.api.label_quality import FindingRow
from estimation.next_step import next_step
from estimation.situation import Situation
from judging.api.base import ORGANIZER, CampaignView
from judging.api.fields import Number

Row = serializers.Serializer[Any]
CharField = serializers.CharField
IntegerField = serializers.IntegerField
Flag = serializers.BooleanField


class NextStepRow(Row):
    state = CharField(help_text="Of the campaign, by which the step was chosen.")
    what = CharField()
    why = CharField()
    waits = Flag(help_text="Nobody has to do anything.")


class AttentionRow(Row):
    level = CharField(help_text="bad, warn, or empty for what can wait.", allow_blank=True)
    text = CharField()


class HappenedRow(Row):
    who = CharField(help_text="Empty where the site did it.", allow_blank=True)
    what = CharField()
    when = serializers.DateTimeField()


class OverviewRow(Row):
    state = CharField()
    round = IntegerField(allow_null=True, help_text="The round that the rest is about.")
    judged = IntegerField(help_text="Pairs of it that have all their labels.")
    expected = IntegerField(help_text="Its pairs, those to be planned as its budget foresees.")
    days_left = Number(allow_null=True, help_text="At the pace of the last seven days.")
    next = NextStepRow()
    attention = AttentionRow(many=True, help_text="What needs a person, worst first.")
    findings = FindingRow(many=True, help_text="What may be concluded so far.")
    further = CharField(help_text="What more would buy, of a round that has ended.")
    lately = HappenedRow(many=True, help_text="What happened, latest first.")


class Overview(CampaignView):
    section = "Results"
    access = {"GET": ORGANIZER}

    @extend_schema(responses=OverviewRow)
    def get(self, request: Request, slug: str) -> Response:
        """How the campaign stands, what to do next and why, and what needs a person."""
        found = Situation(self.campaign)
        outcome = overview.outcome(found)
        answer = {
            "state": self.campaign.state,
            "round": found.row.number if found.row else None,
            "judged": found.judged,
            "expected": found.expected if found.drawn else 0,
            "days_left": found.days_left,
            "next": next_step(found),
            "attention": overview.attention(found),
            "findings": outcome.findings if outcome else [],
            "further": outcome.further if outcome else "",
            "lately": activity.lately(self.campaign),
        }
        return Response(OverviewRow(answer).data)
