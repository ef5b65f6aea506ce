"""What organizers do while a worker draws: nothing that the draw rests on changes under it.

The interruptions come in the middle of the real draw, between its transactions.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from estimation.models import Draw, EstimateSet, Round, RoundBatch
from estimation.services import drawing, estimates, files, rounds
from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import Batch, Campaign, Job, Pair, Upload
from judging.services import batches, campaigns, jobs, uploads
from tests.support import evaluation, factories
from tests.support.kept import Kept

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
Act = Callable[[], object]


def settings_of(campaign: Campaign, **values: object) -> campaigns.CampaignPlan:
    names = ("name", "guidelines", "grades", "depth", "lease_minutes")
    return campaigns.CampaignPlan(**{name: getattr(campaign, name) for name in names} | values)


def run_upload(campaign: Campaign) -> Upload:
    return campaign.uploads.get(name="run1.run")


def refusal(act: Act) -> str:
    with pytest.raises(UserError) as refused:
        act()
    assert refused.value.status == 409
    return refused.value.code


def acts(campaign: Campaign, row: Round) -> dict[str, Act]:
    """Everything that would take the ground from under a draw."""
    by = campaign.created_by
    other = evaluation.plan(method="iid", seed="two")
    topics = campaign.uploads.get(name="topics.tsv")
    return {
        "change": lambda: rounds.change(row=row, by=by, plan=other),
        "discard": lambda: rounds.discard(row=row, by=by),
        "remove a run": lambda: uploads.remove(upload=run_upload(campaign), by=by),
        "remove topics": lambda: uploads.remove(upload=topics, by=by),
        "depth": lambda: campaigns.change(
            campaign=campaign, by=by, plan=settings_of(campaign, depth=5)
        ),
        "scale": lambda: campaigns.change(
            campaign=campaign, by=by, plan=settings_of(campaign, grades=campaign.grades[:2])
        ),
    }


NAMES = ["change", "discard", "remove a run", "remove topics", "depth", "scale"]


@pytest.fixture
def row(campaign: Campaign, kept: Kept) -> Round:
    return kept("drafted", lambda: evaluation.drafted(campaign), campaign)


def in_the_middle(monkeypatch: pytest.MonkeyPatch, act: Act) -> None:
    """Has the act done once, when the draw tells for the first time how far it is."""
    report, done = jobs.Running.report, []

    def interrupted(self: jobs.Running, progress: float, note: str = "") -> None:
        if self.kind == "draw" and not done:
            done.append(True)
            act()
        report(self, progress, note)

    monkeypatch.setattr(jobs.Running, "report", interrupted)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_a_draw_rests_on_stays_from_the_wish_to_the_end(
    name: str, campaign: Campaign, row: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds.request_draw(row=row, by=campaign.created_by)
    act = acts(campaign, row)[name]
    seen = [refusal(act)]
    in_the_middle(monkeypatch, lambda: seen.append(refusal(act)))

    factories.run_due_jobs()

    assert seen == ["being_drawn", "being_drawn"]
    row.refresh_from_db()
    assert (row.state, row.method, row.seed) == (Round.State.DRAWN, "poisson", "s")
    factories.assessors(campaign, "anna", "ben")
    campaigns.open_for_judging(campaign=campaign, by=campaign.created_by)
    evaluation.judge(campaign, 45)
    assert row.estimate_sets.exists()
    assert not Job.objects.filter(state=Job.State.FAILED).exists()


@pytest.mark.on_both
def test_what_no_draw_rests_on_may_change_meanwhile(campaign: Campaign, row: Round) -> None:
    by = campaign.created_by
    waiting = campaign.uploads.create(
        kind="run", name="x.run", file="none", size=0, sha256="", created_by=by
    )
    rounds.request_draw(row=row, by=by)

    campaigns.change(campaign=campaign, by=by, plan=settings_of(campaign, guidelines="New."))
    uploads.remove(upload=waiting, by=by)
    rounds.request_draw(row=row, by=by)

    campaign.refresh_from_db()
    assert campaign.guidelines == "New."
    assert Job.objects.get(kind="draw").requested == 1


@pytest.mark.slow
def test_a_round_that_is_being_drawn_is_neither_drafted_nor_drawn(
    campaign: Campaign, row: Round, organizer: Client
) -> None:
    rounds.request_draw(row=row, by=campaign.created_by)
    page = reverse("round-detail", args=[campaign.slug, row.number])

    shown = organizer.get(page).content.decode()

    assert Round.objects.get().state == "drawing"
    assert "Drawing" in shown
    for name in ("round-change", "round-draw", "round-discard"):
        assert reverse(name, args=[campaign.slug, row.number]) not in shown
    factories.run_due_jobs()
    followed = organizer.get(f"{page}preview/?state=drawing", headers={"HX-Request": "true"})
    assert followed.headers["HX-Redirect"] == page


def broken(*_args: object) -> None:
    raise ValueError("the disk is full")


def dies(*_args: object) -> None:
    raise jobs.LeaseLost("killed here")


@pytest.mark.slow
@pytest.mark.parametrize("end", [broken, dies])
@pytest.mark.parametrize("where", ["prepare", "_freeze"])
@pytest.mark.on_both
def test_a_draw_that_fails_for_good_gives_the_draft_back_and_leaves_nothing(
    where: str,
    end: Callable[..., None],
    campaign: Campaign,
    row: Round,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by = campaign.created_by
    rounds.request_draw(row=row, by=by)
    job = Job.objects.get(kind="draw")
    with monkeypatch.context() as patch:
        patch.setattr(drawing if where == "_freeze" else batches, where, end)
        for _ in range(jobs.MAX_ATTEMPTS):
            jobs.run(job.pk)
            past = seconds_from_now(-1)
            Job.objects.filter(pk=job.pk).update(due=past, lease_until=past)
        jobs.wake_due()

    job.refresh_from_db()
    row.refresh_from_db()
    assert (job.state, row.state) == (Job.State.FAILED, Round.State.DRAFTED)
    assert not Batch.objects.exists()
    assert not Draw.objects.exists()
    campaigns.change(campaign=campaign, by=by, plan=settings_of(campaign, depth=7))
    for upload in campaign.uploads.order_by("-pk"):
        uploads.remove(upload=upload, by=by)
    assert not Pair.objects.exists()
    rounds.discard(row=row, by=by)
    assert not Round.objects.exists()
    assert not Job.objects.filter(target=row.pk, kind__in=["preview", "draw"]).exists()


def test_a_kill_between_two_batches_leaves_nothing_that_freezes(
    campaign: Campaign, row: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that no round knows of, as a kill left it once, and one that a draft still has."""
    by = campaign.created_by
    batches.new_batch(campaign)
    left = batches.new_batch(campaign)
    RoundBatch.objects.create(round=row, number=1, batch=left)

    campaigns.change(campaign=campaign, by=by, plan=settings_of(campaign, depth=7))
    uploads.remove(upload=run_upload(campaign), by=by)
    rounds.discard(row=row, by=by)

    assert not Round.objects.exists()
    assert not RoundBatch.objects.exists()


