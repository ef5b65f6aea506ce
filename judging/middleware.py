"""What stands before and behind all pages. The REST interface looks after both by itself."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from judging.access import user_of
from judging.errors import UserError
from judging.services import factors

WITHOUT_SECOND_FACTOR = {
    "factors", "factor-codes", "factor-passkeys", "factor-recovery",
    "confirm-it-is-you", "sign-out", "password",
}  # fmt: skip
"""Pages for whoever shall set one up first."""


class SecondFactorMiddleware:
    """Sends those to set up a second factor of whom the site wants one (SECOND_FACTOR_FOR)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, _args: Any, _kwargs: Any
    ) -> HttpResponse | None:
        match = request.resolver_match
        of_rest = request.path.startswith("/api/")
        if of_rest or not getattr(view, "login_required", True) or not match:
            return None
        if match.url_name in WITHOUT_SECOND_FACTOR or not request.user.is_authenticated:
            return None
        if not factors.is_asked_for(user_of(request)):
            return None
        messages.warning(request, "This site wants a second factor of you. Set one up first.")
        return redirect("factors")


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
