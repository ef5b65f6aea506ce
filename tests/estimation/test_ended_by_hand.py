"""Rounds that their organizer ends: what counts, when that is possible, and what is told of it."""

import pytest
from django.test import Client

from estimation import selectors
from estimation.models import Round
from estimation.services import stopping
from judging.errors import UserError
from judging.models import AuditEntry, Batch, Campaign, Job, Judgment
from judging.services import jobs
from tests.support import evaluation, factories
from tests.support.evaluation import batch_states
from tests.support.later import latest
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]


@pytest.mark.slow
def test_an_organizer_ends_a_round_by_hand(campaign: Campaign, organizer: Client) -> None:
    """What is complete counts, what is judged stays, and numbers hold at every look."""
    row = evaluation.drawn(campaign, budget=90, batch_size=15, extra_share=0)
    evaluation.judge(campaign, 25)
    row.refresh_from_db()
    judged, used = Judgment.objects.count(), selectors.complete_batches(row)
    assert used
    before = latest(row)
    answer = organizer.post(address("round-end", campaign, row.number))
    assert answer["Location"] == address("round-detail", campaign, row.number)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED
    assert row.stopping["rule"] == "hand"
    assert row.stopping["batch"] == used
    assert batch_states(row)[:used] == [Batch.State.COMPLETE] * used
    assert set(batch_states(row)[used:]) == {Batch.State.DROPPED}
    assert Judgment.objects.count() == judged
    assert latest(row).digest == before.digest
    assert evaluation.judge(campaign, 1) == 0
    said = text(organizer.get(address("live", campaign, row.number)))
    assert f"Ended by its organizer after batch {used} of {row.stopping['batches']}" in said
    assert "Valid at every look" in said


@pytest.mark.slow
def test_a_round_is_ended_once_and_not_before_a_batch_is_judged(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, budget=90, batch_size=15, extra_share=0)
    by = campaign.created_by
    with pytest.raises(UserError) as early:
        stopping.by_hand(row=row, by=by)
    assert early.value.code == "not_judged"
    evaluation.judge(campaign, 25)
    stopping.by_hand(row=row, by=by)
    with pytest.raises(UserError) as twice:
        stopping.by_hand(row=row, by=by)
    assert twice.value.code == "ended"
    assert AuditEntry.objects.filter(action="end round").count() == 1


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "adaptive"])
def test_a_round_is_ended_before_its_first_numbers_are_computed(
    method: str, campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = evaluation.drawn(campaign, method=method, budget=90, batch_size=15, extra_share=0)
    with monkeypatch.context() as patched:
        patched.setattr(factories, "run_due_jobs", lambda: None)
        evaluation.judge(campaign, 25)
    row.refresh_from_db()
    used = selectors.complete_batches(row)
    assert (row.state, used > 0) == (Round.State.DRAWN, True)
    stopping.by_hand(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert (row.state, row.stopping["batch"]) == (Round.State.STOPPED, used)
    assert latest(row).batches == used
    assert set(batch_states(row)[used:]) <= {Batch.State.DROPPED}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "adaptive"])
def test_a_round_that_is_judged_to_its_end_is_not_ended_by_hand(
    campaign: Campaign, method: str
) -> None:
    """It was said to have been ended early, after its last batch, before that was computed."""
    row = evaluation.drawn(campaign, method=method, budget=30, batch_size=15, extra_share=0.0)
    while selectors.complete_batches(row) < row.preview["batches"]:
        evaluation.judge_one(campaign)
        for job in Job.objects.filter(jobs.due(), kind="plan-batch"):
            jobs.run(job.pk)
        if selectors.complete_batches(row) == 1 and method == "adaptive":
            factories.run_due_jobs()  # which plans the second one
    with pytest.raises(UserError, match="ends by itself"):
        stopping.by_hand(row=row, by=row.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert (row.state, row.stopping) == (Round.State.COMPLETE, {})


@pytest.mark.slow
def test_an_adaptive_round_that_is_ended_plans_no_further_batch(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, method="adaptive", budget=90, batch_size=15, extra_share=0)
    evaluation.judge(campaign, 20)
    row.refresh_from_db()
    planned = row.round_batches.count()
    stopping.by_hand(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.state == Round.State.STOPPED
    assert row.round_batches.count() == planned
    assert row.stopping["saved"] > 0
