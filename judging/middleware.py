"""Errors of the user, raised by services, as pages. The REST interface has its own handler."""

from collections.abc import Callable
from urllib.parse import urlsplit

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from judging.errors import UserError


class UserErrorMiddleware:
    """Shows a UserError that no view caught: what is wrong, how to mend it, and a way back."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, UserError):
            return None
        context = {"error": error, "back": _back(request, gone=error.code == "gone")}
        return render(request, "error.html", context, status=error.status)


def _back(request: HttpRequest, *, gone: bool) -> str:
    """The page before; the campaign's, where that was the page of what is gone."""
    before = request.headers.get("referer", "")
    slug = request.resolver_match.kwargs.get("slug") if request.resolver_match else None
    if gone and slug and request.path.startswith(urlsplit(before).path):
        return reverse("campaign-home", args=[slug])
    return before
