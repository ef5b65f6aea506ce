"""What is expected of the pairs of an adaptive round: the model, corrected by all judgments."""

from typing import Any

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.inference.missed import Missed
from estimation.core.inference.uncertainty import Unseen, level
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.adaptive.outlooks import model_outlook
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.sampled import weighed
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.evaluation import evaluate
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.priors import make_prior
from tests.core.simulated_pools import simulated_pool

P10 = parse_measure("P@10")
TRIALS = 16


def test_all_is_raised_as_far_as_there_are_finds() -> None:
    """Twenty equal squares that add up to twice what was expected: 20 / 25 of the way."""
    assert level(np.ones(20), 10.0) == pytest.approx(1.0 + 20.0 / 25.0)
    assert level(np.append(np.ones(20), np.zeros(500)), 10.0) == level(np.ones(20), 10.0)
    assert level(np.array([20.0]), 10.0) == pytest.approx(1.0 + 1.0 / 6.0), "one find is luck"


def test_small_squares_take_nothing_away() -> None:
    assert level(np.ones(20), 40.0) == 1.0
    assert level(np.zeros(3), 1.0) == level(np.array([]), 1.0) == 1.0
    assert level(np.ones(3), 0.0) == 1.0, "of nothing nothing is made"


def test_so_many_times_as_much_is_so_many_times_as_much_that_may_be_missed() -> None:
    ones = np.ones(1)
    more = Unseen(np.eye(1), ones, ones, missed=Missed(np.eye(1), ones)).times(3.0)
    assert more.covariance[0, 0] == more.missed.squares[0, 0] == 3.0
    assert more.find[0] == more.doubt[0] == more.missed.step[0] == 1.0


def test_what_lowers_a_value_is_what_is_worse_than_was_predicted() -> None:
    """Of pairs that are not judged, by plain sums; P@10, nearly four of ten judged."""
    pool, grades = simulated_pool()
    best, goal = int(grades.max()), goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=P10, max_grade=best)
    given = {"prior": prior, "budget": 320, "batch_size": 80}
    design = make_design(pool, goal=goal, measure=P10, method="adaptive", **given)
    drawn = AdaptiveRound.begin(pool, AdaptivePlan(design, best), seed="a seed")
    labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
    while drawn.planned < drawn.batches:
        drawn = drawn.extended(pool, labels=labels)
        labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
    weights = weighed(drawn.design.frame(pool), drawn.sample, (P10,)).weights
    (result,) = evaluate(pool, drawn, labels=labels, measures=[P10], max_grade=best).results
    left = np.flatnonzero((weights.on_label == 0.0) & (weights.spread > 0.0))
    predicted = weights.by_mean[0][2][left] / weights.spread[left]
    shares, utility = result.outlook.shares(left), P10.utilities(result.outlook.grades)
    off = utility[:, None] - predicted
    squares = pool.weights(P10, left).power(2)
    worse = squares.T @ (shares * np.minimum(off, 0.0) ** 2).sum(axis=0)
    every = squares.T @ (shares * off**2).sum(axis=0)
    assert result.estimate.missed.lost == pytest.approx(worse / every, rel=1e-9)
    assert np.all((worse > 0.0) & (worse < every))


@pytest.fixture(scope="module")
def ratios(cranfield: Any) -> dict[str, np.ndarray]:
    """What is expected over what is so, by run, on average over rounds of 1 000 pairs."""
    pool = cranfield.pool(depth=10)
    grades = cranfield.grades(pool)
    best, goal = int(grades.max()), goals.absolute(*pool.runs)
    prior = make_prior(pool, name="rank", goal=goal, measure=P10, max_grade=best)
    design = make_design(
        pool, goal=goal, measure=P10, prior=prior, budget=1000, batch_size=100, method="adaptive"
    )
    squares = pool.weights(P10, np.arange(len(pool))).power(2)
    sums = {name: np.zeros(len(pool.runs)) for name in ("so", "corrected", "model")}
    utility = P10.utilities(grades)
    for seed in range(TRIALS):
        drawn = AdaptiveRound.begin(pool, AdaptivePlan(design, best), seed=f"s{seed}")
        labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
        while drawn.planned < drawn.batches:
            drawn = drawn.extended(pool, labels=labels)
            labels = LabelRows(drawn.sample.pair, grades[drawn.sample.pair])
        frame = drawn.design.frame(pool)
        weights = weighed(frame, drawn.sample, (P10,)).weights
        _, _, summed, squared = weights.by_mean[0]
        sums["so"] += squares.T @ (weights.spread * utility**2 - 2.0 * summed * utility + squared)
        given = {"labels": labels, "measures": [P10], "max_grade": best}
        as_it_is = model_outlook(frame, drawn.sample.steps[-1].model)
        for name, outlook in (("corrected", None), ("model", as_it_is)):
            found = evaluate(pool, drawn, **given, outlook=outlook).results[0].estimate
            sums[name] += np.diag(found.expected)
    return {name: np.log(each / sums["so"]) for name, each in sums.items()}


@pytest.mark.slow
def test_what_is_expected_of_each_run_is_nearly_what_is_so(ratios: dict[str, np.ndarray]) -> None:
    corrected = ratios["corrected"]
    assert abs(corrected.mean()) < 0.15
    assert corrected.std() < 0.2
    assert corrected.min() > np.log(0.7)


@pytest.mark.slow
def test_the_model_as_it_is_expects_half_of_some_and_many_times_of_others(
    ratios: dict[str, np.ndarray],
) -> None:
    assert ratios["model"].std() > 0.3
    assert ratios["model"].min() < np.log(0.7)
    assert ratios["model"].max() > np.log(3.0)
