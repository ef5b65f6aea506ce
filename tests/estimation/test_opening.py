"""A campaign has one visible state and one button, on every page of it."""

import pytest
from django.test import Client

from estimation.models import Round
from estimation.services import rounds
from judging.errors import UserError
from judging.models import AuditEntry, Batch, Campaign
from judging.services import batches, campaigns
from tests.support import evaluation, factories
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

OPEN, CLOSE, AGAIN = "Open for judging", "Close", "Open again"
PAGES = (
    "campaign-home", "material", "topic-list", "document-list", "run-list", "round-list",
    "round-new", "people", "decisions", "campaign-settings",
)  # fmt: skip
IN_ROUND = ("round-detail", "live", "live-pairs", "live-history", "live-batches", "reports")


def pages(organizer: Client, campaign: Campaign, names: tuple[str, ...] = PAGES) -> dict[str, str]:
    return {
        name: organizer.get(
            address(name, campaign, *([1] if name in IN_ROUND else [])), follow=True
        ).content.decode()
        for name in names
    }


def buttons(page: str) -> list[str]:
    """Those that move the campaign."""
    return [label for label in (OPEN, AGAIN, CLOSE) if f">{label}</button>" in page]


def count_of_buttons(page: str, campaign: Campaign) -> int:
    return sum(
        page.count(f'"{address(name, campaign)}"') for name in ("campaign-open", "campaign-close")
    )


@pytest.mark.slow
def test_an_empty_campaign_cannot_be_opened_and_says_why(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drafted(campaign)
    with pytest.raises(UserError) as refused:
        campaigns.open_for_judging(campaign=campaign, by=campaign.created_by)
    assert (refused.value.code, refused.value.status) == ("nothing_drawn", 409)
    assert organizer.post(address("campaign-open", campaign)).status_code == 409
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.DRAFT
    for name, page in pages(organizer, campaign).items():
        assert buttons(page) == [], name
        assert "Opens when a round is drawn" in page, name


def test_a_batch_in_preparation_is_nothing_to_judge() -> None:
    made = factories.campaign()
    batches.new_batch(made)
    with pytest.raises(UserError):
        campaigns.open_for_judging(campaign=made, by=made.created_by)
    Batch.objects.all().delete()


@pytest.mark.slow
def test_every_page_has_the_state_and_one_button(campaign: Campaign, organizer: Client) -> None:
    row = evaluation.drafted(campaign)
    evaluation.rounds.request_draw(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    for there, button, state in (
        ("campaign-open", OPEN, "Draft"), ("campaign-close", CLOSE, "Open"), ("", AGAIN, "Closed"),
    ):  # fmt: skip
        for name, page in pages(organizer, campaign, PAGES + IN_ROUND).items():
            assert page.count("The campaign is: ") == 1, name
            assert f"The campaign is: </span>{state}</span>" in page, name
            assert buttons(page) == [button], name
            assert count_of_buttons(page, campaign) == 1, name
        if there:
            assert organizer.post(address(there, campaign)).status_code == 302


@pytest.mark.slow
def test_the_button_comes_back_to_its_page_and_never_leaves_the_site(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drawn(campaign)
    here = address("live", campaign, 1)
    back = organizer.post(address("campaign-close", campaign), {"next": here})
    assert back["Location"] == here
    away = organizer.post(address("campaign-open", campaign), {"next": "//evil.example/"})
    assert away["Location"] == address("campaign-home", campaign)
    no_path = organizer.post(address("campaign-close", campaign), {"next": "judge"})
    assert no_path["Location"] == address("campaign-home", campaign)


@pytest.mark.slow
def test_assessors_see_no_button(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    anna = Client()
    anna.force_login(campaign.memberships.get(user__username="anna").user)
    page = anna.get(address("own-work", campaign)).content.decode()
    assert buttons(page) == []


@pytest.mark.slow
def test_what_is_drawn_in_a_draft_says_that_it_waits_for_the_button(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drafted(campaign)
    before = text(organizer.get(address("round-detail", campaign, 1)))
    assert "Assessors begin when the campaign is open" in before
    evaluation.rounds.request_draw(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    assert "assessors cannot judge" in text(organizer.get(address("campaign-home", campaign)))
    campaigns.open_for_judging(campaign=campaign, by=campaign.created_by)
    assert "assessors cannot judge" not in text(organizer.get(address("campaign-home", campaign)))


def test_a_closed_campaign_is_not_nagged_about(judged: Round, organizer: Client) -> None:
    campaign = judged.campaign
    campaigns.close(campaign=campaign, by=campaign.created_by)
    campaign.memberships.filter(role="assessor").delete()
    page = organizer.get(address("campaign-home", campaign))
    assert page.context["cards"] == [], "the steps are those until the first draw"
    said = text(page)
    for nag in ("not open", "cannot judge", "There are no assessors", "Invite", "waits for"):
        assert nag not in said, nag


@pytest.mark.slow
def test_a_draw_opens_the_campaign_if_that_was_asked_for(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drafted(campaign)
    rounds.request_draw(row=row, by=campaign.created_by, and_open=True)
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.DRAFT, "nothing opens before the draw"
    factories.run_due_jobs()
    campaign.refresh_from_db()
    assert campaign.state == Campaign.State.OPEN
    assert AuditEntry.objects.get(action="campaign open").actor == campaign.created_by


@pytest.mark.slow
@pytest.mark.parametrize("state", [Campaign.State.PAUSED, Campaign.State.CLOSED])
def test_a_draw_opens_no_campaign_that_somebody_ended_or_paused(
    campaign: Campaign, state: str
) -> None:
    row = evaluation.drafted(campaign)
    rounds.request_draw(row=row, by=campaign.created_by, and_open=True)
    Campaign.objects.update(state=state)
    factories.run_due_jobs()
    campaign.refresh_from_db()
    assert campaign.state == state


@pytest.mark.slow
def test_a_campaign_that_a_draw_is_to_open_is_not_archived_before(
    campaign: Campaign, organizer: Client
) -> None:
    """The draw would end in the archive, and open nothing."""
    row = evaluation.drafted(campaign)
    rounds.request_draw(row=row, by=campaign.created_by, and_open=True)

    where = f"/api/campaigns/{campaign.slug}/archive/"
    refused = organizer.post(where, content_type="application/json")

    assert (refused.status_code, refused.json()["code"]) == (409, "being_drawn")
    factories.run_due_jobs()
    campaign.refresh_from_db()
    assert (campaign.state, campaign.archived) == (Campaign.State.OPEN, None)
