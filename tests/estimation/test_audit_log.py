"""The audit log calls rounds and batches as pages do, wherever it is read."""

import csv
from collections.abc import Callable

import pytest
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext

from estimation import logged
from estimation.services import pausing, rounds
from judging.models import Campaign, Pair
from judging.services import audit, campaigns, seen, uploads
from tests.support import evaluation, factories
from tests.support.kept import Kept
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


@pytest.fixture
def organizer() -> Client:
    return Client()


@pytest.fixture
def second(organizer: Client, kept: Kept) -> Campaign:
    """A campaign whose rounds and batches have other row ids than numbers, with one discarded."""
    made = kept("two campaigns", _second)
    organizer.force_login(made.created_by)
    return made


def _second() -> Campaign:
    for slug in ("first", "second"):
        made = evaluation.with_material(slug=slug)
        row = evaluation.drawn(made, batch_size=20)
        evaluation.judge(made, 45)
        pausing.pause(row=row, by=made.created_by)
        rounds.discard(row=evaluation.drafted(made, seed="u"), by=made.created_by)
        evaluation.drafted(made, seed="v")
    return made


def of_page(client: Client, made: Campaign, **asked: str) -> list[str]:
    page = client.get(address("audit-log", made), asked).context["rows"]
    return [each.of for each in page.object_list]


def of_file(client: Client, made: Campaign, **asked: str) -> list[str]:
    answer: HttpResponse = client.get(address("audit-file", made), asked)
    return [each["target"] for each in csv.DictReader(answer.getvalue().decode().splitlines())]


def by_rest(client: Client, made: Campaign, **asked: str) -> list[str]:
    asked |= {"page_size": "1000"}
    told = client.get(f"/api/campaigns/{made.slug}/audit/", asked).json()["results"]
    return [each["target"] for each in told]


@pytest.mark.parametrize("ask", [of_page, of_file, by_rest])
def test_rounds_have_their_number_in_the_campaign(
    ask: Callable[..., list[str]], second: Campaign, organizer: Client
) -> None:
    row = second.rounds.get(number=1)
    assert row.pk != 1
    assert ask(organizer, second, action="pause round") == ["round 1"]
    drafted = ask(organizer, second, action="draft round")
    assert drafted == ["round 2", "a discarded round", "round 1"]
    complete = ask(organizer, second, action="batch complete")
    assert complete == [f"batch {n} of round 1" for n in range(len(complete), 0, -1)] != []


@pytest.mark.parametrize("ask", [of_page, of_file, by_rest])
def test_the_log_of_a_round_is_asked_for_by_its_number(
    ask: Callable[..., list[str]], second: Campaign, organizer: Client
) -> None:
    found = ask(organizer, second, round="1")
    assert {each.split(" of ")[-1] for each in found} == {"round 1"}
    assert {each.split(" ")[0] for each in found} == {"round", "batch"}
    assert ask(organizer, second, round="2") == ["round 2"]
    assert ask(organizer, second, round="77") == []
    assert ask(organizer, second, round="1", action="draft round") == ["round 1"]


def test_the_page_offers_the_rounds_there_are(second: Campaign, organizer: Client) -> None:
    page = organizer.get(address("audit-log", second), {"round": "2"})
    assert '<option value="2" selected>round 2</option>' in page.content.decode()
    assert "1 entry" in text(page)
    assert "Download these as CSV" in text(page)
    for wrong in ("x", "²", "9" * 40):
        assert organizer.get(address("audit-log", second), {"round": wrong}).status_code == 200
    discarded = organizer.get(address("audit-log", second), {"action": "discard round"})
    assert "a discarded round" in text(discarded)
    assert "number: 2" in text(discarded), "which was to be round 2"


def test_names_cost_no_statement_for_each_entry(second: Campaign) -> None:
    with CaptureQueriesContext(connection) as asked:
        every = logged.named(logged.log(second))
    assert len(every) == second.audit.count() > 20
    kinds = {each.entry.target.split(" ")[0] for each in every if each.entry.target}
    assert len(asked) == 1 + len(kinds)


@pytest.mark.parametrize("ask", [of_page, of_file, by_rest])
def test_things_are_called_as_pages_call_them(
    ask: Callable[..., list[str]], second: Campaign, organizer: Client
) -> None:
    files = set(second.uploads.values_list("name", flat=True))
    assert {f"file {name}" for name in files} == set(ask(organizer, second, action="upload"))
    judged = Pair.objects.filter(campaign=second, judged__gt=0).select_related("topic")
    called = {f"topic {pair.topic.topic_id}, document {pair.docno}" for pair in judged}
    assert set(ask(organizer, second, action="judge")) == called
    people = set(second.memberships.values_list("user__username", flat=True))
    assert set(ask(organizer, second, action="add member")) <= people
    assert ask(organizer, second, action="create campaign") == ["campaign second"]


@pytest.mark.parametrize("ask", [of_page, of_file, by_rest])
def test_what_is_removed_is_called_as_its_entry_calls_it(
    ask: Callable[..., list[str]], organizer: Client
) -> None:
    made = factories.campaign(slug="third")
    upload = factories.stored_upload(made, b"bad\n", name="bad.tsv", kind="topics")
    uploads.remove(upload=upload, by=made.created_by)
    organizer.force_login(made.created_by)
    assert ask(organizer, made, action="remove upload") == ["file bad.tsv"]
    assert not any(digit in "".join(ask(organizer, made)) for digit in "0123456789")


def test_values_are_told_in_words(second: Campaign, organizer: Client) -> None:
    """The file has them as JSON."""
    before = {"team": "", "fields": {"depth": "5"}}
    data = {"grade": None, "by_rule": True, "grades": [0, 1], "before": before, "fields": []}
    audit.record("try", by=None, campaign=second, target=second, **data)
    said = text(organizer.get(address("audit-log", second), {"action": "try"}))
    for told in (
        "grade: none", "by_rule: yes", "grades: 0, 1", "before: team none, fields depth 5",
        "fields: none",
    ):  # fmt: skip
        assert told in said


def test_what_was_changed_of_a_campaign_is_told(second: Campaign, organizer: Client) -> None:
    """Also which labels count, and no text at its length."""
    chosen = {"senior_grades": "supersede", "guidelines": "Look well.", "depth": second.depth}
    campaigns.amend(campaign=second, by=second.created_by, chosen=chosen)
    page = text(organizer.get(address("audit-log", second), {"action": "change campaign"}))
    for told in (
        "changed: guidelines, senior_grades", "before: senior_grades beside",
        "after: senior_grades supersede",
    ):  # fmt: skip
        assert told in page
    assert "Look well." not in page


def test_what_was_seen_is_called_as_its_pair(second: Campaign, organizer: Client) -> None:
    pair = Pair.objects.filter(campaign=second, judged__gt=0)[0]
    seen.mark(campaign=second, by=second.created_by, kind="apart", target=pair.pk, version="1")
    called = f"topic {pair.topic.topic_id}, document {pair.docno}"
    assert of_page(organizer, second, action="mark as seen") == [called]
    page = organizer.get(address("audit-log", second), {"action": "mark as seen"})
    assert "kind: apart" in text(page)
    assert "of: " not in text(page)


@pytest.mark.parametrize("kind", logged.KINDS)
def test_whatever_an_entry_is_of_its_name_can_be_asked_for(kind: str) -> None:
    assert list(logged.KINDS[kind].rows([0])) == []
