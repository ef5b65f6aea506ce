"""Who may see the organizer's pages, and what the campaign's home and the admin say."""

import re
import subprocess
import sys
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from estimation import selectors
from estimation.models import Round
from estimation.services import rounds
from judging.clock import seconds_from_now
from judging.models import Assignment, Campaign, Job, Judgment, Membership, Pair, Upload, User
from judging.services import assignments, uploads
from tests.support import evaluation, factories
from tests.support.pages import (
    HTMX,
    MISSING,
    OK,
    ORGANIZING,
    TABS,
    address,
    as_role,
    text,
)

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

PAGES = (
    "campaign-bar",
    "run-list",
    "round-list",
    "round-new",
    "round-detail",
    "round-preview",
    "live",
    "live-pairs",
    "live-history",
    "live-batches",
    "live-labels",
    "compare",
    "reports",
    "material",
    "upload-list",
    "topic-list",
    "document-list",
)
POSTS = ("round-change", "round-draw", "round-discard", "round-end", "report-make", "report-names")
IN_ROUND = {*PAGES[4:13], *POSTS}


@pytest.fixture
def bare() -> Campaign:
    """A campaign with a drafted round and no material."""
    made = factories.campaign()
    rounds.draft(campaign=made, by=made.created_by, plan=evaluation.plan())
    return made


@pytest.mark.slow
@pytest.mark.parametrize("role", ORGANIZING)
@pytest.mark.parametrize("name", PAGES)
def test_pages_are_for_organizers_of_the_campaign(role: str, name: str, bare: Campaign) -> None:
    response = as_role(role, bare).get(address(name, bare, *([1] if name in IN_ROUND else [])))
    if name in TABS and ORGANIZING[role] == OK:
        assert response["Location"] == address("round-detail", bare, 1), "nothing to rank yet"
    else:
        assert response.status_code == ORGANIZING[role]


@pytest.mark.parametrize("role", ["anonymous", "assessor", "other"])
@pytest.mark.parametrize("name", POSTS)
def test_nobody_else_changes_a_round(role: str, name: str, bare: Campaign) -> None:
    response = as_role(role, bare).post(address(name, bare, 1))
    assert response.status_code == ORGANIZING[role]
    assert list(Round.objects.values_list("state", flat=True)) == [Round.State.DRAFTED]
    assert Job.objects.filter(kind="draw").count() == 0


@pytest.mark.parametrize("name", POSTS)
def test_changes_need_a_post(name: str, bare: Campaign) -> None:
    assert as_role("organizer", bare).get(address(name, bare, 1)).status_code == 405


@pytest.mark.slow
def test_a_round_of_another_campaign_is_not_reached_by_its_number(organizer: Client) -> None:
    other = evaluation.with_material(slug="other")
    rounds.draft(campaign=other, by=other.created_by, plan=evaluation.plan())
    campaign = Campaign.objects.get(slug="test")
    assert organizer.get(address("round-detail", campaign, 1)).status_code == 404


@pytest.mark.slow
def test_reports_of_one_round_are_not_reached_through_another(
    judged: Round, campaign: Campaign, organizer: Client
) -> None:
    report = evaluation.made_reports(judged)[0]
    later = evaluation.drafted(campaign, seed="another")
    for name in ("report-file", "report-view"):
        assert organizer.get(address(name, campaign, later.number, report.pk)).status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize("role", ["anonymous", "assessor", "other"])
def test_report_files_are_for_organizers(role: str, judged: Round, campaign: Campaign) -> None:
    report = evaluation.made_reports(judged)[0]
    found = as_role(role, campaign).get(address("report-file", campaign, judged.number, report.pk))
    assert found.status_code == ORGANIZING[role]


def test_home_sends_who_only_judges_to_judging(campaign: Campaign) -> None:
    response = as_role("assessor", campaign).get(address("campaign-home", campaign))
    assert response["Location"] == address("judge", campaign)
    other = as_role("other", campaign).get(address("campaign-home", campaign))
    assert other.status_code == MISSING


def test_home_of_an_empty_campaign_asks_for_material() -> None:
    empty = factories.campaign(topics=0)
    client = Client()
    client.force_login(empty.created_by)
    said = text(client.get(address("campaign-home", empty)))
    assert "Still missing: topics, documents, runs" in said
    assert "No worker is alive" in said


@pytest.mark.slow
def test_home_follows_the_round(judged: Round, campaign: Campaign, organizer: Client) -> None:
    evaluation.worker_alive()
    said = text(organizer.get(address("campaign-home", campaign)))
    assert "DCG@10" in said
    assert "with 2 assessors" in said
    assert re.search(r"[1-9]\d* of \d+ pairs judged", said)
    assert re.search(r"Batch \d of round 1 is judged", said)
    assert "No worker is alive" not in said
    assert "Nothing. What was asked for is under way." in said


@pytest.mark.slow
def test_home_names_what_needs_attention(campaign: Campaign, organizer: Client) -> None:
    evaluation.drawn(campaign, labels=3, extra_share=0)
    factories.stored_upload(campaign, b"1 Q0 broken\n", name="broken.run", kind="run")
    Job.objects.create(
        kind="recompute", target=1, campaign=campaign, state=Job.State.FAILED, error="disk full"
    )
    Campaign.objects.update(state=Campaign.State.DRAFT)
    said = text(organizer.get(address("campaign-home", campaign)))
    assert "1 file was rejected" in said
    assert "Computing the estimates failed: disk full" in said
    assert "the campaign is a draft" in said
    assert "Some pairs want 3 labels, but there are 2 assessors" in said
    assert said.index("disk full") < said.index("1 file was rejected"), "the worst comes first"


