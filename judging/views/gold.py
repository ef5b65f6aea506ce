"""Gold pairs, and the rules about people that rest on them."""

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from judging import gold_answers
from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.forms import blame
from judging.forms_gold import KnownPairsForm, MarkForm, MixForm, RulesForm
from judging.models import Campaign
from judging.selectors import compares_alone
from judging.services import gold as services
from judging.services import quality
from judging.views.already import leads_back


@require_GET
def gold(request: HttpRequest, slug: str) -> HttpResponse:
    """All gold pairs of a campaign, how they were answered, and what follows from it."""
    return _page(request, organized_campaign(user_of(request), slug))


def _page(
    request: HttpRequest, campaign: Campaign, *, status: int = 200, **more: Any
) -> HttpResponse:
    lines = gold_answers.lines(campaign)
    context = {
        "campaign": campaign,
        "lines": lines,
        "in_use": sum(line.gold.retired is None for line in lines),
        "form": KnownPairsForm(),
        "mixing": MixForm(campaign),
        "rules": RulesForm(quality.plan_of(campaign)),
        "compares_alone": compares_alone(campaign),
        **more,
    }
    return render(request, "judging/gold.html", context, status=status)


@require_POST
def add(request: HttpRequest, slug: str) -> HttpResponse:
    """All pairs of a file, or none."""
    campaign = organized_campaign(user_of(request), slug)
    form, problems, count = brought(request, campaign, services.add)
    if not count:
        return _page(request, campaign, form=form, problems=problems, status=400)
    messages.success(request, f"{count:,} pair{'s are' if count > 1 else ' is'} gold now.")
    return redirect("gold", slug=slug)


def brought(
    request: HttpRequest, campaign: Campaign, add: Callable[..., Sequence[object]]
) -> tuple[KnownPairsForm, list[dict[str, Any]], int]:
    """The form, what is wrong by line, and how many pairs of it a service has added."""
    return taken_from(KnownPairsForm(request.POST, request.FILES), request, campaign, add)


def taken_from(
    form: KnownPairsForm,
    request: HttpRequest,
    campaign: Campaign,
    add: Callable[..., Sequence[object]],
) -> tuple[KnownPairsForm, list[dict[str, Any]], int]:
    """The same of a form that is bound."""
    if not form.is_valid():
        return form, [], 0
    found, problems = services.read(campaign, *form.asked(), graded=form.graded)
    try:
        made = add(campaign=campaign, by=user_of(request), found=found, problems=problems)
    except UserError as error:
        blame(form, error)
        return form, error.data.get("errors", []), 0
    return form, [], len(made)


@require_POST
def mix(request: HttpRequest, slug: str) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    form = MixForm(campaign, request.POST)
    if not form.is_valid():
        return _page(request, campaign, mixing=form, status=400)
    services.mix(campaign=campaign, by=user, **form.cleaned_data)
    every = campaign.gold_every
    told = f"About one pair in {every} is gold from now on." if every else "No gold is mixed in."
    messages.success(request, told)
    return redirect("gold", slug=slug)


@require_POST
def rules(request: HttpRequest, slug: str) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    form = RulesForm(quality.plan_of(campaign), request.POST)
    if form.is_valid():
        try:
            quality.set_rules(campaign=campaign, by=user, plan=form.plan())
        except UserError as error:
            blame(form, error)
        else:
            messages.success(request, "The rules hold from now on.")
            return redirect(f"{reverse('gold', args=[slug])}#rules")
    return _page(request, campaign, rules=form, status=400)


@require_POST
@leads_back("gold", "slug")
def retire(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    row = get_object_or_404(organized_campaign(user, slug).gold_pairs, pk=pk)
    services.retire(gold=row, by=user)
    messages.success(request, "It is handed to nobody any more. What was said of it still tells.")
    return redirect("gold", slug=slug)


@require_POST
@leads_back("gold", "slug")
def restore(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    row = get_object_or_404(organized_campaign(user, slug).gold_pairs, pk=pk)
    services.restore(gold=row, by=user)
    messages.success(request, "It is mixed in again.")
    return redirect("gold", slug=slug)


@require_POST
def mark(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Makes gold of the document of a pair that was drawn."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    pair = get_object_or_404(campaign.pairs.select_related("topic", "campaign"), pk=pk)
    form = MarkForm(campaign, request.POST)
    if not form.is_valid():
        messages.warning(request, "Choose the grades that are right.")
        return redirect("pair-detail", slug=slug, pk=pk)
    try:
        services.mark(campaign=campaign, by=user, pair=pair, **form.cleaned_data)
    except UserError as error:
        told = error.data.get("errors") or [{"message": error.message}]
        messages.warning(request, f"It is not gold: {told[0]['message']}.")
        return redirect("pair-detail", slug=slug, pk=pk)
    messages.success(request, "It is gold now. The labels that it has stay labels.")
    return redirect("gold", slug=slug)
