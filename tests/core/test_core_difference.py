"""The difference estimator: unbiased whatever is predicted, better when predicted well."""

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from estimation.core.data.labels import PairLabels
from estimation.core.data.pool import Pool, build_pool
from estimation.core.estimates.difference import FOLDS, difference_estimate
from estimation.core.measures.table import parse_measure
from estimation.core.sampling.random_numbers import folds
from estimation.research.simulation import true_values

EXACT = {"rel": 1e-12, "abs": 1e-12}
DCG = parse_measure("DCG@4")


@pytest.fixture
def pool(ranked) -> Pool:
    """Eight pairs, three runs."""
    runs = {
        "a": ranked({"1": "uvwx", "2": "pq"}),
        "b": ranked({"1": "xwyz", "2": "qp"}),
        "c": ranked({"1": "vzux", "2": "p"}),
    }
    return build_pool(["1", "2"], runs, depth=4)


GRADES = np.array([3, 0, 1, 2, 0, 3, 1, 2])
INCLUSION = np.array([0.5, 0.3, 1.0, 0.7, 0.2, 0.6, 0.4, 0.5])
PREDICTED = np.array([2.0, 0.5, 1.0, 2.5, 1.0, 2.0, 0.2, 1.5])


def labels_of(pairs: np.ndarray) -> PairLabels:
    number = np.ones(len(pairs), dtype=np.int64)
    return PairLabels(GRADES[pairs].astype(float), number, np.zeros(len(pairs)), False)