@pytest.mark.slow
def test_home_names_who_is_silent_and_what_to_look_at(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drawn(campaign, labels=2, extra_share=0)
    evaluation.judge(campaign, 10)
    home = address("campaign-home", campaign)
    assert "judged nothing" not in text(organizer.get(home)), "they have just come"
    Membership.objects.update(created=seconds_from_now(-5 * 86400))
    assert "judged nothing" not in text(organizer.get(home)), "they have just judged"
    Assignment.objects.filter(assessor__username="anna").update(
        created=seconds_from_now(-4 * 86400)
    )
    mine = Judgment.objects.filter(assessor__username="anna")
    mine.update(comment="Why?")
    said = text(organizer.get(home))
    assert "anna judged nothing in the last 3 days" in said
    assert re.search(rf"\b{mine.count()} comments to look at", said)
    Campaign.objects.update(state=Campaign.State.PAUSED)
    assert "judged nothing" not in text(organizer.get(home)), "nobody could"


@pytest.mark.slow
def test_home_tells_of_pairs_that_wait_for_a_decision(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drawn(campaign)
    by = User.objects.get(username="anna")
    assignment = assignments.claim_next(campaign=campaign, by=by)
    assert assignment is not None
    assignments.skip(assignment=assignment, by=by, reason="unreadable")
    said = text(organizer.get(address("campaign-home", campaign)))
    assert "1 pair waits for your decision, and keeps its batch from its end" in said
    said = text(organizer.get(address("live", campaign, 1)))
    assert "1 pair waits for your decision" in said
    assert "and its batch stays open: it was skipped, or nobody is left to judge it." in said


@pytest.mark.slow
def test_pairs_that_wait_may_be_of_several_batches(campaign: Campaign, organizer: Client) -> None:
    """No batch is said to wait for more pairs than it has."""
    row = evaluation.drawn(campaign, budget=30, batch_size=10, extra_share=0)
    for by in User.objects.filter(memberships__campaign=campaign, memberships__role="assessor"):
        while held := assignments.claim_next(campaign=campaign, by=by):
            assignments.skip(assignment=held, by=by, reason="unreadable")
    waiting = Pair.objects.filter(campaign=campaign).count()
    assert waiting > max(batch.pairs for batch in selectors.round_progress(row).batches)
    said = text(organizer.get(address("campaign-home", campaign)))
    assert f"{waiting} pairs wait for your decision, and keep their batches from their end" in said
    said = text(organizer.get(address("live", campaign, 1)))
    assert "and their batches stay open: they were skipped, or nobody is left to judge" in said


@pytest.mark.slow
@pytest.mark.on_both
def test_queries_do_not_grow_with_what_is_shown(
    judged: Round, campaign: Campaign, organizer: Client, django_assert_max_num_queries: Any
) -> None:
    """The bar of a campaign, on every page, takes about 14 of them."""
    for name in TABS:
        with django_assert_max_num_queries(46):
            organizer.get(address(name, campaign, 1))
    for name in ("round-list", "run-list", "material", "document-list", "campaign-home"):
        with django_assert_max_num_queries(46):
            organizer.get(address(name, campaign))
    page = organizer.get(address("live", campaign, 1))
    seen = {"head": page.context["head_token"], "body": page.context["body_token"]}
    with django_assert_max_num_queries(20):
        organizer.get(address("live", campaign, 1), seen, headers=HTMX)


@pytest.mark.slow
def test_pages_load_neither_scipy_nor_the_arithmetic() -> None:
    code = (
        "import django; django.setup(); from django.urls import get_resolver;"
        "get_resolver().url_patterns; import sys;"
        "import estimation.urls, judging.urls, estimation.templatetags.figures;"
        "print([m for m in sys.modules if m.split('.')[0] == 'scipy'"
        " or m in ('estimation.core.sampling.designs', 'estimation.core.rounds.evaluation')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.on_both
def test_admins_look_at_rounds_and_numbers_but_change_nothing(judged: Round) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("the-admin"))
    for model in (
        "run",
        "storedpool",
        "round",
        "roundbatch",
        "draw",
        "estimateset",
        "estimate",
        "report",
    ):
        assert client.get(reverse(f"admin:estimation_{model}_changelist")).status_code == 200
        assert client.get(reverse(f"admin:estimation_{model}_add")).status_code == 403
    page = reverse("admin:estimation_round_change", args=[judged.pk])
    assert client.get(page).status_code == 200
    assert client.post(page, {"seed": "other"}).status_code == 403


@pytest.mark.slow
def test_a_file_whose_reading_was_canceled_was_not_rejected(
    campaign: Campaign, organizer: Client
) -> None:
    for name in ("late.tsv", "later.tsv"):
        row = factories.stored(campaign, b"t9\tnine\n", name=name, kind="topics")
        Upload.objects.filter(pk=row.pk).update(drop="d")
        uploads.cancel(upload=row, by=campaign.created_by)
    assert "rejected" not in text(organizer.get(address("campaign-home", campaign)))
    files = text(organizer.get(address("material", campaign)))
    assert "2 canceled" in files
    assert "rejected" not in files
    assert "The reading of this file was canceled by" in files
