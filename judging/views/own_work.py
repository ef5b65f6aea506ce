"""An assessor's own judgments, and correcting them. Earlier revisions are kept."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from django_htmx.http import HttpResponseClientRedirect

from judging import selectors
from judging.access import assessed_assignment, assessed_campaign, user_of
from judging.errors import UserError
from judging.forms import CorrectionForm
from judging.models import Assignment
from judging.services import judgments
from judging.sheets import in_hand, sheet_of
from judging.views.desk import by_htmx, done, pair_context, refused, show

SHOWN = 500


@require_GET
def own_work(request: HttpRequest, slug: str) -> HttpResponse:
    user = user_of(request)
    campaign = assessed_campaign(user, slug)
    context = {
        "campaign": campaign,
        "rows": selectors.own_judgments(campaign, user, limit=SHOWN),
        "progress": selectors.own_progress(campaign, user),
        "shown": SHOWN,
    }
    return render(request, "judging/own_work.html", context)


@never_cache
def correct(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Shows a pair once more with the own grade, or supersedes that grade."""
    user = user_of(request)
    assignment = assessed_assignment(user, slug, pk)
    campaign, back = assignment.pair.campaign, _back(request)
    if request.method != "POST":
        return _again(request, assignment, back)
    try:
        saying, revision = CorrectionForm(request.POST).revised()
        judgments.correct(assignment=assignment, by=user, saying=saying, revision=revision)
    except UserError as error:
        if back == "judge":
            return refused(request, campaign, error)
        messages.warning(request, error.message)
    else:
        if back == "judge":
            return done(request, campaign, saved=True)
        messages.success(request, "Corrected.")
    address = reverse(back, args=[slug])
    return HttpResponseClientRedirect(address) if by_htmx(request) else redirect(address)


def _back(request: HttpRequest) -> str:
    asked = request.POST.get("back") or request.GET.get("back")
    return "judge" if asked == "judge" else "own-work"


def _again(request: HttpRequest, assignment: Assignment, back: str) -> HttpResponse:
    current = selectors.given_judgments().filter(assignment=assignment).first()
    if current is None:
        raise Http404("There is no judgment of yours to correct.")
    campaign = assignment.pair.campaign
    hand = in_hand(campaign, user_of(request))
    context = {
        "campaign": campaign,
        "back": back,
        **pair_context(sheet_of(assignment, topic=True, hand=hand), current),
    }
    return show(request, context)
