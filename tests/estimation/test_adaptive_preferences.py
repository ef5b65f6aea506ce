"""Adaptive rounds of preferences, from the draft to the file."""

import io

import pytest
from django.core.management import call_command
from django.test import Client

from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.formats.collections.files import read_collection
from estimation.models import Round
from estimation.services import collections
from judging.formats.problems import Problems
from judging.models import Campaign, Job
from tests.estimation.test_later_preferences import judge, swaps
from tests.support import choices, evaluation, rest
from tests.support.later import (
    assert_a_copy_takes_part,
    join,
    latest,
    lines_of,
    of_run,
    report_of,
    with_news,
)
from tests.support.pages import address, text

pytestmark = [pytest.mark.django_db, pytest.mark.slow, pytest.mark.sqlite_only]
ROUND = {
    "method": "adaptive", "measure": "#ofSwaps", "reported": ["wSwaps"], "prior": "constant",
    "depth": 4, "extra_share": 0.0, "budget": 500, "batch_size": 125,
}  # fmt: skip


def judge_batches(row: Round, batches: int) -> None:
    """The next one is there when a worker planned it."""
    for _ in range(batches):
        judge(row.campaign)
    row.refresh_from_db()


def test_every_batch_is_planned_from_the_preferences_before_it(
    campaign: Campaign, organizer: Client
) -> None:
    """To the end of the pool, so that the swaps are known."""
    row = evaluation.drawn(campaign, **ROUND | {"batch_size": 20})
    judge_batches(row, 25)
    _, drawn = collections.columns_of(row)
    assert isinstance(drawn, AdaptiveRound)
    learned = [step.model is not None for step in drawn.sample.steps]
    assert (learned[0], any(learned)) == (False, True)
    first = of_run(latest(row), "run1", "#ofSwaps")
    assert first.value == pytest.approx(swaps(lines_of("run1", "run1"), known=4), abs=1e-9)
    for name in ("round-detail", "live", "compare"):
        assert "#ofSwaps" in text(organizer.get(address(name, campaign, 1)))
    call_command("recompute", verbosity=0)


def test_its_preview_is_that_of_its_design(campaign: Campaign, organizer: Client) -> None:
    """What is played before the draw has no preferences."""
    row = evaluation.drafted(campaign, **ROUND | {"budget": 80, "batch_size": 20})
    told = {each["measure"]: each["half_widths"] for each in row.preview["measures"]}
    assert set(told) == {"#ofSwaps", "wSwaps"}
    assert all(run["half_width"] > 0.0 for widths in told.values() for run in widths)
    assert not row.preview.get("learns")
    assert not Job.objects.exclude(state=Job.State.DONE).exists()
    said = text(organizer.get(address("round-detail", campaign, row.number)))
    assert "what this buys if nothing is learned from the judgments" in said


def test_runs_join_and_the_file_says_the_same_of_all(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **ROUND | {"budget": 80, "batch_size": 20})
    judge_batches(row, 4)
    assert_a_copy_takes_part(campaign, row, measures=("#ofSwaps", "wSwaps"))
    join(campaign, with_news("late", known=3))
    shown, problems = latest(row), Problems("c.zip")
    found = read_collection(io.BytesIO(collections.collection_zip(row, shown)), problems)
    assert found is not None, problems.as_dict()
    assert found.is_of_preferences
    for result in found.evaluate(found.pool, measures=found.measures).results:
        for tag, value in zip(result.runs, result.estimate.value.tolist(), strict=True):
            assert value == of_run(shown, tag, str(result.measure)).value
    evaluation.made_reports(row)
    assert "adaptive" in report_of(row)


def test_it_is_the_usual_method_of_preferences(campaign: Campaign) -> None:
    """Predicted grades are of single documents: a round of preferences keeps none."""
    made = rest.client_of(campaign.created_by).post(
        f"/api/campaigns/{campaign.slug}/rounds/",
        {"measure": "wSwaps", "budget": 80, "prior": "constant", "depth": 4},
        format="json",
    )
    assert made.status_code == 201, made.content
    assert made.json()["method"] == "adaptive"
    choices.grades(campaign, "judge.tsv")
    row = evaluation.drafted(campaign, **ROUND | {"predictions": "judge"})
    assert row.predictions is None
