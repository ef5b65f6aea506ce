"""Judging: claim a pair, judge it and get the next one, put it off, skip it, correct it."""

import hashlib
import re
from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import exceptions, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from judging import browsing, selectors
from judging.access import ORGANIZER as ORGANIZES
from judging.access import assessed_assignment, roles
from judging.api.base import ASSESSOR, MEMBER, Access, CampaignView, page
from judging.api.fields import WHOLE_MAX, Body, NoBody, Number, Text, Whole, checked, shown
from judging.api.pagination import PageQuery, page_shape
from judging.api.searching import WhichJudgments, filter_of
from judging.api.serializers import PREFERENCE, HeldRow, JudgedRow, JudgmentRow, NextRow
from judging.errors import UserError
from judging.models import Assignment, Campaign, Judgment, User
from judging.services import assignments, desk, judgments
from judging.sheets import Sheet

KEY = re.compile(r"[\x21-\x7e]{1,64}")
DAY = 86_400
GRADE = f"From 0 to the top of the scale. {PREFERENCE}"
REASONS = {
    "draft": "campaign_not_open",
    "paused": "campaign_not_open",
    "closed": "campaign_not_open",
    "excluded": "work_excluded",
    "looked": "work_looked_at",
    "training": "training_first",
    "enough": "enough_judged",
    "nothing": "nothing_drawn",
    "held": "held_back",
    "others": "waiting_for_others",
    "chosen": "being_chosen",
    "halted": "choosing_failed",
    "complete": "batch_complete",
}
KEY_PARAMETER = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description=(
        "1 to 64 printable characters without spaces, of your choice, one for each judgment. Sent"
        " again with the same judgment it changes nothing and answers 200 with what was stored;"
        " with another judgment it is refused with 422. Left out, the key is derived from"
        " assignment, revision, grade and comment, so that resending the same body is harmless."
    ),
)


class Which(PageQuery):
    own = serializers.BooleanField(
        default=False, help_text="Only your own, also where you see all as an organizer."
    )


class Assignments(CampaignView):
    section = "Judging"
    query = Which
    access = {"GET": MEMBER}

    @extend_schema(responses=page_shape(HeldRow))
    def get(self, request: Request, slug: str) -> Response:
        """Your assignments, latest first; organizers see everybody's."""
        rows = Assignment.objects.filter(campaign=self.campaign)
        if _only_own(self):
            rows = rows.filter(assessor=self.user)
        rows = rows.select_related("assessor", "pair__topic").order_by("-pk")
        return page(request, rows, HeldRow)


class NextAssignment(CampaignView):
    section = "Judging"
    access = {"POST": ASSESSOR}

    @extend_schema(request=None, responses=NextRow)
    def post(self, request: Request, slug: str) -> Response:
        """Claim your next pair; the one you hold already, if you do."""
        checked(NoBody, request.data)
        return Response(shown(NextRow, _next(self.campaign, self.user)))


class SkipBody(Body):
    reason = Text(max_length=500, help_text="Why you cannot judge it.")


class SkipAssignment(CampaignView):
    section = "Judging"
    access = {"POST": ASSESSOR}

    @extend_schema(request=SkipBody, responses=NextRow)
    def post(self, request: Request, slug: str, assignment: int) -> Response:
        """Say that you cannot judge a pair: it goes to somebody else. Answers with the next one."""
        given = checked(SkipBody, request.data)
        held = _own(self.campaign, self.user, assignment)
        assignments.skip(assignment=held, by=self.user, reason=given["reason"])
        return Response(shown(NextRow, _next(self.campaign, self.user)))


class PutOffAssignment(CampaignView):
    section = "Judging"
    access = {"POST": ASSESSOR}

    @extend_schema(request=None, responses=NextRow)
    def post(self, request: Request, slug: str, assignment: int) -> Response:
        """Put a pair off: it comes back after the topic's others. Answers with the next one."""
        checked(NoBody, request.data)
        held = _own(self.campaign, self.user, assignment)
        assignments.put_off(assignment=held, by=self.user)
        return Response(shown(NextRow, _next(self.campaign, self.user)))


class JudgmentBody(Body):
    assignment = Whole()
    grade = Whole(help_text=GRADE)
    comment = Text(max_length=judgments.MAX_COMMENT, default="", allow_blank=True)
    seconds = Number(
        min_value=0, max_value=DAY, default=None, allow_null=True, help_text="How long it took."
    )
    revision = Whole(
        min_value=1, required=False, help_text="Only to correct a judgment: its current revision."
    )


class Correction(Body):
    revision = Whole(min_value=1, help_text="The revision you correct; it must be the current one.")
    grade = Whole(required=False, help_text=GRADE)
    comment = Text(max_length=judgments.MAX_COMMENT, required=False, allow_blank=True)
    seconds = Number(min_value=0, max_value=DAY, default=None, allow_null=True)


