"""A pair of a complete batch gets a label through another round: its estimates follow."""

import pytest
from django.core.management import call_command

from estimation.selectors import latest_estimates
from estimation.services import rounds
from judging.models import Campaign, User
from judging.services import campaigns
from tests.support import evaluation, factories

pytestmark = pytest.mark.django_db
CENSUS = {"budget": 500, "batch_size": 500, "extra_share": 0.0}


@pytest.mark.slow
def test_a_label_for_a_round_under_way_counts_at_once_in_a_complete_one(
    campaign: Campaign,
) -> None:
    first = rounds.draft(campaign=campaign, by=campaign.created_by, plan=evaluation.plan(**CENSUS))
    rounds.request_draw(row=first, by=campaign.created_by)
    factories.run_due_jobs()
    campaigns.open_for_judging(campaign=campaign, by=campaign.created_by)
    factories.assessors(campaign, "anna")
    evaluation.judge(campaign, 1000)
    before = latest_estimates(first)
    assert before is not None
    evaluation.drawn(campaign, labels=2, **CENSUS)
    factories.assessors(campaign, "ben")

    ben = User.objects.get(username="ben")
    factories.judge_next(campaign, ben, 3)
    factories.run_due_jobs()

    after = latest_estimates(first)
    assert after is not None
    assert after.label_count == before.label_count + 1
    call_command("recompute")
