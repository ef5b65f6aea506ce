"""New versions of runs: before a draw in place, after it as a withdrawn and a later run."""

import io

import pytest
from django.core.files.base import File
from django.test import Client

from estimation.material import taking_part
from estimation.models import Estimate, Round, Run
from estimation.services import choices, estimates, replacing, rounds, withdrawals
from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import AuditEntry, Campaign, Job, Judgment, Upload
from judging.services import described, duplicates, jobs, uploads
from tests.support import evaluation, factories, rest
from tests.support.later import join, latest, lines_of, with_news
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

METHODS = ["poisson", "iid", "adaptive", "priority"]


def run_of(campaign: Campaign, tag: str = "run2") -> Run:
    return campaign.runs.get(tag=tag)


def replace(campaign: Campaign, content: bytes, tag: str = "run2") -> Upload:
    """A new version that was read."""
    run = run_of(campaign, tag)
    file: File[bytes] = File(io.BytesIO(content), name="new.run")
    upload = replacing.replace(run=run, by=campaign.created_by, file=file, name="new.run")
    factories.run_due_jobs()
    upload.refresh_from_db()
    return upload


def confirm(upload: Upload) -> None:
    replacing.confirm(upload=upload, by=upload.created_by)
    factories.run_due_jobs()
    upload.refresh_from_db()


def values(row: Round, *without: str) -> dict[tuple[str, str], tuple[float, ...]]:
    rows = Estimate.objects.filter(estimate_set=latest(row), primary=True)
    return {
        (each.run.tag, each.measure): (each.value, each.se, each.low, each.high)
        for each in rows.exclude(run__tag__in=without).select_related("run")
    }


def judged_round(campaign: Campaign, **plan: object) -> Round:
    row = evaluation.drawn(campaign, reported=["P@10"], **plan)
    evaluation.judge(campaign, 45)
    row.refresh_from_db()
    return row


# ---------------------------------------------------------------------------------- before a draw


def test_an_empty_version_is_named(campaign: Campaign) -> None:
    client, run = rest.client_of(campaign.created_by), run_of(campaign)
    there = f"/api/campaigns/{campaign.slug}/runs/{run.pk}/versions/"
    refused = client.post(there, {"file": rest.file("nothing.run", "")}, format="multipart")
    assert (refused.status_code, refused.json()["code"]) == (400, "invalid")
    assert refused.json()["errors"] == [
        {"file": "nothing.run", "line": None, "field": "file", "message": "nothing.run is empty."}
    ]
    assert not Upload.objects.filter(replaces=run.upload).exists()


def test_before_a_draw_the_new_version_takes_the_place_of_the_old(campaign: Campaign) -> None:
    run, count = run_of(campaign), campaign.runs.count()
    upload = replace(campaign, with_news("run2"))
    assert upload.state == Upload.State.ACCEPTED, upload.errors
    now = run_of(campaign)
    assert (now.pk, campaign.runs.count(), now.upload) == (run.pk, count, upload)
    assert now.digest != run.digest
    assert upload.replaces == run.upload
    assert Upload.objects.get(pk=run.upload_id).state == Upload.State.ACCEPTED


@pytest.mark.slow
def test_what_is_drawn_then_is_drawn_as_if_only_the_new_version_had_come(
    campaign: Campaign,
) -> None:
    twin = evaluation.with_material(slug="twin")
    replace(campaign, with_news("run2"))
    twin.runs.get(tag="run2").upload.delete()
    join(twin, with_news("run2"), "new.run")
    one, other = evaluation.drawn(campaign), rounds_drawn(twin)
    assert one.pool is not None
    assert other.pool is not None
    assert one.pool.digest == other.pool.digest


