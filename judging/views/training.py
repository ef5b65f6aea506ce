"""Training: the pages on which assessors learn, and that on which organizers say from what."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from judging import guests, lessons
from judging.access import ASSESSOR, assessed_campaign, organized_campaign, user_of
from judging.errors import UserError
from judging.forms import blame
from judging.forms_gold import KnownPairsForm
from judging.forms_training import LearnedForm, TrainingForm
from judging.models import Campaign, TrainingPair
from judging.services import training
from judging.sheets import document
from judging.views.already import leads_back, there
from judging.views.gold import brought


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def learn(request: HttpRequest, slug: str) -> HttpResponse:
    """The next pair, what is right of the one just answered, or how the try has ended."""
    user = user_of(request)
    campaign = assessed_campaign(user, slug)
    if request.method == "POST":
        return _answered(request, campaign)
    lesson = lessons.lesson(campaign, user)
    asked = request.GET.get("said", "")
    said = None
    if lesson.attempt and asked.isdecimal() and len(asked) < 10:
        said = lessons.answer_of(lesson.attempt, int(asked))
    pair = said.pair if said else lesson.pair
    context = {
        "campaign": campaign,
        "lesson": lesson,
        "learns": lessons.is_learning(campaign, user),
        "said": said,
        "pair": pair,
        "document": document(pair.docno, campaign).first() if pair else None,
        "guest": guests.progress(user),
    }
    return render(request, "judging/training.html", context)


def _answered(request: HttpRequest, campaign: Campaign) -> HttpResponse:
    form = LearnedForm(request.POST)
    there = reverse("training", args=[campaign.slug])
    if not form.is_valid():
        messages.warning(request, "Choose one of the grades.")
        return redirect(there)
    try:
        said = training.answer(campaign=campaign, by=user_of(request), **form.cleaned_data)
    except UserError as error:
        messages.warning(request, error.message)
        return redirect(there)
    return redirect(f"{there}?said={said.pair_id}")


@require_POST
def begin(request: HttpRequest, slug: str) -> HttpResponse:
    user = user_of(request)
    campaign = assessed_campaign(user, slug)
    try:
        training.begin(campaign=campaign, by=user)
    except UserError as error:
        messages.warning(request, error.message)
    return redirect("training", slug=slug)


# ------------------------------------------------------------------------------- organizers


@require_GET
def training_set(request: HttpRequest, slug: str) -> HttpResponse:
    """The pairs, what is asked, and how it went with everybody."""
    return _page(request, organized_campaign(user_of(request), slug))


def _page(
    request: HttpRequest, campaign: Campaign, *, status: int = 200, **more: Any
) -> HttpResponse:
    context = {
        "campaign": campaign,
        "training": lessons.training_of(campaign),
        "lines": lessons.lines(campaign),
        "learners": lessons.learners(campaign),
        "form": KnownPairsForm(),
        "asking": TrainingForm(lessons.training_of(campaign)),
        **more,
    }
    return render(request, "judging/training_set.html", context, status=status)


@require_POST
def add(request: HttpRequest, slug: str) -> HttpResponse:
    """All pairs of a file, or none."""
    campaign = organized_campaign(user_of(request), slug)
    form, problems, count = brought(request, campaign, training.add)
    if not count:
        return _page(request, campaign, form=form, problems=problems, status=400)
    messages.success(request, f"{count:,} pair{'s' if count > 1 else ''} added.")
    return redirect("training-set", slug=slug)


@require_POST
def ask(request: HttpRequest, slug: str) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    form = TrainingForm(lessons.training_of(campaign), request.POST)
    if form.is_valid():
        try:
            training.set_plan(campaign=campaign, by=user, plan=form.plan())
        except UserError as error:
            blame(form, error)
        else:
            messages.success(request, "Saved. It holds from now on.")
            return redirect(f"{reverse('training-set', args=[slug])}#asked")
    return _page(request, campaign, asking=form, status=400)


@require_POST
@leads_back("training-set", "slug")
def remove(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    rows = TrainingPair.objects.filter(campaign=campaign)
    training.remove(pair=there(rows, "This pair", pk=pk), by=user)
    messages.success(request, "The pair is gone from the training.")
    return redirect("training-set", slug=slug)


@require_POST
def admit(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Lets an assessor judge without having passed."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    member = get_object_or_404(campaign.memberships, user__pk=pk, role=ASSESSOR)
    training.admit(membership=member, by=user)
    messages.success(request, f"{member.user} may judge from now on.")
    return redirect(f"{reverse('training-set', args=[slug])}#learners")
