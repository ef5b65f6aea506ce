"""Reports: made by the worker, kept, downloaded."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_POST

from estimation import listings, selectors
from estimation.models import EstimateSet, Report, Round
from estimation.services import files, reports
from estimation.services.report_files.kinds import GROUPS, ReportKind
from estimation.services.report_files.table import REPORTS
from estimation.views.rounds import failure, pending, round_of
from judging import selectors as judging
from judging.access import organized_campaign, user_of
from judging.formats.csvfile import csv_lines
from judging.services import pseudonyms
from judging.workers import serving

BODY = ("<main", "</main>")
KINDS_BY_GROUP = [
    (group, [kind for kind in REPORTS.values() if kind.group == group]) for group in GROUPS
]


def report_current(request: HttpRequest, slug: str) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    row = selectors.current_round(campaign)
    return redirect("reports", slug, row.number) if row else redirect("round-list", slug)


def report_list(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """The files; a poll gets the list anew while they are made, and nothing before."""
    campaign = organized_campaign(user_of(request), slug)
    row = round_of(campaign, number)
    job, latest = judging.job_of("report", row.pk), selectors.latest_estimates(row)
    made = in_order(listings.reports_of(row))
    refused = _refused(row, listings.refused_reports(latest)) if latest else {}
    fresh = [report for report in made if report.estimate_set == latest]
    there = {report.name for report in fresh} | set(refused)
    earlier = [report for report in made if report.estimate_set != latest]
    earlier.sort(key=lambda report: -report.estimate_set.number)
    context = {
        "campaign": campaign,
        "round": row,
        "latest": latest,
        "fresh": fresh,
        "refused": refused,
        "missing": [name for name in REPORTS if name not in there] if fresh else [],
        "earlier": earlier,
        "job": job if pending(job) else None,
        "failure": failure(job),
        "workers": serving("report"),
    }
    polled = request.htmx  # type: ignore[attr-defined]
    context |= {"polled": polled, "here": request.path}
    return render(request, f"estimation/{'_reports' if polled else 'reports'}.html", context)


@require_POST
def report_make(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    reports.request(row=round_of(campaign, number), by=user_of(request))
    return redirect("reports", slug, number)


@require_POST
def report_names(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Who is behind the pseudonyms of the files; the audit log has who asked."""
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    round_of(campaign, number)
    known = pseudonyms.reveal(campaign=campaign, by=user)
    rows = [(each.pseudonym, each.username, each.name) for each in known]
    lines = csv_lines(("pseudonym", "username", "name"), rows)
    answer = HttpResponse("".join(lines), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{slug}-names.csv"'
    return answer


def report_file(request: HttpRequest, slug: str, number: int, pk: int) -> HttpResponseBase:
    """The file as it was made, to be saved."""
    report = _report(request, slug, number, pk)
    name = f"{slug}-round-{number}-batch-{report.estimate_set.batches}-{report.name}"
    return FileResponse(
        files.path_of(report.file).open("rb"),
        as_attachment=True,
        filename=name,
        content_type=REPORTS[report.name].content_type,
    )


def report_view(request: HttpRequest, slug: str, number: int, pk: int) -> HttpResponse:
    """The HTML report within the site: the stored text, with the site's styles around it."""
    report = _report(request, slug, number, pk)
    if not REPORTS[report.name].is_page:
        raise Http404("This file is for download only.")
    document = files.path_of(report.file).read_text(encoding="utf-8")
    start, end = document.index(BODY[0]), document.rindex(BODY[1])
    body = document[document.index(">", start) + 1 : end]
    context = {
        "campaign": report.estimate_set.round.campaign,
        "report": report,
        "round": report.estimate_set.round,
        "body": mark_safe(body),  # noqa: S308 (made by our own template, which escapes)
    }
    return render(request, "estimation/report_view.html", context)


def in_order(made: Iterable[Report]) -> list[Report]:
    """As files stand in lists: with those that are good for the same."""
    names = list(REPORTS)
    return sorted(
        made,
        key=lambda each: (GROUPS.index(REPORTS[each.name].group), names.index(each.name)),
    )


@dataclass(frozen=True)
class Export:
    """A kind of file in the menu: ``made``, or ``refused`` with why there is none, or neither."""

    kind: ReportKind
    made: Report | None
    refused: str


@dataclass(frozen=True)
class Exports:
    """All kinds of files, by what they are good for, and what there is of some estimates."""

    groups: Sequence[tuple[str, list[Export]]]

    @property
    def _all(self) -> list[Export]:
        return [each for _, several in self.groups for each in several]

    @property
    def some(self) -> bool:
        return any(each.made for each in self._all)

    @property
    def lacking(self) -> bool:
        return any(not each.made and not each.refused for each in self._all)


def exports(row: Round, shown: EstimateSet | None) -> Exports:
    stored = list(shown.reports.all()) if shown else []
    made = {each.name: each for each in stored if not each.refused}
    refused = _refused(row, stored) if shown else {}
    groups = [
        (
            group,
            [Export(kind, made.get(kind.name), refused.get(kind.name, "")) for kind in several],
        )
        for group, several in KINDS_BY_GROUP
    ]
    return Exports(groups)


def _refused(row: Round, stored: Iterable[Report]) -> dict[str, str]:
    """Why there are no files of some kinds: as found when they were to be made, or as known of a
    round like this before."""
    known = {name: kind.why_not(row) for name, kind in REPORTS.items()}
    found = {each.name: each.refused for each in stored if each.refused}
    return {name: why for name, why in (known | found).items() if why}


def _report(request: HttpRequest, slug: str, number: int, pk: int) -> Report:
    campaign = organized_campaign(user_of(request), slug)
    row = round_of(campaign, number)
    report = listings.reports_of(row).select_related("estimate_set__round__campaign")
    found = report.filter(pk=pk).first()
    if found is None:
        raise Http404("No such report.")
    return found
