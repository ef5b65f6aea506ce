"""Norming, for who takes part: to judge alone, then to see what others said, and to talk."""

import uuid
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from judging import norming
from judging.access import assessed_campaign, norming_part, norming_seat, user_of
from judging.errors import UserError
from judging.forms import blame
from judging.forms_norming import CommentForm, RevisionForm
from judging.forms_training import LearnedForm
from judging.models import NormingPair, NormingPerson, NormingSession
from judging.norming import Discussed, Seat
from judging.services import norming as services
from judging.sheets import document

PER_PAGE, COMMENTS_PER_PAGE = 20, 50
DISCUSSION = NormingSession.State.DISCUSSION


@require_GET
def mine(request: HttpRequest, slug: str) -> HttpResponse:
    """The sessions in which an assessor takes part."""
    user = user_of(request)
    campaign = assessed_campaign(user, slug)
    context = {"campaign": campaign, "sessions": norming.own(user, campaign)}
    return render(request, "judging/norming.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def desk(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The next pair, and nothing of others; to the discussion, once it has begun."""
    person = norming_part(user_of(request), slug, pk)
    session = person.session
    if request.method == "POST":
        return _answered(request, person)
    if not session.is_blind:
        return redirect("norming-discussion", slug=slug, pk=pk)
    turn = norming.turn(person)
    text = turn.pair and document(turn.pair.docno, session.campaign).first()
    context = {
        "campaign": session.campaign,
        "session": session,
        "turn": turn,
        "pair": turn.pair,
        "document": text,
    }
    return render(request, "judging/norming_desk.html", context)


def _answered(request: HttpRequest, person: NormingPerson) -> HttpResponse:
    form, session = LearnedForm(request.POST), person.session
    if not form.is_valid():
        messages.warning(request, "Choose one of the grades.")
    else:
        try:
            services.answer(session=session, by=user_of(request), **form.cleaned_data)
        except UserError as error:
            messages.warning(request, error.message)
    return redirect("norming-desk", slug=session.campaign.slug, pk=session.pk)


# ------------------------------------------------------------------------------- the discussion


def _seen(request: HttpRequest, slug: str, pk: int) -> Seat:
    """For whom the discussion is there. UserError ``still_blind`` (409)."""
    seat = norming_seat(user_of(request), slug, pk)
    norming.refuse_blind(seat.session)
    return seat


@never_cache
@require_GET
def discussion(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """All pairs, those on which people were farthest apart first."""
    seat = _seen(request, slug, pk)
    rows = Paginator(norming.by_spread(seat.session), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "campaign": seat.session.campaign,
        "session": seat.session,
        "seat": seat,
        "rows": rows,
        "found": norming.discussed(seat, rows),
    }
    return render(request, "judging/norming_discussion.html", context)


@never_cache
@require_GET
def pair(request: HttpRequest, slug: str, pk: int, pair: int) -> HttpResponse:
    """One pair: its text, what everybody said, and what they write about it."""
    seat = _seen(request, slug, pk)
    return _pair_page(request, seat, _pair_of(seat, pair))


def _pair_of(seat: Seat, pair: int) -> NormingPair:
    return get_object_or_404(norming.by_spread(seat.session), pk=pair)


def _pair_page(
    request: HttpRequest, seat: Seat, row: NormingPair, *, status: int = 200, **more: Any
) -> HttpResponse:
    session = seat.session
    (found,) = norming.discussed(seat, [row])
    pages = Paginator(norming.thread(row), COMMENTS_PER_PAGE)
    comments = pages.get_page(request.GET.get("page") or pages.num_pages)
    before, after = norming.beside(session, row)
    context = {
        "campaign": session.campaign,
        "session": session,
        "found": found,
        "document": document(row.docno, session.campaign).first(),
        "rows": comments,
        "thread": norming.comments_told(seat, comments),
        "before": before,
        "after": after,
        "talks": session.state == DISCUSSION,
        "revising": _revising(session, found),
        "commenting": CommentForm(initial={"key": uuid.uuid4().hex}),
        **more,
    }
    return render(request, "judging/norming_pair.html", context, status=status)


def _revising(session: NormingSession, found: Discussed) -> RevisionForm | None:
    if session.state != DISCUSSION or found.own is None:
        return None
    return RevisionForm(session.campaign, found.own.now)


@require_POST
def comment(request: HttpRequest, slug: str, pk: int, pair: int) -> HttpResponse:
    """Adds a comment to the thread of a pair."""
    seat = _seen(request, slug, pk)
    row, form = _pair_of(seat, pair), CommentForm(request.POST)
    if form.is_valid():
        try:
            said = {**form.cleaned_data, "organizes": seat.organizes, "pair": row.pk}
            services.comment(session=seat.session, by=seat.user, **said)
        except UserError as error:
            blame(form, error)
        else:
            there = reverse("norming-pair", args=[slug, pk, row.pk])
            return redirect(f"{there}#last")
    return _pair_page(request, seat, row, status=400, commenting=form)


@require_POST
def revise(request: HttpRequest, slug: str, pk: int, pair: int) -> HttpResponse:
    """The grade that somebody stands by now; the first one stays."""
    session = norming_part(user_of(request), slug, pk).session
    norming.refuse_blind(session)
    form = RevisionForm(session.campaign, 0, request.POST)
    if not form.is_valid():
        messages.warning(request, "Choose one of the grades.")
        return redirect("norming-pair", slug=slug, pk=pk, pair=pair)
    try:
        services.revise(session=session, by=user_of(request), pair=pair, **form.cleaned_data)
    except UserError as error:
        messages.warning(request, error.message)
    return redirect("norming-pair", slug=slug, pk=pk, pair=pair)
