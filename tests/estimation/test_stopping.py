"""Rounds that end by a rule: what is dropped, what stays, and what is told of it."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from django.db import transaction
from django.test import Client

from estimation import selectors
from estimation.core.rounds.results import MeasureResult
from estimation.endings import end_in_words
from estimation.models import Draw, EstimateSet, Round
from estimation.services import estimates, files, rounds, stopping
from estimation.services.choices import kept_pairs
from judging import selectors as judging
from judging.errors import UserError
from judging.models import Assignment, AuditEntry, Batch, Campaign, Job, Judgment, User
from judging.services import assignments, batches, campaigns, exclusions, jobs, judgments
from tests.support import evaluation, factories
from tests.support.evaluation import batch_states
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

EASY = {"stop_when": "width", "stop_width": 13.5, "extra_share": 0.0}
"""A rule that comes true as soon as every value is known."""
SMALL_BATCHES = {"budget": 90, "batch_size": 15}


def drawn(campaign: Campaign, **plan: object) -> Round:
    return evaluation.drawn(campaign, **EASY | SMALL_BATCHES | plan)


def stopped(campaign: Campaign, **plan: object) -> Round:
    """A round with a rule, judged as far as there is work."""
    row = drawn(campaign, **plan)
    while evaluation.judge(campaign, 5):
        pass
    row.refresh_from_db()
    return row


def latest(row: Round) -> EstimateSet:
    shown = selectors.latest_estimates(row)
    assert shown is not None
    return shown


def until_true(campaign: Campaign, row: Round) -> None:
    """Judges until the rule has come true, and leaves all that is due after that."""
    done = {"recompute", "plan-batch"}
    for _ in range(200):
        evaluation.judge_one(campaign)
        for job in Job.objects.filter(jobs.due(), kind__in=done).order_by("pk"):
            jobs.run(job.pk)
        row.refresh_from_db()
        if row.stopping:
            return
    raise AssertionError("the rule has not come true")


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "iid", "adaptive"])
@pytest.mark.on_both
def test_a_round_stops_when_its_rule_comes_true(campaign: Campaign, method: str) -> None:
    row = stopped(campaign, method=method)
    assert row.state == Round.State.STOPPED
    used = latest(row).batches
    assert row.stopping["batch"] == used
    assert used < row.stopping["batches"]
    found = batch_states(row)
    assert found[:used] == [Batch.State.COMPLETE] * used
    assert set(found[used:]) <= {Batch.State.DROPPED}
    if method != "adaptive":
        assert len(found) > used
    assert row.stopping["saved"] > 0
    assert judging.empty_queue(campaign) == "complete"
    assert not Job.objects.filter(jobs.due()).exists()


@pytest.mark.slow
@pytest.mark.on_both
def test_what_is_saved_is_what_nobody_has_judged(campaign: Campaign) -> None:
    row = stopped(campaign)
    pairs = Draw.objects.filter(round=row, pair__judged=0).count()
    assert row.stopping["saved"] == pairs
    assert Judgment.objects.count() == Draw.objects.filter(round=row, pair__judged=1).count()


@pytest.mark.slow
def test_no_more_is_saved_than_there_was_to_judge(campaign: Campaign) -> None:
    """Of a budget above the pool, the batches that were never planned hold what is left of it."""
    row = evaluation.drawn(
        campaign, method="adaptive", budget=10_000, batch_size=40, extra_share=0.0
    )
    while selectors.latest_estimates(row) is None:
        evaluation.judge(campaign, 5)
    stopping.by_hand(row=row, by=row.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    left = row.preview["eligible_pairs"] - Judgment.objects.count()
    assert row.stopping["saved"] == left > 0


@pytest.mark.slow
def test_without_a_rule_everything_is_judged(campaign: Campaign) -> None:
    row = stopped(campaign, stop_when="")
    assert row.state == Round.State.COMPLETE
    assert row.stopping == {}
    assert latest(row).look == 0


@pytest.mark.slow
def test_numbers_hold_at_every_look_also_at_the_end_of_a_round_with_a_rule(
    campaign: Campaign,
) -> None:
    """Its rule may have ended it before: the end was not all that could be reported."""
    row = stopped(campaign, stop_width=1e-9)
    assert row.state == Round.State.COMPLETE
    shown = latest(row)
    assert shown.look == shown.looks == shown.batches > 1
    assert shown.at_this_look > 0.95
    again = estimates.from_scratch(row)
    assert again is not None
    assert again.digest == shown.digest


@pytest.mark.slow
def test_a_stopped_round_keeps_its_look_and_its_bits(campaign: Campaign) -> None:
    row = stopped(campaign)
    shown = latest(row)
    assert (shown.look, shown.looks) == (shown.batches, row.stopping["batches"])
    again = estimates.from_scratch(row)
    assert again is not None
    assert again.digest == shown.digest


@pytest.mark.slow
def test_who_holds_a_lease_when_it_stops_is_heard(campaign: Campaign) -> None:
    row = drawn(campaign)
    until_true(campaign, row)
    anna = User.objects.get(username="anna")
    held = assignments.claim_next(campaign=campaign, by=anna)
    assert held is not None
    before = latest(row)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED
    held.refresh_from_db()
    assert held.state == Assignment.State.LEASED
    said = judgments.record(assignment=held, by=anna, saying=judgments.Saying(grade=1, key="late"))
    assert said.created
    factories.run_due_jobs()
    assert Judgment.objects.filter(assignment=held).exists()
    assert latest(row) == before, "what an incomplete batch has got counts for nothing"
    assert assignments.claim_next(campaign=campaign, by=anna) is None


@pytest.mark.slow
@pytest.mark.parametrize("by_hand", [True, False])
def test_a_batch_that_is_completed_before_the_end_is_told_to_count(
    campaign: Campaign, *, by_hand: bool
) -> None:
    """The end was said to be after batch 1, beside numbers of batch 2."""
    row = drawn(campaign, **({"stop_when": ""} if by_hand else {}))
    if by_hand:
        while not selectors.complete_batches(row):
            evaluation.judge_one(campaign)
        stopping.by_hand(row=row, by=row.created_by)
    else:
        until_true(campaign, row)
    first = row.stopping["batch"]
    while selectors.complete_batches(row) == first:
        evaluation.judge_one(campaign)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert (row.state, latest(row).batches) == (Round.State.STOPPED, first + 1)
    said = end_in_words(row)
    if by_hand:
        assert said.startswith(f"Ended by its organizer after batch {first + 1} of 6. ")
    else:
        assert said.startswith(f"Stopped by its rule after batch {first} of 6, which held then: ")
        assert f" Batch {first + 1} was complete before it ended, and counts. " in said


@pytest.mark.slow
def test_a_batch_after_one_that_was_dropped_is_not_judged_again(campaign: Campaign) -> None:
    """It counts in no round, whoever is excluded: others were asked for labels all the same."""
    row = drawn(campaign, stop_when="")
    while not selectors.complete_batches(row):
        evaluation.judge_one(campaign)
    factories.run_due_jobs()
    among = User.objects.filter(memberships__campaign=campaign, memberships__role="assessor")
    holds, judges = among.order_by("pk")
    held = assignments.claim_next(campaign=campaign, by=holds)
    assert held is not None
    while batch_states(row)[2] != Batch.State.COMPLETE:
        assignment = assignments.claim_next(campaign=campaign, by=judges)
        assert assignment is not None
        saying = judgments.Saying(grade=1, key=f"{assignment.pk}")
        judgments.record(assignment=assignment, by=judges, saying=saying)
    stopping.by_hand(row=row, by=row.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert (latest(row).batches, row.stopping["batch"]) == (1, 1)
    behind = set(row.draws.filter(batch_number=3).values_list("pair", flat=True))
    assert behind <= kept_pairs(campaign), "a round that adds to it takes them for certain"
    judgments.record(assignment=held, by=holds, saying=judgments.Saying(grade=1, key="held"))
    exclusions.exclude(
        campaign=campaign, assessor=judges, by=row.created_by, ground="time", reason="x"
    )
    first = set(row.draws.filter(batch_number=1).values_list("pair", flat=True))
    while (again := assignments.claim_next(campaign=campaign, by=holds)) is not None:
        assert again.pair_id in first, "no batch after it is served"
        saying = judgments.Saying(grade=1, key=f"{again.pk}")
        judgments.record(assignment=again, by=holds, saying=saying)


@pytest.mark.slow
def test_between_the_note_and_the_end_a_worker_may_die(campaign: Campaign) -> None:
    """The recompute has committed, and nobody has done what it asked for: the next one does it."""
    row = drawn(campaign)
    until_true(campaign, row)
    assert row.state == Round.State.JUDGING
    assert "saved" not in row.stopping
    job = Job.objects.get(kind=stopping.STOP, target=row.pk)
    assert jobs.claim(job.pk) is not None, "a worker takes it and dies"
    Job.objects.filter(pk=job.pk).update(lease_until="2000-01-01T00:00Z")
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED


@pytest.mark.slow
def test_a_worker_that_dies_while_it_ends_a_round_leaves_it_whole(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = drawn(campaign)
    until_true(campaign, row)

    def killed(_ids: object) -> int:
        raise KeyboardInterrupt

    job = Job.objects.get(kind=stopping.STOP, target=row.pk)
    monkeypatch.setattr(batches, "drop", killed)
    with pytest.raises(KeyboardInterrupt):
        jobs.run(job.pk)
    monkeypatch.undo()
    row.refresh_from_db()
    assert row.state == Round.State.JUDGING
    assert Batch.State.DROPPED not in batch_states(row)
    Job.objects.filter(kind=stopping.STOP).update(lease_until="2000-01-01T00:00Z")
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED


@pytest.mark.slow
def test_it_is_stopped_once_however_often_that_is_done(campaign: Campaign) -> None:
    row = stopped(campaign)
    before = row.stopping
    for _ in range(2):
        jobs.request(stopping.STOP, row.pk, campaign=campaign)
        jobs.request("recompute", row.pk, campaign=campaign)
        factories.run_due_jobs()
    row.refresh_from_db()
    assert row.stopping == before
    assert AuditEntry.objects.filter(action="stop round").count() == 1
    assert AuditEntry.objects.filter(action="rule true").count() == 1


@pytest.mark.slow
def test_a_correction_recomputes_a_stopped_round_and_opens_nothing(campaign: Campaign) -> None:
    row = stopped(campaign)
    before, first = latest(row), Judgment.objects.order_by("pk")[0]
    judgments.correct(
        assignment=first.assignment, by=first.assessor, revision=1,
        saying=judgments.Saying(grade=(first.grade + 1) % 4, key="corrected"),
    )  # fmt: skip
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED
    assert latest(row).number == before.number + 1
    assert latest(row).batches == before.batches
    assert Batch.State.OPEN not in batch_states(row)


@pytest.mark.slow
def test_an_adaptive_round_plans_no_batch_after_its_rule_has_come_true(campaign: Campaign) -> None:
    row = drawn(campaign, method="adaptive")
    until_true(campaign, row)
    planned = row.round_batches.count()
    jobs.request("plan-batch", row.pk, campaign=campaign)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED
    assert row.round_batches.count() == planned
    assert row.stopping["saved"] >= row.budget - row.draws.count() - 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "act",
    [
        lambda campaign, by: campaigns.close(campaign=campaign, by=by),
        lambda campaign, by: rounds.draft(campaign=campaign, by=by, plan=evaluation.plan(seed="n")),
    ],
)
def test_an_organizer_who_acts_at_the_same_time_gets_a_clean_result(
    campaign: Campaign, act: Callable[[Campaign, User], object]
) -> None:
    row = drawn(campaign)
    until_true(campaign, row)
    campaign.refresh_from_db()
    act(campaign, campaign.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED
    assert Batch.State.OPEN not in batch_states(row)


@pytest.mark.slow
def test_a_round_after_a_stopped_one_is_judged(campaign: Campaign) -> None:
    first = stopped(campaign)
    second = stopped(campaign, seed="second", stop_when="")
    first.refresh_from_db()
    assert (first.state, second.state) == (Round.State.STOPPED, Round.State.COMPLETE)
    assert Batch.State.DROPPED in batch_states(first)


@pytest.mark.slow
def test_the_rule_is_looked_at_with_what_is_told(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[MeasureResult] = []

    def holds(_rule: object, result: MeasureResult) -> bool:
        seen.append(result)
        return len(seen) == 2

    monkeypatch.setattr("estimation.core.planning.stopping.StoppingRule.holds", holds)
    row = stopped(campaign, stop_when="best")
    shown = latest(row)
    assert shown.batches == row.stopping["batch"] == 2
    stored = {each.run.tag: (each.low, each.high) for each in shown.estimates.filter(
        measure=row.measure, primary=True).select_related("run")}  # fmt: skip
    told = zip(seen[-1].runs, seen[-1].estimate.low, seen[-1].estimate.high, strict=True)
    assert stored == {tag: (float(low), float(high)) for tag, low, high in told}


@pytest.mark.slow
def test_pages_rest_and_report_say_which_rule_and_what_it_saved(
    campaign: Campaign, organizer: Client
) -> None:
    row = stopped(campaign)
    batch, saved = row.stopping["batch"], row.stopping["saved"]
    said = (
        f"Stopped by its rule after batch {batch} of 6, which held then: DCG@10 of every run is "
        f"known to ±\N{NO-BREAK SPACE}13.5 or better. {saved:,} judgments were saved."
    )
    for name in ("live", "round-detail"):
        assert " ".join(said.split()) in text(organizer.get(address(name, campaign, row.number)))
    assert "dropped" in text(organizer.get(address("live-batches", campaign, row.number)))
    rest = organizer.get(f"/api/campaigns/{campaign.slug}/rounds/{row.number}/").json()
    assert rest["state"] == "stopped"
    assert rest["stopping"]["text"] == said
    assert (rest["stopping"]["rule"], rest["stopping"]["saved"]) == ("width", saved)
    made = {each.name: files.path_of(each.file) for each in evaluation.made_reports(row)}
    document = made["report.html"].read_text()
    assert said in document
    assert "stopped by its rule" in document
    assert json.loads(made["estimates.json"].read_text())["design"]["stop_when"] == "width"
    home = text(organizer.get(f"/c/{campaign.slug}/"))
    assert "Plan a further round" in home


@pytest.mark.slow
def test_what_was_not_told_apart_when_a_round_stopped_is_said_to_be_so(
    campaign: Campaign, organizer: Client
) -> None:
    """Of such pairs there was a state without a word, and the best run was to "go on"."""
    row = stopped(campaign)
    base = f"/api/campaigns/{campaign.slug}"
    rest = organizer.get(f"{base}/ranking/", {"pairs": "1"}).json()
    pairs = rest["pairs"]
    left = [(i, j) for i, line in enumerate(pairs["states"]) for j, state in enumerate(line)
            if state == "stopped"]  # fmt: skip
    assert left
    assert {state for line in pairs["states"] for state in line} <= {"", "decided", "stopped"}
    for i, j in left:
        two = {"first": pairs["runs"][i], "second": pairs["runs"][j]}
        found = organizer.get(f"{base}/comparison/", two).json()["comparison"]
        assert found["state"] == "stopped"
        assert found["next"].startswith("The round has stopped")
        if pairs["more"][i][j]:
            assert f"about {pairs['more'][i][j]:,.0f} more judgment" in found["next"]
        page = text(organizer.get(address("compare", campaign, row.number), two))
        assert found["next"] in page
    for about in ("best", "ranking"):
        assert rest["forecast"][about]["state"] in ("decided", "stopped")
        assert rest["forecast"][about]["chance"] is None


@pytest.mark.slow
def test_the_assessors_see_that_the_work_is_done(campaign: Campaign) -> None:
    stopped(campaign)
    client = Client()
    client.force_login(User.objects.get(username="anna"))
    assert "Every document that is needed so far has its judgments" in text(
        client.get(f"/c/{campaign.slug}/judge/")
    )


@pytest.mark.parametrize(
    ("field", "plan"),
    [
        ("stop_when", {"stop_when": "soon"}),
        ("stop_width", {"stop_when": "width", "stop_width": 0.0}),
        ("stop_width", {"stop_width": float("nan")}),
        ("stop_width", {"stop_when": "width", "stop_width": 1e9}),
        ("stop_top", {"stop_when": "top", "stop_top": 4}),
        ("stop_top", {"stop_when": "top", "stop_top": 0}),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(
    campaign: Campaign, field: str, plan: dict[str, object]
) -> None:
    wanted = evaluation.plan(**plan)
    with pytest.raises(UserError) as caught:
        rounds.draft(campaign=campaign, by=campaign.created_by, plan=wanted)
    assert caught.value.field == field


@pytest.mark.parametrize("rule", ["best", "top"])
def test_of_one_run_there_is_no_best_to_find(rule: str) -> None:
    only = {"run1.run": evaluation.SMALL.runs["run1.run"]}
    alone = evaluation.with_material(material=replace(evaluation.SMALL, runs=only))
    plan = evaluation.plan(stop_when=rule, stop_top=1)
    with pytest.raises(UserError, match=r"^Expected two runs or more to find the best of; the"):
        rounds.draft(campaign=alone, by=alone.created_by, plan=plan)


def test_a_width_is_no_more_than_a_value_can_be(campaign: Campaign) -> None:
    """A round ended after its first numbers, with every run "known to ± 1e+09 or better"."""
    wide = evaluation.plan(measure="P@10", reported=[], stop_when="width", stop_width=1.5)
    with pytest.raises(UserError, match="at most 1, the largest value") as caught:
        rounds.draft(campaign=campaign, by=campaign.created_by, plan=wide)
    assert caught.value.field == "stop_width"
    without = evaluation.plan(measure="P@10", reported=[], stop_width=1.5)
    rounds.draft(campaign=campaign, by=campaign.created_by, plan=without)


@pytest.mark.slow
def test_batches_of_others_stay_when_some_are_dropped(campaign: Campaign) -> None:
    row = drawn(campaign, stop_when="")
    ids = list(row.round_batches.order_by("number").values_list("batch", flat=True))
    with transaction.atomic():
        left = batches.drop(ids[2:4])
    assert batch_states(row)[2:4] == [Batch.State.DROPPED] * 2
    assert Batch.State.DROPPED not in batch_states(row)[:2] + batch_states(row)[4:]
    assert left == sum(Batch.objects.filter(pk__in=ids[2:4]).values_list("pair_count", flat=True))
