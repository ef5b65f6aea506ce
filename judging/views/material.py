"""Material: files as they come in, what became of them, the topics and documents they brought."""

import hashlib
from collections.abc import Callable
from typing import TypeVar

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from judging import answers, drops, selectors, workers
from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.forms_material import UploadForm
from judging.models import Campaign, Job, Upload
from judging.services import taking_in, uploads
from judging.views.already import leads_back, tell, there

PER_PAGE = 100
Row = TypeVar("Row", bound=Model)


def material(request: HttpRequest, slug: str) -> HttpResponse:
    """The drop zone and one row per file."""
    campaign = organized_campaign(user_of(request), slug)
    form = UploadForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        _store_all(request, campaign, form)
        return redirect("material", slug)
    context = {"campaign": campaign, "form": form, **_rows(request, campaign)}
    status = 422 if form.is_bound else 200
    return render(request, "judging/material.html", context, status=status)


def _store_all(request: HttpRequest, campaign: Campaign, form: UploadForm) -> None:
    """Keeps each file; one that cannot be taken does not keep the others out."""
    stored, drop = 0, uploads.new_drop()
    for file, kind in form.chosen():
        try:
            uploads.store(
                campaign=campaign,
                by=user_of(request),
                file=file,
                name=file.name or "",
                kind=kind,
                check_only=form.cleaned_data["check_only"],
                drop=drop,
            )
            stored += 1
        except UserError as error:
            messages.error(request, error.message)
    if stored:
        files = "1 file is" if stored == 1 else f"{stored} files are"
        messages.success(request, f"{files} stored; a worker reads them now.")


def upload_list(request: HttpRequest, slug: str) -> HttpResponse:
    """The rows alone, for a page that waits; nothing while nothing has changed."""
    campaign = organized_campaign(user_of(request), slug)
    context = {"campaign": campaign, **_rows(request, campaign)}
    if request.GET.get("seen") == context["token"]:
        return HttpResponse(status=204)
    return render(request, "judging/_uploads.html", context)


def _rows(request: HttpRequest, campaign: Campaign) -> dict[str, object]:
    rows = selectors.uploads(campaign)
    page = Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
    _with_reasons([upload for upload, _ in page])
    states = [(upload.pk, upload.state, _work(job)) for upload, job in page]
    service, last = workers.serving("upload"), drops.latest(campaign)
    copying = selectors.is_being_copied(campaign)
    return {
        "uploads": page,
        "pending": copying or any(is_pending(upload, job) for upload, job in rows),
        "copying": copying,
        "workers": service,
        "drawn": selectors.is_drawn(campaign),
        "drop": last,
        "earlier": drops.earlier(campaign, last),
        "token": hashlib.sha256(repr((states, copying, service.missing)).encode()).hexdigest()[:16],
    }


def _with_reasons(rows: list[Upload]) -> None:
    """Fetches the only error of each file that has one, which its row may show, in one query."""
    alone = {row.pk: row for row in rows if row.error_count == 1}
    for pk, errors in Upload.objects.filter(pk__in=alone).values_list("pk", "errors"):
        alone[pk].errors = errors


def _work(job: Job | None) -> tuple[object, ...]:
    return (job.state, job.progress, job.note) if job else ()


def is_pending(upload: Upload, job: Job | None) -> bool:
    """Whether the file is still to be read, or being read."""
    waiting = upload.state in (Upload.State.STORED, Upload.State.READING)
    return waiting and not (job is not None and job.state == Job.State.FAILED)


def upload_detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """What reading the file brought: result, errors, warnings."""
    campaign = organized_campaign(user_of(request), slug)
    upload = get_object_or_404(campaign.uploads.select_related("created_by", "replaces"), pk=pk)
    job = selectors.job_of("upload", upload.pk)
    context = {
        "campaign": campaign,
        "upload": upload,
        "job": job,
        "pending": is_pending(upload, job),
        "workers": workers.serving("upload"),
        "drawn": selectors.is_drawn(campaign),
    }
    return render(request, "judging/upload.html", context)


@require_POST
@leads_back("material", "slug")
def upload_remove(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return _acted(request, slug, pk, uploads.remove, "is removed")


@require_POST
@leads_back("material", "slug")
def upload_cancel(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return _acted(request, slug, pk, uploads.cancel, "is not read any further")


def _acted(
    request: HttpRequest, slug: str, pk: int, act: Callable[..., None], said: str
) -> HttpResponse:
    """Back to the material, with what became of one of its uploads."""
    campaign = organized_campaign(user_of(request), slug)
    upload = there(campaign.uploads.all(), "This file", pk=pk)
    try:
        act(upload=upload, by=user_of(request))
        messages.success(request, f"{upload.name} {said}.")
    except UserError as error:
        tell(request, error)
    return redirect("material", slug)


@require_POST
def drop_take_in(request: HttpRequest, slug: str, drop: str) -> HttpResponse:
    """Takes in all files of a drop that were only checked and are good."""
    campaign = organized_campaign(user_of(request), slug)
    try:
        taken = taking_in.take_in_drop(campaign=campaign, by=user_of(request), drop=drop)
    except UserError as error:
        messages.error(request, error.message)
    else:
        files = "1 file is" if taken == 1 else f"{taken} files are"
        said = f"{files} read once more and taken in." if taken else NOTHING_LEFT
        messages.success(request, said)
    return redirect("material", slug)


@require_POST
def drop_dismiss(request: HttpRequest, slug: str, drop: str) -> HttpResponse:
    """Removes all files of a drop of which nothing was taken in."""
    campaign = organized_campaign(user_of(request), slug)
    gone = taking_in.dismiss(campaign=campaign, by=user_of(request), drop=drop)
    said = f"{gone} file{' is' if gone == 1 else 's are'} dismissed." if gone else NOTHING_LEFT
    messages.success(request, said)
    return redirect("material", slug)


NOTHING_LEFT = "None of these files is left: they are taken in or dismissed already."


def topic_list(request: HttpRequest, slug: str) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    asked = _asked(request)
    rows = campaign.topics.order_by("pk")
    found = rows.filter(Q(topic_id__startswith=asked) | Q(title__icontains=asked))
    page = _page(request, found if asked else rows)
    context = {
        "campaign": campaign,
        "asked": asked,
        "rows": page,
        "found": answers.topic_rows(campaign, list(page.object_list)),
    }
    return render(request, "judging/topics.html", context)


def document_list(request: HttpRequest, slug: str) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    asked = _asked(request)
    rows = selectors.documents(campaign).order_by("pk").defer("text")
    found = rows.filter(Q(docno__startswith=asked) | Q(title__icontains=asked))
    context = {
        "campaign": campaign,
        "asked": asked,
        "rows": _page(request, found if asked else rows),
    }
    return render(request, "judging/documents.html", context)


def document_detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    document = get_object_or_404(selectors.documents(campaign), pk=pk)
    context = {"campaign": campaign, "document": document}
    return render(request, "judging/document.html", context)


def _asked(request: HttpRequest) -> str:
    """What is searched for; control characters are left out, as PostgreSQL refuses NUL."""
    return "".join(c for c in request.GET.get("q", "")[:200] if c.isprintable()).strip()


def _page(request: HttpRequest, rows: QuerySet[Row]) -> "Page[Row]":
    return Paginator(rows, PER_PAGE).get_page(request.GET.get("page"))
