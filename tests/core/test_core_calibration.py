"""Predictions are made safe: by their order, by other folds' labels, by what runs agree on."""

import numpy as np
import pytest

from estimation.core.data.labels import PairLabels
from estimation.core.data.pool import Pool
from estimation.core.estimates.difference import difference_estimate
from estimation.core.estimates.estimators import horvitz_thompson_poisson
from estimation.core.measures.table import parse_measure
from estimation.core.sampling import calibration, goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.calibration import (
    FOLDS,
    agreement,
    calibrate,
    order_bins,
    put_together,
)
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.random_numbers import folds
from tests.core.length import bounded
from tests.core.simulated_pools import harmful_predictions, helpful_predictions, simulated_pool

NAN = float("nan")
DCG = parse_measure("DCG@30")
BUDGET, TRIALS = 300, 60


# ------------------------------------------------------------------------------------------- order


def test_only_the_order_of_predictions_counts() -> None:
    predictions = np.random.default_rng(0).random(5000)
    bins = order_bins(predictions)
    for same in (1000.0 * predictions, predictions - 7.0, np.exp(30.0 * predictions)):
        assert np.array_equal(order_bins(same), bins)
    ascending = bins[np.argsort(predictions)]
    assert (np.diff(ascending) >= 0).all()
    assert np.bincount(bins)[-1] == pytest.approx(5000 / 256, abs=1)  # narrow at the top


def test_equal_predictions_share_a_bin_of_their_own() -> None:
    grades = np.repeat([0.0, 1.0, 2.0, 3.0], [9700, 200, 90, 10])
    bins = order_bins(np.random.default_rng(1).permutation(grades))
    assert sorted(np.bincount(bins).tolist()) in ([10, 90, 200, 9700], [100, 200, 9700])
    assert len(np.unique(order_bins(np.full(10, 3.0)))) == 1


def test_where_nothing_is_predicted_there_is_no_bin() -> None:
    assert order_bins(np.array([NAN, 2.0, NAN, 1.0])).tolist() == [-1, 1, -1, 0]
    assert order_bins(np.full(3, NAN)).tolist() == [-1] * 3
    assert order_bins(np.array([])).tolist() == []


def test_isotonic_means_are_those_of_scipy() -> None:
    optimize = pytest.importorskip("scipy.optimize")
    rng = np.random.default_rng(2)
    for size in (1, 2, 7, 25):
        values, weights = rng.normal(size=size), rng.exponential(size=size)
        expected = optimize.isotonic_regression(values, weights=weights).x
        assert calibration.isotonic(values, weights) == pytest.approx(expected, abs=1e-12)


# ------------------------------------------------------------------------------ after the judgments


def calibrated(labels: np.ndarray, *, pairs: int = 2000, seed: int = 3) -> np.ndarray:
    """From a sample of the first 400 pairs, with predictions by chance."""
    rng = np.random.default_rng(seed)
    bins = order_bins(rng.random(pairs))
    importance = rng.exponential(size=len(labels)) ** 3
    fold = np.arange(pairs) % FOLDS
    pairs = np.arange(len(labels))
    return calibrate(bins, fold, pairs=pairs, labels=labels, importance=importance)


def test_what_is_expected_of_a_fold_does_not_depend_on_its_labels() -> None:
    labels = np.random.default_rng(4).integers(4, size=400).astype(float)
    for fold in range(FOLDS):
        changed = labels.copy()
        changed[fold::FOLDS] = 3.0 - changed[fold::FOLDS]
        before, after = calibrated(labels), calibrated(changed)
        assert np.array_equal(before[fold::FOLDS], after[fold::FOLDS])
        other = (fold + 1) % FOLDS
        assert not np.array_equal(before[other::FOLDS], after[other::FOLDS])


