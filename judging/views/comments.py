"""What assessors wrote beside their answers, for the organizers: a page and a file."""

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render

from judging import selectors
from judging.access import organized_campaign, user_of
from judging.formats.csvfile import csv_lines

PER_PAGE = 50
COLUMNS = ("topic", "docno", "other", "assessor", "grade", "comment", "revision", "when")


def comments(request: HttpRequest, slug: str) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    pages = Paginator(selectors.comments(campaign), PER_PAGE)
    context = {"campaign": campaign, "rows": pages.get_page(request.GET.get("page"))}
    return render(request, "judging/comments.html", context)


def comments_file(request: HttpRequest, slug: str) -> HttpResponseBase:
    """All of them as CSV, in the order of the page."""
    campaign = organized_campaign(user_of(request), slug)
    rows = (
        (
            said.assignment.pair.topic.topic_id,
            said.assignment.pair.docno,
            said.assignment.pair.other,
            said.assessor.get_username(),
            said.grade,
            said.comment,
            said.revision,
            said.assignment.changed.isoformat(),
        )
        for said in selectors.comments(campaign).iterator(chunk_size=2000)
    )
    answer = StreamingHttpResponse(csv_lines(COLUMNS, rows), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{slug}-comments.csv"'
    return answer
