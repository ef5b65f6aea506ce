"""Predicted grades as things of their own: their list, the page of each; the same by REST."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from judging.models import Campaign
from tests.support import choices, evaluation, factories
from tests.support.pages import ORGANIZING, address, as_role, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

PROBABILITIES = b"t1 d1 0.5 0.5 0 0\nt1 d2 0 0 0.5 0.5\nt2 d1 1 0 0 0\n"
COSTS = b"topic docno cost\nt1 d1 2.5\nt1 d2 0.5\n"


def brought(campaign: Campaign, content: bytes, name: str) -> int:
    upload = factories.stored_upload(campaign, content, name=name, kind="predictions")
    assert upload.state == "accepted", upload.errors
    return int(upload.prediction.pk)


@pytest.mark.parametrize("role", ORGANIZING)
def test_who_sees_the_pages(campaign: Campaign, role: str) -> None:
    row = brought(campaign, PROBABILITIES, "a model.tsv")
    client = as_role(role, campaign)
    assert client.get(address("prediction-list", campaign)).status_code == ORGANIZING[role]
    assert client.get(address("prediction-detail", campaign, row)).status_code == ORGANIZING[role]


@pytest.mark.slow
def test_page_and_rest_tell_the_same(campaign: Campaign, organizer: Client) -> None:
    row = brought(campaign, PROBABILITIES, "a model.tsv")
    base = f"/api/campaigns/{campaign.slug}/predictions/"
    assert "none yet: choose it" in text(organizer.get(address("prediction-detail", campaign, row)))
    draft = evaluation.drafted(
        campaign, method="adaptive", extra_share=0.0, predictions="a model", seed="x"
    )
    told = organizer.get(f"{base}{row}/").json()
    assert told["spread"] == {"low": 0.0, "mean": 1.0, "high": 2.5, "counts": [2, 0, 1, 0]}
    assert (told["pairs"], told["topics"], told["topics_missing"]) == (3, 2, 4)
    assert (told["rounds"], told["machine"]) == ([draft.number], None)
    listed = organizer.get(base).json()
    assert [each["id"] for each in listed] == [row]
    assert {name: told[name] for name in listed[0]} == listed[0]
    page = text(organizer.get(address("prediction-detail", campaign, row)))
    assert "probabilities of 3 pairs" in page
    assert "2 of 6; nothing is known beforehand of the others" in page
    assert "From 0 to 2.50, in the mean 1.00." in page
    assert f"round {draft.number}" in page
    page = text(organizer.get(address("prediction-list", campaign)))
    assert "a model" in page
    assert "2 of 6" in page


def test_costs_have_no_grades(campaign: Campaign, organizer: Client) -> None:
    row = brought(campaign, COSTS, "costs.tsv")
    told = organizer.get(f"/api/campaigns/{campaign.slug}/predictions/{row}/").json()
    assert told["form"] == "costs"
    assert told["spread"] == {"low": 0.5, "mean": 1.5, "high": 2.5, "counts": []}
    page = text(organizer.get(address("prediction-detail", campaign, row)))
    assert "next to what is predicted" not in page


@pytest.mark.slow
def test_more_predictions_are_no_more_statements(campaign: Campaign, organizer: Client) -> None:
    def statements() -> int:
        with CaptureQueriesContext(
            connection,
        ) as asked:
            assert organizer.get(address("prediction-list", campaign)).status_code == 200
        return len(asked)

    choices.grades(campaign, "one.tsv")
    statements()
    before = statements()
    for name in ("two.tsv", "three.tsv"):
        choices.grades(campaign, name)
        evaluation.drafted(
            campaign, method="adaptive", extra_share=0.0, predictions=name[:-4], seed=name
        )
    assert statements() <= before
