"""Signing on by an OpenID provider. A second factor of this site is asked for as ever."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from judging.access import address_of, user_of
from judging.errors import UserError
from judging.services import sign_on, tries
from judging.views import sign_in

WANTED = "sign_on"
BEGUN_PER_ADDRESS = 300


@login_not_required
@never_cache
@require_GET
def begin(request: HttpRequest) -> HttpResponse:
    """To the provider. Who is signed in connects their account: they have shown who they are."""
    sign_on.refuse_without()
    connects = bool(request.GET.get("link")) and request.user.is_authenticated
    if connects and not sign_in.is_confirmed(request):
        return sign_in.ask_who(request, f"{reverse('sign-on')}?link=1")
    tries.spend(tries.key("sign-on", tries.origin(address_of(request))), BEGUN_PER_ADDRESS)
    onwards = sign_in.inside(request, request.GET.get("next", ""))
    connected = user_of(request).pk if connects else None
    request.session[WANTED] = {"onwards": onwards, "connects": connected}
    try:
        return sign_on.redirect_to(request, settings.SITE_URL + reverse("sign-on-back"))
    except UserError as error:
        messages.error(request, error.message)
        return redirect("account" if connects else "sign-in")


@login_not_required
@never_cache
@require_GET
def back(request: HttpRequest) -> HttpResponse:
    """From the provider, in the session that was sent there, and once."""
    sign_on.refuse_without()
    wanted = request.session.pop(WANTED, None) or {"onwards": reverse("home"), "connects": None}
    here = request.user.is_authenticated
    try:
        said = sign_on.claimed(request)
        if wanted["connects"] is not None:
            return _connected(request, wanted["connects"], said)
        user = sign_on.account(said)
    except UserError as error:
        messages.error(request, error.message)
        return redirect("account" if here else "sign-in")
    return sign_in.passed(request, user, wanted["onwards"])


def _connected(request: HttpRequest, connects: int, said: sign_on.Claimed) -> HttpResponse:
    """Only to the account that asked for it, should somebody else be signed in by now."""
    if not request.user.is_authenticated or user_of(request).pk != connects:
        messages.error(request, "Sign in, and connect your account once more.")
        return redirect("sign-in")
    sign_on.connect(user=user_of(request), said=said)
    messages.success(request, f"{settings.OIDC_NAME} opens your account from now on.")
    return redirect("account")


@require_POST
def remove(request: HttpRequest) -> HttpResponse:
    if not sign_in.is_confirmed(request):
        return sign_in.ask_who(request, reverse("account"))
    sign_on.disconnect(user=user_of(request))
    messages.success(request, f"{settings.OIDC_NAME} opens your account no more.")
    return redirect("account")
