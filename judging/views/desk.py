"""What the assessor sees of one pair: shared by judging it and by correcting it.

Only the topic, the document or the two to compare, the guidelines and the assessor's own work go
to the page: never runs, ranks, probabilities or what others said.
"""

import uuid
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from judging import guests, norming, selectors
from judging.access import user_of
from judging.errors import UserError
from judging.forms import SkipForm
from judging.models import (
    DOCUMENT_BETTER,
    EQUALLY_GOOD,
    OTHER_BETTER,
    Assignment,
    Campaign,
    Document,
    Judgment,
)
from judging.selectors import OwnJudgment
from judging.services import desk
from judging.services.judgments import MAX_COMMENT
from judging.sheets import Sheet, idle_version

FRIENDLIER = {
    "key_reused": "Your first answer is saved. Press undo to change it.",
    "already_judged": "You have answered this already. Press undo to change your answer.",
}
NUMBER_KEYS = 10


@dataclass(frozen=True)
class GradeButton:
    """An answer to give; ``sign`` stands on it, ``keys`` press it, as KeyboardEvent names them."""

    grade: int
    sign: str
    name: str
    meaning: str
    keys: tuple[str, ...]
    chosen: bool


@dataclass(frozen=True)
class Paper:
    """A document on the desk; ``letter`` tells the two of a preference apart."""

    docno: str
    document: Document | None
    letter: str = ""


def by_htmx(request: HttpRequest) -> bool:
    """Whether a part of the page is asked for, to be put in place by htmx."""
    return "HX-Request" in request.headers


def next_pair(request: HttpRequest, campaign: Campaign, *, saved: bool = False) -> HttpResponse:
    """The next pair, or why there is none: the whole page, or the part that htmx swaps."""
    user = user_of(request)
    sheet = desk.next_sheet(campaign=campaign, by=user, topic=True)
    last = next(iter(selectors.own_judgments(campaign, user, limit=1)), None)
    return on_desk(request, campaign, sheet, last, saved=saved)


def on_desk(
    request: HttpRequest,
    campaign: Campaign,
    sheet: Sheet | None,
    last: OwnJudgment | None,
    *,
    saved: bool,
) -> HttpResponse:
    context: dict[str, Any] = {"campaign": campaign, "last": last, "saved": saved, "back": "judge"}
    if sheet is None:
        context["why"] = selectors.empty_queue(campaign, user_of(request))
        if context["why"] == "training" and not by_htmx(request):
            return redirect("training", slug=campaign.slug)
        context["progress"] = selectors.own_progress(campaign, user_of(request))
        context["idle"] = idle_version(campaign, user_of(request)) or ""
    else:
        context |= pair_context(sheet)
        topic_id = sheet.assignment.pair.topic.topic_id
        context["new_topic"] = last is None or last.topic_id != topic_id
    return show(request, context)


def show(request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
    template = "judging/_desk.html" if by_htmx(request) else "judging/judge.html"
    context["guest"] = guests.progress(user_of(request))
    if not by_htmx(request):  # so that a judgment asks no statement more
        context["norming"] = norming.due(user_of(request), context["campaign"])
    return render(request, template, context)


def pair_context(sheet: Sheet, current: Judgment | None = None) -> dict[str, Any]:
    assignment = sheet.assignment
    return {
        "assignment": assignment,
        "progress": sheet.progress,
        "topic": assignment.pair.topic,
        "papers": _papers(sheet),
        "topic_progress": sheet.topic,
        "buttons": _buttons(assignment, current),
        "current": current,
        "key": uuid.uuid4().hex,
        "skip_reasons": SkipForm.USUAL,
        "max_comment": MAX_COMMENT,
    }


def _papers(sheet: Sheet) -> list[Paper]:
    """The document, or the two of a preference with that first which is A to this assessor."""
    pair, texts = sheet.assignment.pair, sheet.documents
    if not pair.other:
        return [Paper(pair.docno, texts.get(pair.docno))]
    docnos = [pair.docno, pair.other]
    first, second = reversed(docnos) if sheet.assignment.swapped else docnos
    return [Paper(first, texts.get(first), "A"), Paper(second, texts.get(second), "B")]


def _buttons(assignment: Assignment, current: Judgment | None) -> list[GradeButton]:
    chosen = current.grade if current else None
    if assignment.pair.other:
        return _preferences(swapped=assignment.swapped, chosen=chosen)
    return [
        GradeButton(
            grade=number,
            sign=str(number),
            name=grade["name"],
            meaning=grade.get("meaning", ""),
            keys=(str(number),) if number < NUMBER_KEYS else (),
            chosen=chosen == number,
        )
        for number, grade in enumerate(assignment.pair.scale)
    ]


def _preferences(*, swapped: bool, chosen: int | None) -> list[GradeButton]:
    """The answers in the order in which the documents stand, each with the grade that it means."""
    a_better, b_better = (
        (OTHER_BETTER, DOCUMENT_BETTER) if swapped else (DOCUMENT_BETTER, OTHER_BETTER)
    )
    answers = (
        (a_better, "A", "A is better", ("1", "ArrowLeft")),
        (EQUALLY_GOOD, "=", "Equally good", ("2",)),
        (b_better, "B", "B is better", ("3", "ArrowRight")),
    )
    return [
        GradeButton(grade, sign, name, "", keys, chosen=chosen == grade)
        for grade, sign, name, keys in answers
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
