"""Adaptive rounds of preferences and of errors of scores: unbiased over all samples, and honest."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest

from estimation.core.data.pool import Pool
from estimation.core.data.scope import Scope
from estimation.core.inference.outlook import KnownOutlook
from estimation.core.measures.table import Measure
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.sampled import planned_alone
from estimation.core.rounds.adaptive.sampling import reached
from estimation.core.rounds.adaptive.state import AdaptivePlan, AdaptiveState, walk
from estimation.core.sampling import goals
from estimation.research.simulation import true_values
from tests.core.adaptive_by_run import (
    ACCURACY,
    BATCHES,
    ERRORS,
    EXACT,
    LATER,
    MAE,
    MSE,
    PREFERENCES,
    SWAPS,
    WEIGHTED,
    compared,
    design_for,
    in_poisson,
    judged_totals,
    kind_of,
    moments,
    noisy,
    plan_for,
    played,
    rounds_of,
    told,
    truth_of,
    usual_rounds,
)
from tests.core.length import bounded
from tests.core.test_core_preferences import RUNS

MEASURES = [*PREFERENCES, *ERRORS]


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_values_are_unbiased_and_so_are_their_variances(eager: None, measure: Measure) -> None:
    mean, covariance, estimated = moments(usual_rounds(measure, BATCHES), measure)
    assert mean == pytest.approx(truth_of(kind_of(measure).pool_of(), measure), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"goal": goals.ranking("a", "b", "c")},
        {"goal": goals.pair("a", "b")},
        {"goal": goals.winner("a", "b", "c")},
        {"costs": np.array([1.0, 2.0, 0.5, 1.0, 3.0, 1.5])},
        {"floor": 0.0},
    ],
    ids=["ranking", "pair", "winner", "costs", "no floor"],
)
@pytest.mark.parametrize("measure", [*PREFERENCES, MAE, MSE], ids=str)
def test_whatever_the_plan_rests_on_values_are_unbiased(
    eager: None, measure: Measure, options: dict
) -> None:
    pool = kind_of(measure).pool_of()
    options = {
        name: each[: len(pool)] if name == "costs" else each for name, each in options.items()
    }
    plan = plan_for(pool, measure, **options)
    mean, covariance, estimated = moments(rounds_of(pool, plan, measure), measure)
    assert mean == pytest.approx(truth_of(pool, measure), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_a_run_that_joins_later_is_unbiased(eager: None, measure: Measure) -> None:
    kind = kind_of(measure)
    pool, joined = kind.pool_of(), kind.pool_of({**RUNS, "later": LATER})
    assert len(joined) == len(pool)
    mean, covariance, estimated = moments(usual_rounds(measure), measure, Scope.of(pool, joined))
    assert mean == pytest.approx(truth_of(joined, measure), **EXACT)
    assert estimated == pytest.approx(covariance, rel=1e-10, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("measure", [*PREFERENCES, *bounded([ACCURACY], [ACCURACY, MSE])], ids=str)
def test_weights_by_all_chances_together_would_be_biased(eager: None, measure: Measure) -> None:
    """The twin: one over the chance to be drawn by any batch, as if it had been fixed before."""
    pool, mean = kind_of(measure).pool_of(), 0.0
    of_entries = np.repeat(kind_of(measure).grades, np.diff(pool.indptr))
    added = pool.entry_weights(measure) * measure.entry_utilities(of_entries, pool.predictions)
    rows = pool.by_pair(added).toarray()
    for chance, drawn in usual_rounds(measure):
        *_, last = walk(drawn.design.frame(pool), drawn.sample)
        pairs, together = drawn.sample.pair, reached(last.before, last.chances)
        mean = mean + chance * (rows[pairs] / together[pairs, None]).sum(axis=0)
    truth = truth_of(pool, measure)
    assert np.abs(mean - truth).max() > 1e-3 * truth.max()


@pytest.mark.slow
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_what_is_expected_of_the_truth_is_about_what_is_found(
    eager: None, measure: Measure
) -> None:
    """Over all rounds: with an outlook that is the truth the expected covariance is the true one.

    Not exactly, as how far batches' predictions differ is told of all grades together.
    """
    kind = kind_of(measure)
    scope, levels = Scope.of(kind.pool_of()), np.arange(1, kind.best + 1)
    outlook = KnownOutlook(levels, (levels[:, None] <= kind.grades).astype(np.float64))
    expected, estimated = 0.0, 0.0
    for chance, drawn in usual_rounds(measure):
        found = judged_totals(drawn, scope, measure)
        planned = planned_alone(found.frame, drawn.sample)
        expected = expected + chance * found.unseen(outlook, planned).covariance
        estimated = estimated + chance * found.estimate().covariance
    assert np.diag(expected) == pytest.approx(np.diag(estimated), rel=0.1)


# ------------------------------------------------------------------------------ of usual size


@dataclass(frozen=True)
class Usual:
    """Rounds of so many pairs in ten batches, and of which part of Poisson's error theirs are.

    `off` is how far the scores of the first run are from grades, where these are predicted.
    """

    measure: Measure
    budget: int
    trials: int
    part: float
    off: float | None = None

    def collection(self) -> tuple[Pool, np.ndarray]:
        return compared() if self.off is None else noisy(self.off)


CASES = [Usual(each, 300, bounded(60, 300), 0.8) for each in PREFERENCES]
NEARLY_RIGHT, NOISY = [
    [Usual(each, budget, bounded(30, 200), 0.7, off) for each in (MAE, MSE)]
    for off, budget in ((0.05, 60), (0.5, 150))
]
CASES += bounded([NEARLY_RIGHT[0], NOISY[1]], NEARLY_RIGHT + NOISY)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.measure} {case.off or ''}".strip())
def test_it_is_nearer_than_poisson_rounds_unbiased_and_intervals_hold(case: Usual) -> None:
    """The number of judged pairs is the same on average.

    Where runs are nearly right a model that is trusted with all is many times as far off.
    """
    (pool, grades), measure, budget = case.collection(), case.measure, case.budget
    truth = true_values(pool, grades=grades, measure=measure)
    plan = plan_for(pool, measure, budget=budget, batches=10)
    poisson = design_for(pool, measure, budget=budget, batches=10, method="poisson")
    errors, of_poisson, held, judged = [], [], [], []
    for trial in range(case.trials):
        drawn, labels = played(pool, grades, plan, seed=f"{trial}")
        found = told(pool, drawn, labels, measure).estimate
        errors.append(found.value - truth)
        held.append((found.low <= truth) & (truth <= found.high))
        judged.append(len(labels.pair))
        of_poisson.append(in_poisson(pool, grades, poisson, f"{trial}").estimate.value - truth)
    spread = np.std(errors, axis=0, ddof=1) / np.sqrt(case.trials)
    assert np.all(np.abs(np.mean(errors, axis=0)) < 4.0 * spread)
    assert np.mean(np.square(errors)) < case.part * np.mean(np.square(of_poisson))
    assert np.mean(held) > 0.93
    assert np.min(np.mean(held, axis=0)) > 0.87
    assert np.mean(judged) == pytest.approx(budget, rel=0.03)


# ------------------------------------------------------------------------------------- the file


@pytest.mark.parametrize(
    ("collection", "measures", "budget"),
    [(compared, (SWAPS, WEIGHTED), 120), (partial(noisy, 0.3), (MSE, MAE), 80)],
    ids=["preferences", "errors"],
)
def test_a_round_that_was_stored_is_the_same(
    collection: Callable[[], tuple[Pool, np.ndarray]], measures: tuple[Measure, ...], budget: int
) -> None:
    pool, grades = collection()
    plan = plan_for(pool, measures[0], budget=budget, batches=4, reported=[measures[1]])
    drawn, labels = played(pool, grades, plan, seed="s")
    plan_file, state = io.BytesIO(), io.BytesIO()
    drawn.design.save(plan_file)
    drawn.sample.save(state)
    plan_file.seek(0)
    state.seek(0)
    again = AdaptiveRound(AdaptivePlan.load(plan_file), AdaptiveState.load(state))
    for one, two in zip(drawn.sample.steps, again.sample.steps, strict=True):
        assert one.is_as(two)
    for measure in measures:
        assert told(pool, again, labels, measure).estimate.value.tolist() == (
            told(pool, drawn, labels, measure).estimate.value.tolist()
        )
    assert again.redrawn(pool, seed="s").sample.pair.tolist() == drawn.sample.pair.tolist()
