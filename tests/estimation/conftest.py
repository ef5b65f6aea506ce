"""Campaigns in the states that pages are shown in."""

import pytest
from django.test import Client

from estimation import selectors
from estimation.models import Round
from judging.models import Campaign
from tests.support import evaluation


@pytest.fixture
def campaign(db: None) -> Campaign:
    return evaluation.with_material()


@pytest.fixture
def organizer(campaign: Campaign) -> Client:
    client = Client()
    client.force_login(campaign.created_by)
    return client


@pytest.fixture
def judged(campaign: Campaign) -> Round:
    """A round of which the first batch is complete."""
    row = evaluation.drawn(campaign)
    evaluation.judge(campaign, 45)
    row.refresh_from_db()
    assert selectors.latest_estimates(row) is not None
    return row
