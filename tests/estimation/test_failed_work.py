"""Failed work is seen where its result is missed, and has a way back: page, REST, command."""

import io

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from estimation.models import Round
from estimation.services import drawing, rounds
from judging.clock import seconds_from_now
from judging.models import AuditEntry, Batch, Campaign, Job, User
from judging.services import jobs
from tests.support import evaluation, factories, rest
from tests.support.pages import HTMX

pytestmark = pytest.mark.django_db
ERROR = "OperationalError: the database is gone"


@pytest.fixture
def active(campaign: Campaign, monkeypatch: pytest.MonkeyPatch) -> Round:
    """An active round whose first batch is judged and whose second could not be planned."""
    row = evaluation.drawn(
        campaign, method="active", measure="AP", reported=[], budget=24, batch_size=8
    )

    def gone(*_args: object, **_named: object) -> None:
        raise OperationalError("the database is gone")

    with monkeypatch.context() as patch:
        patch.setattr(drawing, "prepare", gone)
        evaluation.judge(campaign, 20)
        for _ in range(jobs.MAX_ATTEMPTS):
            Job.objects.filter(state=Job.State.QUEUED).update(due=seconds_from_now(-1))
            factories.run_due_jobs()
    row.refresh_from_db()
    assert failed_job().error == ERROR
    assert (row.state, batches_of(row)) == (Round.State.JUDGING, 1)
    return row


def failed_job() -> Job:
    found: Job = Job.objects.get(state=Job.State.FAILED)
    return found


def batches_of(row: Round) -> int:
    return Batch.objects.filter(round_batch__round=row).count()


def again(campaign: Campaign, job: Job) -> str:
    return reverse("work-again", args=[campaign.slug, job.pk])


def fail(kind: str, target: int, campaign: Campaign) -> Job:
    """The job as it is left by an error: its kind was told, and nobody has asked again."""
    job = jobs.request(kind, target, campaign=campaign)
    running = jobs.claim(job.pk)
    assert running is not None
    jobs._fail(running, ERROR)
    return job


PAGES = ("live", "live-pairs", "live-history", "live-batches", "live-labels", "round-detail")


@pytest.mark.slow
def test_a_batch_that_could_not_be_planned_is_seen_and_planned_after_all(
    campaign: Campaign, active: Round, organizer: Client
) -> None:
    places = [reverse(name, args=[campaign.slug, active.number]) for name in PAGES]
    places.append(reverse("campaign-home", args=[campaign.slug]))
    there = again(campaign, failed_job())

    for place in places:
        shown = organizer.get(place).content.decode()
        assert ERROR in shown, place
        assert there in shown, place
    answer = organizer.post(there)

    assert answer.headers["Location"] == places[0]
    factories.run_due_jobs()
    assert batches_of(active) == 2
    assert all(ERROR not in organizer.get(place).content.decode() for place in places)
    assert AuditEntry.objects.filter(action="try again", actor=campaign.created_by).exists()


@pytest.mark.slow
def test_assessors_and_the_organizer_read_that_the_next_batch_could_not_be_planned(
    campaign: Campaign, active: Round, organizer: Client
) -> None:
    """And an idle desk hears of it from its version, without being told the same twice."""
    anna = User.objects.get(username="anna")
    client = Client()
    client.force_login(anna)
    desk = reverse("judge", args=[campaign.slug])

    page = client.get(desk)

    said = page.content.decode()
    assert "A short break" in said
    assert ERROR not in said
    assert "being chosen" not in said
    assert "data-look-again>" in said
    claimed = rest.client_of(anna).post(f"/api/campaigns/{campaign.slug}/assignments/next/").json()
    assert (claimed["assignment"], claimed["reason"]) == (None, "choosing_failed")
    live = organizer.get(reverse("live", args=[campaign.slug, active.number])).content.decode()
    assert "assessors have nothing to judge" in live
    idle = {"idle": page.context["idle"]}
    with CaptureQueriesContext(connection) as asked:
        assert client.get(desk, idle, headers=HTMX).status_code == 204
    assert len(asked) == 4

    organizer.post(again(campaign, failed_job()))
    waiting = client.get(desk, idle, headers=HTMX)
    assert "The next documents are being chosen" in waiting.content.decode()
    idle = {"idle": waiting.context["idle"]}
    assert client.get(desk, idle, headers=HTMX).status_code == 204
    factories.run_due_jobs()
    assert "grade-button" in client.get(desk, idle, headers=HTMX).content.decode()


@pytest.mark.slow
def test_a_recompute_without_news_asks_for_the_next_batch(
    campaign: Campaign, active: Round
) -> None:
    sets = active.estimate_sets.count()

    jobs.request("recompute", active.pk, campaign=campaign)
    factories.run_due_jobs()

    assert active.estimate_sets.count() == sets
    assert batches_of(active) == 2
    assert not Job.objects.filter(state=Job.State.FAILED).exists()


@pytest.mark.slow
def test_a_complete_round_asks_for_no_further_batch(campaign: Campaign) -> None:
    row = evaluation.drawn(
        campaign, method="active", measure="AP", reported=[], budget=8, batch_size=8
    )
    while evaluation.judge(campaign, 20):
        row.refresh_from_db()
    assert row.state == Round.State.COMPLETE
    asked = Job.objects.get(kind="plan-batch").requested

    jobs.request("recompute", row.pk, campaign=campaign)
    factories.run_due_jobs()

    assert Job.objects.get(kind="plan-batch").requested == asked


