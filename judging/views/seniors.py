"""Senior grades of pairs that assessors have judged."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from judging import selectors
from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.forms_queue import SeniorForm, WhyForm
from judging.models import SeniorGrade
from judging.queue import APART
from judging.services import seniors
from judging.views.already import leads_back


@require_POST
def give(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """From the pair's own page, or from the queue, to which it then leads back."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    pair = get_object_or_404(campaign.pairs.select_related("topic", "campaign"), pk=pk)
    form = SeniorForm(request.POST, pair=pair)
    if not form.is_valid():
        raise UserError("senior_invalid", "Choose the senior grade, and say why.")
    row = seniors.give(pair=pair, by=user, **form.cleaned_data)
    what = (
        "counts in place of what assessors said" if row.counts else "stands beside what they said"
    )
    messages.success(request, f"The senior grade of {pair.documents} {what}.")
    if request.POST.get("from") == "queue":
        return redirect(f"{reverse('queue', args=[slug])}?kind={APART}#next")
    return redirect("pair-detail", slug=slug, pk=pk)


@require_POST
@leads_back("queue", "slug")
def take_back(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    senior: SeniorGrade = get_object_or_404(selectors.senior_grades(campaign), pk=pk)
    form = WhyForm(request.POST)
    if not form.is_valid():
        raise UserError("reason_missing", "Say why in a few words.", field="reason")
    seniors.take_back(senior=senior, by=user, reason=form.cleaned_data["reason"])
    messages.success(request, "The senior grade is taken back.")
    return redirect("pair-detail", slug=slug, pk=senior.pair_id)