def samples(inclusion: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
    for taken in product([False, True], repeat=len(inclusion)):
        chance = float(np.prod(np.where(taken, inclusion, 1 - inclusion)))
        if chance > 0:
            yield chance, np.flatnonzero(taken)


def moments(pool: Pool, **options) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    mean, square, estimated = 0.0, 0.0, 0.0
    settings = {"predictions": PREDICTED, "inclusion": INCLUSION} | options
    for chance, pairs in samples(settings["inclusion"]):
        found = difference_estimate(
            pool, measure=DCG, pairs=pairs, labels=labels_of(pairs), **settings
        )
        mean = mean + chance * found.value
        square = square + chance * np.multiply.outer(found.value, found.value)
        estimated = estimated + chance * found.covariance
    return mean, square - np.multiply.outer(mean, mean), estimated


@pytest.mark.slow
@pytest.mark.parametrize("coefficient", [0.0, 0.7, 1.0, -2.0])
def test_any_fixed_coefficient_is_unbiased_with_its_covariance(pool, coefficient) -> None:
    mean, covariance, estimated = moments(pool, coefficient=coefficient)
    assert mean == pytest.approx(true_values(pool, grades=GRADES, measure=DCG), **EXACT)
    assert estimated == pytest.approx(covariance, **EXACT)


KINDS = {
    "graded": PREDICTED,
    "whole grades": np.round(PREDICTED),
    "0 or 1": (PREDICTED > 1.0).astype(float),
    "scale 1000 times too large": 1000.0 * PREDICTED,
    "a few confident ones": np.where(np.arange(8) == 4, 1.0, 0.002),
    "constant": np.full(8, 1.5),
    "upside down": 3.0 - GRADES,
    "below 0": -PREDICTED,
    "of some pairs": np.where(np.arange(8) % 3 == 0, np.nan, PREDICTED),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_cross_fitted_predictions_are_unbiased(pool: Pool, kind: str) -> None:
    mean, _, _ = moments(pool, predictions=KINDS[kind])
    assert mean == pytest.approx(true_values(pool, grades=GRADES, measure=DCG), **EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["graded", "a few confident ones"])
def test_what_is_fitted_to_some_runs_is_unbiased_for_all(pool: Pool, kind: str) -> None:
    mean, _, _ = moments(pool, predictions=KINDS[kind], fitted_runs=np.array([1]))
    assert mean == pytest.approx(true_values(pool, grades=GRADES, measure=DCG), **EXACT)


@pytest.mark.slow
def test_pairs_out_of_reach_are_left_out_whatever_is_predicted(pool: Pool) -> None:
    """Their predictions could not be corrected: the expectation is the value of the others."""
    reach = np.where(np.isin(np.arange(8), [0, 5]), 0.0, INCLUSION)
    within = np.where(reach > 0.0, GRADES, 0)
    truth = true_values(pool, grades=within, measure=DCG)
    for predictions in (PREDICTED, 1000.0 * PREDICTED):
        mean, _, _ = moments(pool, predictions=predictions, inclusion=reach)
        assert mean == pytest.approx(truth, **EXACT)


@pytest.mark.slow
def test_twin_that_fits_on_the_pairs_it_corrects_is_caught(pool: Pool, monkeypatch) -> None:
    every = list(range(FOLDS))
    monkeypatch.setattr("estimation.core.sampling.calibration._folds_but", lambda *_left_out: every)
    mean, _, _ = moments(pool)
    truth = true_values(pool, grades=GRADES, measure=DCG)
    assert np.abs(mean / truth - 1).max() > 1e-3


@pytest.mark.slow
def test_good_predictions_reduce_the_variance_and_wrong_ones_do_not_bias(pool: Pool) -> None:
    _, plain, _ = moments(pool, coefficient=0.0)
    _, helped, _ = moments(pool, coefficient=1.0, predictions=0.95 * GRADES)
    assert np.trace(helped) < 0.01 * np.trace(plain)
    mean, _, _ = moments(pool, predictions=3.0 - GRADES)
    assert mean == pytest.approx(true_values(pool, grades=GRADES, measure=DCG), **EXACT)


def test_what_was_expected_is_told(pool: Pool) -> None:
    """Of every pair of the pool: with it the value and each topic's part can be computed again."""
    weights, pairs = pool.weights(DCG), np.array([0, 1, 2, 3, 5, 7])
    for coefficient in (None, 0.7):
        found = difference_estimate(
            pool, measure=DCG, pairs=pairs, labels=labels_of(pairs), inclusion=INCLUSION,
            predictions=PREDICTED, coefficient=coefficient,
        )  # fmt: skip
        missed = GRADES[pairs] - found.expected[pairs]
        value = weights.T @ found.expected + weights[pairs].T @ (missed / INCLUSION[pairs])
        assert found.value == pytest.approx(value, **EXACT)
        uncertain = np.where(INCLUSION < 1.0, 1.0 / INCLUSION, 0.0)[pairs]
        gains, losses = found.gains_and_losses()
        assert gains == pytest.approx(weights[pairs].T @ (uncertain * np.maximum(missed, 0.0)))
        assert losses == pytest.approx(weights[pairs].T @ (uncertain * np.maximum(-missed, 0.0)))
    assert found.expected.tolist() == (0.7 * PREDICTED).tolist()


def test_folds_depend_on_the_pair_alone(pool: Pool) -> None:
    every = folds(pool, number=FOLDS)
    assert every.min() >= 0
    assert every.max() < FOLDS
    assert folds(pool, number=FOLDS, pairs=np.array([5, 2])).tolist() == every[[5, 2]].tolist()
    with pytest.raises(ValueError, match="at least 2, not 1"):
        folds(pool, number=1)


def test_bad_predictions_are_refused_by_position(pool: Pool) -> None:
    given = {"pairs": np.array([0]), "labels": labels_of(np.array([0])), "inclusion": INCLUSION}
    wrong = PREDICTED.copy()
    wrong[3] = np.inf
    with pytest.raises(ValueError, match=r"predictions must be finite, or nan, not inf \(item 3\)"):
        difference_estimate(pool, measure=DCG, predictions=wrong, **given)
    with pytest.raises(ValueError, match="one number per pair, 8"):
        difference_estimate(pool, measure=DCG, predictions=PREDICTED[:5], **given)
    with pytest.raises(ValueError, match="no difference estimator"):
        difference_estimate(pool, measure=parse_measure("AP"), predictions=PREDICTED, **given)
