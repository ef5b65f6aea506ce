"""A deleted campaign is gone with rows and files; nothing of another campaign is touched."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from django.apps import apps
from django.conf import settings
from django.db.models import Model
from django.db.models.functions import Now
from django.test import Client

from estimation.models import Draw, Estimate, Report, Round, Run
from estimation.services import campaign_rows, files, unnamed_files
from judging import selectors
from judging.errors import UserError
from judging.models import AuditEntry, Campaign, Job, Judgment, Topic, Upload, User
from judging.services import audit, campaigns, deletion, duplicates, jobs
from tests.support import evaluation, factories
from tests.support.kept import Kept
from tests.support.pages import address, as_role, text

pytestmark = pytest.mark.django_db


@pytest.fixture
def full(campaign: Campaign, judged: Round, kept: Kept) -> Campaign:
    """Closed, with judgments, estimates and report files."""
    return kept("full", lambda: _full(campaign, judged), campaign, judged)


def _full(campaign: Campaign, judged: Round) -> Campaign:
    evaluation.made_reports(judged)
    campaigns.close(campaign=campaign, by=campaign.created_by)
    return campaign


def deleted(campaign: Campaign) -> None:
    deletion.request(campaign=campaign, by=campaign.created_by, name=campaign.name)
    factories.run_due_jobs()


def rows_left() -> dict[str, int]:
    """Of everything but people, the log, and work of the site."""
    kept = {"User", "AuditEntry", "Job", "ApiToken", "WorkerHeartbeat", "SignInTries"}
    kinds = [*apps.get_app_config("judging").get_models(),
             *apps.get_app_config("estimation").get_models()]  # fmt: skip
    counts = {kind.__name__: kind._default_manager.count() for kind in kinds}
    return {name: count for name, count in counts.items() if count and name not in kept}


def stored_files() -> set[Path]:
    """Files of columns; those of other tests too, whose rows are gone."""
    every = Path(settings.MEDIA_ROOT).rglob("*")
    return {path for path in every if path.is_file() and path.parent.name != "uploads"}


def uploaded(campaign: Campaign) -> set[Path]:
    return {Path(settings.MEDIA_ROOT) / each.file.name for each in campaign.uploads.all()}


def make_old() -> None:
    for path in stored_files():
        os.utime(path, (time.time() - 10**6,) * 2)


def sweep_again() -> None:
    Job.objects.filter(kind=unnamed_files.SWEEP).update(due=Now())
    factories.run_due_jobs()


@pytest.mark.slow
def test_rows_and_files_are_gone_and_the_log_says_who_and_when(full: Campaign) -> None:
    by, before = full.created_by, AuditEntry.objects.count()
    assert {"Judgment", "Estimate", "Report", "Draw"} <= set(rows_left())
    make_old()
    sources = uploaded(full)
    assert all(path.is_file() for path in sources)
    deleted(full)
    assert rows_left() == {}
    assert stored_files() == set()
    assert not [path for path in sources if path.exists()]
    assert AuditEntry.objects.count() == before + 2
    told = AuditEntry.objects.get(action="delete campaign")
    assert (told.actor, told.data["name"], told.data["judgments"]) == (by, full.name, 45)
    assert not Job.objects.exclude(kind__in=[deletion.DELETE, unnamed_files.SWEEP]).exists()
    assert selectors.job_of(deletion.DELETE, full.pk).state == Job.State.DONE  # type: ignore[union-attr]


def test_every_kind_of_row_of_a_campaign_is_among_those_that_go() -> None:
    """A model that is added is added here; else no campaign could be deleted any more."""
    go = {kind for kind, _ in (*campaign_rows.ROWS, *deletion.OWN, *deletion.LAST)}
    go |= {Upload, AuditEntry}
    reached: set[type[Model]] = {Campaign}
    for _ in range(6):
        for kind in [*apps.get_app_config("judging").get_models(),
                     *apps.get_app_config("estimation").get_models()]:  # fmt: skip
            of = {field.related_model for field in kind._meta.fields if field.is_relation}
            if of & reached:
                reached.add(kind)
    assert reached - {Campaign} == go


def test_files_are_named_by_every_column_that_there_is() -> None:
    columns = {pair for pairs in unnamed_files.NAMED_BY.values() for pair in pairs}
    there = {
        (kind, field.name)
        for kind in apps.get_app_config("estimation").get_models()
        for field in kind._meta.fields
        if field.name == "file" or field.name.endswith("_file")
    }
    assert there == columns


@pytest.mark.slow
def test_another_campaign_keeps_everything_also_files_of_the_same_content(
    full: Campaign, organizer: Client
) -> None:
    other = evaluation.with_material(slug="other")
    row = evaluation.drawn(other)
    evaluation.judge(other, 45)
    same = set(full.runs.values_list("file", flat=True)) & set(
        other.runs.values_list("file", flat=True)
    )
    assert same  # the same runs were uploaded to both
    numbers = list(Estimate.objects.filter(estimate_set__round=row).values_list("value", "low"))
    make_old()
    deleted(full)
    for run in other.runs.all():
        assert not files.damaged(run.file)
    assert set(Campaign.objects.all()) == {other}
    assert len(list(Judgment.objects.all())) == 45
    again = list(Estimate.objects.filter(estimate_set__round=row).values_list("value", "low"))
    assert again == numbers


@pytest.mark.slow
def test_young_files_wait_until_no_work_can_need_them(full: Campaign) -> None:
    sources = uploaded(full)
    deleted(full)
    assert rows_left() == {}
    assert stored_files()
    assert not [path for path in sources if path.exists()]
    job = Job.objects.get(kind=unnamed_files.SWEEP)
    assert job.state == Job.State.QUEUED
    make_old()
    sweep_again()
    assert stored_files() == set()


def test_files_of_a_clock_that_was_ahead_are_looked_at_in_an_hour(full: Campaign) -> None:
    """A job that waits longer is taken for one that is due."""
    run = full.runs.all()[0]
    stray = files.path_of(run.file).with_name("stray")
    stray.write_bytes(b"")
    os.utime(stray, (time.time() + 10**6,) * 2)
    sweep = jobs.claim(jobs.request(unnamed_files.SWEEP, 0).pk)
    assert sweep is not None
    with pytest.raises(jobs.NotYet) as found:
        unnamed_files.sweep(sweep)
    assert found.value.seconds <= unnamed_files.grace()
    stray.unlink()


@pytest.mark.slow
def test_a_file_that_somebody_keeps_again_stays(full: Campaign) -> None:
    """Its row is not there yet: the work that found the file there is still under way."""
    run = full.runs.all()[0]
    content = files.path_of(run.file).read_bytes()
    make_old()
    assert files.keep("runs", content) == run.file
    deleted(full)
    assert not files.damaged(run.file)
    make_old()  # the twin: nobody kept it
    sweep_again()
    assert files.damaged(run.file)


@pytest.mark.slow
def test_a_file_made_young_in_the_moment_it_is_put_aside_comes_back(
    full: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = full.runs.all()[0]
    path = files.path_of(run.file)
    make_old()
    real = Path.rename

    def rename(self: Path, target: Path) -> Path:
        if self == path:
            os.utime(self)
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    deleted(full)
    assert path.is_file()


def test_a_file_put_aside_by_a_worker_that_was_killed_is_looked_at_again(full: Campaign) -> None:
    run = full.runs.all()[0]
    path = files.path_of(run.file)
    path.rename(path.with_name(unnamed_files.ASIDE + path.name))
    unnamed_files.request()
    factories.run_due_jobs()
    assert not files.damaged(run.file)


class Killed(BaseException):
    """As kill -9: nothing is cleaned up."""


@pytest.mark.slow
def test_a_worker_that_is_killed_anywhere_is_followed_by_one_that_ends_it(
    full: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every step of the job once, each time by a new worker."""
    make_old()
    deletion.request(campaign=full, by=full.created_by, name=full.name)
    monkeypatch.setattr(deletion, "CHUNK", 40)
    job = Job.objects.get(kind=deletion.DELETE)
    real, kills, left = jobs.Running._update, 0, 0

    def dies_now_and_then(self: jobs.Running, **values: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed
        real(self, **values)

    monkeypatch.setattr(jobs.Running, "_update", dies_now_and_then)
    while Campaign.objects.filter(pk=full.pk).exists():
        left = kills + 1
        again = {"state": Job.State.QUEUED, "lease_until": None, "attempts": 0}
        Job.objects.filter(pk=job.pk).update(**again)
        try:
            jobs.run(job.pk)
        except Killed:
            kills += 1
        assert kills < 200
    monkeypatch.setattr(jobs.Running, "_update", real)
    factories.run_due_jobs()
    assert kills > 10
    assert rows_left() == {}
    assert stored_files() == set()


@pytest.mark.slow
def test_work_that_is_under_way_writes_nothing_more(full: Campaign) -> None:
    """It has the campaign in its hands when that goes: it stops, and has not failed."""
    (row,) = full.rounds.all()
    job = jobs.request("recompute", row.pk, campaign=full)
    Job.objects.filter(pk=job.pk).update(state=Job.State.QUEUED)
    claimed = jobs.claim(job.pk)
    assert claimed is not None
    deletion.request(campaign=full, by=full.created_by, name=full.name)
    with pytest.raises(jobs.LeaseLost):
        claimed.fence()
    factories.run_due_jobs()
    assert rows_left() == {}
    with pytest.raises(jobs.LeaseLost):
        claimed.fence()


@pytest.mark.slow
def test_who_was_about_to_write_holds_it_up_and_is_cleared_by_the_next_turn(
    full: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that had begun before may still bring a row after all of its kind were gone."""
    real, late = deletion._delete_uploads, []

    def somebody_writes(job: jobs.Running, campaign: Campaign) -> None:
        real(job, campaign)
        if not late:
            late.append(1)
            factories.stored(full, b"1\tone\n", name="late.tsv", kind="topics")

    monkeypatch.setattr(deletion, "_delete_uploads", somebody_writes)
    Campaign.objects.filter(pk=full.pk).update(state=Campaign.State.DRAFT)
    full.refresh_from_db()
    deleted(full)
    for _ in range(3):
        Job.objects.filter(kind=deletion.DELETE).exclude(state=Job.State.DONE).update(due=Now())
        factories.run_due_jobs()
    assert late
    assert rows_left() == {}


# ------------------------------------------------------------------------------ who may, and when


@pytest.mark.slow
def test_it_is_there_for_nobody_from_that_moment_on(full: Campaign) -> None:
    admin = User.objects.create_superuser("root")
    member = full.created_by
    deletion.request(campaign=full, by=member, name=full.name)
    for user in (admin, member):
        client = Client()
        client.force_login(user)
        assert client.get(address("campaign-settings", full)).status_code == 404
        assert full.name not in text(client.get("/"))
    with pytest.raises(UserError, match="not there any more"):
        deletion.request(campaign=full, by=admin, name=full.name)
    with pytest.raises(UserError, match="not there any more"):
        duplicates.duplicate(campaign=full, by=member, name="Again", with_files=True)
    with pytest.raises(UserError, match="cannot become"):
        campaigns.open_for_judging(campaign=full, by=member)


def nothing_changed(campaign: Campaign, act: Callable[[], None], match: str) -> None:
    before = rows_left(), AuditEntry.objects.count(), Job.objects.count()
    with pytest.raises(UserError, match=match):
        act()
    assert (rows_left(), AuditEntry.objects.count(), Job.objects.count()) == before
    campaign.refresh_from_db()
    assert campaign.state != Campaign.State.DELETING


def asked(campaign: Campaign, name: str = "") -> Callable[[], None]:
    return lambda: deletion.request(
        campaign=campaign, by=campaign.created_by, name=name or campaign.name
    )


@pytest.mark.slow
def test_it_is_refused_while_people_judge(judged: Round) -> None:
    made = judged.campaign
    nothing_changed(made, asked(made), "Close it first")
    campaigns.pause(campaign=made, by=made.created_by)
    nothing_changed(made, asked(made), "Close it first")


def test_it_is_refused_while_a_round_is_drawn(full: Campaign) -> None:
    (row,) = full.rounds.all()
    Job.objects.update_or_create(
        kind="draw", target=row.pk, defaults={"campaign": full, "state": Job.State.RUNNING}
    )
    nothing_changed(full, asked(full), "is being drawn")


@pytest.mark.slow
def test_it_is_refused_while_its_files_are_copied(full: Campaign) -> None:
    duplicates.duplicate(campaign=full, by=full.created_by, name="Again", with_files=True)
    nothing_changed(full, asked(full), "are being copied")
    factories.run_due_jobs()
    deleted(full)
    assert [made.name for made in Campaign.objects.all()] == ["Again"]
    assert Run.objects.count() == 4


@pytest.mark.parametrize("name", ["", "the test", "The test ."])
def test_another_name_deletes_nothing(full: Campaign, name: str) -> None:
    nothing_changed(full, asked(full, name or " "), "not the name")


@pytest.mark.parametrize(
    ("name", "typed"),
    [("The  test", "The test"), ("The\ntest", "The test"), ("Caf\u0065\u0301", "Café")],
)
def test_a_name_is_typed_as_it_is_shown(full: Campaign, name: str, typed: str) -> None:
    """A page shows two spaces, or a line break, as one space; keyboards have one way to write é."""
    Campaign.objects.filter(pk=full.pk).update(name=name)
    asked(full, typed)()
    assert Campaign.objects.get(pk=full.pk).state == Campaign.State.DELETING


@pytest.mark.slow
@pytest.mark.parametrize("role", ["organizer", "admin"])
def test_the_page_offers_the_export_first_and_wants_the_name(full: Campaign, role: str) -> None:
    client, url = as_role(role, full), address("campaign-delete", full)
    shown = client.get(url)
    page = text(shown)
    assert page.index("take it along") < page.index("Then delete it")
    assert f'class="btn" href="{address("report-list", full)}"' in shown.content.decode()
    assert "45 judgments of 2 people" in page
    wrong = client.post(url, {"name": "another"})
    assert wrong.status_code == 400
    assert "not the name of the campaign" in text(wrong)
    assert Topic.objects.exists()
    after = client.post(url, {"name": full.name}, follow=True)
    assert after.redirect_chain == [("/", 302)]
    assert "is deleted" in text(after)
    factories.run_due_jobs()
    assert rows_left() == {}


def test_while_people_judge_the_page_says_what_comes_first(judged: Round) -> None:
    client = as_role("organizer", judged.campaign)
    page = text(client.get(address("campaign-delete", judged.campaign)))
    assert "Close it first" in page
    assert "Delete for good" not in page


@pytest.mark.slow
def test_by_rest_it_is_the_same(full: Campaign, organizer: Client) -> None:
    url = f"/api/campaigns/{full.slug}/deletion/"
    kind = {"content_type": "application/json"}
    refused = organizer.post(url, {"name": "another"}, **kind)
    assert (refused.status_code, refused.json()["code"]) == (400, "name_differs")
    assert organizer.post(url, {}, **kind).status_code == 400
    assert organizer.post(url, {"name": full.name}, **kind).status_code == 202
    assert organizer.get(f"/api/campaigns/{full.slug}/").status_code == 404
    assert not Draw.objects.exclude(round__campaign=full).exists()
    factories.run_due_jobs()
    assert rows_left() == {}


@pytest.mark.slow
def test_what_was_done_in_it_stays_in_the_log_of_the_site(full: Campaign) -> None:
    done = AuditEntry.objects.filter(campaign=full, action="judge").count()
    assert done
    deleted(full)
    assert AuditEntry.objects.filter(campaign=None, action="judge").count() == done
    audit.record("look", by=None)  # and it goes on
    assert Report.objects.count() == 0
