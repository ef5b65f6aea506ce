"""What the assessor sees of one pair: shared by judging it and by correcting it.

Only the topic, the document, the guidelines and the assessor's own work go to the page: never
runs, ranks, probabilities or what others said.
"""

import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from judging import selectors
from judging.access import user_of
from judging.errors import UserError
from judging.forms import SkipForm
from judging.models import Assignment, Campaign, Judgment, User
from judging.services import assignments
from judging.services.judgments import MAX_COMMENT

FRIENDLIER = {
    "key_reused": "Your first grade for this document is saved. Press undo to change it.",
    "already_judged": "You have answered this document already. Press undo to change your grade.",
}
NUMBER_KEYS = 10


@dataclass(frozen=True)
class GradeButton:
    grade: int
    name: str
    meaning: str
    key: str
    chosen: bool


def by_htmx(request: HttpRequest) -> bool:
    """Whether a part of the page is asked for, to be put in place by htmx."""
    return "HX-Request" in request.headers


def own_assignment(campaign: Campaign, user: User, pk: int) -> Assignment:
    """The user's assignment in the campaign; 404 for anybody else's."""
    rows = Assignment.objects.select_related("pair__topic").filter(pair__campaign=campaign)
    assignment = get_object_or_404(rows, pk=pk, assessor=user)
    assignment.pair.campaign = campaign
    return assignment


def next_pair(request: HttpRequest, campaign: Campaign, *, saved: bool = False) -> HttpResponse:
    """The next pair, or why there is none: the whole page, or the part that htmx swaps."""
    user = user_of(request)
    assignment = assignments.claim_next(campaign=campaign, by=user)
    latest = selectors.own_judgments(campaign, user, limit=1)
    context = {
        "campaign": campaign,
        "progress": selectors.own_progress(campaign, user),
        "last": latest[0] if latest else None,
        "saved": saved,
        "back": "judge",
    }
    if assignment is None:
        context["why"] = selectors.empty_queue(campaign)
    else:
        context |= pair_context(campaign, assignment)
        topic_id = assignment.pair.topic.topic_id
        context["new_topic"] = not latest or latest[0].topic_id != topic_id
    return show(request, context)


def show(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    template = "judging/_desk.html" if by_htmx(request) else "judging/judge.html"
    return render(request, template, context)


def pair_context(
    campaign: Campaign, assignment: Assignment, current: Judgment | None = None
) -> dict[str, Any]:
    return {
        "assignment": assignment,
        "topic": assignment.pair.topic,
        "document": selectors.document_of(assignment.pair),
        "topic_progress": selectors.topic_progress(assignment),
        "buttons": _buttons(campaign, current),
        "current": current,
        "key": uuid.uuid4().hex,
        "skip_reasons": SkipForm.USUAL,
        "max_comment": MAX_COMMENT,
    }


def _buttons(campaign: Campaign, current: Judgment | None) -> list[GradeButton]:
    return [
        GradeButton(
            grade=number,
            name=grade["name"],
            meaning=grade.get("meaning", ""),
            key=str(number) if number < NUMBER_KEYS else "",
            chosen=current is not None and current.grade == number,
        )
        for number, grade in enumerate(campaign.grades)
    ]


def done(request: HttpRequest, campaign: Campaign, *, saved: bool = False) -> HttpResponse:
    """After an answer: the next pair at once for htmx, by way of a redirect for a plain form."""
    if by_htmx(request):
        return next_pair(request, campaign, saved=saved)
    return redirect("judge", slug=campaign.slug)


def refused(request: HttpRequest, campaign: Campaign, error: UserError) -> HttpResponse:
    """Says why an answer was not taken, beside the next pair."""
    messages.warning(request, FRIENDLIER.get(error.code, error.message))
    return done(request, campaign)