@pytest.mark.slow
def test_the_command_lists_what_failed_and_tries_it_again(
    campaign: Campaign, active: Round
) -> None:
    listed, done, then = io.StringIO(), io.StringIO(), io.StringIO()

    call_command("retry", campaign.slug, list=True, stdout=listed)
    assert failed_job().kind == "plan-batch"
    call_command("retry", stdout=done)
    factories.run_due_jobs()
    call_command("retry", stdout=then)

    expected = f"{campaign.slug} round {active.number}: Planning the next batch: {ERROR}"
    assert listed.getvalue().strip() == expected
    assert done.getvalue().strip() == f"{expected} -> tried again"
    assert then.getvalue().strip() == "Nothing has failed."
    assert batches_of(active) == 2
    with pytest.raises(CommandError, match="no campaign 'nowhere'"):
        call_command("retry", "nowhere")


@pytest.mark.slow
def test_programs_list_it_and_try_it_again(campaign: Campaign, active: Round) -> None:
    client = rest.client_of(campaign.created_by)
    base = f"/api/campaigns/{campaign.slug}"

    (found,) = client.get(f"{base}/work/").json()
    of_round = client.get(f"{base}/rounds/{active.number}/").json()["jobs"]["plan_batch"]
    assert found["job"] == of_round
    assert (found["kind"], found["round"], of_round["error"]) == ("plan-batch", 1, ERROR)
    tried = client.post(f"{base}/work/{of_round['id']}/retry/")
    repeated = client.post(f"{base}/work/{of_round['id']}/retry/")

    assert (tried.status_code, tried.json()["state"]) == (202, "queued")
    assert (repeated.status_code, repeated.json()["code"]) == (409, "not_failed")
    assert client.get(f"{base}/work/").json() == []


@pytest.mark.slow
def test_work_of_other_campaigns_is_out_of_reach(campaign: Campaign, active: Round) -> None:
    other = factories.campaign(slug="other")
    job = failed_job()
    mine, theirs = Client(), rest.client_of(other.created_by)
    mine.force_login(other.created_by)

    assert mine.post(again(other, job)).status_code == 404
    assert theirs.post(f"/api/campaigns/other/work/{job.pk}/retry/").status_code == 404
    assert failed_job() == job


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["preview", "decide-rest", "judge-from-qrels", "upload"])
@pytest.mark.sqlite_only
def test_other_work_has_its_button_where_its_result_is_missed(
    kind: str, campaign: Campaign, organizer: Client
) -> None:
    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=evaluation.plan())
    upload = campaign.uploads.create(
        kind="run", name="x.run", file="none", size=0, sha256="", created_by=campaign.created_by
    )
    place, target = {
        "preview": (reverse("round-detail", args=[campaign.slug, row.number]), row.pk),
        "upload": (reverse("upload-detail", args=[campaign.slug, upload.pk]), upload.pk),
    }.get(kind, (reverse("decisions", args=[campaign.slug]), campaign.pk))
    job = fail(kind, target, campaign)
    asked = job.requested

    shown = organizer.get(place).content.decode()
    answer = organizer.post(again(campaign, job))

    assert ERROR in shown
    assert again(campaign, job) in shown
    assert answer.headers["Location"] == place
    job.refresh_from_db()
    assert (job.state, job.requested, job.error) == (Job.State.QUEUED, asked + 1, "")
    twice = organizer.post(again(campaign, job), follow=True)
    assert "has not failed" in twice.content.decode()


@pytest.mark.sqlite_only
def test_a_report_that_failed_is_asked_for_with_the_button_that_is_there(
    judged: Round, organizer: Client
) -> None:
    fail("report", judged.pk, judged.campaign)
    place = reverse("reports", args=[judged.campaign.slug, judged.number])

    shown = organizer.get(place).content.decode()

    assert ERROR in shown
    assert reverse("report-make", args=[judged.campaign.slug, judged.number]) in shown


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_a_draw_that_failed_is_asked_for_at_its_round(
    campaign: Campaign, organizer: Client
) -> None:
    row = evaluation.drafted(campaign)
    rounds.request_draw(row=row, by=campaign.created_by)
    job = fail("draw", row.pk, campaign)
    place = reverse("round-detail", args=[campaign.slug, row.number])

    home = organizer.get(reverse("campaign-home", args=[campaign.slug])).content.decode()
    shown = organizer.get(place).content.decode()
    tried = organizer.post(again(campaign, job), follow=True).content.decode()

    assert ERROR in home
    assert f'href="{place}"' in home
    assert again(campaign, job) not in home
    assert ERROR in shown
    assert reverse("round-draw", args=[campaign.slug, row.number]) in shown
    assert "Look at it, and draw it once more." in tried
    rounds.change(row=row, by=campaign.created_by, plan=evaluation.plan(budget=50))
    factories.run_due_jobs()
    assert ERROR not in organizer.get(place).content.decode()


@pytest.mark.slow
def test_assessors_are_shown_no_failed_work(campaign: Campaign, active: Round) -> None:
    client = Client()
    client.force_login(User.objects.get(username="anna"))

    assert client.post(again(campaign, failed_job())).status_code == 403
