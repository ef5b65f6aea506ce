"""Pages that letters lead to, and from which they are asked for: a reset, one's own address."""

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from judging.access import address_of, user_of
from judging.errors import UserError
from judging.forms import JoinForm, blame
from judging.forms_account import AddressForm, ForgotForm
from judging.services import addresses, members, resets
from judging.views import sign_in


@login_not_required
@never_cache
def forgot(request: HttpRequest) -> HttpResponse:
    """Says the same to everybody, whoever is asked for."""
    form = ForgotForm(request.POST or None)
    asked = False
    if form.is_valid() and settings.MAIL_ON:
        try:
            resets.ask(who=form.cleaned_data["who"], address=address_of(request))
            asked = True
        except UserError as error:
            blame(form, error)
    context = {"form": form, "asked": asked, "mail": settings.MAIL_ON}
    return render(request, "judging/forgot.html", context)


@login_not_required
@sensitive_post_parameters()
@never_cache
def reset(request: HttpRequest, uid: str, token: str) -> HttpResponse:
    """Nothing happens before the form is sent, and nobody is signed in by it."""
    user = resets.found(uid, token)
    form = JoinForm(request.POST or None)
    if form.is_valid():
        try:
            resets.set_password(uid=uid, token=token, password=form.cleaned_data["password"])
        except UserError as error:
            blame(form, error)
        else:
            messages.success(request, "Your password is set. Sign in with it.")
            return redirect("sign-in")
    return render(request, "judging/reset.html", {"form": form, "forgetful": user})


@never_cache
def address(request: HttpRequest) -> HttpResponse:
    """One's own address: asked for here, and theirs when the link of a letter was followed."""
    user = user_of(request)
    members.refuse_guest(user)
    if settings.MAIL_ON and not sign_in.is_confirmed(request):
        return sign_in.ask_who(request)
    form = AddressForm(request.POST or None)
    asked = ""
    if form.is_valid() and settings.MAIL_ON:
        try:
            addresses.ask(user=user, address=form.cleaned_data["address"])
            asked = form.cleaned_data["address"]
        except UserError as error:
            blame(form, error)
    context = {"form": form, "asked": asked, "mail": settings.MAIL_ON}
    return render(request, "judging/address.html", context)


@never_cache
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    user = user_of(request)
    asked = addresses.told(user=user, token=token)
    if request.method == "POST":
        addresses.confirm(user=user, token=token)
        messages.success(request, f"Letters go to {asked} from now on.")
        return redirect("account")
    return render(request, "judging/address_confirm.html", {"asked": asked})
