"""Norming, for organizers: sessions, who takes part in them, of what, and what they tell."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from judging import norming
from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.formats.csvfile import csv_lines
from judging.forms import blame
from judging.forms_norming import NormingPairsForm, PeopleForm, SessionForm, TakeForm
from judging.models import Campaign, NormingSession
from judging.services import norming as services
from judging.views.already import leads_back, there
from judging.views.gold import taken_from

PER_PAGE = 50
State = NormingSession.State


@require_http_methods(["GET", "HEAD", "POST"])
def sessions(request: HttpRequest, slug: str) -> HttpResponse:
    """All sessions of a campaign, and a new one."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    form = SessionForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = services.create(campaign=campaign, by=user, plan=form.plan())
        except UserError as error:
            blame(form, error)
        else:
            return redirect("norming-session", slug=slug, pk=made.pk)
    rows = Paginator(norming.sessions(campaign), PER_PAGE).get_page(request.GET.get("page"))
    context = {
        "campaign": campaign,
        "rows": rows,
        "form": form,
        "candidates": norming.candidates(campaign).count(),
    }
    status = 400 if form.errors else 200
    return render(request, "judging/norming_sessions.html", context, status=status)


def _organized(request: HttpRequest, slug: str, pk: int) -> NormingSession:
    campaign = organized_campaign(user_of(request), slug)
    session = get_object_or_404(campaign.norming_sessions, pk=pk)
    session.campaign = campaign
    return session


@require_GET
def session(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """One of them: what is asked of whom, how far they are, and what it tells."""
    return _page(request, _organized(request, slug, pk))


def _page(
    request: HttpRequest, row: NormingSession, *, status: int = 200, **more: Any
) -> HttpResponse:
    people = norming.people(row)
    pairs = row.pairs.select_related("topic").order_by("topic__topic_id", "docno")
    count = pairs.count()
    context = {
        "campaign": row.campaign,
        "session": row,
        "people": people,
        "pair_count": count,
        "done": sum(each.answered == count for each in people),
        "answers": sum(each.answered for each in people),
        **_of_state(request, row, pairs),
        **more,
    }
    return render(request, "judging/norming_session.html", context, status=status)


def _of_state(request: HttpRequest, row: NormingSession, pairs: Any) -> dict[str, Any]:
    """What is shown of a draft, while people judge, and afterwards."""
    if row.discussed:
        return {"findings": norming.findings(norming.Seat(row, user_of(request), True))}
    asked: dict[str, Any] = {"asking": PeopleForm(row)}
    if row.state == State.DRAFT:
        asked["pairs"] = pairs
        asked["form"] = NormingPairsForm()
        asked["training"] = norming.offered_training(row)
        asked["judged"] = norming.offered_judged(row)
    return asked


@require_POST
def add(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """All pairs of a file, or none."""
    row = _organized(request, slug, pk)

    def to_session(*, campaign: Campaign, **given: Any) -> Any:
        return services.add(session=row, **given)

    bound = NormingPairsForm(request.POST, request.FILES)
    form, problems, count = taken_from(bound, request, row.campaign, to_session)
    if not count:
        return _page(request, row, form=form, problems=problems, status=400)
    messages.success(request, f"{count:,} pair{'s' if count > 1 else ''} added.")
    return redirect(f"{reverse('norming-session', args=[slug, pk])}#pairs")


@require_POST
def take(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Takes over training pairs, and pairs that were judged."""
    row, form = _organized(request, slug, pk), TakeForm(request.POST)
    chosen = form.cleaned_data if form.is_valid() else {"training": [], "judged": []}
    try:
        made = services.take(session=row, by=user_of(request), **chosen)
    except UserError as error:
        told = error.data.get("errors") or [{"message": error.message}]
        messages.warning(request, f"Nothing is taken over: {told[0]['message']}")
    else:
        messages.success(request, f"{len(made)} pair{'s' if len(made) > 1 else ''} taken over.")
    return redirect(f"{reverse('norming-session', args=[slug, pk])}#pairs")


@require_POST
@leads_back("norming-session", "slug", "pk")
def remove(request: HttpRequest, slug: str, pk: int, pair: int) -> HttpResponse:
    row = _organized(request, slug, pk)
    services.remove(pair=there(row.pairs.all(), "This pair", pk=pair), by=user_of(request))
    messages.success(request, "The pair is gone from the session.")
    return redirect(f"{reverse('norming-session', args=[slug, pk])}#pairs")


@require_POST
def people(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Who takes part from now on."""
    row = _organized(request, slug, pk)
    form = PeopleForm(row, request.POST)
    if form.is_valid():
        try:
            services.set_people(session=row, by=user_of(request), **form.cleaned_data)
        except UserError as error:
            blame(form, error)
        else:
            messages.success(request, "Saved.")
            return redirect(f"{reverse('norming-session', args=[slug, pk])}#people")
    return _page(request, row, asking=form, status=400)


def _moved(
    request: HttpRequest, slug: str, pk: int, move: Callable[..., None], said: str
) -> HttpResponse:
    """Moves a session on, and says so; or why not."""
    row = _organized(request, slug, pk)
    try:
        move(session=row, by=user_of(request))
    except UserError as error:
        messages.warning(request, error.message)
    else:
        messages.success(request, said)
        if move is services.delete:
            return redirect("norming-sessions", slug=slug)
    return redirect("norming-session", slug=slug, pk=pk)


@require_POST
def begin(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    said = "It has begun: those who take part find it on their first page and where they judge."
    return _moved(request, slug, pk, services.begin, said)


@require_POST
def discuss(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    said = "The discussion has begun: everybody sees what everybody said."
    return _moved(request, slug, pk, services.discuss, said)


@require_POST
def close(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return _moved(request, slug, pk, services.close, "Closed: it can be read from now on.")


@require_POST
@leads_back("norming-sessions", "slug")
def delete(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    there(campaign.norming_sessions.all(), "This session", pk=pk)
    return _moved(request, slug, pk, services.delete, "The session is gone.")


@require_GET
def answers_file(request: HttpRequest, slug: str, pk: int) -> HttpResponseBase:
    """Every answer as CSV, once the discussion has begun."""
    row = _organized(request, slug, pk)
    norming.refuse_blind(row)
    lines = csv_lines(norming.EXPORTED, norming.exported(row))
    answer = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{slug}-norming-{row.pk}.csv"'
    return answer


ACTS: dict[str, Callable[..., HttpResponseBase]] = {
    "add": add,
    "take": take,
    "people": people,
    "begin": begin,
    "discuss": discuss,
    "close": close,
    "delete": delete,
    "file": answers_file,
}
"""What is done with one session, by the last word of its address."""
