"""Two runs side by side, down to the documents where they differ."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import urlencode

from estimation import comparisons, documents_compared
from estimation.comparisons import TopicDifference
from estimation.figures import comparison_figure
from estimation.selectors import RankingTable
from estimation.topic_figures import side_by_side
from estimation.views.live import shown_round
from judging.access import organized_campaign, user_of

FIRST_RANKS, MOST_RANKS = 10, 100
"""Documents of each run that are shown at once, and when more are asked for."""


def compared_topic(request: HttpRequest, slug: str, number: int, pk: int) -> HttpResponse:
    """What two runs return for a topic, with grades and chances of what is judged."""
    campaign = organized_campaign(user_of(request), slug)
    topic = get_object_or_404(campaign.topics, pk=pk)
    shown = shown_round(request, campaign, number)
    if shown is None or shown.table is None or shown.estimate_set is None:
        return redirect("live", slug, number)
    found = _compared(request, shown.table)
    if found is None:  # it says which of them is not there
        there = reverse("compare", args=[slug, number])
        return redirect(f"{there}?{request.GET.urlencode()}")
    depth = MOST_RANKS if "all" in request.GET else FIRST_RANKS
    tags = (found.first.tag, found.second.tag)
    documents = documents_compared.documents_compared(
        shown.estimate_set, topic, tags, depth=min(depth, campaign.depth)
    )
    if documents is None:
        raise Http404("No such run.")
    asked = {"measure": found.measure, "first": tags[0], "second": tags[1]}
    context = {
        "campaign": campaign, "round": shown.round, "topic": topic, "found": found,
        "figure": comparison_figure(found), "sides": side_by_side(documents),
        "more": len(documents.first) == depth or len(documents.second) == depth,
        "query": urlencode(asked), "whole": "all" in request.GET, **_around(found.topics, pk),
    }  # fmt: skip
    return render(request, "estimation/compare_topic.html", context)


def _compared(request: HttpRequest, table: RankingTable) -> comparisons.RunComparison | None:
    """Of the runs of the address; the two best where it names none."""
    tags = [row.tag for row in table.by_estimate]
    first = request.GET.get("first") or tags[0]
    second = request.GET.get("second") or next((tag for tag in tags if tag != first), first)
    return comparisons.compare(table, first, second) if first != second else None


def _around(topics: list[TopicDifference], pk: int) -> dict[str, TopicDifference | None]:
    """The topic's own line, and its neighbors in the order of the differences."""
    at = next((place for place, row in enumerate(topics) if row.pk == pk), None)
    if at is None:
        return {"line": None, "before": None, "after": None}
    return {
        "line": topics[at],
        "before": topics[at - 1] if at else None,
        "after": topics[at + 1] if at + 1 < len(topics) else None,
    }
