"""Refuses bodies that are too long before anything reads them, and writes them to a disk."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from evalsite.bodies import most_bytes
from judging.api.errors import body

MEBIBYTE = 2**20


class BodyLimitMiddleware:
    """413 for a length that is over the limit of the address.

    Without a length Django takes a body for empty; `manage.py up` counts it and tells the length.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        most = most_bytes(request.path_info)
        if _length(request) <= most:
            return self.get_response(request)
        message = f"The request is too large: expected at most {most // MEBIBYTE} MB here."
        if request.path_info.startswith("/api/"):
            return JsonResponse(body("too_large", message, ()), status=413)
        return HttpResponse(render_to_string("413.html", {"message": message}), status=413)


def _length(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0
