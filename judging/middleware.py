"""What stands before and behind all pages. The REST interface looks after both by itself."""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from django.contrib import messages
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from judging.access import user_of
from judging.errors import UserError
from judging.services import factors

WITHOUT_SECOND_FACTOR = {
    "factors", "factor-codes", "factor-passkeys", "factor-recovery",
    "confirm-it-is-you", "sign-out", "password",
}  # fmt: skip
"""Pages for whoever shall set one up first."""

READS, NAVIGATE = ("GET", "HEAD"), "navigate"
SIGNED_OUT = "You were signed out, so that nothing was changed. Sign in, and do it again."


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


class SignInMiddleware(LoginRequiredMiddleware):
    """Whoever sends a form and is signed in no more comes back to the page that has the form."""

    def handle_no_permission(self, request: HttpRequest, view_func: Any) -> HttpResponseRedirect:
        if request.method in READS or request.headers.get("Sec-Fetch-Mode", NAVIGATE) != NAVIGATE:
            return super().handle_no_permission(request, view_func)
        messages.warning(request, SIGNED_OUT)
        before, here = request.headers.get("referer", ""), {request.get_host()}
        page = urlsplit(before if url_has_allowed_host_and_scheme(before, here) else "")
        there = page._replace(scheme="", netloc="", fragment="").geturl()
        return redirect_to_login(there or reverse("home"))


class UserErrorMiddleware:
    """Shows a UserError that no view caught: what is wrong, how to mend it, and a way back. Who
    opens an address that takes forms alone is shown a way back, too."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        answer = self.get_response(request)
        if answer.status_code != 405 or request.method not in READS or answer.content:
            return answer
        page = render(request, "405.html", status=405)
        page["Allow"] = answer["Allow"]
        return page

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
