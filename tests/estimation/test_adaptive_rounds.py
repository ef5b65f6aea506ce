"""Adaptive rounds from the form to the report: planned from judgments, and never biased by them."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from estimation import selectors
from estimation.core.rounds.adaptive.batch_weights import BatchWeights
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.models import Draw, Estimate, Round
from estimation.services import collections, designing, estimates, files, reports
from judging.models import AuditEntry, Campaign
from judging.selectors import current_judgments
from judging.services import campaigns, judgments
from tests.support import evaluation, factories
from tests.support.choices import grades, table
from tests.support.kept import Kept
from tests.support.later import (
    assert_a_copy_takes_part,
    assert_half_a_run_takes_part,
    file_of,
    join,
    latest,
    numbers,
    report_of,
    with_news,
)
from tests.support.pages import address, text
from tests.support.rest import client_of

pytestmark = [pytest.mark.django_db, pytest.mark.sqlite_only]
ADAPTIVE = {
    "method": "adaptive", "measure": "DCG@5", "reported": ["P@5"], "extra_share": 0.0,
    "budget": 60, "batch_size": 15,
}  # fmt: skip


def stored(row: Round) -> AdaptiveRound:
    row.refresh_from_db()
    _, found = collections.columns_of(row)
    assert isinstance(found, AdaptiveRound)
    return found


def judge_batch(row: Round) -> Round:
    """Judges the batch that is open, and no more; then the next one is planned."""
    known = Draw.objects.filter(round=row).count()
    shown = selectors.latest_estimates(row)
    evaluation.judge(row.campaign, known - (shown.pair_count if shown else 0))
    row.refresh_from_db()
    return row


def judge_all(row: Round) -> Round:
    """To the end; an empty batch opens, and is complete, when somebody asks for work."""
    for _ in range(20):
        evaluation.judge(row.campaign, 10_000)
        row.refresh_from_db()
        if row.state == Round.State.COMPLETE:
            return row
    raise AssertionError("the round does not end")


def by_batch(row: Round) -> dict[int, set[tuple[str, str]]]:
    found: dict[int, set[tuple[str, str]]] = {}
    for draw in Draw.objects.filter(round=row).select_related("pair__topic"):
        of_batch = found.setdefault(draw.batch_number, set())
        of_batch.add((draw.pair.topic.topic_id, draw.pair.docno))
    return found


@pytest.fixture
def two_batches(campaign: Campaign, kept: Kept) -> Round:
    """Two of four batches are judged, and the third is planned by a model."""
    return kept("two batches", lambda: _two_batches(campaign), campaign)


def _two_batches(campaign: Campaign) -> Round:
    row = judge_batch(judge_batch(evaluation.drawn(campaign, **ADAPTIVE)))
    assert (latest(row).batches, row.round_batches.count()) == (2, 3)
    return row


# ---------------------------------------------------------------------------------- planning


@pytest.mark.slow
@pytest.mark.on_both
def test_each_batch_is_planned_from_the_judgments_before_it(two_batches: Round) -> None:
    found = stored(two_batches)
    assert (found.planned, found.batches) == (3, 4)
    assert found.sample.steps[0].model is None
    assert found.sample.steps[2].model is not None
    drawn = Draw.objects.filter(round=two_batches, batch_number=3)
    assert sorted(drawn.values_list("position", flat=True)) == found.sample.of_batch(3).tolist()
    chances = found.sample.chance[found.sample.batch == 3]
    assert sorted(drawn.values_list("probability", flat=True)) == sorted(chances.tolist())
    entry = AuditEntry.objects.filter(action="plan batch").latest("pk")
    assert entry.data["batch"] == 3
    assert entry.data["pairs"] == drawn.count()
    row = judge_all(two_batches)
    assert row.state == Round.State.COMPLETE
    assert (latest(row).batches, row.round_batches.count()) == (4, 4)


@pytest.mark.slow
def test_what_no_judgment_is_in_is_worked_out_while_people_judge(
    two_batches: Round, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kept in (collections._load, collections._latest):  # of other tests, in the same process
        kept.cache_clear()
    row, worked_out, work = judge_batch(two_batches), [], BatchWeights.of
    monkeypatch.setattr(BatchWeights, "of", lambda *given: worked_out.append(given) or work(*given))
    known = latest(row).batches
    assert latest(judge_batch(row)).batches == known + 1
    assert worked_out == []


@pytest.mark.slow
def test_other_judgments_give_another_plan(campaign: Campaign) -> None:
    other = evaluation.with_material(slug="other")
    rows = [evaluation.drawn(made, **ADAPTIVE) for made in (campaign, other)]
    best = dict.fromkeys(evaluation.SMALL.truth, 0) | dict.fromkeys(
        list(evaluation.SMALL.truth)[::3], 3
    )
    for row, truth in zip(rows, (evaluation.SMALL.truth, best), strict=True):
        evaluation.judge(row.campaign, row.draws.count(), truth=truth)
    one, two = (by_batch(row) for row in rows)
    assert one[1] == two[1]
    assert one[2] != two[2]


@pytest.mark.slow
def test_one_batch_is_a_poisson_sample(campaign: Campaign) -> None:
    other = evaluation.with_material(slug="other")
    whole = {**ADAPTIVE, "batch_size": 60}
    one = judge_all(evaluation.drawn(campaign, **whole))
    two = judge_all(evaluation.drawn(other, **whole | {"method": "poisson"}))
    assert by_batch(one) == by_batch(two)
    assert one.state == Round.State.COMPLETE
    found, expected = (
        {(e.run.tag, e.measure): e.value for e in latest(row).estimates.filter(primary=True)}
        for row in (one, two)
    )
    assert found == pytest.approx(expected, rel=1e-12)
    said = latest(one).estimates.first()
    assert said is not None
    assert said.estimator == Estimate.Estimator.AD


@pytest.mark.slow
def test_batches_that_happen_to_be_empty_end_the_round_too(campaign: Campaign) -> None:
    row = evaluation.drawn(campaign, **ADAPTIVE | {"budget": 5, "batch_size": 1, "seed": "empty"})
    row = judge_all(row)
    assert (row.state, row.round_batches.count()) == (Round.State.COMPLETE, 5)
    assert len(by_batch(row)) < 5


@pytest.mark.slow
def test_costs_are_what_is_spent(campaign: Campaign) -> None:
    table(campaign)
    row = evaluation.drawn(
        campaign, **ADAPTIVE | {"costs": "uploaded", "cost_table": "prices", "budget": 40}
    )
    found = stored(judge_all(row))
    spent = found.design.costs[found.sample.pair]
    assert row.preview["expected_cost"] == pytest.approx(40, rel=1e-6)
    assert abs(spent.sum() - 40) < 4 * np.sqrt((spent**2).sum() / found.batches)


@pytest.mark.slow
def test_predicted_grades_are_what_the_model_learns_from(campaign: Campaign) -> None:
    brought = grades(campaign)
    row = evaluation.drawn(campaign, **ADAPTIVE, predictions="judge")
    assert (row.predictions, row.estimator) == (brought, "")
    predicted = stored(row).design.predicted
    assert predicted is not None
    assert predicted.shape == (row.pool.pair_count, 1)
    judge_all(row)
    assert set(latest(row).estimates.values_list("estimator", flat=True)) == {"ad"}
    evaluation.made_reports(row)
    assert "so far and from the predicted grades judge" in report_of(row)


@pytest.mark.slow
def test_second_judgments_are_part_of_the_errors(campaign: Campaign) -> None:
    row = judge_all(evaluation.drawn(campaign, **ADAPTIVE | {"extra_share": 0.5}))
    assert latest(row).noise_measured
    assert latest(row).label_count > latest(row).pair_count


# ------------------------------------------------------------- what happens to a round meanwhile


def correct(row: Round, number: int, grade: int) -> None:
    pairs = Draw.objects.filter(round=row, batch_number=number).values("pair")
    given = current_judgments().filter(assignment__pair__in=pairs).exclude(grade=grade)
    judgment = given.select_related("assignment", "assessor").order_by("pk")[0]
    judgments.correct(
        assignment=judgment.assignment,
        by=judgment.assessor,
        saying=judgments.Saying(grade, "corrected"),
        revision=judgment.revision,
    )
    factories.run_due_jobs()


@pytest.mark.slow
def test_a_correction_changes_numbers_and_no_plan(two_batches: Round) -> None:
    row, before, planned = two_batches, latest(two_batches), by_batch(two_batches)
    file = row.sample_file
    correct(row, 1, 0)
    row.refresh_from_db()
    assert latest(row).number == before.number + 1
    assert numbers(latest(row)) != numbers(before)
    assert (by_batch(row), row.sample_file) == (planned, file)
    assert estimates.from_scratch(row).digest == latest(row).digest
    call_command("recompute")


@pytest.mark.slow
def test_a_campaign_that_closes_early_keeps_the_numbers_of_its_complete_batches(
    two_batches: Round,
) -> None:
    row = two_batches
    campaigns.close(campaign=row.campaign, by=row.campaign.created_by)
    factories.run_due_jobs()
    row.refresh_from_db()
    assert (latest(row).batches, row.state) == (2, Round.State.JUDGING)
    assert latest(row).pair_count == row.draws.filter(batch_number__lte=2).count()
    assert estimates.from_scratch(row).digest == latest(row).digest
    reports.request(row=row, by=row.created_by)
    factories.run_due_jobs()
    said = report_of(row)
    assert "in batches of about 15, of which 3 are planned so far" in said
    assert "These estimates rest on the first 2" in said
    assert "Its numbers may be taken after every batch" in said


@pytest.mark.slow
def test_runs_that_join_have_values_and_change_no_plan(campaign: Campaign) -> None:
    other = evaluation.with_material(slug="other")
    large = ADAPTIVE | {"budget": 120, "batch_size": 40}
    rows = [judge_batch(evaluation.drawn(made, **large)) for made in (campaign, other)]
    assert_a_copy_takes_part(campaign, rows[0], measures=("DCG@5", "P@5"))
    join(campaign, with_news("late"))
    for row in rows:
        judge_all(row)
    first, second = map(by_batch, rows)
    assert first == second
    joined, alone = (numbers(latest(row)) for row in rows)
    assert {key: joined[key] for key in alone} == alone
    assert {tag for tag, *_ in joined} - {tag for tag, *_ in alone} == {"late", "copy"}


@pytest.mark.slow
def test_documents_outside_of_the_pool_make_a_lower_bound(campaign: Campaign) -> None:
    row = judge_batch(evaluation.drawn(campaign, **ADAPTIVE))
    late = assert_half_a_run_takes_part(campaign, row)
    assert 1 <= late.rank_low <= late.rank_high <= 6


# -------------------------------------------------------------------- what is stored is what was


def _with(row: Round, change: Callable[[AdaptiveRound], AdaptiveRound]) -> None:
    changed = change(stored(row))
    name = files.keep_written("samples", changed.sample.save)
    Round.objects.filter(pk=row.pk).update(sample_file=name)


def _without_a_pair(found: AdaptiveRound) -> AdaptiveRound:
    kept = np.arange(len(found.sample.pair)) != 7
    columns = {name: getattr(found.sample, name)[kept] for name in ("pair", "batch", "chance")}
    return replace(found, sample=replace(found.sample, **columns))


def test_recompute_follows_every_batch(two_batches: Round, capsys: pytest.CaptureFixture) -> None:
    call_command("recompute")
    Round.objects.filter(pk=two_batches.pk).update(seed="another", design={})
    with pytest.raises(CommandError):
        call_command("recompute")
    assert "another sample" in capsys.readouterr().out


def _likelier(found: AdaptiveRound) -> AdaptiveRound:
    return replace(found, sample=replace(found.sample, chance=found.sample.chance * 0.999999))


@pytest.mark.parametrize("change", [_without_a_pair, _likelier])
def test_recompute_finds_what_was_changed(
    two_batches: Round,
    capsys: pytest.CaptureFixture,
    change: Callable[[AdaptiveRound], AdaptiveRound],
) -> None:
    _with(two_batches, change)
    with pytest.raises(CommandError):
        call_command("recompute")
    assert "another sample" in capsys.readouterr().out


# ---------------------------------------------------------------------------- pages and files


@pytest.mark.slow
def test_pages_say_that_it_is_planned_as_it_goes(two_batches: Round, organizer: Client) -> None:
    campaign = two_batches.campaign
    for name in ("live", "live-pairs", "live-history", "live-batches", "round-detail"):
        assert organizer.get(address(name, campaign, 1)).status_code == 200
    assert "of 3 planned so far" in text(organizer.get(address("live", campaign, 1)))
    said = text(organizer.get(address("round-detail", campaign, 1)))
    assert "Adaptive: a model learns from every batch" in said
    assert "planned one by one" in said


@pytest.mark.slow
def test_one_batch_buys_what_its_design_does(campaign: Campaign, organizer: Client) -> None:
    row = evaluation.drafted(campaign, **ADAPTIVE | {"batch_size": 60})
    assert row.preview["error"] is None
    poisson = evaluation.drafted(campaign, **ADAPTIVE | {"batch_size": 60, "method": "poisson"})
    assert row.preview["measures"] == poisson.preview["measures"]
    assert row.preview["largest"] is None
    assert poisson.preview["largest"] is not None
    said = text(organizer.get(address("round-detail", campaign, 1)))
    assert "One batch has nothing to learn from" in said
    assert "played" not in said
    assert "nothing to learn" not in text(organizer.get(address("round-detail", campaign, 2)))


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [6, 15])
def test_the_preview_tells_ranges_of_what_was_played(
    campaign: Campaign, organizer: Client, batch_size: int
) -> None:
    """Of every run and of the difference, as wide at the own budget as the table has it."""
    row = evaluation.drafted(campaign, **ADAPTIVE | {"batch_size": batch_size})
    preview = row.preview
    assert (preview["error"], preview["learns"], preview["largest"]) == (None, True, None)
    assert [found["measure"] for found in preview["measures"]] == ["DCG@5", "P@5"]
    for found in preview["measures"]:
        assert 0.0 < found["difference_least"] < found["difference"]
        for line in found["half_widths"]:
            assert 0.0 < line["half_width_least"] <= line["half_width"]
    here = next(each for each in preview["reached"] if each["budget"] == row.budget)
    assert here["half_width"] < here["half_width_most"]
    wide = [line["half_width"] for line in preview["measures"][0]["half_widths"]]
    assert min(wide) <= here["half_width_most"] <= max(wide)
    figures = organizer.get(address("round-detail", campaign, 1)).context["figures"]
    assert " to " in figures.reached.half_width
    said = text(organizer.get(address("round-detail", campaign, 1)))
    assert figures.reached.half_width.replace("\N{NO-BREAK SPACE}", " ") in said
    assert "It was played on drawn grades, with few relevant documents and with many: " in said
    assert "at best, as it was played" in said
    assert "as the prior expects" not in said
    assert "narrower" not in said


def test_a_race_is_said_to_be_played_with_runs_that_are_apart_too(
    campaign: Campaign, organizer: Client
) -> None:
    evaluation.drafted(campaign, **ADAPTIVE)
    race = evaluation.drafted(campaign, **ADAPTIVE | {"goal": "winner"})
    assert race.preview["learns"]
    words = "with runs that are alike and that are apart"
    pages = (text(organizer.get(address("round-detail", campaign, each))) for each in (1, 2))
    assert [page.count(words) for page in pages] == [0, 2]


@pytest.mark.slow
def test_the_draw_has_nothing_to_do_with_what_was_played(campaign: Campaign) -> None:
    """A round whose preview was worked out draws what one without would."""
    row = evaluation.drafted(campaign, **ADAPTIVE)
    assert row.preview["learns"]
    evaluation.draw(campaign, row)
    row.refresh_from_db()
    drawn = stored(row)
    _, pool = designing.pool_for(row)
    again = AdaptiveRound.begin(pool, designing.design_of(row, pool), seed=row.seed)
    assert np.array_equal(again.sample.pair, drawn.sample.pair)


@pytest.mark.slow
def test_reports_say_how_it_was_drawn(two_batches: Round) -> None:
    row = judge_all(two_batches)
    reports.request(row=row, by=row.created_by)
    factories.run_due_jobs()
    said = report_of(row)
    assert "a model of grades planned from the judgments of the batches before it" in said
    assert "those of the first batch were fixed before it" in said
    assert re.search(r"is served in 4 batches\. These estimates rest on all of them", said)
    assert ",ad," in file_of(row, "estimates.csv")
    lines = file_of(row, "judgments.csv").splitlines()
    assert len(lines) == 1 + row.draws.count()
    assert latest(row).reports.filter(name="collection.zip").exists()


@pytest.mark.slow
def test_a_program_drafts_it_and_reads_what_came_of_it(campaign: Campaign) -> None:
    grades(campaign)
    client = client_of(campaign.created_by)
    start = f"/api/campaigns/{campaign.slug}/"
    asked = ADAPTIVE | {"predictions": "judge", "seed": "s"}
    made = client.post(f"{start}rounds/", asked, format="json")
    assert made.status_code == 201, made.content
    factories.run_due_jobs()
    row = client.get(f"{start}rounds/1/").json()
    assert (row["method"], row["predictions"]) == ("adaptive", "judge")
    refused = client.post(f"{start}rounds/", asked | {"measure": "ERR@5"}, format="json")
    assert refused.status_code == 400
    assert "Adaptive" in refused.content.decode()