class Judgments(CampaignView):
    section = "Judging"
    query = WhichJudgments
    access = {"GET": MEMBER, "POST": ASSESSOR}
    refusals = {"POST": (422,)}
    own: Assignment | None = None

    @extend_schema(responses=page_shape(JudgmentRow))
    def get(self, request: Request, slug: str) -> Response:
        """Your judgments that count, latest first; organizers see everybody's.

        They may look for some: 403 for others, who are not told what somebody else said.
        """
        sought = filter_of(self.asked)
        if sought is not None:
            if ORGANIZES not in roles(self.user, self.campaign):
                raise UserError("not_allowed", "Only organizers look for judgments.", status=403)
            rows = browsing.judgments(self.campaign, sought)
            rows = rows.filter(assessor=self.user) if self.asked["own"] else rows
            return page(request, rows, JudgmentRow)
        rows = _current(self.campaign)
        if _only_own(self):
            rows = rows.filter(assessor=self.user)
        return page(request, rows.order_by("-pk"), JudgmentRow)

    @extend_schema(
        parameters=[KEY_PARAMETER],
        request=JudgmentBody,
        responses={200: JudgedRow, 201: JudgedRow},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Judge an assignment; the answer carries the next one.

        201: stored. 200: it was stored before under this key. 409: you have judged this pair
        otherwise; to correct that, send the current revision too.
        """
        given = checked(JudgmentBody, request.data)
        assignment = self.own or _own(self.campaign, self.user, given["assignment"])
        recorded, sheet = _save(assignment, self.user, request, given)
        following = _answer(self.campaign, self.user, sheet)
        said = {
            "judgment": recorded.judgment,
            "next": following["assignment"],
            "reason": following["reason"],
        }
        return Response(shown(JudgedRow, said), status=201 if recorded.created else 200)

    def found(self, access: Access, slug: str) -> Campaign:
        """With a judgment that is sent, its assignment is looked up in the same statement."""
        if self.request.method != "POST":
            return super().found(access, slug)
        if (pk := _named(self.request)) is None:
            return super().found(access, slug)
        self.own = assessed_assignment(self.user, slug, pk)
        return self.own.pair.campaign


class JudgmentDetail(CampaignView):
    section = "Judging"
    access = {"PATCH": ASSESSOR}
    refusals = {"PATCH": (422,)}

    @extend_schema(parameters=[KEY_PARAMETER], request=Correction, responses=JudgmentRow)
    def patch(self, request: Request, slug: str, assignment: int) -> Response:
        """Correct your judgment of an assignment. What was said before is kept, but not counted.

        Grade and comment stay as they were in that revision where they are left out.
        """
        given = checked(Correction, request.data)
        own = _own(self.campaign, self.user, assignment)
        said = get_object_or_404(own.judgments, revision=given["revision"])
        given = {"grade": said.grade, "comment": said.comment, **given}
        revision = given["revision"]
        recorded = judgments.correct(
            assignment=own, by=self.user, saying=_saying(own, request, given), revision=revision
        )
        return Response(JudgmentRow(recorded.judgment).data)


def _only_own(view: CampaignView) -> bool:
    return view.asked["own"] or ORGANIZES not in roles(view.user, view.campaign)


def _own(campaign: Campaign, user: User, pk: int) -> Assignment:
    mine = Assignment.objects.filter(assessor=user, campaign=campaign)
    return get_object_or_404(mine.select_related("pair__topic", "pair__campaign"), pk=pk)


def _current(campaign: Campaign) -> QuerySet[Judgment]:
    rows = selectors.given_judgments().filter(assignment__pair__campaign=campaign)
    return rows.select_related("assessor", "assignment__pair__topic")


def _named(request: Request) -> int | None:
    """The assignment that a body names, if it has the shape of one; what is wrong is told later."""
    try:
        body: Any = request.data
        named = body.get("assignment")
    except (exceptions.APIException, AttributeError):
        return None
    return named if type(named) is int and 0 < named <= WHOLE_MAX else None


def _save(
    assignment: Assignment, user: User, request: Request, given: dict[str, Any]
) -> tuple[judgments.Recorded, Sheet | None]:
    """Stores what is said, for the first time or as a correction, and claims the next pair."""
    saying, revision = _saying(assignment, request, given), given.get("revision")
    if revision is None:
        return desk.judge(assignment=assignment, by=user, saying=saying)
    recorded = judgments.correct(assignment=assignment, by=user, saying=saying, revision=revision)
    return recorded, desk.next_sheet(campaign=assignment.pair.campaign, by=user)


def _saying(assignment: Assignment, request: Request, given: dict[str, Any]) -> judgments.Saying:
    said = {name: given[name] for name in ("grade", "comment", "seconds")}
    key = _key(request) or _derived_key(assignment, given.get("revision"), said)
    return judgments.Saying(key=key, **said)


def _key(request: Request) -> str | None:
    key = request.headers.get("Idempotency-Key")
    if key is not None and not KEY.fullmatch(key):
        message = "Expected 1 to 64 printable characters without spaces."
        raise UserError("key_invalid", message, field="Idempotency-Key")
    return key


def _derived_key(assignment: Assignment, revision: int | None, given: dict[str, Any]) -> str:
    said = f"{assignment.pk}/{revision or 0}/{given['grade']}/{given['comment']}"
    return f"auto-{hashlib.sha256(said.encode()).hexdigest()[:56]}"


def _next(campaign: Campaign, user: User) -> dict[str, Any]:
    """The next assignment, or why there is none."""
    return _answer(campaign, user, desk.next_sheet(campaign=campaign, by=user))


def _answer(campaign: Campaign, user: User, sheet: Sheet | None) -> dict[str, Any]:
    if sheet is None:
        return {"assignment": None, "reason": REASONS[selectors.empty_queue(campaign, user)]}
    return {"assignment": _shown(sheet, campaign), "reason": None}


def _shown(sheet: Sheet, campaign: Campaign) -> dict[str, Any]:
    """The assignment as its assessor sees it: nothing of runs, probabilities or other people."""
    assignment, pair = sheet.assignment, sheet.assignment.pair
    return {
        "id": assignment.pk,
        "topic": pair.topic,
        "docno": pair.docno,
        "document": sheet.documents.get(pair.docno),
        "other": pair.other,
        "other_document": sheet.documents.get(pair.other),
        "swapped": assignment.swapped,
        "grades": pair.scale,
        "guidelines": campaign.guidelines,
        "lease_until": assignment.lease_until,
        "progress": asdict(sheet.progress),
    }
