"""The last answer to what went wrong: 503 without the database, 507 without room, else 500.

It serves pages and middlewares; views of the REST interface answer by themselves in the same way.
"""

import sys

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.http import escape_leading_slashes

from judging.api.errors import RETRY_SECONDS, body, not_now


def of_server(request: HttpRequest) -> HttpResponse:
    """Django calls this while it handles the exception, wherever that came from."""
    here = escape_leading_slashes(request.get_full_path())  # //host would be another site
    again = here if request.method in ("GET", "HEAD") else ""
    refusal = not_now(sys.exception())
    if refusal is None:
        return HttpResponse(render_to_string("500.html", {"again": again}), status=500)
    status, code, message = refusal
    answer: HttpResponse
    if request.path_info.startswith("/api/"):
        answer = JsonResponse(body(code, message, ()), status=status)
    else:
        context = {"message": message, "again": again}
        answer = HttpResponse(render_to_string("503.html", context), status=status)
    answer["Retry-After"] = str(RETRY_SECONDS)
    return answer
