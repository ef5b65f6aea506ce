"""Deleting a campaign: what goes, what to take along before, and its name typed."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from judging.access import organized_campaign, user_of
from judging.errors import UserError
from judging.forms import DeleteForm, blame
from judging.services import deletion


def delete(request: HttpRequest, slug: str) -> HttpResponse:
    user = user_of(request)
    if request.method == "POST" and deletion.has_deleted(user, slug):
        messages.info(request, "This campaign is deleted already.")
        return redirect("home")
    campaign = organized_campaign(user, slug)
    form = DeleteForm(request.POST or None)
    status = 200
    if form.is_valid():
        try:
            deletion.request(campaign=campaign, by=user, name=form.cleaned_data["name"])
        except UserError as error:
            blame(form, error)
            status = error.status
        else:
            told = f"“{campaign.name}” is deleted. Its files go within the next hours."
            messages.success(request, told)
            return redirect("home")
    context = {
        "campaign": campaign,
        "form": form,
        "contents": deletion.contents(campaign),
        "why_not": deletion.why_not(campaign),
    }
    return render(request, "judging/campaign_delete.html", context, status=status)
