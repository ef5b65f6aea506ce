"""Looking through judgments, and all that was said of a pair."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from judging import browsing, selectors
from judging.api.base import ORGANIZER, CampaignView
from judging.api.fields import Number, OneOf, Text
from judging.api.pagination import PageQuery
from judging.api.serializers import PREFERENCE, second_docno
from judging.browsing import ORDERS, JudgmentFilter
from judging.models import MAX_GRADE, User

Row = serializers.Serializer[Any]
NOBODY = 0
"""The row id of no account."""
CharField = serializers.CharField
IntegerField = serializers.IntegerField
DateTimeField = serializers.DateTimeField


class WhichJudgments(PageQuery):
    """What organizers look for; of whoever only judges, all but ``own`` is refused."""

    own = serializers.BooleanField(
        default=False, help_text="Only your own, also where you see all as an organizer."
    )
    words = Text(
        required=False,
        max_length=200,
        help_text="How topic or docno begin, or words of its title; topic:401 is one topic.",
    )
    assessor = Text(required=False, max_length=150, help_text="Of one user name.")
    grade = IntegerField(required=False, min_value=0)
    apart = IntegerField(
        required=False, min_value=1, max_value=MAX_GRADE,
        help_text="Labels of the pair differ by so many grades.",
    )  # fmt: skip
    seconds = serializers.FloatField(required=False, min_value=0, help_text="Given within so many.")
    since = serializers.DateField(required=False)
    until = serializers.DateField(required=False)
    comment = serializers.BooleanField(required=False, help_text="With a comment.")
    corrected = serializers.BooleanField(required=False)
    excluded = serializers.BooleanField(
        required=False, help_text="True: excluded work alone; false: without it."
    )
    gold = serializers.BooleanField(
        required=False, help_text="True: answers to gold pairs alone; false: without them."
    )
    order = OneOf(sorted(ORDERS), required=False)


def filter_of(asked: dict[str, Any]) -> JudgmentFilter | None:
    """What is looked for, by a view's ``asked``; None if nothing is."""
    names = JudgmentFilter.__dataclass_fields__
    given = {name: value for name, value in asked.items() if name in names}
    if "assessor" in given:
        found = User.objects.filter(username=given["assessor"]).values_list("pk", flat=True)
        given["assessor"] = found.first() or NOBODY
    return JudgmentFilter(**given) if given else None


class SaidRow(Row):
    grade = IntegerField(help_text=PREFERENCE)
    revision = IntegerField()
    comment = CharField()
    seconds = Number(allow_null=True)
    created = DateTimeField()


class PairAnswerRow(Row):
    assignment = IntegerField(source="assignment.pk")
    assessor = CharField(source="assignment.assessor.username")
    state = CharField(source="assignment.state")
    said = SaidRow(many=True, help_text="The latest first; what was corrected is there too.")


class PairRow(Row):
    id = IntegerField(source="pair.pk")
    topic = CharField(source="pair.topic.topic_id")
    docno = CharField(source="pair.docno")
    other = second_docno("pair.other")
    wanted = IntegerField(source="pair.wanted")
    judged = IntegerField(source="pair.judged")
    batches = serializers.ListField(child=IntegerField(), help_text="That ask for its labels.")
    decided = CharField(allow_null=True, help_text="Why an organizer decided it; else null.")
    answers = PairAnswerRow(many=True)


class PairDetail(CampaignView):
    section = "Judging"
    access = {"GET": ORGANIZER}

    @extend_schema(responses=PairRow)
    def get(self, request: Request, slug: str, pair: int) -> Response:
        """Everything that was said of a pair, by whom, and what was corrected since."""
        found = get_object_or_404(self.campaign.pairs.select_related("topic"), pk=pair)
        decision = selectors.decisions(self.campaign).filter(pair=found).first()
        answer = {
            "pair": found,
            "batches": [each.batch.number for each in browsing.served_in(found)],
            "decided": decision.reason if decision else None,
            "answers": browsing.answers(found),
        }
        return Response(PairRow(answer).data)
