"""Runs that are withdrawn: out of rankings, pages and later rounds; all else stays what it was."""

import numpy as np
import pytest
from django.test import Client

from estimation.material import taking_part
from estimation.models import EstimateSet, Round, Run
from estimation.selectors import ranking_table
from estimation.services import collections, estimates, pools, rounds, together, withdrawals
from judging.errors import UserError
from judging.models import AuditEntry, Campaign, Judgment
from tests.core.length import bounded
from tests.support import evaluation, factories, rest
from tests.support.later import file_of, join, latest, with_news
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]

METHODS = ["poisson", "iid", "adaptive", "priority"]


def run_of(campaign: Campaign, tag: str) -> Run:
    return campaign.runs.get(tag=tag)


def withdraw(campaign: Campaign, tag: str = "run2") -> None:
    withdrawals.withdraw(run=run_of(campaign, tag), by=campaign.created_by)
    factories.run_due_jobs()


def values(shown: EstimateSet, *without: str) -> dict[tuple[str, str], tuple[float, ...]]:
    rows = shown.estimates.filter(primary=True).exclude(run__tag__in=without)
    return {
        (row.run.tag, row.measure): (row.value, row.se, row.low, row.high)
        for row in rows.select_related("run")
    }


def judged_round(campaign: Campaign, **plan: object) -> Round:
    row = evaluation.drawn(campaign, reported=["P@10"], **plan)
    evaluation.judge(campaign, 45)
    row.refresh_from_db()
    return row


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS[:: bounded(2, 1)])
def test_no_value_of_another_run_changes(campaign: Campaign, method: str) -> None:
    row = judged_round(campaign, method=method)
    before, judged = latest(row), Judgment.objects.count()
    files = (row.design_file, row.sample_file)
    withdraw(campaign)
    now = latest(row)
    row.refresh_from_db()
    assert now.withdrawn == ["run2"]
    assert (now.batches, now.label_digest) == (before.batches, before.label_digest)
    assert (row.design_file, row.sample_file, Judgment.objects.count()) == (*files, judged)
    expected, found = values(before, "run2"), values(now)
    assert set(found) == set(expected)
    for key, numbers in expected.items():
        assert found[key] == pytest.approx(numbers, rel=1e-12, abs=1e-12), key


@pytest.mark.slow
def test_rounds_do_not_count_together_with_one_of_a_withdrawn_run(campaign: Campaign) -> None:
    """It is there, and can be taken back."""
    judged_round(campaign, method="poisson")
    withdraw(campaign)
    plan = {"method": "poisson", "top_up": True, "with_earlier": True, "seed": "another"}
    row = evaluation.drafted(campaign, **plan)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert "drawn with the run run2, which takes part no more" in row.preview["error"]


def test_what_is_told_of_the_others_is_what_their_files_score(campaign: Campaign) -> None:
    row = judged_round(campaign)
    withdraw(campaign)
    every = [each for each in together.counted(row) if each.batches]
    gathered = estimates.gather(row).gathered
    lists = {run.tag: pools.runs.lists_of(run, scores=False) for run in taking_part(campaign)}
    scored = gathered.collection.evaluate(lists, measures=gathered.collection.measures)
    told = estimates.from_scratch(row)
    assert told is not None
    assert collections.gather(row, every).label_digest == gathered.label_digest
    for one, other in zip(scored.results, told.evaluation.results, strict=True):
        assert one.runs == other.runs
        np.testing.assert_allclose(one.estimate.value, other.estimate.value, rtol=1e-12)
        np.testing.assert_array_equal(one.ranking.verdicts, other.ranking.verdicts)
        np.testing.assert_array_equal(one.ranking.rank_low, other.ranking.rank_low)


@pytest.mark.slow
def test_a_run_that_is_taken_back_brings_the_numbers_back(campaign: Campaign) -> None:
    row = judged_round(campaign)
    before = latest(row)
    withdraw(campaign)
    assert latest(row).digest != before.digest
    withdrawals.take_back(run=run_of(campaign, "run2"), by=campaign.created_by)
    factories.run_due_jobs()
    assert latest(row).digest == before.digest
    assert latest(row).withdrawn == []


@pytest.mark.slow
def test_pages_answers_and_files_say_so(campaign: Campaign, organizer: Client) -> None:
    row = judged_round(campaign)
    answer = organizer.post(address("run-withdraw", campaign, run_of(campaign, "run2").pk))
    assert answer["Location"] == address("run-list", campaign)
    factories.run_due_jobs()
    said = text(organizer.get(address("live", campaign, row.number)))
    assert "run2 was withdrawn" in said
    page = organizer.get(address("live", campaign, row.number)).content.decode()
    assert 'title="run2"' not in page
    assert "withdrawn" in text(organizer.get(address("run-list", campaign)))
    evaluation.made_reports(row)
    assert "which was withdrawn" in file_of(row, "report.html")
    assert "run2" not in file_of(row, "estimates.csv")
    assert AuditEntry.objects.get(action="withdraw run").data == {"run": "run2"}
    assert "withdrew the run run2" in text(organizer.get(address("campaign-home", campaign)))
    organizer.post(address("run-back", campaign, run_of(campaign, "run2").pk))
    assert taking_part(campaign).count() == campaign.runs.count()


