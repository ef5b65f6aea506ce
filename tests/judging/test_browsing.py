"""Organizers look through judgments, pairs, and what was done."""

import csv
import html
import re

import pytest
from django.core.paginator import Paginator
from django.db import connection
from django.http import HttpResponse
from django.shortcuts import render
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext

from judging import browsing
from judging.browsing import JudgmentFilter
from judging.forms_browse import JudgmentSearch
from judging.models import Assignment, Campaign, Judgment, User
from judging.services import assignments, judgments
from tests.support import factories
from tests.support.pages import address, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign() -> Campaign:
    """Two topics and three documents, each pair judged by anna and ben, who differ about c."""
    made = factories.campaign()
    factories.released_batch(made, "abc", labels=2)
    made.refresh_from_db()
    for name, of_c in (("anna", 3), ("ben", 0)):
        (user,) = factories.assessors(made, name)
        while held := assignments.claim_next(campaign=made, by=user):
            say(held, user, of_c if held.pair.docno == "c" else 1, seconds=of_c + 1.0)
    return made


def say(held: Assignment, by: User, grade: int, *, seconds: float, comment: str = "") -> None:
    key = f"{by.username}-{held.pk}"
    saying = judgments.Saying(grade=grade, key=key, seconds=seconds, comment=comment)
    judgments.record(assignment=held, by=by, saying=saying)


@pytest.fixture
def organizer(campaign: Campaign) -> Client:
    client = Client()
    client.force_login(campaign.created_by)
    return client


def found(campaign: Campaign, **asked: object) -> list[tuple[str, str, str]]:
    rows = browsing.judgments(campaign, JudgmentFilter(**asked))  # type: ignore[arg-type]
    return [
        (row.assignment.pair.topic.topic_id, row.assignment.pair.docno, row.assessor.username)
        for row in rows
    ]


@pytest.mark.slow
def test_every_judgment_that_counts_is_there_once(campaign: Campaign) -> None:
    assert len(found(campaign)) == len(set(found(campaign))) == 12


@pytest.mark.slow
def test_each_filter_leaves_what_fits(campaign: Campaign) -> None:
    anna = User.objects.get(username="anna")
    topic = campaign.topics.order_by("topic_id")[0]
    assert {who for _, _, who in found(campaign, assessor=anna.pk)} == {"anna"}
    assert {doc for _, doc, _ in found(campaign, grade=3)} == {"c"}
    assert {doc for _, doc, _ in found(campaign, apart=3)} == {"c"}
    assert len(found(campaign, apart=3)) == 4
    assert found(campaign, apart=4) == []
    assert {who for _, _, who in found(campaign, seconds=1.0)} == {"ben"}
    assert {doc for _, doc, _ in found(campaign, words="b")} == {"b"}
    assert {of for of, _, _ in found(campaign, words=topic.title)} == {topic.topic_id}
    assert found(campaign, comment=True) == []
    assert found(campaign, corrected=True) == []
    assert len(found(campaign, apart=1, assessor=anna.pk)) == 2


@pytest.mark.slow
def test_orders_put_disagreement_and_haste_first(campaign: Campaign) -> None:
    assert {doc for _, doc, _ in found(campaign, order="apart")[:4]} == {"c"}
    assert {who for _, _, who in found(campaign, order="quick")[:6]} == {"ben"}
    assert found(campaign, order="topic") == sorted(found(campaign, order="topic"))


@pytest.mark.slow
def test_a_correction_stands_for_what_was_said_before_it(
    campaign: Campaign, organizer: Client
) -> None:
    held = Assignment.objects.get(
        assessor__username="anna", pair__docno="c", pair__topic=campaign.topics.first()
    )
    saying = judgments.Saying(grade=0, key="again", comment="I misread it")
    judgments.correct(assignment=held, by=held.assessor, saying=saying, revision=1)
    assert len(found(campaign)) == 12
    assert len(found(campaign, corrected=True)) == 1
    assert len(found(campaign, comment=True)) == 1
    assert len(found(campaign, apart=1)) == 2, "they agree on this pair now"
    said = text(organizer.get(address("pair-detail", campaign, held.pair_id)))
    assert "I misread it" in said
    assert "until corrected" in said


@pytest.mark.slow
def test_the_page_shows_what_others_said_and_takes_nonsense_for_nothing(
    campaign: Campaign, organizer: Client
) -> None:
    page = organizer.get(address("judgment-list", campaign), {"apart": "3"})
    assert "4 judgments" in text(page)
    for asked in ({"grade": "x"}, {"since": "yesterday"}, {"order": "none"}, {"words": "\x00"}):
        assert "12 judgments" in text(organizer.get(address("judgment-list", campaign), asked))
    none = text(organizer.get(address("judgment-list", campaign), {"words": "zzz"}))
    assert "No judgment fits" in none


@pytest.mark.slow
def test_the_queries_do_not_grow_with_the_judgments(campaign: Campaign, organizer: Client) -> None:
    def count(asked: dict[str, str]) -> int:
        with CaptureQueriesContext(connection) as counted:
            assert organizer.get(address("judgment-list", campaign), asked).status_code == 200
        return len(counted)

    assert count({"words": "c", "order": "apart"}) == count({})


@pytest.mark.slow
def test_a_pair_of_another_campaign_is_not_there(campaign: Campaign, organizer: Client) -> None:
    other = factories.campaign(slug="other")
    factories.released_batch(other, "z")
    pair = other.pairs.first()
    assert pair is not None
    assert organizer.get(address("pair-detail", campaign, pair.pk)).status_code == 404


