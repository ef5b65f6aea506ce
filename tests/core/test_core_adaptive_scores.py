"""Adaptive rounds of errors of scores: what is taken off of what scores predict, and when."""

from dataclasses import replace

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool
from estimation.core.data.scope import Scope
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.adaptive import trust
from estimation.core.rounds.adaptive.past import Past
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.sampled import planned_alone
from estimation.core.rounds.adaptive.scoring import Scores, fit_scores
from estimation.core.rounds.adaptive.state import AdaptiveError, AdaptivePlan
from estimation.research.simulation import true_values
from tests.core.adaptive_by_run import (
    ERRORS,
    EXACT,
    MAE,
    MSE,
    PREDICTED,
    design_for,
    in_poisson,
    moments,
    noisy,
    off_by,
    plan_for,
    played,
    rounds_of,
    run_totals,
    told,
    truth_of,
    usual_rounds,
)
from tests.core.length import bounded


@pytest.mark.slow
@pytest.mark.parametrize("measure", ERRORS, ids=str)
def test_models_have_parts_of_all_kinds(eager: None, measure: Measure) -> None:
    """Which earlier judgments say, in the rounds by which values are told to be unbiased."""
    steps = [
        step.model.scoring
        for _, drawn in usual_rounds(measure)
        for step in drawn.sample.steps
        if step.model is not None
    ]
    assert len({each.part for each in steps}) > 3
    assert len({each.of_sizes for each in steps}) > 1
    assert any(each.tells for each in steps)


