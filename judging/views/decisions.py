"""The organizer's decisions on pairs that wait: stuck ones, known ones, and all the rest."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.forms import DecisionForm, RestForm, blame
from judging.models import Pair, User
from judging.queue import WAITING
from judging.services import decisions as service
from judging.services import known_grades
from judging.views import queue


@require_POST
def decide(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    pair = get_object_or_404(campaign.pairs.select_related("topic", "campaign"), pk=pk)
    form = DecisionForm(request.POST, pair=pair)
    if not form.is_valid():
        raise UserError("decision_invalid", "Choose what to do with the pair, and say why.")
    messages.success(request, _decide(pair, user, form))
    return redirect("decisions", slug=slug)


def _decide(pair: Pair, by: User, form: DecisionForm) -> str:
    if form.cleaned_data["action"] == "ask":
        service.ask_again(pair=pair, by=by)
        return f"{pair.documents} {_are(pair)} offered once more to those who skipped it."
    service.decide(pair=pair, by=by, grade=form.grade(), reason=form.cleaned_data["reason"])
    return f"{pair.documents} for topic {pair.topic.topic_id} {_are(pair)} decided."


def _are(pair: Pair) -> str:
    return "are" if pair.other else "is"


@require_POST
def decide_rest(request: HttpRequest, slug: str) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    form = RestForm(request.POST, campaign=campaign)
    if not form.is_valid():
        return queue.page(request, campaign, WAITING, form)
    grade, reason = form.cleaned_data["grade"], form.cleaned_data["reason"]
    try:
        service.request_rest(campaign=campaign, by=user, grade=grade, reason=reason)
    except UserError as error:
        blame(form, error)
        return queue.page(request, campaign, WAITING, form)
    messages.success(request, f"The unjudged rest is being decided as grade {grade}.")
    return redirect("decisions", slug=slug)


@require_POST
def use_labels(request: HttpRequest, slug: str) -> HttpResponse:
    """Pairs that have labels and want more are done with those they have."""
    user, reason = user_of(request), request.POST.get("reason", "")[:500]
    campaign = organized_campaign(user, slug)
    try:
        service.request_rest(campaign=campaign, by=user, grade=None, reason=reason)
        messages.success(request, "Pairs that are judged are being done with the labels they have.")
    except UserError as error:
        messages.error(request, error.message)
    return redirect("decisions", slug=slug)


@require_POST
def from_qrels(request: HttpRequest, slug: str) -> HttpResponse:
    user = user_of(request)
    known_grades.request(campaign=organized_campaign(user, slug), by=user)
    messages.success(request, "The drawn pairs are being judged from the uploaded qrels.")
    return redirect("decisions", slug=slug)
