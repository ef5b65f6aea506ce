"""What assessors write beside their answers reaches the organizers."""

import csv
import io

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from judging.models import Campaign, User
from judging.services import assignments, judgments
from tests.support import factories
from tests.support.pages import text

pytestmark = pytest.mark.django_db


def say(campaign: Campaign, by: User, comment: str, grade: int = 1) -> judgments.Assignment:
    assignment = assignments.claim_next(campaign=campaign, by=by)
    assert assignment is not None
    saying = judgments.Saying(grade=grade, key=f"k{assignment.pk}", comment=comment)
    judgments.record(assignment=assignment, by=by, saying=saying)
    return assignment


@pytest.fixture
def campaign() -> Campaign:
    made = factories.campaign(topics=1)
    factories.released_batch(made, ["d1", "d2", "d3", "d4"])
    return made


@pytest.fixture
def organizer(campaign: Campaign) -> Client:
    client = Client()
    client.force_login(campaign.created_by)
    return client


def address(name: str, campaign: Campaign) -> str:
    return reverse(name, args=[campaign.slug])


def lines(organizer: Client, campaign: Campaign) -> list[dict[str, str]]:
    answer = organizer.get(address("comments-file", campaign))
    content = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    assert answer["Content-Type"].startswith("text/csv")
    return list(csv.DictReader(io.StringIO(content, newline="")))


def test_a_comment_is_on_the_page_and_in_the_file(campaign: Campaign, organizer: Client) -> None:
    (anna,) = factories.assessors(campaign, "anna")
    held = say(campaign, anna, "The scan is <b>unreadable</b>.")
    say(campaign, anna, "")
    answer = organizer.get(address("comments", campaign))
    assert "The scan is &lt;b&gt;unreadable&lt;/b&gt;." in answer.content.decode()
    assert held.pair.docno in text(answer)
    (line,) = lines(organizer, campaign)
    assert line["comment"] == "The scan is <b>unreadable</b>."
    assert (line["topic"], line["docno"]) == ("t1", held.pair.docno)
    assert (line["assessor"], line["grade"], line["revision"]) == ("anna", "1", "1")


@pytest.mark.slow
def test_the_pages_of_a_campaign_lead_its_organizers_there(
    campaign: Campaign, organizer: Client
) -> None:
    (anna,) = factories.assessors(campaign, "anna")
    say(campaign, anna, "odd")
    link = f'href="{address("queue", campaign)}"'
    assert link in organizer.get(address("people", campaign)).content.decode()
    shown = organizer.get(address("comments", campaign)).content.decode()
    assert f'href="{address("comments-file", campaign)}"' in shown
    organizer.force_login(anna)
    assert link not in organizer.get(address("own-work", campaign)).content.decode()


@pytest.mark.slow
def test_a_correction_replaces_what_was_said(campaign: Campaign, organizer: Client) -> None:
    (anna,) = factories.assessors(campaign, "anna")
    held = say(campaign, anna, "too hasty")
    saying = judgments.Saying(grade=2, key="again", comment="second thoughts")
    judgments.correct(assignment=held, by=anna, saying=saying, revision=1)
    said = text(organizer.get(address("comments", campaign)))
    assert "second thoughts" in said
    assert "too hasty" not in said


def test_formulas_of_strangers_stay_text(campaign: Campaign, organizer: Client) -> None:
    (anna,) = factories.assessors(campaign, "anna")
    say(campaign, anna, '=HYPERLINK("http://evil.example")')
    (line,) = lines(organizer, campaign)
    assert line["comment"].startswith("'=")


@pytest.mark.slow
def test_comments_of_other_campaigns_stay_there(campaign: Campaign, organizer: Client) -> None:
    other = factories.campaign(slug="other", topics=1)
    factories.released_batch(other, ["x1"])
    (ben,) = factories.assessors(other, "ben")
    say(other, ben, "not for you")
    assert "not for you" not in text(organizer.get(address("comments", campaign)))
    assert lines(organizer, campaign) == []


def test_an_empty_page_says_where_comments_come_from(campaign: Campaign, organizer: Client) -> None:
    assert "No comments yet" in text(organizer.get(address("comments", campaign)))


@pytest.mark.slow
def test_the_queries_do_not_grow_with_the_comments(campaign: Campaign, organizer: Client) -> None:
    (anna,) = factories.assessors(campaign, "anna")

    def count() -> int:
        with CaptureQueriesContext(connection) as counted:
            assert "comment 0" in text(organizer.get(address("comments", campaign)))
        return len(counted)

    say(campaign, anna, "comment 0")
    first = count()
    for number in range(1, 4):
        say(campaign, anna, f"comment {number}")
    assert count() == first
