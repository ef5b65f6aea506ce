"""Members of a campaign, and the links that invite them."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from judging import selectors
from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.forms import MemberForm, blame
from judging.models import Membership
from judging.services import members


@never_cache
def people(request: HttpRequest, slug: str) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    form = MemberForm(request.POST or None)
    if form.is_valid():
        try:
            membership, created = members.add(campaign=campaign, by=user, **form.cleaned_data)
        except UserError as error:
            blame(form, error)
        else:
            told = "is a member now" if created else "was a member already"
            messages.success(request, f"{membership.user} {told}.")
            return redirect("people", slug=slug)
    rows = [(row, _link(request, row)) for row in selectors.members(campaign)]
    context = {"campaign": campaign, "form": form, "rows": rows}
    return render(request, "judging/people.html", context)


def _link(request: HttpRequest, membership: Membership) -> str | None:
    invitation = members.invitation(membership.user, by=user_of(request))
    return request.build_absolute_uri(reverse("join", args=invitation)) if invitation else None


@require_POST
def remove(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    user = user_of(request)
    campaign = organized_campaign(user, slug)
    membership = get_object_or_404(campaign.memberships.select_related("user"), pk=pk)
    members.remove(membership=membership, by=user)
    messages.success(request, f"{membership.user} left the campaign. Their judgments stay.")
    return redirect("people", slug=slug)
