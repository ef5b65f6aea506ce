"""One's own second factors: codes of an app, passkeys, and recovery codes for when they are lost.

What opens an account is shown and changed by who has shown lately who they are.
"""

import json
import time

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from judging.access import user_of
from judging.errors import UserError
from judging.forms import blame
from judging.forms_account import NewCodesForm, PasskeyForm
from judging.models import SecondFactor, User
from judging.services import factors, members, passkeys
from judging.views import sign_in
from judging.views.already import leads_back, there
from judging.views.qr import picture


@never_cache
def factor_list(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    members.refuse_guest(user)
    return _list(request, user)


def _list(
    request: HttpRequest, user: User, codes: list[str] | None = None, status: int = 200
) -> HttpResponse:
    rows = list(user.factors.order_by("pk"))
    context = {
        "factors": rows,
        "has_codes": any(row.kind == SecondFactor.Kind.CODES for row in rows),
        "no_passkeys": passkeys.why_not(),
        "codes": codes,
        "unused": factors.unused_recovery_codes(user) if rows else 0,
        "is_asked_for": factors.is_asked_for(user),
    }
    return render(request, "judging/factors.html", context, status=status)


@sensitive_post_parameters()
@never_cache
def codes(request: HttpRequest) -> HttpResponse:
    """A secret for an app, as a picture and as letters; set up with the first code that fits."""
    user = user_of(request)
    members.refuse_guest(user)
    if not sign_in.is_confirmed(request):
        return sign_in.ask_who(request)
    form = NewCodesForm(request.POST or None)
    if form.is_valid():
        try:
            fresh = factors.set_up_codes(user=user, **form.cleaned_data)
        except UserError as error:
            if error.field is None:
                raise
            blame(form, error)
        else:
            messages.success(request, "Codes of the app are asked for from now on.")
            return _list(request, User.objects.get(pk=user.pk), fresh)
    token = form.cleaned_data.get("token", "") if form.is_bound else ""
    draft = factors.drafted(user=user, token=token) if token else factors.draft(user=user)
    if not form.is_bound:
        form = NewCodesForm(initial={"token": draft.token})
    context = {"form": form, "draft": draft, "picture": picture(draft.address)}
    return render(request, "judging/factor_codes.html", context)


@never_cache
def add_passkey(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    members.refuse_guest(user)
    if not sign_in.is_confirmed(request):
        return sign_in.ask_who(request)
    form = PasskeyForm(request.POST or None)
    if form.is_valid():
        try:
            state, answer = sign_in.challenge(request), sign_in.answered(request)
            asked = form.cleaned_data["name"]
            name, fresh = passkeys.add(user=user, name=asked, state=state, answer=answer)
        except UserError as error:
            blame(form, error)
        else:
            messages.success(request, f"The passkey “{name}” opens your account from now on.")
            if name != asked:
                messages.info(request, f"You have one that is called “{asked}” already.")
            return _list(request, User.objects.get(pk=user.pk), fresh)
    options, state = passkeys.begin_adding(user)
    request.session[sign_in.CHALLENGE] = {"state": state, "since": time.time()}
    context = {"form": form, "options": json.dumps(options)}
    return render(request, "judging/factor_passkey.html", context)


@never_cache
@require_POST
def recovery(request: HttpRequest) -> HttpResponse:
    """New recovery codes, shown in this answer only."""
    if not sign_in.is_confirmed(request):
        return sign_in.ask_who(request, reverse("factors"))
    user = user_of(request)
    return _list(request, user, factors.renew_recovery_codes(user=user))


@require_POST
@leads_back("factors")
def remove(request: HttpRequest, pk: int) -> HttpResponse:
    user = user_of(request)
    rows = SecondFactor.objects.filter(user=user).select_related("user")
    factor = there(rows, "This second factor", pk=pk)
    if not sign_in.is_confirmed(request):
        return sign_in.ask_who(request, reverse("factors"))
    factors.remove(factor=factor, by=user)
    messages.success(request, f"“{factor.name}” is not asked for any more.")
    return redirect("factors")
