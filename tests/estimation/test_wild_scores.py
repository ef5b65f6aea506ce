"""Scores that no measure of predictions can take are refused early, and never break a round."""

from dataclasses import replace

import numpy as np
import pytest
from django.test import Client

from estimation.core.data.ranked_lists import PoolError
from estimation.core.data.scores import MOST_SCORE
from estimation.models import Round
from estimation.services import estimates, pools, rounds
from judging.errors import UserError
from judging.models import Campaign, Job, Upload
from tests.support import evaluation, factories
from tests.support.later import file_of, join, latest, lines_of, of_run, report_of
from tests.support.pages import address
from tests.support.rest import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
WILD = 1e160
MEASURES = ("MAE", "MSE", "Accuracy")
PREDICTIONS = {"measure": "MSE", "reported": ["MAE"], "prior": "constant"}


def wild(tag: str, *, score: float = WILD, rank: int = 1) -> bytes:
    """One of the material's runs, but for the score of one line of its second topic."""
    lines = lines_of("run2", tag).splitlines()
    second = {line.split()[0]: place for place, line in reversed(list(enumerate(lines)))}
    at = sorted(second.values())[1] + rank - 1
    cells = lines[at].split()
    lines[at] = b" ".join([*cells[:4], b"%r" % score, cells[5]])
    return b"\n".join(lines) + b"\n"


def named(content: bytes) -> tuple[str, str]:
    """Topic and docno of the line with the wild score."""
    (line,) = (line for line in content.splitlines() if b"e+" in line)
    topic, _, docno, *_rest = line.decode().split()
    return topic, docno


def sentence(tag: str, topic: str, docno: str) -> str:
    return (
        f"run '{tag}' gives '{docno}' of topic '{topic}' the score 1e+160; measures of predictions "
        "(MAE, MSE, Accuracy) take scores from -1e+20 to 1e+20, on the scale of the grades"
    )


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.on_both
def test_a_round_of_them_is_refused_when_it_is_drafted(campaign: Campaign, measure: str) -> None:
    content = wild("far")
    join(campaign, content)
    plan = evaluation.plan(measure=measure, reported=[], prior="constant")
    with pytest.raises(UserError) as refused:
        rounds.draft(campaign=campaign, by=campaign.created_by, plan=plan)
    assert refused.value.field == "measure"
    assert refused.value.message == f"{measure} is impossible: {sentence('far', *named(content))}."
    assert not Round.objects.exists()


@pytest.mark.slow
def test_also_when_it_is_changed_or_only_reports_them(campaign: Campaign) -> None:
    join(campaign, wild("far"))
    row = evaluation.drafted(campaign, prior="constant")
    plan = evaluation.plan(prior="constant", reported=["P@10", "MAE"])
    with pytest.raises(UserError, match=r"MAE is impossible: run 'far' ") as refused:
        rounds.change(row=row, by=campaign.created_by, plan=plan)
    assert refused.value.field == "reported"


def test_the_form_and_the_rest_interface_say_so(campaign: Campaign, organizer: Client) -> None:
    join(campaign, wild("far"))
    chosen = {"measure": "MAE", "budget": 60, "batch_size": 20, "prior": "constant"}
    more = {"goal": "absolute", "labels": 1, "extra_share": 0, "method": "poisson"}
    page = organizer.post(address("round-new", campaign), chosen | more)
    assert "gives" in page.content.decode()
    assert "the score 1e+160" in page.content.decode()
    answer = client_of(campaign.created_by).post(
        f"/api/campaigns/{campaign.slug}/rounds/", chosen, format="json"
    )
    assert answer.status_code == 400, answer.content
    assert "the score 1e+160" in answer.content.decode()


@pytest.mark.slow
@pytest.mark.parametrize("score", [MOST_SCORE, -MOST_SCORE])
def test_the_largest_that_can_be_taken_gives_finite_numbers(
    campaign: Campaign, score: float
) -> None:
    join(campaign, wild("far", score=score, rank=1 if score > 0 else 12))
    row = evaluation.drawn(campaign, **PREDICTIONS)
    evaluation.judge(campaign, 45)
    assert np.isfinite(of_run(latest(row), "far", "MSE").value)


@pytest.mark.slow
def test_what_stands_below_the_depth_does_not_matter(campaign: Campaign) -> None:
    join(campaign, wild("far", score=-WILD, rank=12))
    row = evaluation.drafted(campaign, **PREDICTIONS | {"depth": 10})
    assert row.preview["error"] is None
    with pytest.raises(UserError, match="the score -1e"):
        evaluation.drafted(campaign, **PREDICTIONS)


def test_the_upload_warns_with_the_line(campaign: Campaign) -> None:
    upload = factories.stored_upload(campaign, wild("far"), name="far.run", kind="run")
    assert upload.state == Upload.State.ACCEPTED
    line = wild("far").splitlines().index(next(x for x in wild("far").splitlines() if b"e+" in x))
    (warning,) = (each for each in upload.warnings if each["field"] == "score")
    assert warning["line"] == line + 1
    assert warning["message"].endswith("on the scale of the grades, found 1e+160")


@pytest.mark.slow
@pytest.mark.on_both
def test_a_run_that_joins_later_with_them_is_left_out_with_a_sentence(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **PREDICTIONS)
    evaluation.judge(campaign, 45)
    before = {e.run.tag: e.value for e in latest(row).estimates.filter(measure="MSE")}
    join(campaign, wild("far"))
    shown = latest(row)
    assert shown.left_out == ["far"]
    assert {e.run.tag: e.value for e in shown.estimates.filter(measure="MSE")} == before
    evaluation.made_reports(row)
    assert (
        "far joined after the round was drawn and is not in this round: some of its scores are too "
        "far from any grade. Measures of predictions (MAE, MSE, Accuracy) take scores from -1e+20 "
    ) in report_of(row)
    assert '"far"' in file_of(row, "estimates.json")
    outcome = estimates.from_scratch(row)
    assert outcome is not None
    assert outcome.digest == shown.digest


@pytest.mark.slow
def test_later_runs_beside_it_take_part(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **PREDICTIONS)
    evaluation.judge(campaign, 45)
    join(campaign, wild("far"))
    join(campaign, lines_of("run2", "copy"), "copy.run")
    assert latest(row).left_out == ["far"]
    assert of_run(latest(row), "copy", "MAE").value == of_run(latest(row), "run2", "MAE").value
    assert Job.objects.get(kind="recompute").state == Job.State.DONE


@pytest.mark.slow
def test_rounds_of_other_measures_take_the_run_in(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign)
    evaluation.judge(campaign, 45)
    join(campaign, wild("far"))
    assert latest(row).left_out == []
    assert of_run(latest(row), "far").value > 0


@pytest.mark.slow
def test_a_pool_of_an_earlier_version_fails_with_the_sentence(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    join(campaign, wild("far", score=1e19))
    row = evaluation.drawn(campaign, **PREDICTIONS)
    monkeypatch.setattr("estimation.core.data.scores.MOST_SCORE", 1e18)
    pools._load.cache_clear()
    evaluation.judge(campaign, 45)
    job = Job.objects.get(kind="recompute")
    assert (job.state, "gives" in job.error) == (Job.State.FAILED, True)
    assert not row.estimate_sets.exists()


def test_the_core_refuses_to_pool_them(campaign: Campaign) -> None:
    _, pool = pools.ensure(campaign, kind=pools.PoolKind.SCORED)
    scores = np.array(pool.score)
    scores[7] = WILD
    with pytest.raises(PoolError, match="the score 1e"):
        replace(pool, score=scores)