def rounds_drawn(made: Campaign) -> Round:
    row = evaluation.drafted(made)
    rounds.request_draw(row=row, by=made.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    return row


def test_a_run_keeps_its_name_whatever_its_new_file_calls_it(campaign: Campaign) -> None:
    upload = replace(campaign, with_news("another"))
    assert upload.summary["tag"] == "run2"
    assert upload.warnings[0]["field"] == "tag"
    assert "'another'" in upload.warnings[0]["message"]
    assert not campaign.runs.filter(tag="another").exists()


def test_a_version_that_is_bad_changes_nothing(campaign: Campaign) -> None:
    before = run_of(campaign)
    upload = replace(campaign, b"t1 Q0 d1 1 what run2\n")
    assert upload.state == Upload.State.REJECTED
    now = run_of(campaign)
    assert (now.upload_id, now.digest) == (before.upload_id, before.digest)


def test_an_old_version_is_not_replaced_twice(campaign: Campaign) -> None:
    """Two who replace it at once: whoever is second is told, and the first stays."""
    run = run_of(campaign)
    stored = [
        replacing.replace(
            run=run, by=campaign.created_by, file=File(io.BytesIO(each)), name=f"{n}.run"
        )
        for n, each in enumerate([with_news("run2"), lines_of("run1", "run2")])
    ]
    factories.run_due_jobs()
    states = Upload.objects.filter(pk__in=[each.pk for each in stored]).order_by("pk")
    assert [each.state for each in states] == ["accepted", "rejected"]
    assert "has replaced this version already" in states[1].errors[0]["message"]
    assert run_of(campaign).upload_id == stored[0].pk
    with pytest.raises(UserError, match="has replaced this version already"):
        replacing.replace(run=run, by=campaign.created_by, file=File(io.BytesIO(b"")), name="x")


@pytest.mark.slow
def test_nothing_is_replaced_while_a_round_is_drawn(campaign: Campaign) -> None:
    row = evaluation.drafted(campaign)
    rounds.request_draw(row=row, by=campaign.created_by)
    with pytest.raises(UserError) as refused:
        replace(campaign, with_news("run2"))
    assert refused.value.code == "being_drawn"
    assert not Upload.objects.exclude(replaces=None).exists()


@pytest.mark.slow
def test_a_draw_that_is_asked_for_later_waits_for_the_new_version(campaign: Campaign) -> None:
    """Else the pool would hold the old version under the name of the new one."""
    row = evaluation.drafted(campaign)
    file: File[bytes] = File(io.BytesIO(with_news("run2")), name="new.run")
    replacing.replace(run=run_of(campaign), by=campaign.created_by, file=file, name="new.run")
    rounds.request_draw(row=row, by=campaign.created_by)
    draw = Job.objects.get(kind="draw", target=row.pk)
    jobs.run(draw.pk)
    draw.refresh_from_db()
    assert (draw.state, draw.note) == (Job.State.QUEUED, "waits for uploads to be read")


# ---------------------------------------------------------------------------------- after a draw


@pytest.mark.slow
def test_after_a_draw_it_is_told_first_what_a_new_version_changes(campaign: Campaign) -> None:
    row = judged_round(campaign)
    before = values(row)
    upload = replace(campaign, with_news("run2", known=4))
    assert (upload.state, upload.check_only) == (Upload.State.CHECKED, True)
    (line,) = upload.summary["changes"]["rounds"]
    topics = campaign.topics.count()
    assert (line["round"], line["documents"], line["outside"]) == (1, 8 * topics, 4 * topics)
    returned = {
        (topic, docno)
        for topic, _, docno, *_ in map(str.split, with_news("run2").decode().splitlines())
    }
    drawn = row.draws.select_related("pair__topic")
    mine = [each.pair for each in drawn if (each.pair.topic.topic_id, each.pair.docno) in returned]
    assert line["drawn"] == len(mine) > 0
    assert line["judged"] == sum(pair.judged > 0 for pair in mine)
    assert values(row) == before
    assert run_of(campaign).withdrawn is None
    assert not campaign.runs.filter(upload=upload).exists()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_no_value_of_another_run_changes(campaign: Campaign, method: str) -> None:
    row = judged_round(campaign, method=method)
    before, judged = values(row, "run2"), Judgment.objects.count()
    frozen = (row.design_file, row.sample_file, row.pool_id)
    confirm(replace(campaign, with_news("run2")))
    row.refresh_from_db()
    assert (row.design_file, row.sample_file, row.pool_id) == frozen
    assert Judgment.objects.count() == judged
    now = values(row)
    assert {tag for tag, _ in now} == {"run1", "run3", "run4", "run2-v2"}
    for key, numbers in before.items():
        assert now[key] == pytest.approx(numbers, rel=1e-12, abs=1e-12), key
    told = estimates.from_scratch(row)
    assert told is not None
    assert told.digest == latest(row).digest


@pytest.mark.slow
def test_the_new_version_is_a_later_run_and_the_old_one_withdrawn(campaign: Campaign) -> None:
    row = judged_round(campaign)
    old = run_of(campaign)
    confirm(replace(campaign, with_news("run2")))
    new = run_of(campaign, "run2-v2")
    old.refresh_from_db()
    assert old.withdrawn is not None
    assert new.upload.replaces == old.upload
    assert set(taking_part(campaign).values_list("tag", flat=True)) == {
        "run1", "run2-v2", "run3", "run4",
    }  # fmt: skip
    estimate = latest(row).estimates.get(run=new, measure="DCG@10", primary=True)
    assert estimate.late
    assert estimate.support < 1
    said = AuditEntry.objects.filter(action="replace run").get()
    assert said.actor == campaign.created_by


@pytest.mark.slow
def test_the_same_file_again_tells_the_same_value(campaign: Campaign) -> None:
    row = judged_round(campaign)
    before = values(row)["run2", "DCG@10"]
    upload = replace(campaign, evaluation.SMALL.runs["run2.run"])
    assert upload.summary["changes"]["same"] is True
    confirm(upload)
    assert values(row)["run2-v2", "DCG@10"] == pytest.approx(before, rel=1e-12, abs=1e-12)


@pytest.mark.slow
def test_a_top_up_reaches_what_only_the_new_version_returns(campaign: Campaign) -> None:
    judged_round(campaign)
    confirm(replace(campaign, with_news("run2")))
    more = evaluation.drawn(
        campaign, top_up=True, with_earlier=False, seed="more", budget=40, extra_share=0
    )
    news = more.draws.filter(pair__docno__startswith="new")
    assert news.exists()


@pytest.mark.slow
def test_a_version_is_taken_in_for_the_rounds_that_it_was_shown_for(campaign: Campaign) -> None:
    judged_round(campaign)
    upload = replace(campaign, with_news("run2"))
    evaluation.drawn(campaign, seed="another")
    with pytest.raises(UserError) as refused:
        replacing.confirm(upload=upload, by=upload.created_by)
    assert refused.value.code == "changed_meanwhile"
    upload.refresh_from_db()
    assert upload.state == Upload.State.CHECKED


@pytest.mark.slow
@pytest.mark.on_both
def test_what_was_drawn_after_the_confirmation_refuses_it_too(campaign: Campaign) -> None:
    """A file that failed, and is tried again after a draw that nobody was shown."""
    upload = replace(campaign, with_news("run2"))
    Upload.objects.filter(pk=upload.pk).update(state=Upload.State.REJECTED)
    Run.objects.filter(upload=upload).update(upload=upload.replaces)
    evaluation.drawn(campaign)
    Job.objects.filter(kind="upload", target=upload.pk).update(state=Job.State.FAILED)
    uploads.read_again(upload=upload, by=None)
    factories.run_due_jobs()
    upload.refresh_from_db()
    assert upload.state == Upload.State.REJECTED
    assert "A round was drawn since" in upload.errors[0]["message"]


@pytest.mark.slow
@pytest.mark.parametrize(("goal", "named"), [("single", "run"), ("baseline", "baseline")])
def test_the_run_that_a_round_is_about_stays(campaign: Campaign, goal: str, named: str) -> None:
    evaluation.drawn(campaign, goal=goal, **{named: "run2"})
    with pytest.raises(UserError) as refused:
        replace(campaign, with_news("run2"))
    assert refused.value.code == "in_use"


@pytest.mark.slow
def test_a_third_version_follows_the_second(campaign: Campaign) -> None:
    judged_round(campaign)
    confirm(replace(campaign, with_news("run2")))
    confirm(replace(campaign, with_news("run2", known=5), "run2-v2"))
    taking = set(taking_part(campaign).values_list("tag", flat=True))
    assert taking == {"run1", "run2-v3", "run3", "run4"}


# ---------------------------------------------------------------------------------- drafts


@pytest.mark.slow
@pytest.mark.parametrize("is_replaced", [True, False])
@pytest.mark.on_both
def test_a_draft_says_that_its_run_was_withdrawn_and_what_mends_that(
    campaign: Campaign, organizer: Client, is_replaced: bool
) -> None:
    judged_round(campaign)
    asked = {"goal": "pair", "run": "run2", "baseline": "run1", "seed": "later"}
    draft = evaluation.drafted(campaign, **asked)
    page, base = address("round-detail", campaign, 2), f"/api/campaigns/{campaign.slug}/rounds/2/"
    api = rest.client_of(campaign.created_by)
    assert choices.withdrawn_choice(draft) == ""
    assert api.get(base).json()["cannot_be_drawn"] is None
    if is_replaced:
        confirm(replace(campaign, with_news("run2")))
        newer = Run.objects.get(upload__replaces=run_of(campaign).upload).tag
        mend = f"Choose its newer version {newer} in the question, or take run2 back"
    else:
        withdrawals.withdraw(run=run_of(campaign), by=campaign.created_by)
        mend = "Choose another run in the question, or take run2 back"

    said = text(organizer.get(page))
    assert "This cannot be drawn" in said
    assert f"The run that this round is about, run2, was withdrawn since. {mend}" in said
    assert mend in api.get(base).json()["cannot_be_drawn"]
    answer = api.post(f"{base}draw/", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "run_withdrawn")
    draft.refresh_from_db()
    assert draft.state == Round.State.DRAFTED
    assert not Job.objects.filter(kind="draw", target=draft.pk).exists()

    withdrawals.take_back(run=run_of(campaign), by=campaign.created_by)
    factories.run_due_jobs()
    assert "This cannot be drawn" not in text(organizer.get(page))
    assert api.get(base).json()["cannot_be_drawn"] is None
    assert api.post(f"{base}draw/", {}).status_code == 202


# ---------------------------------------------------------------------------------- copies


def copied(campaign: Campaign) -> Campaign:
    """With the files, all of them read."""
    made = duplicates.duplicate(
        campaign=campaign, by=campaign.created_by, name="Again", with_files=True
    )
    for _ in range(2):  # runs wait for topics
        factories.run_due_jobs()
        Job.objects.update(due=seconds_from_now(-1))
    return made


def test_a_copy_has_the_old_version_where_that_takes_part_again(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    old, by = run_of(campaign), campaign.created_by
    upload = replace(campaign, with_news("run2"))
    confirm(upload)
    withdrawals.take_back(run=old, by=by)
    withdrawals.withdraw(run=Run.objects.get(upload=upload), by=by)
    known = set(taking_part(campaign).values_list("tag", "digest"))
    assert (old.tag, old.digest) in known
    assert set(copied(campaign).runs.values_list("tag", "digest")) == known


@pytest.mark.slow
def test_a_copy_does_without_what_was_replaced_before_a_draw(campaign: Campaign) -> None:
    replace(campaign, with_news("run2"))
    known = set(taking_part(campaign).values_list("tag", "digest"))
    made = copied(campaign)
    assert set(made.runs.values_list("tag", "digest")) == known
    assert not made.uploads.exclude(state=Upload.State.ACCEPTED).exists()


def test_a_copy_does_without_withdrawn_runs(campaign: Campaign) -> None:
    gone, *stay = campaign.runs.order_by("tag")
    withdrawals.withdraw(run=gone, by=campaign.created_by)
    assert list(copied(campaign).runs.values_list("tag", flat=True)) == [run.tag for run in stay]


def test_a_copy_has_what_is_said_of_runs(campaign: Campaign) -> None:
    run, by = run_of(campaign), campaign.created_by
    described.set_fields(campaign=campaign, by=by, names=["Year"])
    said = {"team": "Team T", "description": "BM25", "fields": {"Year": "2026"}}
    described.describe(upload=run.upload, by=by, **said)
    made = copied(campaign)
    assert made.run_fields == ["Year"]
    assert run_of(made).upload.about == said
