"""Predicted grades and tables of costs."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from estimation.models import Prediction
from estimation.predicted import predicted_facts, predictions_of
from judging.api.base import ORGANIZER, CampaignView
from judging.api.fields import Number

Row = serializers.Serializer[Any]
CharField = serializers.CharField
IntegerField = serializers.IntegerField


class PredictionRow(Row):
    id = IntegerField(source="prediction.pk")
    name = CharField(source="prediction.name", help_text="By which rounds name it.")
    form = serializers.ChoiceField(Prediction.Form.choices, source="prediction.form")
    pairs = IntegerField(source="prediction.pair_count")
    topics = IntegerField(source="prediction.topic_count")
    topics_missing = IntegerField(help_text="Topics of the campaign that it says nothing of.")
    upload = IntegerField(source="prediction.upload_id")
    machine = IntegerField(
        source="origin.judge.pk", default=None, allow_null=True,
        help_text="The machine judge it is of.",
    )  # fmt: skip
    machine_version = IntegerField(
        source="origin.version", default=None, allow_null=True,
        help_text="The version of its prompt that it is of.",
    )  # fmt: skip
    rounds = serializers.ListField(child=IntegerField(), help_text="Rounds that learn from it.")
    created = serializers.DateTimeField(source="prediction.created")


class SpreadRow(Row):
    low = Number()
    mean = Number()
    high = Number()
    counts = serializers.ListField(
        child=IntegerField(), help_text="Pairs next to each grade, from 0 upwards; none of costs."
    )


class PredictionDetailRow(PredictionRow):
    spread = SpreadRow(allow_null=True, help_text="What its rows say.")


class Predictions(CampaignView):
    section = "Material"
    access = {"GET": ORGANIZER}

    @extend_schema(responses=PredictionRow(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Predicted grades and tables of costs of a campaign, by name."""
        return Response(PredictionRow(predictions_of(self.campaign), many=True).data)


class PredictionDetail(CampaignView):
    section = "Material"
    access = {"GET": ORGANIZER}

    @extend_schema(responses=PredictionDetailRow)
    def get(self, request: Request, slug: str, prediction: int) -> Response:
        """One of them, with what its rows say and which rounds learn from it."""
        rows = self.campaign.predictions.select_related("campaign", "upload__created_by")
        facts = predicted_facts(get_object_or_404(rows, pk=prediction))
        return Response(PredictionDetailRow(facts).data)