@pytest.mark.slow
@pytest.mark.parametrize("measure", [MAE, MSE], ids=str)
def test_beside_gains_values_are_unbiased(eager: None, measure: Measure) -> None:
    pool = PREDICTED.pool_of()
    plan = plan_for(pool, measure, reported=[parse_measure("P@2")])
    mean, covariance, estimated = moments(rounds_of(pool, plan, measure), measure)
    assert mean == pytest.approx(truth_of(pool, measure), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
def test_errors_that_are_reported_beside_gains_are_unbiased(eager: None) -> None:
    """Nobody looked how right the model is with them: nothing of it is taken off."""
    pool = PREDICTED.pool_of()
    plan = plan_for(pool, parse_measure("P@2"), reported=[MSE])
    mean, covariance, estimated = moments(rounds_of(pool, plan, MSE), MSE)
    assert mean == pytest.approx(truth_of(pool, MSE), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("measure", ERRORS, ids=str)
def test_a_part_that_follows_from_its_own_batch_would_be_biased(
    monkeypatch: pytest.MonkeyPatch, eager: None, measure: Measure
) -> None:
    """The twin: all of a prediction is taken off where the batch found much, else nothing.

    The chances stay as they are, as the sizes are those of the design.
    """
    monkeypatch.setattr(trust._Judged, "of_sizes", lambda self, part: 0.0)

    def turned(drawn: AdaptiveRound) -> AdaptiveRound:
        steps = []
        for number, step in enumerate(drawn.sample.steps, start=1):
            if step.model is not None:
                found = PREDICTED.grades[drawn.sample.of_batch(number)].sum()
                scoring = replace(step.model.scoring, part=float(found > 2))
                steps.append(replace(step, model=replace(step.model, scoring=scoring)))
            else:
                steps.append(step)
        sample = replace(drawn.sample, steps=tuple(steps))
        return replace(drawn, sample=sample)

    pool = PREDICTED.pool_of()
    rounds = list(rounds_of(pool, plan_for(pool, measure), measure))
    as_it_is, _, _ = moments(rounds, measure)
    assert as_it_is == pytest.approx(truth_of(pool, measure), **EXACT)
    assert off_by(((chance, turned(drawn)) for chance, drawn in rounds), measure) > 1e-3


# ------------------------------------------------------------------------------ of usual size


def test_where_scores_tell_nothing_a_batch_is_as_one_of_the_design() -> None:
    """Scores of one value: what is taken off is small, and no size is far from the design's."""
    pool, grades = noisy(0.05)
    pool = replace(pool, score=np.full(len(pool.run), 1.0))
    drawn, labels = played(pool, grades, plan_for(pool, MSE, budget=80, batches=4), seed="s")
    found = told(pool, drawn, labels, MSE)
    assert np.all(np.isfinite(found.estimate.covariance))
    assert np.ptp(found.estimate.value) == pytest.approx(0.0, abs=1e-12)


def test_intervals_allow_for_what_batches_missed_that_predicted_nothing() -> None:
    """Of pairs that a model knew later: in the first batch all of their utility was missed.

    Taken for the mean of all batches' predictions, these are as good as sure, and what the first
    batch missed is told as a loss.
    """
    pool, grades = noisy(0.05)
    plan = plan_for(pool, MSE, budget=80, batches=4)
    drawn, labels = played(pool, grades, plan, seed="s")
    rows = LabelRows(np.arange(len(labels.pair)), labels.grade)
    found = run_totals(drawn, Scope.of(pool), MSE, rows)
    assert drawn.sample.steps[-1].model.scoring.part > 0.5
    levels = np.arange(1, PREDICTED.best + 1)
    outlook = KnownOutlook(levels, (levels[:, None] <= grades).astype(np.float64))
    missed = found.unseen(outlook, planned_alone(found.frame, drawn.sample))
    untold = found.weights.untold[0, 0]
    utility = pool.entry_weights(MSE) * MSE.entry_utilities(
        np.repeat(grades, np.diff(pool.indptr)), pool.predictions
    )
    squares = pool.by_pair(utility**2).T @ untold
    assert np.all(np.diag(missed.covariance) >= squares * (1.0 - 1e-9))
    assert np.all(missed.losses.share <= 1.0 - squares / np.diag(missed.covariance) + 1e-9)


def test_the_line_tells_the_grade_whatever_scale_scores_are_on() -> None:
    pool, grades = noisy(0.05)
    turned = replace(pool, score=40.0 - 7.0 * pool.score)
    pairs, levels = np.arange(0, len(pool), 20), np.arange(1, PREDICTED.best + 1)
    for each in (pool, turned):
        scores = Scores.of(each)
        scoring, begin = fit_scores(scores.of_pairs(pairs), grades[pairs].astype(float), levels)
        assert scoring.off < 0.1
        assert np.all((begin > 0.0) == (grades[pairs] >= levels[:, None]))
        every = scoring.log_odds(scores, levels) > 0.0
        assert np.mean(every == (grades >= levels[:, None])) > 0.99


def test_every_grade_is_modeled() -> None:
    """On a long scale one that is told as its neighbor is a whole grade off."""
    pool, _ = noisy(0.05)
    for measure, levels in ((MSE, range(1, 10)), (parse_measure("P@5"), (1, 3, 5, 7, 9))):
        plan = AdaptivePlan(design_for(pool, measure, budget=80), 9)
        assert plan.frame(pool).levels.tolist() == list(levels)


def test_a_judged_pair_does_not_tell_its_own_grade() -> None:
    """What log-odds of judged pairs begin with is told by the others alone."""
    pool, grades = noisy(0.5)
    pairs, levels = np.arange(0, len(pool), 40), np.arange(1, PREDICTED.best + 1)
    scores, given = Scores.of(pool).of_pairs(pairs), grades[pairs].astype(float)
    changed = given.copy()
    changed[3] = PREDICTED.best - changed[3]
    found = []
    for each in (given, changed):
        scoring, begin = fit_scores(scores, each, levels)
        found.append(begin[:, 3] * scoring.off / 1.702 + (levels - 0.5))
    assert found[0] == pytest.approx(found[1], abs=1e-9)


@pytest.mark.slow
def test_a_model_that_tells_nothing_costs_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are nearly right, and the model does not see their scores; a twin is all trusted."""

    def unseen(pool: Pool) -> Scores:
        return Scores(np.zeros(len(pool)), pool.by_pair(np.zeros(len(pool.run))))

    monkeypatch.setattr(Scores, "of", unseen)
    (pool, grades), trials = noisy(0.05), bounded(20, 100)
    truth = true_values(pool, grades=grades, measure=MSE)
    plan = plan_for(pool, MSE, budget=60, batches=10)
    poisson = design_for(pool, MSE, budget=60, batches=10, method="poisson")

    def error_of_rounds() -> float:
        errors = [
            told(pool, *played(pool, grades, plan, seed=f"{trial}"), MSE).estimate.value - truth
            for trial in range(trials)
        ]
        return float(np.mean(np.square(errors)))

    of_poisson = [
        in_poisson(pool, grades, poisson, f"{trial}").estimate.value - truth
        for trial in range(trials)
    ]
    least = float(np.mean(np.square(of_poisson)))
    assert error_of_rounds() < 1.2 * least
    monkeypatch.setattr(trust._Judged, "part", lambda self: 1.0)
    assert error_of_rounds() > 10.0 * least


# ------------------------------------------------------------------------------------- the file


def test_what_is_judged_is_not_topped_up_where_errors_are_reported() -> None:
    pool, _ = noisy(0.3)
    design = design_for(pool, parse_measure("P@5"), budget=80, batches=4, reported=[MAE])
    past = Past.alone(np.array([0]), pairs=len(pool))
    with pytest.raises(AdaptiveError, match="do not top up what is judged for MAE"):
        AdaptivePlan(design, PREDICTED.best, past=past)
