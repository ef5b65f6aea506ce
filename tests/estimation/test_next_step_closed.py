"""What a campaign that was closed has to show is what any of its rounds brought."""

import pytest
from django.test import Client

from estimation.next_step import next_step
from estimation.services import stopping
from estimation.situation import Situation
from judging.models import Campaign
from judging.services import campaigns
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.mark.slow
def test_results_of_an_earlier_round_are_not_denied_when_a_later_one_has_none(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.worker_alive()
    first = evaluation.drawn(campaign, extra_share=0)
    evaluation.judge(campaign, 45)
    stopping.by_hand(row=first, by=campaign.created_by)
    factories.run_due_jobs()
    assert first.estimate_sets.exists()
    later = evaluation.drawn(campaign, seed="later")
    campaign.refresh_from_db()
    campaigns.close(campaign=campaign, by=campaign.created_by)

    found = next_step(Situation(campaign))

    assert (found.state, found.what) == ("closed", "Take the results along")
    assert f"a batch of round {later.number} was judged" in found.why
    assert f"those of round {first.number}" in found.why
    assert found.action is not None
    assert (found.action.url, found.action.arguments) == ("reports", (first.number,))
    assert found.why in text(organizer.get(address("campaign-home", campaign)))
