"""A campaign for guests of a crowd link, in every state that its next step knows."""

from collections.abc import Callable
from typing import Any

from django.utils import timezone

from estimation.models import Round
from estimation.services import pausing
from judging.models import Campaign, CrowdGuest, CrowdLink, Membership
from judging.services import campaigns, crowd_links, entering
from tests.support import evaluation


def link(campaign: Campaign, **values: Any) -> CrowdLink:
    chosen = {"name": "Wave", "most_people": 50, "judgments": 5, "consent": "Yes."} | values
    return crowd_links.make(
        campaign=campaign, by=campaign.created_by, plan=crowd_links.LinkPlan(**chosen)
    )


def crowd(campaign: Campaign, guests: int = 0, done: int = 0, **values: Any) -> CrowdLink:
    """A round for guests alone: so many are at work, and others are done."""
    evaluation.drawn(campaign)
    campaign.memberships.filter(role=Membership.Role.ASSESSOR).delete()
    campaign.refresh_from_db()
    made = link(campaign, **values)
    for number in range(guests + done):
        who = entering.visitor([("PROLIFIC_PID", f"p{number}")], "a device")
        entering.enter(link=made, who=who, answer="", address="192.0.2.1")
    for each in CrowdGuest.objects.order_by("pk")[:done]:
        CrowdGuest.objects.filter(pk=each.pk).update(finished=timezone.now())
    return made


def crowd_in_draft(campaign: Campaign) -> None:
    crowd(campaign)
    Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.DRAFT)


def crowd_in_pause(campaign: Campaign) -> None:
    crowd(campaign)
    campaigns.pause(campaign=campaign, by=campaign.created_by)


def crowd_of_a_paused_round(campaign: Campaign) -> None:
    crowd(campaign)
    pausing.pause(row=Round.objects.get(), by=campaign.created_by)


def crowd_awaited(campaign: Campaign) -> None:
    crowd(campaign)


def crowd_with_one(campaign: Campaign) -> None:
    crowd(campaign, guests=1)


def crowd_all_done(campaign: Campaign) -> None:
    crowd(campaign, done=2, most_people=2)


def crowd_too_small(campaign: Campaign) -> None:
    crowd(campaign, guests=1, most_people=1)


def crowd_full_and_enough(campaign: Campaign) -> None:
    crowd(campaign, guests=1, done=1, most_people=2)


def crowd_that_wants_more_pairs(campaign: Campaign) -> None:
    crowd(campaign, least_left=1000)


def crowd_closed(campaign: Campaign) -> None:
    crowd_links.close(link=crowd(campaign), by=campaign.created_by)


CROWDS: list[tuple[str, Callable[[Campaign], object]]] = [
    ("nobody", crowd_closed),
    ("nobody", crowd_all_done),
    ("nobody", crowd_that_wants_more_pairs),
    ("too few", crowd_too_small),
    ("judging", crowd_full_and_enough),
    ("open", crowd_in_draft),
    ("paused", crowd_in_pause),
    ("round paused", crowd_of_a_paused_round),
    ("guests", crowd_awaited),
    ("guests", crowd_with_one),
]