@pytest.mark.slow
def test_no_later_round_is_made_of_it(campaign: Campaign) -> None:
    evaluation.drawn(campaign)
    withdraw(campaign)
    row = evaluation.drafted(campaign, seed="another")
    rounds.request_draw(row=row, by=campaign.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert row.pool is not None
    assert "run2" not in pools.load(row.pool).runs
    assert row.pool.run_count == campaign.runs.count() - 1


@pytest.mark.slow
def test_a_plan_that_was_worked_out_with_it_is_outdated(campaign: Campaign) -> None:
    row = evaluation.drafted(campaign)
    seen = row.preview["design"]
    withdraw(campaign)
    with pytest.raises(UserError) as refused:
        rounds.request_draw(row=row, by=campaign.created_by, design=seen)
    assert refused.value.code == "design_changed"


@pytest.mark.slow
def test_a_run_that_joined_later_is_withdrawn_and_others_still_join(campaign: Campaign) -> None:
    row = judged_round(campaign)
    join(campaign, with_news("novel"), "novel.run")
    withdraw(campaign, "novel")
    assert "novel" not in {run for run, _ in values(latest(row))}
    withdraw(campaign, "run2")
    join(campaign, with_news("newer"), "newer.run")
    tags = {run for run, _ in values(latest(row))}
    assert "newer" in tags
    assert not tags & {"novel", "run2"}


@pytest.mark.slow
@pytest.mark.parametrize(("goal", "named"), [("single", "run"), ("baseline", "baseline")])
def test_the_run_that_a_round_is_about_stays(campaign: Campaign, goal: str, named: str) -> None:
    evaluation.drawn(campaign, goal=goal, **{named: "run2"})
    with pytest.raises(UserError) as refused:
        withdrawals.withdraw(run=run_of(campaign, "run2"), by=campaign.created_by)
    assert refused.value.code == "in_use"
    assert "Round 1 is about run2" in refused.value.message


@pytest.mark.slow
def test_the_last_run_stays_and_nothing_is_withdrawn_while_it_is_drawn(campaign: Campaign) -> None:
    by = campaign.created_by
    row = evaluation.drafted(campaign)
    rounds.request_draw(row=row, by=by)
    with pytest.raises(UserError) as refused:
        withdrawals.withdraw(run=run_of(campaign, "run2"), by=by)
    assert refused.value.code == "being_drawn"
    factories.run_due_jobs()
    *others, last = campaign.runs.order_by("tag")
    for run in others:
        withdrawals.withdraw(run=run, by=by)
    with pytest.raises(UserError) as refused:
        withdrawals.withdraw(run=last, by=by)
    assert refused.value.code == "in_use"


def test_withdrawing_twice_is_recorded_once(campaign: Campaign) -> None:
    withdraw(campaign)
    withdraw(campaign)
    assert AuditEntry.objects.filter(action="withdraw run").count() == 1


def test_programs_withdraw_too(campaign: Campaign) -> None:
    client = rest.client_of(campaign.created_by)
    run = run_of(campaign, "run2")
    base = f"/api/campaigns/{campaign.slug}/runs/"
    assert client.post(f"{base}{run.pk}/withdrawal/", {}, format="json").status_code == 204
    shown = {row["tag"]: row["withdrawn"] for row in client.get(base).json()}
    assert [tag for tag, since in shown.items() if since] == ["run2"]
    assert client.delete(f"{base}{run.pk}/withdrawal/").status_code == 204
    assert not any(row["withdrawn"] for row in client.get(base).json())
    assert client.post(f"{base}99999/withdrawal/", {}, format="json").status_code == 404


@pytest.mark.slow
def test_what_it_changes_is_shown_before_it_is_done(campaign: Campaign, organizer: Client) -> None:
    """By page and by REST; asking changes nothing, and each promise is what comes."""
    row = judged_round(campaign)
    table = ranking_table(row)
    assert table is not None
    assert table.pairs is not None
    best = {each.tag for each in table.rows if each.as_good_as_leader}
    tag = sorted(best)[0]
    run = run_of(campaign, tag)
    draft = evaluation.drafted(campaign, goal="single", run=tag, seed="another")
    there = f"/api/campaigns/{campaign.slug}/runs/{run.pk}/withdrawal/"
    told = organizer.get(there).json()
    place = table.pairs.runs.index(tag)
    assert told["decided"] == int((table.pairs.verdicts[place] != 0).sum())
    assert (told["ranked"], told["may_be_best"]) == (len(table.rows), True)
    assert told["rivals"] == len(best) - 1
    assert (told["drafts"], told["refused"]) == ([draft.number], "")
    assert told["standings"][0]["judged"] > 0
    page = text(organizer.get(address("run-withdraw", campaign, run.pk)))
    assert f"has {len(table.rows) - 1} runs instead of {len(table.rows)}" in page
    assert "It may be the best run" in page
    assert f"Round {draft.number} names it" in page
    run.refresh_from_db()
    assert run.withdrawn is None
    assert not AuditEntry.objects.filter(action="withdraw run").exists()
    withdraw(campaign, tag)
    now = ranking_table(row)
    assert now is not None
    assert len(now.rows) == told["ranked"] - 1
    answer = organizer.get(address("run-withdraw", campaign, run.pk))
    assert answer["Location"] == address("run-detail", campaign, run.pk)


@pytest.mark.slow
def test_why_a_run_cannot_be_withdrawn_stands_where_it_would_be(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drawn(campaign, goal="single", run="run2", reported=[])
    run = run_of(campaign, "run2")
    page = organizer.get(address("run-withdraw", campaign, run.pk))
    assert "Round 1 is about run2" in text(page)
    assert "Withdraw it" not in text(page)
    there = f"/api/campaigns/{campaign.slug}/runs/{run.pk}/withdrawal/"
    assert "Round 1 is about run2" in organizer.get(there).json()["refused"]
    answer = organizer.post(there, content_type="application/json")
    assert answer.json()["code"] == "in_use"
