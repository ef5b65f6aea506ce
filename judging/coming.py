"""Who may still come to judge: the places of crowd links."""

from dataclasses import dataclass

from django.db.models import Q
from django.db.models.functions import Now

from judging import guests, selectors
from judging.models import Campaign, CrowdLink, Exclusion


@dataclass(frozen=True)
class OpenLinks:
    """Of a campaign's open ``links``: places that nobody has taken.

    ``free`` are those of links that let somebody in while the campaign is open, as enough pairs
    are left. ``done``: guests who are handed no more pairs, and whose labels count.
    """

    links: int = 0
    places: int = 0
    free: int = 0
    done: int = 0


def open_links(campaign: Campaign) -> OpenLinks:
    """As `services.entering` lets people in."""
    now = Q(expires=None) | Q(expires__gt=Now())
    opened = CrowdLink.objects.filter(now, campaign=campaign, closed=None)
    rows = list(opened.values_list("most_people", "people", "least_left"))
    if not rows:
        return OpenLinks()
    room = [(most - people, least) for most, people, least in rows if most > people]
    enough = {least: enough_left(campaign, least) for least in {least for _, least in room}}
    free = sum(places for places, least in room if enough[least])
    return OpenLinks(len(rows), sum(places for places, _ in room), free, _done(campaign))


def enough_left(campaign: Campaign, least: int) -> bool:
    """Where the next pairs are just being chosen there will be."""
    left = guests.left_for_a_newcomer(campaign)
    return left >= least or selectors.empty_queue(campaign) == "chosen"


def _done(campaign: Campaign) -> int:
    excluded = Exclusion.objects.filter(campaign=campaign, ended=None).values("assessor")
    return guests.done(campaign).exclude(account__in=excluded).count()