@pytest.mark.parametrize("seed", range(5))
def test_nothing_beyond_the_labels_is_ever_expected(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = calibrated((rng.random(400) < 0.02) * 7.0, seed=seed)
    assert found.min() >= 0.0
    assert found.max() <= 7.0


def test_no_labels_and_labels_without_importance_teach_nothing() -> None:
    bins, fold = order_bins(np.arange(50.0)), np.arange(50) % FOLDS
    none = np.array([], dtype=np.int64)
    for pairs in (none, np.arange(50)):
        labels, importance = np.ones(len(pairs)), np.zeros(len(pairs))
        found = calibrate(bins, fold, pairs=pairs, labels=labels, importance=importance)
        assert not found.any()


# ------------------------------------------------------------------------------------- whole pools


@pytest.fixture(scope="module")
def judged() -> tuple[Pool, np.ndarray]:
    return simulated_pool()


@pytest.fixture(scope="module")
def inclusion(judged) -> np.ndarray:
    return inclusion_of(judged[0])


def inclusion_of(pool: Pool, predictions: np.ndarray | None = None, goal=None) -> np.ndarray:
    goal = goal or goals.absolute(*pool.runs)
    name = "rank" if predictions is None else "scores"
    prior = make_prior(pool, name=name, goal=goal, measure=DCG, max_grade=3, grades=predictions)
    return make_design(
        pool, goal=goal, measure=DCG, prior=prior, budget=BUDGET, batch_size=BUDGET
    ).inclusion()


def samples(inclusion: np.ndarray) -> list[np.ndarray]:
    """The pairs of each trial; the same random numbers whatever the probabilities."""
    numbers = np.random.default_rng(8).random((TRIALS, len(inclusion)))
    return [np.flatnonzero(row < inclusion) for row in numbers]


def labels_of(grades: np.ndarray, pairs: np.ndarray) -> PairLabels:
    number = np.ones(len(pairs), dtype=np.int64)
    return PairLabels(grades[pairs].astype(float), number, np.zeros(len(pairs)), False)


def rms_error(
    judged, inclusion: np.ndarray, predictions: np.ndarray | None, trials: int = TRIALS
) -> float:
    """Over trials and runs; without predictions that of Horvitz and Thompson."""
    pool, grades = judged
    weights, squares = pool.weights(DCG), []
    for pairs in samples(inclusion)[:trials]:
        labels = labels_of(grades, pairs)
        if predictions is None:
            value = horvitz_thompson_poisson(
                weights[pairs], labels, probability=inclusion[pairs]
            ).value
        else:
            value = difference_estimate(
                pool, measure=DCG, pairs=pairs, labels=labels, inclusion=inclusion,
                predictions=predictions,
            ).value  # fmt: skip
        squares.append((value - weights.T @ grades) ** 2)
    return float(np.sqrt(np.mean(squares)))


HARMFUL = tuple(harmful_predictions(np.arange(4)))


@pytest.fixture(scope="module")
def without(judged, inclusion) -> float:
    return rms_error(judged, inclusion, None)


@pytest.mark.slow
@pytest.mark.parametrize("kind", HARMFUL)
def test_no_prediction_hurts_the_estimate(judged, inclusion, without: float, kind: str) -> None:
    predictions, few = harmful_predictions(judged[1])[kind], bounded(20, TRIALS)
    assert rms_error(judged, inclusion, predictions) < 1.02 * without
    as_large = rms_error(judged, inclusion, 1000.0 * predictions, few)
    assert as_large == pytest.approx(rms_error(judged, inclusion, predictions, few), rel=1e-12)


@pytest.mark.slow
def test_predictions_of_some_worth_help_the_estimate(judged, inclusion, without: float) -> None:
    helped = rms_error(judged, inclusion, helpful_predictions(judged[1]))
    assert helped < 0.8 * without


@pytest.mark.slow
def test_twin_that_takes_predictions_as_they_stand_is_caught(
    judged, inclusion, monkeypatch
) -> None:
    """A coefficient without bounds, by least squares on the other folds."""

    def unbounded(pool, predictions, pairs, labels, weights, chance) -> np.ndarray:
        importance = (1.0 - chance) / chance**2 * weights.power(2).sum(axis=1)
        fold = folds(pool, number=FOLDS)
        by_fold = []
        for each in range(FOLDS):
            weight = importance * (fold[pairs] != each)
            square = (weight * predictions[pairs] ** 2).sum()
            by_fold.append((weight * labels * predictions[pairs]).sum() / square)
        return np.array(by_fold)[fold] * predictions

    monkeypatch.setattr("estimation.core.estimates.difference._calibrated", unbounded)
    without = rms_error(judged, inclusion, None)
    heavy = harmful_predictions(judged[1])["heavy tails"]
    assert rms_error(judged, inclusion, heavy) > 1.5 * without


@pytest.mark.slow
def test_the_told_variance_is_that_of_the_errors(judged, inclusion) -> None:
    pool, grades = judged
    truth = pool.weights(DCG).T @ grades
    for predictions in (helpful_predictions(grades), harmful_predictions(grades)["heavy tails"]):
        errors, told = [], []
        for pairs in samples(inclusion):
            found = difference_estimate(
                pool, measure=DCG, pairs=pairs, labels=labels_of(grades, pairs),
                inclusion=inclusion, predictions=predictions,
            )  # fmt: skip
            errors.append(found.value - truth)
            told.append(np.diag(found.covariance))
        assert np.mean(told) == pytest.approx(np.mean(np.square(errors)), rel=0.25)


# ------------------------------------------------------------------------------- before the draw


def design_error(judged, inclusion: np.ndarray) -> float:
    """The exact root mean square error of Horvitz and Thompson's estimate over the runs."""
    pool, grades = judged
    variance = pool.weights(DCG).power(2).T @ ((1.0 / inclusion - 1.0) * grades.astype(float) ** 2)
    return float(np.sqrt(variance.mean()))


@pytest.mark.parametrize("kind", HARMFUL)
def test_no_prediction_hurts_the_choice_of_pairs(judged, inclusion, kind: str) -> None:
    predictions = harmful_predictions(judged[1])[kind]
    by_scores = design_error(judged, inclusion_of(judged[0], predictions))
    assert by_scores < 1.02 * design_error(judged, inclusion)


def test_predictions_of_some_worth_help_to_choose_pairs(judged, inclusion) -> None:
    predictions = helpful_predictions(judged[1])
    by_scores = design_error(judged, inclusion_of(judged[0], predictions))
    assert by_scores < 0.85 * design_error(judged, inclusion)


@pytest.mark.parametrize("kind", ["whole grades by chance", "upside down, whole", "heavy tails"])
def test_twin_that_believes_grades_as_they_stand_is_caught(judged, inclusion, kind) -> None:
    pool, grades = judged
    believed = np.maximum(harmful_predictions(grades)[kind], 0.01 * 3.0)
    naive = goals.effective_weights(pool, goals.absolute(*pool.runs), DCG) * np.sqrt(believed)
    chance = naive / naive.sum()
    inclusion_of_naive = np.minimum(1.0, 0.9 * BUDGET * chance + 0.1 * BUDGET / len(pool))
    assert design_error(judged, inclusion_of_naive) > 1.1 * design_error(judged, inclusion)


def test_what_the_runs_say_already_is_no_news(judged) -> None:
    """Predictions made from ranks would otherwise be believed most of all."""
    pool, grades = judged
    prior = make_prior(pool, name="rank", goal=goals.absolute(*pool.runs), measure=DCG, max_grade=3)
    chance = prior.expected / 3.0
    assert not agreement(order_bins(prior.expected), chance).any()
    assert agreement(order_bins(helpful_predictions(grades)), chance).max() > 0.5
    assert not agreement(order_bins(np.full(len(pool), NAN)), chance).any()
    assert not agreement(order_bins(grades.astype(float)), np.full(len(pool), 0.3)).any()


def noisy(grades: np.ndarray, seed: int) -> np.ndarray:
    return np.asarray(grades + 2.0 * np.random.default_rng(seed).standard_normal(len(grades)))


def scaled(numbers: np.ndarray) -> np.ndarray:
    return np.asarray(3.0 * (numbers - numbers.min()) / np.ptp(numbers))


def test_several_predictions_tell_more_than_one(judged, inclusion) -> None:
    pool, grades = judged
    one, other = (scaled(noisy(grades, seed)) for seed in (1, 2))
    alone = min(design_error(judged, inclusion_of(pool, each)) for each in (one, other))
    both = inclusion_of(pool, np.stack([one, other], axis=1))
    assert design_error(judged, both) < 0.99 * alone


@pytest.mark.parametrize("kind", [*HARMFUL, "copy", "missing"])
def test_bad_predictions_beside_a_good_one_hardly_cost_anything(judged, kind: str) -> None:
    pool, grades = judged
    good = helpful_predictions(grades)
    others = harmful_predictions(grades) | {"copy": good, "missing": np.full(len(pool), NAN)}
    both = inclusion_of(pool, np.stack([good, others[kind]], axis=1))
    alone = design_error(judged, inclusion_of(pool, good))
    assert design_error(judged, both) < 1.02 * alone


def test_where_nobody_predicts_anything_nothing_is_put_together(judged) -> None:
    pool, grades = judged
    chance = np.linspace(0.4, 0.1, len(pool))
    columns = np.stack([helpful_predictions(grades), noisy(grades, 1)], axis=1)
    columns[::5] = NAN
    together = put_together(columns, chance)
    assert np.array_equal(np.isnan(together), np.arange(len(pool)) % 5 == 0)
    assert np.array_equal(put_together(columns[:, :1], chance), columns[:, 0], equal_nan=True)


@pytest.mark.parametrize("rate", [0.0, 0.02, 0.3])
def test_no_pair_is_believed_less_likely_than_by_rank(judged, rate: float) -> None:
    """And sizes grow by half at most, so that no pair loses more than a third of its chance."""
    pool, grades = judged
    goal = goals.absolute(*pool.runs)
    wrong = np.random.default_rng(9).random(len(pool)) < rate
    predictions = np.where(wrong, 3.0 - grades, grades)
    predictions[::7] = NAN
    asked = {"goal": goal, "measure": DCG, "max_grade": 3}
    rank = make_prior(pool, name="rank", **asked)
    scores = make_prior(pool, name="scores", grades=predictions, **asked)
    assert (scores.expected >= rank.expected).all()
    assert scores.expected.max() <= 3.0
    assert np.array_equal(scores.expected[::7], rank.expected[::7])
    sizes = [goals.effective_weights(pool, goal, DCG) * np.sqrt(p.expected) for p in (rank, scores)]
    assert sizes[0].sum() < sizes[1].sum() <= (1.5 + 1e-12) * sizes[0].sum()
    ratio = inclusion_of(pool, predictions) / inclusion_of(pool)
    assert ratio.min() > 1.0 / 1.5
