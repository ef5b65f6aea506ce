"""The first page: the user's campaigns, and what each asks of them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from judging import workers
from judging.access import user_of
from judging.cards import home as cards_of


def home(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    cards = cards_of(user)
    may_create = user.is_organizer or user.is_superuser
    asked = request.GET.get("q", "")[:200].strip()
    organized = [card for card in cards if card.organizes]
    found = [card for card in organized if asked.lower() in card.campaign.name.lower()]
    context = {
        "organizes": len(organized),
        "asked": asked,
        "organized": [card for card in found if card.campaign.archived is None],
        "archived": [card for card in found if card.campaign.archived is not None],
        "assessed": sorted(
            (card for card in cards if card.assesses and card.campaign.archived is None),
            key=lambda card: not card.waits,
        ),
        "may_create": may_create,
        "unserved": workers.unserved() if may_create else [],
    }
    return render(request, "judging/home.html", context)
