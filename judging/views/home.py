"""The first page: the user's campaigns, and what each asks of them."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from judging import selectors, workers
from judging.access import user_of


def home(request: HttpRequest) -> HttpResponse:
    user = user_of(request)
    cards = selectors.home(user)
    may_create = user.is_organizer or user.is_superuser
    context = {
        "organized": [card for card in cards if card.organizes],
        "assessed": [card for card in cards if card.assesses],
        "may_create": may_create,
        "unserved": workers.unserved() if may_create else [],
    }
    return render(request, "judging/home.html", context)
