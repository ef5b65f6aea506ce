"""Rounds that look for the best run: planned by the race, told as a race, and the same anywhere."""

import json
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from django.test import Client

from estimation.core.data.labels import LabelRows
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.findings import findings
from estimation.models import Estimate, EstimateSet, Round
from estimation.services import collections, estimates, files, reports
from judging.errors import UserError
from judging.models import Campaign
from tests.estimation.test_score_command import score
from tests.support import evaluation
from tests.support.later import latest, report_of, table_of
from tests.support.pages import address, text
from tests.support.rest import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
WINNER = {
    "method": "adaptive", "goal": "winner", "measure": "DCG@5", "reported": ["P@5"],
    "extra_share": 0.0, "budget": 90, "batch_size": 15,
}  # fmt: skip


def judged(campaign: Campaign, **plan: object) -> Round:
    """To the end of the round."""
    row = evaluation.drawn(campaign, **WINNER | plan)
    for _ in range(20):
        evaluation.judge(campaign, 10_000)
        row.refresh_from_db()
        if row.state in Round.ENDED:
            return row
    raise AssertionError("the round does not end")


def stored(row: Round) -> AdaptiveRound:
    _, found = collections.columns_of(row)
    assert isinstance(found, AdaptiveRound)
    return found


@pytest.mark.slow
@pytest.mark.on_both
def test_batches_are_planned_by_who_is_in_the_race(campaign: Campaign) -> None:
    row = judged(campaign)
    pool, found = collections.columns_of(row)
    races = [step.race for step in found.sample.steps]
    assert races[0] is None
    assert races[-1] is not None
    before = EstimateSet.objects.filter(round=row, batches=found.planned - 1).latest("number")
    values = Estimate.objects.filter(estimate_set=before, measure="DCG@5", primary=True)
    assert pool.runs[races[-1].leader] == max(values, key=lambda each: each.value).run.tag
    assert estimates.from_scratch(row).digest == latest(row).digest
    call_command("recompute")


@pytest.mark.slow
def test_what_does_not_matter_is_known_to_the_plan(campaign: Campaign) -> None:
    row = judged(campaign, negligible=3.0)
    pool, found = collections.columns_of(row)
    gathered = estimates.gather(row).collection.labels
    before = found.prefix(pool, found.planned - 1)
    known = np.isin(gathered.pair, before.sample.pair)
    labels = LabelRows(gathered.pair[known], gathered.grade[known])
    told, other = (
        before.next_batch(pool, labels=labels, negligible=within).step.race for within in (3.0, 0.0)
    )
    assert told.priority.tolist() == found.sample.steps[-1].race.priority.tolist()
    assert told.priority.tolist() != other.priority.tolist()


@pytest.mark.slow
def test_it_ends_when_the_best_run_is_known(campaign: Campaign) -> None:
    everything = len(evaluation.SMALL.truth)
    row = judged(campaign, stop_when="best", budget=everything, batch_size=everything // 8)
    table = table_of(row, "DCG@5")
    first = [found.text for found in findings(table, table.pairs)]
    if row.state == Round.State.STOPPED:
        assert any("is surely better than all others." in each for each in first)
        assert row.draws.count() < everything
    else:
        assert any("still in the race" in each for each in first)


@pytest.mark.slow
def test_page_and_report_say_who_is_still_in_the_race(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **WINNER)
    evaluation.judge(campaign, row.draws.count())
    client = Client()
    client.force_login(campaign.created_by)
    shown = client.get(address("live", campaign, row.number))
    assert "still in the race for the best" in text(shown)
    assert "Still in the race for the best." not in text(shown)
    evaluation.judge(campaign, row.draws.count())
    again = client.get(address("live", campaign, row.number))
    assert "Still in the race for the best. Runs to which no other one was surely" in text(again)
    assert again.content.decode().count("<title>Batch ") == latest(row).batches
    design = client.get(address("round-detail", campaign, row.number))
    assert "Find the best run" in text(design)
    evaluation.made_reports(row)
    told = report_of(row)
    assert "the differences between the run that leads and those that are still in the race" in told
    assert "the estimates from them said which runs were still in the race" in told
    assert "still in the race for the best" in told


@pytest.mark.slow
def test_other_measures_are_no_race(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **WINNER)
    evaluation.judge(campaign, row.draws.count())
    told = []
    for measure in ("DCG@5", "P@5"):
        table = table_of(row, measure)
        told.append([found.text for found in findings(table, table.pairs)])
    assert any("race" in each for each in told[0])
    assert not any("race" in each for each in told[1])


def test_a_program_asks_for_the_best_run_as_well(campaign: Campaign) -> None:
    client = client_of(campaign.created_by)
    asked = {"measure": "DCG@5", "goal": "winner", "method": "adaptive", "budget": 60,
             "batch_size": 15}  # fmt: skip
    made = client.post(f"/api/campaigns/{campaign.slug}/rounds/", asked, format="json")
    assert made.status_code == 201, made.content
    assert made.json()["goal"] == "winner"
    refused = client.post(
        f"/api/campaigns/{campaign.slug}/rounds/", asked | {"method": "poisson"}, format="json"
    )
    assert refused.status_code == 400
    assert "can look for the best run: “Adaptive" in refused.content.decode()


@pytest.mark.on_both
def test_a_single_run_has_nobody_to_race(campaign: Campaign) -> None:
    campaign.runs.exclude(tag="run1").delete()
    row = evaluation.drafted(campaign, **WINNER | {"reported": []})
    assert not row.preview or "winner" in json.dumps(row.preview)
    with pytest.raises(UserError):
        reports.request(row=row, by=campaign.created_by)


@pytest.mark.slow
def test_the_collection_scores_as_the_round_does(campaign: Campaign, tmp_path: Path) -> None:
    row = judged(campaign)
    made = evaluation.made_reports(row)
    (archive,) = (each for each in made if each.name == "collection.zip")
    (tmp_path / "collection.zip").write_bytes(files.path_of(archive.file).read_bytes())
    name, content = next(iter(evaluation.SMALL.runs.items()))
    (tmp_path / name).write_bytes(content)
    said = json.loads(score(tmp_path / "collection.zip", tmp_path / name, "--format", "json").out)
    told = next(each for each in said if each["measure"] == "DCG@5")
    value = latest(row).estimates.get(run__tag=told["tag"], measure="DCG@5", primary=True).value
    assert told["value"] == pytest.approx(value, rel=1e-12)
    assert np.isfinite(told["low"])
