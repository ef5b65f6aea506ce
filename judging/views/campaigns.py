"""Creating a campaign, its settings, opening and closing it."""

from typing import Protocol

from django.contrib import messages
from django.forms import model_to_dict
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.forms import CampaignForm, DuplicateForm, blame, grade_rows, scale
from judging.models import Campaign, User
from judging.services import campaigns, duplicates
from judging.services.campaigns import CampaignPlan
from judging.views.already import leads_back


def new(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    standard = CampaignPlan(name="")
    initial = {name: getattr(standard, name) for name in ("depth", "lease_minutes")}
    form = CampaignForm(request.POST or None, initial=initial)
    rows = grade_rows(request.POST or None, None)
    grades = scale(rows)
    if form.is_valid() and grades is not None:
        try:
            campaign = campaigns.create(by=user, plan=form.plan(grades))
        except UserError as error:
            blame(form, error)
        else:
            messages.success(request, "The campaign is there. Next: its files.")
            return redirect("material", slug=campaign.slug)
    may_create = user.is_organizer or user.is_superuser
    context = {"form": form, "rows": rows, "may_create": may_create}
    return render(request, "judging/campaign_new.html", context, status=200 if may_create else 403)


def settings(request: HttpRequest, slug: str) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    form = CampaignForm(request.POST or None, initial=model_to_dict(campaign), campaign=campaign)
    rows = grade_rows(request.POST or None, campaign)
    grades = scale(rows)
    if form.is_valid() and grades is not None:
        chosen = form.chosen(grades)
        try:
            campaigns.amend(campaign=campaign, by=user, chosen=chosen, seen=form.before())
        except UserError as error:
            if error.code == "changed_meanwhile":
                return _look_again(request, campaign, form.told(chosen))
            blame(form, error)
        else:
            messages.success(request, f"Saved.{_of_others(form)}")
            return redirect("campaign-settings", slug=slug)
    context = {"campaign": campaign, "form": form, "rows": rows, **_another(user, campaign)}
    return render(request, "judging/campaign_settings.html", context)


def _another(user: User, campaign: Campaign) -> dict[str, object]:
    """The form for one more campaign like this, for whoever may make one."""
    if not (user.is_organizer or user.is_superuser):
        return {}
    name = f"{campaign.name}, again"[:200]
    return {"duplicate": DuplicateForm(initial={"name": name}, auto_id="duplicate_%s")}


def _of_others(form: CampaignForm) -> str:
    """What the page did not show when it was opened, and shows from now on."""
    if not (others := form.others()):
        return ""
    names = ", ".join(sorted(form.label_of(name) for name in others))
    return f" Since you opened the page, somebody else has changed: {names}. That stays as it is."


def _look_again(
    request: HttpRequest, campaign: Campaign, typed: list[tuple[str, str]]
) -> HttpResponse:
    """The settings as somebody else has left them, and beside them what was typed, to be copied."""
    campaign.refresh_from_db()
    context = {
        "campaign": campaign,
        "form": CampaignForm(initial=model_to_dict(campaign), campaign=campaign),
        "rows": grade_rows(None, campaign),
        "typed": typed,
    }
    return render(request, "judging/campaign_settings.html", context, status=409)


@require_POST
@leads_back("campaign-home", "slug")
def open_campaign(request: HttpRequest, slug: str) -> HttpResponse:
    _act(request, slug, campaigns.open_for_judging)
    messages.success(request, "The campaign is open: assessors can judge what is drawn.")
    return _back(request, slug)


@require_POST
@leads_back("campaign-home", "slug")
def pause_campaign(request: HttpRequest, slug: str) -> HttpResponse:
    _act(request, slug, campaigns.pause)
    told = "The campaign is paused: nobody is given anything to judge. What is in hand is saved."
    messages.success(request, told)
    return _back(request, slug)


@require_POST
@leads_back("campaign-home", "slug")
def close_campaign(request: HttpRequest, slug: str) -> HttpResponse:
    _act(request, slug, campaigns.close)
    messages.success(request, "The campaign is closed. Judgments and estimates stay as they are.")
    return _back(request, slug)


@require_POST
def archive(request: HttpRequest, slug: str) -> HttpResponse:
    _act(request, slug, campaigns.archive)
    messages.success(request, "The campaign is archived. Nothing of it has changed.")
    return redirect("campaign-settings", slug=slug)


@require_POST
def unarchive(request: HttpRequest, slug: str) -> HttpResponse:
    _act(request, slug, campaigns.unarchive)
    messages.success(request, "The campaign is out of the archive.")
    return redirect("campaign-settings", slug=slug)


class Act(Protocol):
    """What is done to a campaign by somebody, with nothing more to be said."""

    def __call__(self, *, campaign: Campaign, by: User) -> None: ...


def _act(request: HttpRequest, slug: str, act: Act) -> None:
    """For the campaign's organizers."""
    user = user_of(request)
    act(campaign=organized_campaign(user, slug), by=user)


@require_POST
def duplicate(request: HttpRequest, slug: str) -> HttpResponse:
    """A new campaign with the settings of this one, and on request its files."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    form = DuplicateForm(request.POST)
    if not form.is_valid():
        raise UserError("plan_invalid", "Give the new campaign a name of at most 200 characters.")
    made = duplicates.duplicate(campaign=campaign, by=user, **form.cleaned_data)
    told = " Its files are being copied." if form.cleaned_data["with_files"] else ""
    messages.success(request, f"The new campaign is there.{told}")
    return redirect("campaign-home", slug=made.slug)


def _back(request: HttpRequest, slug: str) -> HttpResponse:
    """To the page on which the button was pressed."""
    there = request.POST.get("next", "")
    ours = there.startswith("/") and url_has_allowed_host_and_scheme(there, allowed_hosts=None)
    return redirect(there) if ours else redirect("campaign-home", slug=slug)
