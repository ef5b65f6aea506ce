"""Campaigns in the states that pages are shown in."""

import pytest
from django.test import Client

from estimation import selectors
from estimation.models import Round
from judging.models import Campaign
from tests.support import evaluation
from tests.support.kept import Kept


@pytest.fixture
def campaign(kept: Kept) -> Campaign:
    return kept("material", evaluation.with_material)


@pytest.fixture
def organizer(campaign: Campaign, request: pytest.FixtureRequest) -> Client:
    """Signs in when the rows are there, which could not be put back after that."""
    if "judged" in request.fixturenames:
        request.getfixturevalue("judged")
    client = Client()
    client.force_login(campaign.created_by)
    return client


@pytest.fixture
def judged(campaign: Campaign, kept: Kept) -> Round:
    """A round of which the first batch is complete."""
    return kept("judged", lambda: _judged(campaign), campaign)


def _judged(campaign: Campaign) -> Round:
    row = evaluation.drawn(campaign)
    evaluation.judge(campaign, 45)
    row.refresh_from_db()
    assert selectors.latest_estimates(row) is not None
    return row
