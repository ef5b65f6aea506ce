"""Trying again what failed in the background."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_POST

from estimation.models import MachineJudge, Round
from estimation.services import retrying
from estimation.work import NAMES, OF_MACHINES, OF_ROUNDS
from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.models import Job, Upload
from judging.selectors import BULK_JOBS

PAGES = {"recompute": "live", "plan-batch": "live", "report": "reports"}
"""Where the result of work for a round is missed; elsewhere it is the round's own page."""


@require_POST
def work_again(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    job = get_object_or_404(Job, campaign=campaign, pk=pk)
    try:
        retrying.retry(job=job, by=user_of(request))
        messages.success(request, f"{NAMES.get(job.kind, job.kind)} is tried again.")
    except UserError as error:
        messages.error(request, error.message)
    return _to_result(slug, job)


def _to_result(slug: str, job: Job) -> HttpResponse:
    if job.kind == "upload":
        there = Upload.objects.filter(pk=job.target).exists()
        return redirect("upload-detail", slug, job.target) if there else redirect("material", slug)
    if job.kind in OF_MACHINES and MachineJudge.objects.filter(pk=job.target).exists():
        return redirect("machine-detail", slug, job.target)
    row = Round.objects.filter(pk=job.target).first() if job.kind in OF_ROUNDS else None
    if row is None:
        return redirect("decisions" if job.kind in BULK_JOBS else "campaign-home", slug)
    return redirect(PAGES.get(job.kind, "round-detail"), slug, row.number)
