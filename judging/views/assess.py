"""The judging page: one pair after the other, each answer one request."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from judging.access import assessed_campaign, user_of
from judging.errors import UserError
from judging.forms import JudgmentForm, SkipForm
from judging.services import assignments, judgments
from judging.views.desk import done, next_pair, own_assignment, refused

THE_LAST = (
    "It is here again: you have no other of this topic left to judge. Give it a grade, or skip it "
    "so that somebody else gets it."
)


@require_GET
@never_cache
def judge(request: HttpRequest, slug: str) -> HttpResponse:
    return next_pair(request, assessed_campaign(user_of(request), slug))


@require_POST
def save(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    campaign = assessed_campaign(user, slug)
    assignment = own_assignment(campaign, user, pk)
    try:
        saying = JudgmentForm(request.POST).saying()
        judgments.record(assignment=assignment, by=user, saying=saying)
    except UserError as error:
        return refused(request, campaign, error)
    return done(request, campaign, saved=True)


@require_POST
def skip(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    campaign = assessed_campaign(user, slug)
    assignment = own_assignment(campaign, user, pk)
    try:
        assignments.skip(assignment=assignment, by=user, reason=SkipForm(request.POST).why())
    except UserError as error:
        return refused(request, campaign, error)
    return done(request, campaign)


@require_POST
def later(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    campaign = assessed_campaign(user, slug)
    assignment = own_assignment(campaign, user, pk)
    try:
        assignments.put_off(assignment=assignment, by=user)
    except UserError as error:
        return refused(request, campaign, error)
    following = assignments.claim_next(campaign=campaign, by=user)
    if following is not None and following.pk == assignment.pk:
        messages.info(request, THE_LAST)
    return done(request, campaign)
