"""How many judgments predicted grades are worth: against variances that are known exactly."""

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.estimates.agreement import judgments_worth
from estimation.core.estimates.topic_sums import judged_sums
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.rounds import draw_round
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.goals import absolute
from estimation.core.sampling.priors import make_prior
from estimation.services.machines import worth
from tests.core.simulated_pools import helpful_predictions, simulated_pool

POOL, GRADES = simulated_pool()
DCG = parse_measure("DCG@10")
PREDICTED = helpful_predictions(GRADES)


def design(budget: int, method: str = "poisson") -> Design:
    goal = absolute(*POOL.runs)
    prior = make_prior(POOL, name="rank", goal=goal, measure=DCG, max_grade=3)
    asked = {"goal": goal, "measure": DCG, "prior": prior, "max_grade": 3}
    return make_design(POOL, method=method, budget=budget, batch_size=budget, **asked)


def collected(budget: int, seed: str) -> RoundCollection:
    """A Poisson round in which everything is judged."""
    drawn = draw_round(POOL, design(budget), seed=seed)
    pairs = drawn.pairs(POOL)
    return RoundCollection(POOL, drawn, LabelRows(pairs, GRADES[pairs]), 3)


def exact_variance(budget: int) -> float:
    """Of the values of all runs by Horvitz-Thompson, from all grades and chances."""
    chance, every = design(budget).inclusion(1), np.arange(len(POOL))
    squares = judged_sums(POOL, DCG, every).weights.power(2).sum(axis=1)
    left = np.divide(1.0, chance, out=np.ones(len(POOL)), where=chance > 0.0) - 1.0
    return float((left * squares * DCG.utilities(GRADES) ** 2).sum())


@pytest.mark.parametrize(("budget", "more"), [(200, 100), (300, 100), (300, 300), (300, -100)])
def test_as_many_more_pairs_are_as_good_as_it_says(budget: int, more: int) -> None:
    share = exact_variance(budget + more) / exact_variance(budget)
    said = []
    for seed in range(30):
        found = collected(budget, f"s{seed}")
        squares = worth.squares_of_runs(found, DCG) * worth.labels_of(found, DCG).mean ** 2
        weight = worth.weights_of(found)
        said.append(worth.further_judgments(share, weight=weight, squares=squares))
    assert np.median(said) == pytest.approx(more, rel=0.15)


def test_twin_by_one_over_the_number_of_pairs_is_caught() -> None:
    before, after = (np.array([exact_variance(budget)]) for budget in (300, 400))
    assert judgments_worth(300, without=before, having=after) > 500


def test_it_is_never_more_than_there_are_pairs() -> None:
    found = collected(300, "a seed")
    squares, weight = worth.squares_of_runs(found, DCG), worth.weights_of(found)
    most = worth.further_judgments(1e-9, weight=weight, squares=squares)
    assert most == pytest.approx(float(weight.sum()) - len(weight), rel=1e-6)
    certain = np.ones(len(weight))
    assert np.isnan(worth.further_judgments(0.5, weight=certain, squares=squares))
    assert np.isnan(worth.further_judgments(0.5, weight=weight, squares=np.zeros(len(weight))))


def test_grades_that_tell_something_save_judgments_and_others_none() -> None:
    told, noise = [], []
    for seed in range(10):
        found = collected(300, f"s{seed}")
        by_chance = np.random.default_rng(seed).random(len(POOL))
        told.append(worth.worth_without_replacement(found, DCG, PREDICTED))
        noise.append(worth.worth_without_replacement(found, DCG, by_chance))
    assert 50 < np.median(told) < 110  # 70 more pairs made the error of `ht` that of `di`
    assert np.median(noise) < 30
    assert max(noise) < min(told)