@pytest.mark.slow
def test_the_log_has_what_was_done_by_kind_and_person(
    campaign: Campaign, organizer: Client
) -> None:
    every = text(organizer.get(address("audit-log", campaign)))
    assert "add member" in every
    anna = text(organizer.get(address("audit-log", campaign), {"actor": "anna"}))
    assert "6 entries" in anna
    kind = text(organizer.get(address("audit-log", campaign), {"action": "judge"}))
    assert "12 entries" in kind


@pytest.mark.slow
def test_the_file_of_the_log_has_what_is_shown(campaign: Campaign, organizer: Client) -> None:
    """The page's link asks for what the page was asked for, over all of its pages."""
    asked = {"action": "judge", "actor": "anna", "page": "1"}
    page = organizer.get(address("audit-log", campaign), asked).content.decode()
    link = re.search(r'href="([^"]*log/file/[^"]*)" download', page)
    assert link is not None
    answer: HttpResponse = organizer.get(html.unescape(link[1]))
    lines = list(csv.DictReader(answer.getvalue().decode().splitlines()))
    assert {(line["who"], line["action"]) for line in lines} == {("anna", "judge")}
    assert len(lines) == 6
    told = organizer.get(f"/api/campaigns/{campaign.slug}/audit/", asked).json()
    assert [row["target"] for row in told["results"]] == [line["target"] for line in lines]


@pytest.mark.slow
def test_the_log_is_taken_along_whole(campaign: Campaign, organizer: Client) -> None:
    answer: HttpResponse = organizer.get(address("audit-file", campaign))
    lines = list(csv.DictReader(answer.getvalue().decode().splitlines()))
    assert len(lines) == campaign.audit.count()
    assert sum(line["action"] == "judge" for line in lines) == Judgment.objects.count()


@pytest.mark.slow
def test_programs_look_for_what_organizers_look_for(campaign: Campaign, organizer: Client) -> None:
    """Every filter of the page; what it finds is what the page finds."""
    there = f"/api/campaigns/{campaign.slug}/judgments/"
    asked: list[dict[str, str]] = [
        {"grade": "3"}, {"apart": "2"}, {"words": "c"}, {"assessor": "anna"}, {"seconds": "1.5"},
        {"comment": "true"}, {"corrected": "true"}, {"excluded": "false"}, {"order": "quick"},
        {"since": "2001-01-01"}, {"until": "2001-01-01"}, {"apart": "2", "assessor": "ben"},
    ]  # fmt: skip
    anna = User.objects.get(username="anna").pk
    for each in asked:
        answer = organizer.get(there, each).json()
        of_page = {name: str(anna) if value == "anna" else value for name, value in each.items()}
        if each.get("assessor") == "ben":
            of_page["assessor"] = str(User.objects.get(username="ben").pk)
        form = JudgmentSearch(campaign, of_page)
        rows = browsing.judgments(campaign, form.asked())
        assert [row["assignment"] for row in answer["results"]] == [
            row.assignment_id for row in rows
        ], each
    assert organizer.get(there, {"order": "best"}).status_code == 400
    assert organizer.get(there, {"grade": "x"}).status_code == 400


@pytest.mark.slow
def test_who_only_judges_learns_nothing_of_others_by_looking(campaign: Campaign) -> None:
    """Which of their own pairs others judged otherwise is what others said."""
    client = Client()
    client.force_login(User.objects.get(username="anna"))
    there = f"/api/campaigns/{campaign.slug}/judgments/"
    assert client.get(there).json()["count"] == 6
    for asked in ({"apart": "1"}, {"order": "apart"}, {"assessor": "ben"}, {"grade": "0"}):
        answer = client.get(there, asked)
        assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed"), asked
    pair = campaign.pairs.all()[0].pk
    assert client.get(f"/api/campaigns/{campaign.slug}/pairs/{pair}/").status_code == 403


@pytest.mark.slow
def test_programs_read_the_history_of_a_pair(campaign: Campaign, organizer: Client) -> None:
    judged = Assignment.objects.filter(assessor__username="anna", state="judged")[0]
    saying = judgments.Saying(grade=2, key="again", comment="On second thought.")
    judgments.correct(assignment=judged, by=judged.assessor, saying=saying, revision=1)
    there = f"/api/campaigns/{campaign.slug}/pairs/{judged.pair_id}/"
    told = organizer.get(there).json()
    (anna,) = [each for each in told["answers"] if each["assessor"] == "anna"]
    assert anna["said"][0]["grade"] == 2
    assert [each["revision"] for each in anna["said"]] == [2, 1]
    assert (told["docno"], told["wanted"], told["judged"]) == (judged.pair.docno, 2, 2)
    assert told["decided"] is None


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("_pages.html", "1,451–1,500 of 2,500"),
        ("judging/_search.html", "2,500 documents"),
        ("estimation/audit_log.html", "2,500 entries"),
        ("judging/judgments.html", "2,500 judgments"),
    ],
)
def test_counts_have_signs_between_thousands(campaign: Campaign, template: str, told: str) -> None:
    context = {"rows": Paginator(range(2500), 50).page(30), "campaign": campaign}
    request = RequestFactory().get("/")
    request.user = campaign.created_by
    shown = render(request, template, context | {"things": "documents"})
    assert told in shown.content.decode()
