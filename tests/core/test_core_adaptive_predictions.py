"""Predictions have a part in a model of grades where they tell something, and none by chance."""

from collections.abc import Callable

import numpy as np
import pytest

from estimation.core.rounds.adaptive import logistic
from estimation.core.rounds.adaptive.grades import OF_LISTS, Features, fit_grades
from tests.core.simulated_pools import helpful_predictions, simulated_pool

POOL, GRADES = simulated_pool()
LEVELS = np.array([1, 2, 3])
JUDGED, TIMES = 250, 60
Predicting = Callable[[np.random.Generator], np.ndarray]


def noise(rng: np.random.Generator) -> np.ndarray:
    return rng.random((len(POOL), 1))


def of_two(rng: np.random.Generator) -> np.ndarray:
    """One says something of every pair, the other of every third."""
    other = np.where(rng.random(len(POOL)) < 0.3, rng.normal(size=len(POOL)), np.nan)
    return np.stack([rng.random(len(POOL)), other], axis=1)


def fitted(predicted: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The coefficients of predictions, (L, columns)."""
    features = Features.of(POOL, predicted)
    judged = np.sort(rng.choice(len(POOL), size=JUDGED, replace=False))
    reached = (GRADES[judged][:, None] >= LEVELS).astype(float)
    model = fit_grades(features, judged, reached, levels=LEVELS)
    assert model is not None
    return model.coefficients[:, OF_LISTS : features.columns.shape[1]]


def shares_with_a_part(predicting: Predicting) -> np.ndarray:
    """In how many of so many samples predictions have coefficients, by level."""
    rng = np.random.default_rng(8)
    return np.mean([fitted(predicting(rng), rng).any(axis=1) for _ in range(TIMES)], axis=0)


@pytest.mark.parametrize("predicting", [noise, of_two])
def test_predictions_that_tell_nothing_have_a_part_by_chance_alone(predicting: Predicting) -> None:
    assert np.all(shares_with_a_part(predicting) <= 0.4)  # e^-1 of two columns is .37


def test_predictions_that_tell_something_have_one() -> None:
    told = helpful_predictions(GRADES)[:, None]
    assert shares_with_a_part(lambda _: told)[0] == 1.0


def test_coefficients_are_those_of_a_model_that_trusts_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = helpful_predictions(GRADES)[:, None]
    found = fitted(told, np.random.default_rng(9))
    monkeypatch.setattr(logistic, "LEAST_TOLD", -np.inf)
    trusted = fitted(told, np.random.default_rng(9))
    own = found.any(axis=1)
    assert own[0]
    assert found[own] == pytest.approx(trusted[own], abs=2e-6)


def test_twin_that_trusts_all_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "LEAST_TOLD", -np.inf)
    assert np.all(shares_with_a_part(noise) == 1.0)
