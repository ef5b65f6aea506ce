"""How many judgments predicted grades are worth: against variances that are known exactly."""

from typing import Any

import numpy as np
import pytest

from estimation.core.collections.base import RoundCollection
from estimation.core.data.labels import LabelRows
from estimation.core.estimates.topic_sums import judged_sums
from estimation.core.measures.table import parse_measure
from estimation.core.rounds.adaptive import grades, logistic
from estimation.core.rounds.adaptive.grades import Features
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.rounds import draw_round
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design, Method
from estimation.core.sampling.goals import absolute
from estimation.core.sampling.priors import make_prior
from estimation.services.machines import worth
from tests.core.simulated_pools import harmful_predictions, helpful_predictions, simulated_pool

POOL, GRADES = simulated_pool()
DCG = parse_measure("DCG@10")
PREDICTED = helpful_predictions(GRADES)


def design(budget: int, method: Method = "poisson", batches: int = 1) -> Design:
    goal = absolute(*POOL.runs)
    prior = make_prior(POOL, name="rank", goal=goal, measure=DCG, max_grade=3)
    asked = {"goal": goal, "measure": DCG, "prior": prior, "max_grade": 3}
    return make_design(POOL, method=method, budget=budget, batch_size=budget // batches, **asked)


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
    assert 300 * (exact_variance(300) / exact_variance(400) - 1.0) > 500


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


def learned(budget: int, seed: str) -> RoundCollection:
    """An adaptive round of five batches in which everything is judged."""
    plan = AdaptivePlan(design(budget, "adaptive", batches=5), max_grade=3)
    drawn = draw_round(POOL, plan, seed=seed)
    while drawn.planned < drawn.batches:
        pairs = drawn.pairs(POOL)
        drawn = drawn.extended(POOL, labels=LabelRows(pairs, GRADES[pairs]))
    pairs = drawn.pairs(POOL)
    return RoundCollection(POOL, drawn, LabelRows(pairs, GRADES[pairs]), 3)


def test_models_save_judgments_with_grades_that_tell_something_either_way_up() -> None:
    told = []
    for seed in range(10):
        found = learned(200, f"s{seed}")
        told.append(worth.worth_to_models(found, DCG, PREDICTED))
        turned = worth.worth_to_models(found, DCG, 3.0 - PREDICTED)
        assert turned == pytest.approx(told[-1], rel=0.5, abs=15)
    assert 40 < np.median(told) < 100  # 70 more pairs made rounds as exact as with the grades
    assert min(told) > 10


def test_models_save_nothing_with_grades_that_tell_nothing() -> None:
    noise = harmful_predictions(GRADES)
    for seed in range(6):
        found = learned(200, f"s{seed}")
        for name in ("noise", "whole grades by chance", "0 or 3 by chance", "constant"):
            assert worth.worth_to_models(found, DCG, noise[name]) < 5, name
        fresh = np.random.default_rng(seed).random(len(POOL))
        assert worth.worth_to_models(found, DCG, fresh) < 5


def test_twin_that_asks_models_about_what_they_learned_from_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where whatever was predicted is trusted, which harms."""
    monkeypatch.setattr(logistic, "LEAST_TOLD", -np.inf)
    found, rng = learned(200, "s1"), np.random.default_rng(3)
    predicted = [rng.random(len(POOL)) for _ in range(8)]
    honest = [worth.worth_to_models(found, DCG, each) for each in predicted]
    pairs = found.sampled

    def fitted(features: Features, _: Any, __: Any, *, levels: np.ndarray) -> Any:
        reached = (GRADES[pairs][:, np.newaxis] >= levels).astype(float)
        return grades.fit_grades(features, pairs, reached, levels=levels)

    monkeypatch.setattr(worth, "fit_grades", fitted)
    twin = [worth.worth_to_models(found, DCG, each) for each in predicted]
    assert np.mean(honest) < 0.0 < min(twin)
