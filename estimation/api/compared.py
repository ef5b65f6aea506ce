"""Two runs side by side: their difference, the topics behind it, and the documents of a topic."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from estimation import comparisons, documents_compared, selectors
from estimation.api.rankings import RankedRow
from estimation.api.results import MeasureQuery, round_asked_for
from estimation.api.serializers import EstimateSetRow, UnknownRow
from estimation.comparisons import RunComparison
from estimation.conclusions import STATES
from estimation.material import taking_part
from estimation.models import Round
from estimation.selectors import RankingTable
from judging.api.base import ORGANIZER, CampaignView
from judging.api.fields import Number, Text
from judging.models import Topic

CharField = serializers.CharField
IntegerField = serializers.IntegerField
Row = serializers.Serializer[Any]
MOST_DEPTH = 1000


class ComparisonQuery(MeasureQuery):
    first = Text(required=False, max_length=255, help_text="A run; left out: the one that leads.")
    second = Text(
        required=False, max_length=255, help_text="Another; left out: the next by estimate."
    )


class TopicDifferenceRow(Row):
    topic = CharField(source="topic_id")
    title = CharField()
    difference = Number(
        allow_null=True,
        help_text="What the topic contributes, first less second. Null: nothing is judged of it, "
        "which is not 0. One topic is known from few pairs: there is no verdict by topic.",
    )
    judged = serializers.ListField(
        child=IntegerField(), allow_null=True,
        help_text="Judged pairs that say something of the first run, and of the second; null: "
        "not counted by the version that made these estimates.",
    )  # fmt: skip


class ComparedRow(UnknownRow):
    first = RankedRow()
    second = RankedRow()
    difference = Number(allow_null=True, help_text="First less second; null: not known.")
    low = Number(allow_null=True, help_text="95 % interval of this difference taken alone.")
    high = Number(allow_null=True)
    adjusted_p = Number(help_text="Adjusted for all pairs of runs.")
    verdict = IntegerField(help_text="1: the first is surely better; -1: surely worse; 0: open.")
    state = serializers.ChoiceField(STATES, help_text="As in GET ranking/?pairs=1.")
    next = CharField(help_text="What that means, in a sentence; empty where it is settled.")
    settled = serializers.BooleanField(
        help_text="Whether what was judged settles which is better, whatever the other documents "
        "are: no share of the error goes into it, and the interval ends at 0."
    )
    within = Number(help_text="By how much equivalent runs differ at most; else 0.")
    topics = TopicDifferenceRow(
        many=True,
        help_text="From what speaks most for the first run to what speaks most for the second; "
        "those of which nothing is judged come last. Empty where the difference is not known.",
    )


class ComparisonRow(Row):
    round = IntegerField()
    measure = CharField()
    estimate_set = EstimateSetRow(allow_null=True, help_text="Null: no batch is complete yet.")
    comparison = ComparedRow(allow_null=True, help_text="Null: no two runs are estimated yet.")


class Comparison(CampaignView):
    section = "Results"
    query = ComparisonQuery
    access = {"GET": ORGANIZER}

    @extend_schema(responses=ComparisonRow)
    def get(self, request: Request, slug: str) -> Response:
        """The difference of two runs, its verdict, and what each topic contributes to it."""
        row = round_asked_for(self.campaign, self.asked)
        table, found = _found(row, self.asked)
        answer = {
            "round": row.number,
            "measure": self.asked.get("measure", row.measure),
            "estimate_set": table.estimate_set if table else None,
            "comparison": found,
        }
        return Response(ComparisonRow(answer).data)


class DocumentsQuery(ComparisonQuery):
    topic = Text(
        required=False, max_length=255,
        help_text="Id of a topic; left out: the one that speaks most for the first run.",
    )  # fmt: skip
    depth = serializers.IntegerField(
        default=10, min_value=1, max_value=MOST_DEPTH, help_text="So many documents of each run."
    )


class DrawnInRow(Row):
    round = IntegerField()
    batch = IntegerField()
    probability = Number(
        help_text="With which that round drew it; of adaptive rounds, that of the batch."
    )


class ShownDocumentRow(Row):
    rank = IntegerField()
    docno = CharField(source="known.docno")
    title = CharField(source="known.title")
    document = IntegerField(source="known.document", allow_null=True, help_text="Its id.")
    pair = IntegerField(source="known.pair", allow_null=True)
    grade = Number(
        source="known.grade", allow_null=True,
        help_text="Mean of its labels. Null: unjudged, which is not the same as not relevant.",
    )  # fmt: skip
    labels = IntegerField(source="known.labels")
    counts = serializers.BooleanField(
        source="known.counts", help_text="Whether the estimates rest on these labels."
    )
    drawn = DrawnInRow(source="known.drawn", many=True)
    elsewhere = IntegerField(allow_null=True, help_text="Its rank in the other run; null: none.")


class BothListsRow(Row):
    topic = CharField(source="topic.topic_id")
    title = CharField(source="topic.title")
    lengths = serializers.ListField(
        child=IntegerField(), help_text="Documents that each run returns for it."
    )
    in_common = IntegerField(help_text="Of those that are listed.")
    first = ShownDocumentRow(many=True)
    second = ShownDocumentRow(many=True)


class ComparedDocumentsRow(Row):
    round = IntegerField()
    measure = CharField()
    runs = serializers.ListField(child=CharField(), help_text="The first and the second.")
    documents = BothListsRow(allow_null=True, help_text="Null: no two runs are estimated yet.")


class ComparedDocuments(CampaignView):
    section = "Results"
    query = DocumentsQuery
    access = {"GET": ORGANIZER}

    @extend_schema(responses=ComparedDocumentsRow)
    def get(self, request: Request, slug: str) -> Response:
        """What two runs return for a topic, with grades and chances of what is judged."""
        row = round_asked_for(self.campaign, self.asked)
        table, found = _found(row, self.asked)
        topic = self._topic(found)
        answer: dict[str, Any] = {
            "round": row.number,
            "measure": self.asked.get("measure", row.measure),
            "runs": [found.first.tag, found.second.tag] if found else [],
            "documents": None,
        }
        if table and found and topic:
            tags = (found.first.tag, found.second.tag)
            answer["documents"] = documents_compared.documents_compared(
                table.estimate_set, topic, tags, depth=self.asked["depth"]
            )
        return Response(ComparedDocumentsRow(answer).data)

    def _topic(self, found: RunComparison | None) -> Topic | None:
        """The topic that was asked for, which has to be there, or that is compared first."""
        topics, first = self.campaign.topics, found.topics[:1] if found else []
        asked = self.asked.get("topic") or next((row.topic_id for row in first), None)
        topic = topics.filter(topic_id=asked).first() if asked else topics.order_by("pk").first()
        if topic is None and asked:
            raise serializers.ValidationError({"topic": ["There is no such topic."]})
        return topic


def _found(row: Round, asked: dict[str, Any]) -> tuple[RankingTable | None, RunComparison | None]:
    """The ranking that was asked for, and two of its runs; nothing before the first estimates,
    but a run that is not there is an error then as well."""
    table = selectors.ranking_table(row, asked.get("measure", row.measure))
    first, second = _two_of(row, asked, _tags(row, table))
    if table is None:
        return None, None
    return table, comparisons.compare(table, first, second) if second else None


def _tags(row: Round, table: RankingTable | None) -> list[str]:
    if table is None:
        return list(taking_part(row.campaign).values_list("tag", flat=True))
    return [line.tag for line in table.by_estimate]


def _two_of(row: Round, asked: dict[str, Any], tags: list[str]) -> tuple[str, str]:
    """Those that were named, or the first of the others; empty where there are too few."""
    for name in ("first", "second"):
        if name in asked and asked[name] not in tags:
            message = f"There is no such run in round {row.number}."
            raise serializers.ValidationError({name: [message]})
    first = asked.get("first") or next((tag for tag in tags if tag != asked.get("second")), "")
    second = asked.get("second") or next((tag for tag in tags if tag != first), "")
    if first and first == second:
        raise serializers.ValidationError({"second": ["Name two different runs."]})
    return first, second
