"""Adaptive rounds of errors of scores, from the request to the file."""

import io

import pytest
from django.core.management import call_command
from django.test import Client

from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.formats.collections import adaptive
from estimation.formats.collections.files import read_collection
from estimation.models import Round
from estimation.services import collections
from estimation.services.report_files import tables_tex
from judging.formats.problems import Problems
from judging.models import Campaign
from tests.support import evaluation, rest
from tests.support.later import assert_a_copy_takes_part, latest, of_run, report_of
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]
ROUND = {
    "method": "adaptive", "measure": "MSE", "reported": ["MAE"], "prior": "constant",
    "budget": 80, "batch_size": 20,
}  # fmt: skip


def judged(row: Round, batches: int) -> None:
    """The next one is there when a worker planned it."""
    for _ in range(batches):
        evaluation.judge(row.campaign, 10_000)
    row.refresh_from_db()


def test_a_round_that_is_asked_for_by_rest_learns_from_scores(
    campaign: Campaign, organizer: Client
) -> None:
    """It is the usual method: nobody names it. Its numbers follow from what is stored."""
    asked = {name: value for name, value in ROUND.items() if name != "method"}
    client = rest.client_of(campaign.created_by)
    made = client.post(f"/api/campaigns/{campaign.slug}/rounds/", asked, format="json")
    assert made.status_code == 201, made.content
    assert made.json()["method"] == "adaptive"
    row = Round.objects.get(campaign=campaign)
    evaluation.draw(campaign, row)
    judged(row, 4)
    _, drawn = collections.columns_of(row)
    assert isinstance(drawn, AdaptiveRound)
    models = [step.model for step in drawn.sample.steps if step.model is not None]
    assert models
    assert all(model.scoring is not None for model in models)
    assert {each.measure for each in latest(row).estimates.all()} == {"MSE", "MAE"}
    for name in ("round-detail", "live", "compare"):
        assert "MSE" in text(organizer.get(address(name, campaign, row.number)))
    said = "The smallest MSE is the best."
    assert said in text(organizer.get(address("live", campaign, row.number)))
    assert said in tables_tex.make(row, latest(row))
    call_command("recompute", verbosity=0)


def test_runs_join_and_the_file_says_the_same_of_all(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **ROUND)
    judged(row, 4)
    assert_a_copy_takes_part(campaign, row, measures=("MSE", "MAE"))
    shown, problems = latest(row), Problems("c.zip")
    content = collections.collection_zip(row, shown)
    found = read_collection(io.BytesIO(content), problems)
    assert found is not None, problems.as_dict()
    assert adaptive.format_of(found) == adaptive.OF_PREDICTIONS
    for result in found.evaluate(found.pool, measures=found.measures).results:
        for tag, value in zip(result.runs, result.estimate.value.tolist(), strict=True):
            assert value == of_run(shown, tag, str(result.measure)).value
    evaluation.made_reports(row)
    assert "adaptive" in report_of(row)
