"""What organizers decide about pairs that wait for it (`judging.stuck`)."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework.request import Request
from rest_framework.response import Response

from judging import selectors
from judging.api.base import ORGANIZER, CampaignView, page
from judging.api.fields import Body, NoBody, Text, Whole, checked
from judging.api.pagination import PageQuery, page_shape
from judging.api.serializers import (
    PREFERENCE,
    DecisionRow,
    JobRow,
    QrelsLeftRow,
    StuckRow,
)
from judging.models import Campaign, Pair
from judging.qrels_left import qrels_left
from judging.services import decisions, known_grades
from judging.stuck import stuck_pairs

DECISIONS = inline_serializer(
    "Decisions",
    {
        "stuck": StuckRow(many=True),
        "taken": page_shape(DecisionRow),
        "working": JobRow(many=True),
        "left": QrelsLeftRow(
            help_text="Pairs that open batches wait for, by why qrels leave them."
        ),
    },
)


class DecisionBody(Body):
    pair = Whole()
    grade = Whole(
        default=None, allow_null=True,
        help_text="The grade of a pair without a judgment; null: use the judgments it has."
        f" {PREFERENCE}",
    )  # fmt: skip
    reason = Text(max_length=500, help_text="The report states it.")


class RestBody(Body):
    grade = Whole(
        allow_null=True,
        help_text="The grade that every pair without a judgment gets; null: those that are judged"
        " and want more labels are done with the labels they have.",
    )  # fmt: skip
    reason = Text(max_length=500, help_text="The report states it.")


class PairBody(Body):
    pair = Whole()


class Decisions(CampaignView):
    section = "Decisions"
    query = PageQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}

    @extend_schema(responses=DECISIONS)
    def get(self, request: Request, slug: str) -> Response:
        """Pairs that wait for you (at most 200), the decisions taken, and work under way."""
        taken = page(request, selectors.decisions(self.campaign).order_by("-pk"), DecisionRow)
        stuck: Any = StuckRow(stuck_pairs(self.campaign), many=True).data
        working: Any = JobRow(
            [job for _, job in selectors.bulk_jobs(self.campaign)], many=True
        ).data
        left = QrelsLeftRow(qrels_left(self.campaign)).data
        told = {"stuck": stuck, "taken": taken.data, "working": working, "left": left}
        return Response(told)

    @extend_schema(request=DecisionBody, responses={201: DecisionRow})
    def post(self, request: Request, slug: str) -> Response:
        """Decide on one pair."""
        given = checked(DecisionBody, request.data)
        pair = _pair(self.campaign, given.pop("pair"))
        return Response(DecisionRow(decisions.decide(pair=pair, by=self.user, **given)).data, 201)


class DecideRest(CampaignView):
    section = "Decisions"
    access = {"POST": ORGANIZER}

    @extend_schema(request=RestBody, responses={202: JobRow})
    def post(self, request: Request, slug: str) -> Response:
        """Have every drawn pair that nobody has judged or holds get the same grade.

        Preferences are left out. With null for a grade, pairs of open batches that have labels,
        and that nobody is at, are done with those they have: for what qrels leave of pairs that
        want more.
        """
        given = checked(RestBody, request.data)
        job = decisions.request_rest(campaign=self.campaign, by=self.user, **given)
        return Response(JobRow(job).data, 202)


class FromQrels(CampaignView):
    section = "Decisions"
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses={202: JobRow})
    def post(self, request: Request, slug: str) -> Response:
        """Have drawn pairs judged from the qrels that were uploaded. Preferences are left out.

        Qrels are one assessor, and give one label: pairs that want more, by `labels` or
        `extra_share` of the round, wait for assessors. `left` of the decisions counts what is
        left, and the `note` of the work says it when it is done.
        """
        checked(NoBody, request.data)
        job = known_grades.request(campaign=self.campaign, by=self.user)
        return Response(JobRow(job).data, 202)


class AskAgain(CampaignView):
    section = "Decisions"
    access = {"POST": ORGANIZER}

    @extend_schema(request=PairBody, responses={204: None})
    def post(self, request: Request, slug: str) -> Response:
        """Offer a pair once more to those who skipped it."""
        pair = _pair(self.campaign, checked(PairBody, request.data)["pair"])
        decisions.ask_again(pair=pair, by=self.user)
        return Response(status=204)


def _pair(campaign: Campaign, pk: int) -> Pair:
    return get_object_or_404(campaign.pairs.select_related("campaign", "topic"), pk=pk)
