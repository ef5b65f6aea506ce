"""Whoever has a round judged by guests of crowd links is told of the links, and not to invite."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from estimation.next_step import NextStep, next_step
from estimation.situation import Situation
from judging.models import Campaign
from tests.support import crowd_states as states
from tests.support import evaluation, rest

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def step(campaign: Campaign) -> NextStep:
    campaign.refresh_from_db()
    return next_step(Situation(campaign))


TOLD = {
    states.crowd_in_draft: (
        "Open the campaign",
        "All is ready: guests of the crowd link can judge as soon as the campaign is open.",
    ),
    states.crowd_awaited: (
        "Share the crowd link",
        "Round 1 waits for guests; 50 places of the crowd link are free.",
    ),
    states.crowd_with_one: (
        "Share the crowd link",
        "Some pairs want 2 labels, and there is one assessor; "
        "49 places of the crowd link are free.",
    ),
    states.crowd_all_done: (
        "Make another crowd link",
        "Nobody judges any more, and all places of the crowd link are taken.",
    ),
    states.crowd_too_small: (
        "Make another crowd link",
        "Some pairs want 2 labels, and there is one assessor; "
        "all places of the crowd link are taken.",
    ),
    states.crowd_closed: ("Invite assessors", "Round 1 is drawn, and there is nobody to judge it."),
}


@pytest.mark.slow
@pytest.mark.parametrize("make", TOLD, ids=[make.__name__ for make in TOLD])
def test_who_judges_by_links_is_not_asked_to_invite(
    make: Callable[[Campaign], object], campaign: Campaign
) -> None:
    evaluation.worker_alive()
    make(campaign)
    found = step(campaign)
    assert (found.what, found.why) == TOLD[make]
    told = rest.client_of(campaign.created_by).get(f"/api/campaigns/{campaign.slug}/overview/")
    attention = " ".join(each["text"] for each in told.json()["attention"])
    assert ("no assessors" in attention) == (make is states.crowd_closed)
    assert "cannot be completed" not in attention


@pytest.mark.slow
def test_links_are_not_asked_for_where_there_are_enough_people(campaign: Campaign) -> None:
    evaluation.worker_alive()
    evaluation.drawn(campaign, extra_share=0)
    evaluation.judge(campaign, 5)
    states.link(campaign)
    with CaptureQueriesContext(connection) as queries:
        assert step(campaign).state == "judging"
    assert not [each for each in queries if "most_people" in each["sql"]]
