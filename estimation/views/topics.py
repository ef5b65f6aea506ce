"""The page of a topic."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from estimation.topic_facts import topic_facts
from judging.access import organized_campaign, user_of


def topic_detail(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Its text, how far it is judged, and what every run brings to it."""
    campaign = organized_campaign(user_of(request), slug)
    topic = get_object_or_404(campaign.topics.select_related("campaign"), pk=pk)
    context = {"campaign": campaign, "topic": topic, "facts": topic_facts(topic)}
    return render(request, "estimation/topic.html", context)
