"""A poll is answered from one version, which is another one whenever the pages would be."""

from collections.abc import Callable

import pytest
from django.db import connection
from django.db.models import F
from django.test import Client
from django.test.utils import CaptureQueriesContext

from estimation import versions
from estimation.models import Round
from judging.models import Assignment, Batch, Campaign, Job, WorkerHeartbeat
from judging.services import assignments, batches, decisions, jobs, steward
from judging.services import campaigns as campaign_services
from tests.support import evaluation, factories
from tests.support.pages import HTMX, TABS, address

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


def held(campaign: Campaign) -> Assignment:
    by = campaign.memberships.get(role="assessor", user__username="judge").user
    found = assignments.claim_next(campaign=campaign, by=by)
    assert found is not None
    return found


def skip(row: Round) -> None:
    factories.assessors(row.campaign, "judge")
    assignment = held(row.campaign)
    by = assignment.assessor
    assignments.skip(assignment=assignment, by=by, reason="cannot read it")


def decide(row: Round) -> None:
    by = row.campaign.created_by
    lacking = row.campaign.pairs.filter(decided=False, judged__lt=F("wanted"))
    pair = lacking.filter(batch_pairs__batch__state="open").first()
    assert pair is not None
    decisions.decide(pair=pair, by=by, grade=None if pair.judged else 0, reason="empty")


def judge(row: Round) -> None:
    assert evaluation.judge(row.campaign, 1)


def ask(row: Round) -> None:
    jobs.request("recompute", row.pk, campaign=row.campaign)


def fail(row: Round) -> None:
    Job.objects.filter(kind="recompute", target=row.pk).update(state="failed", error="no room")


def end(row: Round) -> None:
    Round.objects.filter(pk=row.pk).update(stopping={"rule": "best", "batches": 1})


def begin_work(_row: Round) -> None:
    steward.beat("worker", "celery")


def end_work(_row: Round) -> None:
    steward.beat("worker", "celery")
    WorkerHeartbeat.objects.all().delete()
    steward.beat("other", "uploads")


def close(row: Round) -> None:
    campaign_services.close(campaign=row.campaign, by=row.campaign.created_by)


def add_batch(row: Round) -> None:
    batches.new_batch(row.campaign)


def open_batch(row: Round) -> None:
    Batch.objects.filter(campaign=row.campaign, state="waiting").update(state="open")


CHANGES = [
    skip, decide, judge, ask, fail, end, begin_work, end_work, close, add_batch, open_batch
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.on_both
def test_whatever_the_pages_tell_changes_the_version(
    judged: Round, change: Callable[[Round], None]
) -> None:
    before = versions.of_round(judged.campaign.slug, judged.number)
    assert before == versions.of_round(judged.campaign.slug, judged.number)

    change(judged)

    assert versions.of_round(judged.campaign.slug, judged.number) != before


def test_new_estimates_change_the_version_and_other_campaigns_do_not(judged: Round) -> None:
    latest = judged.estimate_sets.order_by("-number").first()
    assert latest is not None
    latest.pk, latest.number = None, latest.number + 1
    before = versions.of_round(judged.campaign.slug, judged.number)
    factories.released_batch(factories.campaign(slug="other"), ["a"])
    assert versions.of_round(judged.campaign.slug, judged.number) == before

    latest.save(force_insert=True)

    assert versions.of_round(judged.campaign.slug, judged.number) != before
    assert versions.of_round(judged.campaign.slug, 99) == versions.NO_ROUND


@pytest.mark.slow
@pytest.mark.parametrize("name", TABS)
def test_an_unchanged_poll_takes_three_statements(
    name: str, judged: Round, organizer: Client
) -> None:
    """The session, the account, and the campaign with role and version."""
    there = address(name, judged.campaign, 1)
    page = organizer.get(there)
    seen = {"head": page.context["head_token"], "body": page.context["body_token"]}

    with CaptureQueriesContext(connection) as asked:
        assert organizer.get(there, seen, headers=HTMX).status_code == 204

    assert len(asked) == 3
    judge(judged)
    assert organizer.get(there, seen, headers=HTMX).status_code == 200


@pytest.mark.slow
def test_a_poll_is_no_way_around_the_door(judged: Round, organizer: Client) -> None:
    there = address("live", judged.campaign, 1)
    seen = {"head": organizer.get(there).context["head_token"]}
    (anna,) = factories.assessors(judged.campaign, "anna")
    other, nobody = Client(), Client()
    other.force_login(anna)

    assert other.get(there, seen, headers=HTMX).status_code == 403
    assert nobody.get(there, seen, headers=HTMX).status_code == 302
    judged.campaign.memberships.all().delete()
    assert organizer.get(there, seen, headers=HTMX).status_code == 404
