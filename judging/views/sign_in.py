"""Signing in: a password, then what is asked beside it; or a passkey, which is both.

Between the two steps nobody is signed in. The session has who gave the password, for ten minutes
and while that password is theirs. Whoever comes in gets a session with a new key, so that nobody
else has it who had put an old one there.
"""

import json
import time
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, LogoutView, redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.crypto import constant_time_compare
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from judging import selectors
from judging.access import address_of, user_of
from judging.errors import UserError
from judging.forms import SignInForm, blame
from judging.forms_account import CodeForm, PasswordForm
from judging.models import SecondFactor, User
from judging.services import factors, passkeys, tries
from judging.services import sign_in as service

BACKEND = "django.contrib.auth.backends.ModelBackend"
PENDING, CHALLENGE, CONFIRMED = "second_step", "passkey_challenge", "confirmed"
PENDING_SECONDS, CHALLENGE_SECONDS, CONFIRMED_SECONDS = 600, 300, 900
CHALLENGES_PER_ADDRESS = 300


class SignInView(LoginView):
    template_name = "judging/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        return passed(self.request, form.get_user(), self.get_success_url())


@login_not_required
def sign_in(request: HttpRequest) -> HttpResponseBase:
    shown = {
        "demo_sign_ins": selectors.demo_sign_ins(),
        "passkeys": not passkeys.why_not(),
        "sign_on": settings.OIDC_NAME if settings.OIDC_ISSUER else "",
    }
    return SignInView.as_view(extra_context=shown)(request)


@login_not_required
def to_sign_in(request: HttpRequest) -> HttpResponse:
    """Where the administration sends who may not enter: its only door is that of the site."""
    if request.user.is_authenticated:
        raise PermissionDenied("Only admins of the site may see this.")
    return redirect(f"{reverse('sign-in')}?{request.GET.urlencode()}")


@login_not_required
def sign_out(request: HttpRequest) -> HttpResponseBase:
    """Also of who was signed out by another tab, and has nothing to sign in for."""
    if not request.user.is_authenticated:
        return redirect("sign-in")
    return LogoutView.as_view()(request)


def passed(request: HttpRequest, user: User, onwards: str) -> HttpResponse:
    """Who gave their password, or came from a provider: in, or asked for their second factor."""
    if not user.has_second_factor:
        return let_in(request, user, onwards)
    request.session.cycle_key()
    request.session[PENDING] = {
        "user": user.pk,
        "epoch": user.get_session_auth_hash(),
        "since": time.time(),
        "onwards": onwards,
    }
    return redirect("sign-in-second")


def let_in(request: HttpRequest, user: User, onwards: str) -> HttpResponse:
    request.session.pop(PENDING, None)
    login(request, user, backend=BACKEND)
    request.session[CONFIRMED] = time.time()
    return redirect(inside(request, onwards))


def _pending(request: HttpRequest) -> tuple[User, str] | None:
    """Who gave the password lately, and where they wanted to."""
    told = request.session.get(PENDING)
    if not told or time.time() - told["since"] > PENDING_SECONDS:
        return None
    user = User.objects.filter(pk=told["user"], is_active=True).first()
    if user is None or not constant_time_compare(user.get_session_auth_hash(), told["epoch"]):
        return None
    return user, told["onwards"]


@login_not_required
@sensitive_post_parameters()
@never_cache
def second(request: HttpRequest) -> HttpResponse:
    """The second step: a code of the app, a recovery code, or a passkey."""
    pending = _pending(request)
    if pending is None:
        messages.info(request, "Sign in with your password first.")
        return redirect("sign-in")
    user, onwards = pending
    form, status = CodeForm(request.POST or None), 200
    if form.is_valid():
        try:
            factors.verify(user=user, code=form.cleaned_data["code"])
        except UserError as error:
            blame(form, error)
            status = 429 if error.status == 429 else 200
        else:
            return let_in(request, user, onwards)
    kinds = set(user.factors.values_list("kind", flat=True))
    has_passkey = SecondFactor.Kind.PASSKEY in kinds and not passkeys.why_not()
    has_codes = SecondFactor.Kind.CODES in kinds
    context = {"form": form, "has_passkey": has_passkey, "has_codes": has_codes}
    return render(request, "judging/sign_in_second.html", context, status=status)


@login_not_required
@require_POST
def passkey_options(request: HttpRequest) -> JsonResponse:
    """A challenge for this session: for who gave the password, or for anybody with a passkey."""
    tries.spend(tries.key("passkeys", tries.origin(address_of(request))), CHALLENGES_PER_ADDRESS)
    pending = _pending(request)
    options, state = passkeys.begin_asking(pending[0] if pending else None)
    request.session[CHALLENGE] = {"state": state, "since": time.time()}
    return JsonResponse(options)


def challenge(request: HttpRequest) -> dict[str, Any] | None:
    """What this session was asked, lately; it is taken once."""
    kept = request.session.pop(CHALLENGE, None)
    return kept["state"] if kept and time.time() - kept["since"] < CHALLENGE_SECONDS else None


def answered(request: HttpRequest) -> Any:
    """What the browser says that its passkey says."""
    try:
        return json.loads(request.POST.get("credential", "")[:20_000])
    except ValueError:
        return None


@login_not_required
@require_POST
def passkey(request: HttpRequest) -> HttpResponse:
    """In by a passkey: after the password, or with nothing else."""
    pending = _pending(request)
    onwards = pending[1] if pending else inside(request, request.POST.get("next", ""))
    try:
        state, answer = challenge(request), answered(request)
        user = passkeys.verify(state=state, answer=answer, pending=pending[0] if pending else None)
    except UserError as error:
        messages.error(request, error.message)
        return redirect("sign-in-second") if pending else redirect_to_login(onwards)
    return let_in(request, user, onwards)


def inside(request: HttpRequest, address: str) -> str:
    """The address, if it is a path of this site, and does not lead out; the start otherwise."""
    ours = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    leads_out = address.partition("?")[0] == reverse("sign-out")
    return address if address.startswith("/") and ours and not leads_out else reverse("home")


# ----------------------------------------------------------------------------- once more, inside


def is_confirmed(request: HttpRequest) -> bool:
    """Whether they have shown lately who they are: a session alone may be somebody else's."""
    since: float = request.session.get(CONFIRMED, 0)
    return time.time() - since < CONFIRMED_SECONDS


def ask_who(request: HttpRequest, onwards: str = "") -> HttpResponse:
    return redirect(f"{reverse('confirm-it-is-you')}?next={onwards or request.path}")


@sensitive_post_parameters()
@never_cache
def confirm(request: HttpRequest) -> HttpResponse:
    """The password once more, before what opens the account to others is changed."""
    user, form = user_of(request), PasswordForm(request.POST or None)
    onwards = inside(request, request.GET.get("next", ""))
    if form.is_valid():
        try:
            given = form.cleaned_data["password"]
            service.confirm(user=user, password=given, address=address_of(request))
        except UserError as error:
            blame(form, error)
        else:
            request.session[CONFIRMED] = time.time()
            return redirect(onwards)
    return render(request, "judging/confirm.html", {"form": form})
