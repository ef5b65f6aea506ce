"""Runs, rounds and their batches."""

from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from estimation import listings, selectors
from estimation.api.data import LeavingRow
from estimation.api.options import RoundBody, RoundChange
from estimation.api.serializers import ReachRow, RoundDetailRow, RoundProgressRow, RoundRow, RunRow
from estimation.core.planning.reached import TARGETS
from estimation.leaving import leaving
from estimation.models import Round
from estimation.plans import NAMED, OPTIONS, RoundPlan
from estimation.services import (
    extending,
    pausing,
    quoting,
    reaching,
    rounds,
    stopping,
    withdrawals,
)
from judging.api.base import ORGANIZER, CampaignView
from judging.api.fields import Body, NoBody, Number, OneOf, Query, Text, Whole, checked
from judging.api.pagination import PageQuery, Pages, page_shape
from judging.models import Campaign, Job

JOBS = ("preview", "draw", "recompute", "plan-batch", "report")


class Runs(CampaignView):
    section = "Material"
    access = {"GET": ORGANIZER}

    @extend_schema(responses=RunRow(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """The runs of a campaign, by tag."""
        return Response(RunRow(listings.runs_of(self.campaign), many=True).data)


class RunWithdrawal(CampaignView):
    section = "Material"
    access = {"GET": ORGANIZER, "POST": ORGANIZER, "DELETE": ORGANIZER}

    @extend_schema(responses=LeavingRow)
    def get(self, request: Request, slug: str, run: int) -> Response:
        """What it changes that the run is withdrawn; nothing is done."""
        rows = self.campaign.runs.select_related("campaign")
        return Response(LeavingRow(leaving(get_object_or_404(rows, pk=run))).data)

    @extend_schema(request=None, responses={204: None})
    def post(self, request: Request, slug: str, run: int) -> Response:
        """Leave a run out of all rankings, and of rounds that are drawn from now on.

        Samples that were drawn with it, and all judgments, stay what they are.
        """
        checked(NoBody, request.data)
        withdrawals.withdraw(run=get_object_or_404(self.campaign.runs, pk=run), by=self.user)
        return Response(status=204)

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, slug: str, run: int) -> Response:
        """Take a withdrawn run back into all rankings."""
        withdrawals.take_back(run=get_object_or_404(self.campaign.runs, pk=run), by=self.user)
        return Response(status=204)


class Rounds(CampaignView):
    section = "Rounds"
    query = PageQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}

    @extend_schema(responses=page_shape(RoundRow))
    def get(self, request: Request, slug: str) -> Response:
        """The rounds of a campaign."""
        pages = Pages()
        found = selectors.rounds_of(self.campaign).select_related("campaign", *NAMED)
        rows = pages.paginate_queryset(found, request) or []
        return pages.get_paginated_response(_shown(rows, RoundRow))

    @extend_schema(request=RoundBody, responses={201: RoundDetailRow})
    def post(self, request: Request, slug: str) -> Response:
        """Draft a round. The worker then works out its preview."""
        plan = RoundPlan(**checked(RoundBody, request.data))
        row = rounds.draft(campaign=self.campaign, by=self.user, plan=plan)
        return Response(_shown([row], RoundDetailRow)[0], status=201)


class RoundView(CampaignView):
    """A view of one round, found by its number."""

    section = "Rounds"
    row: Round

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        self.row = round_of(self.campaign, kwargs["number"])


class RoundDetail(RoundView):
    access = {"GET": ORGANIZER, "PATCH": ORGANIZER, "DELETE": ORGANIZER}

    @extend_schema(responses=RoundDetailRow)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """One round with its preview and the states of its work."""
        return Response(_shown([self.row], RoundDetailRow)[0])

    @extend_schema(request=RoundChange, responses=RoundDetailRow)
    def patch(self, request: Request, slug: str, number: int) -> Response:
        """Change a drafted round; fields left out stay. Once drawn it is frozen."""
        given = checked(RoundChange, request.data)
        rounds.amend(row=self.row, by=self.user, chosen=given)
        return Response(_shown([self.row], RoundDetailRow)[0])

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, slug: str, number: int) -> Response:
        """Discard a drafted round."""
        rounds.discard(row=self.row, by=self.user)
        return Response(status=204)


class DrawBody(Body):
    design = Text(
        max_length=64, required=False,
        help_text="preview.design of the design to draw: 409 if the round, its topics, its runs or "
        "what is judged have changed since; PATCH the round with {} to have it worked out again. "
        "Left out: draws what it is now.",
    )  # fmt: skip
    open = serializers.BooleanField(
        default=False, help_text="Whether a campaign that is a draft is opened when it is drawn."
    )


