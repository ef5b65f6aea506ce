"""What assessors wrote beside their answers, as a file. The page is a filter of the queue."""

from django.http import HttpRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase

from judging import selectors
from judging.access import organized_campaign, user_of
from judging.formats.csvfile import csv_lines

COLUMNS = (
    "topic",
    "docno",
    "other",
    "assessor",
    "grade",
    "comment",
    "revision",
    "when",
    "excluded",
)


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
            said.is_excluded,
        )
        for said in selectors.comments(campaign).iterator(chunk_size=2000)
    )
    answer = StreamingHttpResponse(csv_lines(COLUMNS, rows), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{slug}-comments.csv"'
    return answer
