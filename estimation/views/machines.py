"""Machine judges: added, asked, looked at."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_POST

from estimation import machine_rows
from estimation.agreement_figures import agreement_figure
from estimation.machine_findings import findings_on
from estimation.machine_forms import MachineForm
from estimation.machine_versions import answer_lines, version_of, versions_of
from estimation.models import MachineJudge
from estimation.services.machines import judges
from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.models import Campaign
from judging.views.already import leads_back, tell, there
from judging.workers import serving


def machine_list(request: HttpRequest, slug: str) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    context = {
        "campaign": campaign,
        "judges": machine_rows.judges_of(campaign),
        "endpoints": machine_rows.endpoints(),
    }
    return render(request, "estimation/machines.html", context)


def machine_new(request: HttpRequest, slug: str) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    form = MachineForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            judge = judges.create(campaign=campaign, by=user_of(request), plan=form.plan())
            return redirect("machine-detail", slug, judge.pk)
        except UserError as error:
            blame(form, error)
    context = {"campaign": campaign, "form": form}
    context["endpoints"] = machine_rows.endpoints()
    status = 422 if form.is_bound else 200
    return render(request, "estimation/machine_new.html", context, status=status)


def machine_detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """What it has said so far, and how far people agree."""
    campaign = organized_campaign(user_of(request), slug)
    judge = judge_of(campaign, pk)
    return render(request, "estimation/machine.html", context_of(campaign, judge))


def context_of(campaign: Campaign, judge: MachineJudge) -> dict[str, Any]:
    standing, versions = machine_rows.standing(judge), versions_of(judge)
    grades = machine_rows.compared_grades(judge) or standing.prompt.grades
    return {
        "campaign": campaign,
        "judge": judge,
        "standing": standing,
        "agreement": judge.agreement,
        "alpha": agreement_figure(judge.agreement, grades),
        "grades": grades,
        "findings": findings_on(judge.agreement),
        "form": MachineForm(judge=judge),
        "versions": versions,
        "upload_version": version_of(judge.upload, versions),
        "workers": serving("machine-judge"),
    }


@require_GET
def machine_answers(request: HttpRequest, slug: str, pk: int, number: int) -> HttpResponseBase:
    """All answers to a version of the prompt, as CSV."""
    judge = judge_of(organized_campaign(user_of(request), slug), pk)
    lines = answer_lines(get_object_or_404(judge.prompts, number=number))
    answer = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    name = f"{slug}-machine-{judge.pk}-v{number}.csv"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def judge_of(campaign: Campaign, pk: int) -> MachineJudge:
    found: MachineJudge = get_object_or_404(machine_rows.judges_of(campaign), pk=pk)
    return found


@require_POST
def machine_change(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    judge = judge_of(campaign, pk)
    form = MachineForm(request.POST, judge=judge)
    if form.is_valid():
        try:
            judges.change(judge=judge, by=user_of(request), chosen=form.chosen())
            messages.success(request, "Saved.")
            return redirect("machine-detail", slug, pk)
        except UserError as error:
            blame(form, error)
    context = context_of(campaign, judge) | {"form": form}
    return render(request, "estimation/machine.html", context, status=422)


def blame(form: MachineForm, error: UserError) -> None:
    """Puts a service's error at the field it names, or on top of the form."""
    named = {"endpoint": "source", "model": "source"}.get(error.field or "", error.field)
    form.add_error(named if named in form.fields else None, error.message)


@require_POST
@leads_back("machine-list", "slug")
def machine_start(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return _acted(request, slug, pk, judges.start, "A worker asks it now.")


@require_POST
@leads_back("machine-list", "slug")
def machine_stop(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    said = "Nothing more is sent. What was answered comes in as predicted grades."
    return _acted(request, slug, pk, judges.stop, said)


@require_POST
@leads_back("machine-list", "slug")
def machine_remove(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    said = "The machine judge is removed. Its predicted grades stay among the files."
    return _acted(request, slug, pk, judges.remove, said)


def _acted(
    request: HttpRequest, slug: str, pk: int, act: Callable[..., None], said: str
) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    judge: MachineJudge = there(machine_rows.judges_of(campaign), "This machine judge", pk=pk)
    try:
        act(judge=judge, by=user_of(request))
        messages.success(request, said)
    except UserError as error:
        tell(request, error)
    remains = campaign.machine_judges.filter(pk=pk).exists()
    return redirect("machine-detail", slug, pk) if remains else redirect("machine-list", slug)