class RoundDraw(RoundView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=DrawBody, responses={202: RoundDetailRow})
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Have the worker draw the round; poll it until its state is drawn.

        Until then its state is drawing, and what the draw rests on cannot be changed. If the draw
        fails it is drafted again, and `jobs.draw.error` says why.
        """
        given = checked(DrawBody, request.data)
        design, opens = given.get("design"), given["open"]
        rounds.request_draw(row=self.row, by=self.user, design=design, and_open=opens)
        return Response(_shown([self.row], RoundDetailRow)[0], status=202)


class RoundEnd(RoundView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=None, responses={202: RoundDetailRow})
    def post(self, request: Request, slug: str, number: int) -> Response:
        """End a round before its budget is spent; poll it until its state is stopped.

        Its complete batches count, and nothing more is judged for it. This cannot be undone. 409
        before a batch is complete, and where it has ended.
        """
        checked(NoBody, request.data)
        stopping.by_hand(row=self.row, by=self.user)
        return Response(_shown([self.row], RoundDetailRow)[0], status=202)


class RoundPause(RoundView):
    access = {"POST": ORGANIZER, "DELETE": ORGANIZER}

    @extend_schema(request=None, responses=RoundDetailRow)
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Keep the batches of a round back while others go on.

        Pairs in hand may still be judged. 409 where nothing more is judged for it, or it pauses.
        """
        checked(NoBody, request.data)
        pausing.pause(row=self.row, by=self.user)
        self.row.refresh_from_db(fields=["paused"])
        return Response(_shown([self.row], RoundDetailRow)[0])

    @extend_schema(request=None, responses={200: RoundDetailRow})
    def delete(self, request: Request, slug: str, number: int) -> Response:
        """Have a round that pauses go on. 409 where it does not pause."""
        pausing.resume(row=self.row, by=self.user)
        self.row.refresh_from_db(fields=["paused"])
        return Response(_shown([self.row], RoundDetailRow)[0])


class ExtensionBody(Body):
    budget = Whole(
        min_value=1,
        max_value=OPTIONS["budget"].most,
        help_text="Pairs to be judged besides, in expectation; in the unit of the round's costs.",
    )


class RoundExtension(RoundView):
    access = {"POST": ORGANIZER}

    @extend_schema(request=ExtensionBody, responses={201: RoundDetailRow})
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Draft the round that adds to what is judged.

        It takes every pair in a complete batch for certain and draws new ones, so that its
        estimates are unbiased whatever was seen before. Nothing is drawn yet: the answer is the
        new round. 409 with what to do instead where that cannot be.
        """
        budget = checked(ExtensionBody, request.data)["budget"]
        more = extending.extend(row=self.row, by=self.user, budget=budget)
        return Response(_shown([more], RoundDetailRow)[0], status=201)


class ReachQuery(Query):
    target = OneOf(
        TARGETS,
        default="half_width",
        help_text="What is wanted: a half width, a share of decided differences, the chance that "
        "the best two runs are told apart, hours.",
    )
    wanted = serializers.FloatField(
        required=False,
        help_text="How much: in the measure's unit, from 0 to 1, or in hours. Left out: the answer "
        "is what the round's own budget reaches.",
    )  # fmt: skip


class ReachBody(Body):
    target = OneOf(TARGETS, default="half_width")
    wanted = Number(help_text="In the measure's unit, from 0 to 1, or in hours.")


class RoundReach(RoundView):
    query = ReachQuery
    access = {"GET": ORGANIZER, "POST": ORGANIZER}
    refusals = {"GET": (409,)}

    @extend_schema(responses=ReachRow)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Which budget of a drafted round reaches what is wanted.

        Nothing is changed: PATCH the round to take the budget. What any budget reaches stands in
        `preview.reached`.
        """
        if "wanted" in self.asked:
            found = reaching.answered(self.row, self.asked["target"], self.asked["wanted"])
        else:
            found = reaching.of_budget(self.row)
        return Response(ReachRow(found).data)

    @extend_schema(request=ReachBody, responses=ReachRow)
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Give a drafted round the budget that reaches what is wanted; its preview is due then."""
        given = checked(ReachBody, request.data)
        target, wanted = given["target"], given["wanted"]
        found = reaching.reach(row=self.row, by=self.user, target=target, wanted=wanted)
        return Response(ReachRow(found).data)


class RoundBatches(RoundView):
    access = {"GET": ORGANIZER}

    @extend_schema(responses=RoundProgressRow)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """How far the round's batches are."""
        return Response(RoundProgressRow(selectors.round_progress(self.row)).data)


def round_of(campaign: Campaign, number: int) -> Round:
    rows = selectors.rounds_of(campaign).select_related("campaign", *NAMED)
    return get_object_or_404(rows, number=number)


def _shown(rows: list[Round], kind: type[RoundRow]) -> list[dict[str, Any]]:
    """The rounds with the states of their work, in one further query."""
    found = Job.objects.filter(kind__in=JOBS, target__in=[row.pk for row in rows])
    jobs = {(job.target, job.kind): job for job in found}
    rows = [quoting.as_drawn(row) for row in rows]
    for row in rows:
        row.jobs = {k.replace("-", "_"): jobs.get((row.pk, k)) for k in JOBS}  # type: ignore[attr-defined]
    return list(kind(rows, many=True).data)
