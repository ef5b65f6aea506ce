"""Signing in, joining by invitation, one's own password and keys."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from judging import selectors
from judging.access import user_of
from judging.errors import UserError
from judging.forms import JoinForm, TokenForm, blame
from judging.models import ApiToken
from judging.services import members
from judging.views.already import leads_back, there
from judging.views.sign_in import let_in


@login_not_required
@sensitive_post_parameters()
@never_cache
def join(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """The invited member chooses a password and is signed in."""
    user = members.invited(uid, token)
    form = JoinForm(request.POST or None)
    if form.is_valid():
        try:
            user = members.accept(
                uid=uid,
                token=token,
                password=form.cleaned_data["password"],
                proof=request.GET.get("by", ""),
            )
        except UserError as error:
            blame(form, error)
        else:
            messages.success(request, "Welcome. Your password is set.")
            return let_in(request, user, reverse("home"))
    campaigns = [membership.campaign for membership in user.memberships.select_related("campaign")]
    context = {"form": form, "invited": user, "campaigns": campaigns}
    return render(request, "judging/join.html", context)


@never_cache
def account(request: HttpRequest) -> HttpResponse:
    """One's own keys; a new one is shown in the answer to the request that makes it only."""
    user = user_of(request)
    if request.method == "POST":
        members.refuse_guest(user)
    form = TokenForm(request.POST or None)
    fresh = None
    if form.is_valid():
        try:
            fresh = members.create_token(user=user, **form.cleaned_data)
            form = TokenForm()
        except UserError as error:
            blame(form, error)
    context = {
        "form": form,
        "fresh": fresh,
        "tokens": selectors.keys_of(user),
        "mail": settings.MAIL_ON,
        "sign_on": settings.OIDC_NAME if settings.OIDC_ISSUER else "",
        "identity": user.identities.filter(issuer=settings.OIDC_ISSUER).first(),
    }
    return render(request, "judging/account.html", context)


@sensitive_post_parameters()
def password(request: HttpRequest) -> HttpResponseBase:
    """Another password, for whoever has one."""
    members.refuse_guest(user_of(request))
    change = PasswordChangeView.as_view(
        template_name="judging/password.html", success_url=reverse("account")
    )
    return change(request)


@require_POST
@leads_back("account")
def revoke(request: HttpRequest, pk: int) -> HttpResponse:
    user = user_of(request)
    token = there(ApiToken.objects.filter(user=user), "This key", pk=pk)
    members.revoke_token(token=token, by=user)
    messages.success(request, f"The key “{token.name}” no longer works.")
    return redirect("account")