def test_a_batch_and_its_place_in_the_round_are_written_in_one_commit(
    campaign: Campaign, row: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds.request_draw(row=row, by=campaign.created_by)
    with monkeypatch.context() as patch:
        patch.setattr(RoundBatch.objects, "create", dies)
        jobs.run(Job.objects.get(kind="draw").pk)

    assert not Batch.objects.exists()


def test_who_lost_the_draw_prepares_no_batch(
    campaign: Campaign, row: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that stood still while its draw was given up must not go on when it wakes."""
    rounds.request_draw(row=row, by=campaign.created_by)
    job = Job.objects.get(kind="draw")
    made = drawing.draw

    def slow(*args: object, **named: object) -> object:
        drawn = made(*args, **named)  # type: ignore[arg-type]
        past = seconds_from_now(-1)
        Job.objects.filter(pk=job.pk).update(lease_until=past, attempts=jobs.MAX_ATTEMPTS)
        jobs.wake_due()
        return drawn

    monkeypatch.setattr(drawing, "draw", slow)
    jobs.run(job.pk)

    assert Round.objects.get().state == Round.State.DRAFTED
    assert not Batch.objects.exists()


def facts_in_report(row: Round) -> dict[str, object]:
    made = {report.name: report for report in evaluation.made_reports(row)}
    content = files.path_of(made["estimates.json"].file).read_text()
    found: dict[str, object] = json.loads(content)["design"]
    return found


def test_recompute_looks_for_no_other_campaign_than_there_is() -> None:
    """Else whoever mistypes the name is told nothing, as if all were equal."""
    with pytest.raises(CommandError, match="There is no campaign 'nosuch'"):
        call_command("recompute", "nosuch")


@pytest.mark.slow
def test_reports_quote_the_design_that_was_drawn_and_recompute_sees_another_row(
    judged: Round, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever edits the row by hand changes neither what was drawn nor what is said of it."""
    call_command("recompute")
    Round.objects.update(method="iid", seed="two", budget=7, labels=3)
    judged.refresh_from_db()

    said = facts_in_report(judged)

    assert [said[name] for name in ("method", "seed", "budget", "labels")] == [
        "poisson", "s", 60, 1,
    ]  # fmt: skip
    html = judged.estimate_sets.last().reports.get(name="report.html")
    text = Path(files.path_of(html.file)).read_text()
    assert "<code>s</code>" in text
    assert "<code>two</code>" not in text
    with pytest.raises(CommandError):
        call_command("recompute")
    assert "seed" in capsys.readouterr().out


@pytest.mark.slow
def test_estimates_that_a_worker_is_to_renew_are_due_and_not_different(
    judged: Round, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in a backup that was made between the last label of a batch and its recompute."""
    jobs.request("recompute", judged.pk, campaign=judged.campaign)
    call_command("recompute")  # nothing has changed: a job alone makes no difference
    assert "round 1: equal" in capsys.readouterr().out
    EstimateSet.objects.update(label_digest="older", digest="older")

    call_command("recompute")
    assert "round 1: due" in capsys.readouterr().out
    factories.run_due_jobs()
    call_command("recompute")
    assert "round 1: equal" in capsys.readouterr().out

    jobs.request("recompute", judged.pk, campaign=judged.campaign)
    EstimateSet.objects.update(digest="wrong")  # of just these labels
    with pytest.raises(CommandError):
        call_command("recompute")
    Job.objects.all().delete()
    EstimateSet.objects.update(label_digest="older", digest="older")
    with pytest.raises(CommandError):
        call_command("recompute")
    assert "round 1: DIFFERENT" in capsys.readouterr().out


PLANS: dict[str, dict[str, object]] = {"query": {"budget": 90, "batch_size": 90}}


@pytest.mark.slow
@pytest.mark.parametrize(
    "method", ["adaptive", "poisson", "priority", "iid", "per-query", "query", "active"]
)
def test_recompute_draws_again_what_the_stored_design_and_seed_give(
    campaign: Campaign, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rounds drawn before designs were kept with the row: their files tell."""
    row = evaluation.drawn(campaign, method=method, **PLANS.get(method, {}))
    Round.objects.update(design={})
    call_command("recompute")

    Round.objects.update(seed="another")
    if method != "active":
        with pytest.raises(CommandError):
            call_command("recompute")
        assert "another sample" in capsys.readouterr().out
    assert estimates.from_scratch(row) is None
