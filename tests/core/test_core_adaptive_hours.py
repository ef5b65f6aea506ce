"""Adaptive rounds that keep to hours: unbiased at whatever pace, and as long as was asked."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from estimation.core.data.pool import Pool
from estimation.core.data.scope import Scope
from estimation.core.planning.adaptive_ahead import ahead_of_batches
from estimation.core.rounds.adaptive.hours import Hours, TimeTaken
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.sampling import LEAST_PART, MOST_PART
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import load_round
from estimation.core.sampling.designs import cumulative
from estimation.research.simulation import true_values
from tests.core.simulated_pools import simulated_pool
from tests.core.test_core_adaptive import (
    DCG,
    EXACT,
    GRADES,
    NDCG,
    _each,
    begun,
    estimated_by,
    labels_of,
    plan_for,
    plan_of,
    pool,
)

__all__ = ["pool"]  # a fixture
SECONDS = np.array([10.0, 30.0, 90.0])  # by grade: who finds something reads on
ASSUMED = 30.0


def taken_for(pairs: np.ndarray, grades: np.ndarray = GRADES) -> TimeTaken:
    took = SECONDS[np.minimum(grades[pairs], 2)]
    return TimeTaken(len(took), len(took), float(took.sum()))


def budget_of(drawn: AdaptiveRound, hours: Hours, grades: np.ndarray = GRADES) -> float | None:
    """As the site has it: the first batch is planned by the design."""
    if not drawn.planned:
        return None
    pairs = drawn.sample.pair
    return hours.budget(taken_for(pairs, grades), pairs=len(pairs))


def every_round(
    pool: Pool, drawn: AdaptiveRound, hours: Hours, *, batches: int
) -> Iterator[tuple[float, AdaptiveRound]]:
    """All rounds that can come to be, with their probabilities."""
    if batches == 0:
        yield 1.0, drawn
        return
    labels, budget = labels_of(drawn.sample.pair), budget_of(drawn, hours)
    for share, longer in _each(drawn, drawn.next_batch(pool, labels=labels, budget=budget)):
        for rest, whole in every_round(pool, longer, hours, batches=batches - 1):
            yield share * rest, whole


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [40.0, 90.0, 300.0])
def test_values_and_variances_are_unbiased_at_any_pace(
    pool: Pool, eager: None, seconds: float
) -> None:
    """All rounds of three batches whose pace goes with the grades. The twin ends after a first
    batch that took long, with what is judged by then."""
    hours, truth = Hours(seconds, ASSUMED), true_values(pool, grades=GRADES, measure=DCG)
    mean, square, told, ended, total, sizes = 0.0, 0.0, 0.0, 0.0, 0.0, set()
    for chance, drawn in every_round(pool, begun(plan_for(pool)), hours, batches=3):
        found = estimated_by(pool, drawn, DCG, None)
        mean = mean + chance * found.value
        square = square + chance * np.multiply.outer(found.value, found.value)
        told, total = told + chance * found.covariance, total + chance
        sizes |= {step.budget for step in drawn.sample.steps}
        slow = taken_for(drawn.sample.of_batch(1)).seconds > 60.0
        last = drawn.prefix(pool, 1) if slow else drawn
        ended = ended + chance * estimated_by(pool, last, DCG, None).value
    assert len(sizes) > 5
    assert total == pytest.approx(1.0, **EXACT)
    assert mean == pytest.approx(truth, **EXACT)
    covariance = square - np.multiply.outer(mean, mean)
    assert told == pytest.approx(covariance, rel=1e-10, abs=1e-12)
    assert np.abs(ended - truth).max() > 1e-3 * truth.max()


# ------------------------------------------------------------------------------ of usual size


@pytest.fixture(scope="module")
def large() -> tuple[Pool, np.ndarray]:
    return simulated_pool()


def played(
    large: tuple[Pool, np.ndarray], *, slower: float, seed: str = "s", keeps: bool = True
) -> AdaptiveRound:
    """A round that keeps to the hours that its budget takes, of people who need so many times as
    long as was assumed."""
    found, grades = large
    drawn = AdaptiveRound.begin(found, plan_of(found), seed=seed)
    hours = Hours(drawn.design.budget * ASSUMED, ASSUMED)
    while drawn.planned < drawn.batches:
        number = len(drawn.sample.pair)
        taken = TimeTaken(number, number, slower * ASSUMED * number)
        budget = hours.budget(taken, pairs=number) if keeps else None
        drawn = drawn.extended(found, labels=labels_of(drawn.sample.pair, grades), budget=budget)
    return drawn


@pytest.mark.parametrize("slower", [0.5, 1.0, 2.0])
def test_a_round_takes_the_hours_whatever_the_pace(
    large: tuple[Pool, np.ndarray], slower: float
) -> None:
    """A fifth of the pairs is drawn before anything is measured. The twin looks at no clock, and
    takes so many times the hours."""
    hours, twin = (
        np.mean(
            [
                len(played(large, slower=slower, seed=f"{seed}", **options).sample.pair)
                for seed in range(8)
            ]
        )
        * slower
        / 200.0
        for options in ({}, {"keeps": False})
    )
    assert hours == pytest.approx(1.0, abs=0.08)
    assert twin == pytest.approx(slower, rel=0.08)


def test_a_batch_is_neither_empty_nor_boundless(large: tuple[Pool, np.ndarray]) -> None:
    found, grades = large
    plan = plan_of(found)
    drawn = AdaptiveRound.begin(found, plan, seed="s")
    labels, standing = labels_of(drawn.sample.pair, grades), len(drawn.sample.pair)
    of_batch, left = 40.0, 4
    for budget, part in ((standing + 0.0, LEAST_PART), (1e9, MOST_PART), (standing + 80.0, 0.5)):
        planned = drawn.next_batch(found, labels=labels, budget=budget)
        by = [float(planned.chances.by(ahead).sum()) for ahead in range(left)]
        assert by == pytest.approx([part * of_batch * (1 + ahead) for ahead in range(left)])
        assert planned.expected_ahead == pytest.approx(part * of_batch * left)


def test_a_pace_as_assumed_leaves_the_whole_budget(large: tuple[Pool, np.ndarray]) -> None:
    hours = Hours(200 * ASSUMED * 1.5, ASSUMED, labels=1.5)
    assert hours.budget(TimeTaken(60, 60, 60 * ASSUMED), pairs=40) == pytest.approx(200.0)
    assert hours.budget(TimeTaken(60, 0, 0.0), pairs=40) == pytest.approx(200.0)
    assert hours.budget(TimeTaken(0, 0, 0.0), pairs=0) == pytest.approx(200.0)
    assert hours.budget(TimeTaken(60, 60, 1e9), pairs=40) == 40.0
    assert hours.pace(TimeTaken(2, 2, 180.0)) == 60.0
    with pytest.raises(ValueError, match="each must be above 0"):
        Hours(10.0, 0.0)


def test_what_a_batch_was_planned_for_is_kept_and_drawn_again(
    large: tuple[Pool, np.ndarray], tmp_path: Path
) -> None:
    """Without the budgets the seed would give another round."""
    drawn = played(large, slower=2.0)
    drawn.design.save(tmp_path / "design")
    drawn.sample.save(tmp_path / "sample")
    stored = load_round(tmp_path / "design", tmp_path / "sample")
    assert isinstance(stored, AdaptiveRound)
    kept = [step.budget for step in stored.sample.steps]
    assert kept == [step.budget for step in drawn.sample.steps]
    assert kept[0] is None
    assert len(set(kept)) == drawn.batches
    again = stored.redrawn(large[0], seed="s")
    for name in ("pair", "batch", "chance"):
        np.testing.assert_array_equal(getattr(again.sample, name), getattr(drawn.sample, name))
    steps = tuple(replace(step, budget=None) for step in drawn.sample.steps)
    other = replace(drawn, sample=replace(drawn.sample, steps=steps))
    assert other.redrawn(large[0], seed="s").sample.pair.tolist() != drawn.sample.pair.tolist()
    assert not drawn.sample.steps[1].is_as(steps[1])


def test_a_round_that_keeps_to_no_hours_is_stored_as_ever(
    large: tuple[Pool, np.ndarray], tmp_path: Path
) -> None:
    found, grades = large
    drawn = AdaptiveRound.begin(found, plan_of(found), seed="s")
    drawn = drawn.extended(found, labels=labels_of(drawn.sample.pair, grades))
    drawn.sample.save(tmp_path / "sample")
    with np.load(tmp_path / "sample") as stored:
        assert not [name for name in stored.files if "budget" in name]


def test_forecasts_expect_what_the_hours_are_expected_to_pay_for(
    large: tuple[Pool, np.ndarray],
) -> None:
    found, grades = large
    drawn = played(large, slower=2.0).prefix(found, 3)
    labels = labels_of(drawn.sample.pair, grades)
    result = evaluate(found, drawn, labels=labels, measures=[NDCG], max_grade=3).results[0]
    told = ahead_of_batches(Scope.of(found), drawn, 3, result, labels)
    *_, last = (step for step in told.later if step.batches is not None)
    spent, planned = len(drawn.sample.pair), cumulative(200.0, 40.0)
    budget = drawn.sample.steps[-1].budget
    part = (budget - spent) / (planned[-1] - planned[2])
    assert last.pairs == pytest.approx(spent + part * 80.0)
    assert last.pairs < 150.0
