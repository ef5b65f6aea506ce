"""The judging page: one pair after the other, each answer one request."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from judging import selectors
from judging.access import assessed_assignment, assessed_campaign, user_of
from judging.errors import UserError
from judging.forms import JudgmentForm, SkipForm
from judging.services import assignments, desk, judgments
from judging.sheets import idle_version
from judging.views.desk import by_htmx, done, next_pair, on_desk, refused

THE_LAST = (
    "It is here again: you have no other of this topic left to judge. Give it a grade, or skip it "
    "so that somebody else gets it."
)


@require_GET
@never_cache
def judge(request: HttpRequest, slug: str) -> HttpResponse:
    """The page, or its desk; nothing, if it is still for the same reason that there is no pair."""
    user = user_of(request)
    campaign = assessed_campaign(user, slug)
    waited = by_htmx(request) and request.GET.get("idle")
    if waited and waited == idle_version(campaign, user):
        return HttpResponse(status=204)
    return next_pair(request, campaign)


@require_POST
def save(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    assignment = assessed_assignment(user, slug, pk)
    campaign = assignment.pair.campaign
    try:
        saying = JudgmentForm(request.POST).saying()
        if not by_htmx(request):
            judgments.record(assignment=assignment, by=user, saying=saying)
            return done(request, campaign)
        recorded, sheet = desk.judge(assignment=assignment, by=user, saying=saying, topic=True)
    except UserError as error:
        return refused(request, campaign, error)
    last = selectors.own_judgment(recorded.judgment, assignment)
    return on_desk(request, campaign, sheet, last, saved=True)


@require_POST
def skip(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    assignment = assessed_assignment(user, slug, pk)
    campaign = assignment.pair.campaign
    try:
        assignments.skip(assignment=assignment, by=user, reason=SkipForm(request.POST).why())
    except UserError as error:
        return refused(request, campaign, error)
    return done(request, campaign)


@require_POST
def later(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    assignment = assessed_assignment(user, slug, pk)
    campaign = assignment.pair.campaign
    try:
        assignments.put_off(assignment=assignment, by=user)
    except UserError as error:
        return refused(request, campaign, error)
    following = assignments.claim_next(campaign=campaign, by=user)
    if following is not None and following.pk == assignment.pk:
        messages.info(request, THE_LAST)
    return done(request, campaign)
