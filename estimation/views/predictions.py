"""Predicted grades and costs: the list of them, and the page of each."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from estimation.predicted import predicted_facts, predictions_of
from judging.access import organized_campaign, user_of


def prediction_list(request: HttpRequest, slug: str) -> HttpResponse:
    campaign = organized_campaign(user_of(request), slug)
    context = {"campaign": campaign, "found": predictions_of(campaign)}
    return render(request, "estimation/predictions.html", context)


def prediction_detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Where it comes from, what it says, and which rounds learn from it."""
    campaign = organized_campaign(user_of(request), slug)
    rows = campaign.predictions.select_related("campaign", "upload__created_by")
    facts = predicted_facts(get_object_or_404(rows, pk=pk))
    context = {"campaign": campaign, "facts": facts, "row": facts.prediction}
    return render(request, "estimation/prediction.html", context)
