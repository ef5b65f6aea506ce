"""The last answer to what went wrong: 503 when the database is away, else 500.

It serves pages and middlewares; views of the REST interface answer by themselves in the same way.
"""

import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views.defaults import server_error

from judging.api.errors import RETRY_SECONDS, body

MESSAGE = "The database does not answer. Try again in a moment."


def of_server(request: HttpRequest) -> HttpResponse:
    """Django calls this while it handles the exception, wherever that came from."""
    if not isinstance(sys.exception(), (OperationalError, InterfaceError)):
        return server_error(request)
    answer: HttpResponse
    if request.path_info.startswith("/api/"):
        answer = JsonResponse(body("database_unavailable", MESSAGE, ()), status=503)
    else:
        answer = HttpResponse(render_to_string("503.html"), status=503)
    answer["Retry-After"] = str(RETRY_SECONDS)
    return answer
