"""Runs: the list of them, the page of each, and what is done to one."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from estimation import listings
from estimation.leaving import leaving
from estimation.models import Run
from estimation.run_facts import AlikeRuns, alike_runs, run_facts
from estimation.services import replacing, withdrawals
from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.forms_material import AboutForm, RunFieldsForm, VersionForm
from judging.services import described
from judging.views.already import leads_back, tell, there
from judging.workers import serving


def run_list(request: HttpRequest, slug: str) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    fields = RunFieldsForm(initial={"names": "\n".join(campaign.run_fields)})
    runs = listings.runs_of(campaign)
    teams = any(run.team for run in runs)
    context = {"campaign": campaign, "runs": runs, "teams": teams, "fields": fields}
    return render(request, "estimation/runs.html", context)


@require_POST
def run_fields(request: HttpRequest, slug: str) -> HttpResponse:
    """Says which fields the runs of the campaign have."""
    campaign, form = organized_campaign(user_of(request), slug), RunFieldsForm(request.POST)
    if form.is_valid():
        try:
            described.set_fields(campaign=campaign, by=user_of(request), names=form.chosen())
            messages.success(request, "Saved: every run has these fields on its page.")
        except UserError as error:
            messages.error(request, error.message)
    return redirect("run-list", slug)


def run_detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """All there is to say of a run; which others are alike comes after the rest."""
    run = _run(request, slug, pk)
    alike = alike_runs(run) if request.GET.get("part") == "alike" else None
    if alike and request.htmx:  # type: ignore[attr-defined]
        context = {"campaign": run.campaign, "alike": alike}
        return render(request, "estimation/_alike.html", context)
    return _page(request, run, alike=alike)


def _page(
    request: HttpRequest,
    run: Run,
    about: AboutForm | None = None,
    status: int = 200,
    alike: AlikeRuns | None = None,
) -> HttpResponse:
    facts = run_facts(run)
    context = {
        "campaign": run.campaign,
        "run": run,
        "facts": facts,
        "alike": alike,
        "about": about or AboutForm(run.campaign, facts.upload.about),
        "form": VersionForm(),
        "reading": any(each.state == "reading" for each in facts.versions),
        "workers": serving("upload"),
    }
    return render(request, "estimation/run.html", context, status=status)


@require_POST
def run_about(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Changes what is said of a run."""
    run = _run(request, slug, pk)
    form = AboutForm(run.campaign, run.upload.about, request.POST)
    if not form.is_valid():
        return _page(request, run, form, status=422)
    described.describe(upload=run.upload, by=user_of(request), **form.chosen())
    messages.success(request, "Saved.")
    return redirect("run-detail", slug, pk)


@require_POST
def run_replace(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Stores a new version; once something is drawn it is only checked at first."""
    run, form = _run(request, slug, pk), VersionForm(request.POST, request.FILES)
    if not form.is_valid():
        messages.error(request, "Choose the file of the new version first.")
        return redirect("run-detail", slug, pk)
    file = form.cleaned_data["given"]
    try:
        upload = replacing.replace(run=run, by=user_of(request), file=file, name=file.name or "")
    except UserError as error:
        messages.error(request, error.message)
    else:
        then = ", and says here what it would change" if upload.check_only else ""
        messages.success(request, f"{upload.name} is stored; a worker reads it now{then}.")
    return redirect("run-detail", slug, pk)


@require_POST
@leads_back("material", "slug")
def upload_take_in(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Takes in what was only checked; for a new version of a run that is to confirm it."""
    campaign = organized_campaign(user_of(request), slug)
    rows = campaign.uploads.select_related("campaign", "replaces")
    upload = there(rows, "This file", pk=pk)
    replaced = Run.objects.filter(upload=upload.replaces_id, campaign=campaign).first()
    try:
        replacing.confirm(upload=upload, by=user_of(request))
        messages.success(request, f"{upload.name} is read once more and taken in.")
    except UserError as error:
        tell(request, error)
    if replaced is not None:
        return redirect("run-detail", slug, replaced.pk)
    return redirect("upload-detail", slug, pk)


@require_http_methods(["GET", "HEAD", "POST"])
def run_withdraw(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Shows what it changes; then leaves the run out of all rankings."""
    run = _run(request, slug, pk)
    if request.method != "POST":
        if run.withdrawn:
            return redirect("run-detail", slug, pk)
        context = {"campaign": run.campaign, "run": run, "changes": leaving(run)}
        return render(request, "estimation/run_withdraw.html", context)
    withdrawals.withdraw(run=run, by=user_of(request))
    messages.success(request, f"{run.tag} is withdrawn: rankings are computed anew without it.")
    return redirect("run-list", slug)


@require_POST
def run_back(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Takes a withdrawn run back."""
    run = _run(request, slug, pk)
    withdrawals.take_back(run=run, by=user_of(request))
    messages.success(request, f"{run.tag} is back: rankings are computed anew with it.")
    return redirect("run-list", slug)


def _run(request: HttpRequest, slug: str, pk: int) -> Run:
    rows = organized_campaign(user_of(request), slug).runs
    return get_object_or_404(rows.select_related("campaign", "upload__created_by"), pk=pk)
