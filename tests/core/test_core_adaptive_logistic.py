"""The fit of a model of grades is the minimum itself, wherever it begins and however it adds up."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import optimize, sparse, special

from estimation.core.rounds.adaptive import logistic
from estimation.core.rounds.adaptive.logistic import RidgeLogistic

CASES = ("usual", "few", "certain", "heavy")


def regression(kind: str, seed: int = 1) -> RidgeLogistic:
    """Numbers, effects of forty topics and runs that return a pair, as a model has them."""
    rng = np.random.default_rng(seed)
    pairs = {"few": 12, "usual": 900, "certain": 300, "heavy": 500}[kind]
    numbers = rng.standard_t(1.0 if kind == "heavy" else 30.0, size=(pairs, 3))
    numbers = (numbers - numbers.mean(axis=0)) / numbers.std(axis=0)
    topics = np.eye(40)[rng.integers(40, size=pairs)]
    dense = np.hstack([np.ones((pairs, 1)), numbers, topics, rng.random((pairs, 20)) < 0.3])
    truth = rng.normal(size=dense.shape[1]) * (20.0 if kind == "certain" else 1.0)
    chance = special.expit(dense @ truth - 2.0)
    shares = rng.binomial(2, chance) / 2.0
    ridge = np.concatenate([[1e-3], np.ones(3), np.full(40, 2.0), np.full(20, 5.0)])
    return RidgeLogistic(sparse.csr_array(dense), shares, ridge)


def slope_of(asked: RidgeLogistic, at: np.ndarray) -> np.ndarray:
    dense = asked.rows.toarray()
    return dense.T @ (special.expit(dense @ at) - asked.shares) + asked.ridge * at


def shuffled(asked: RidgeLogistic, seed: int) -> tuple[RidgeLogistic, np.ndarray]:
    """Pairs and features in another order, so that every sum is added up in another one."""
    rng = np.random.default_rng(seed)
    pairs, features = (rng.permutation(size) for size in asked.rows.shape)
    dense = asked.rows.toarray()[pairs][:, features]
    rows, shares = sparse.csr_array(dense), asked.shares[pairs]
    return RidgeLogistic(rows, shares, asked.ridge[features]), features


Fit = Callable[[RidgeLogistic, np.ndarray], np.ndarray]


def farthest_apart(asked: RidgeLogistic, fit: Fit) -> float:
    """How far fits are apart that begin at different places."""
    rng, size = np.random.default_rng(4), asked.rows.shape[1]
    first = fit(asked, np.zeros(size))
    starts = (rng.normal(size=size) * far for far in (0.1, 3.0, 30.0))
    return max(float(np.abs(fit(asked, start) - first).max()) for start in starts)


def by_lbfgs(asked: RidgeLogistic, start: np.ndarray) -> np.ndarray:
    """The twin: a solver that ends where it is near enough."""

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        scores = asked.rows @ at
        misfit = np.logaddexp(0.0, scores) - asked.shares * scores
        return float(misfit.sum() + 0.5 * (asked.ridge * at) @ at), slope_of(asked, at)

    options = {"maxiter": 300, "ftol": 1e-8, "gtol": 1e-4}
    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x)


@pytest.mark.parametrize("kind", CASES)
def test_nothing_is_left_of_the_slope(kind: str) -> None:
    asked = regression(kind)
    found = asked.fit(np.zeros(asked.rows.shape[1]))
    dense = asked.rows.toarray()
    curve = special.expit(dense @ found) * special.expit(-dense @ found)
    hessian = dense.T @ (curve[:, None] * dense) + np.diag(asked.ridge)
    left = np.linalg.solve(hessian, slope_of(asked, found))
    np.testing.assert_allclose(left, 0.0, atol=1e-9)


@pytest.mark.parametrize("kind", CASES)
def test_the_order_of_sums_does_not_move_it(kind: str) -> None:
    asked = regression(kind)
    start = np.zeros(asked.rows.shape[1])
    first = asked.fit(start)
    for seed in range(5):
        other, features = shuffled(asked, seed)
        np.testing.assert_allclose(other.fit(start), first[features], rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("kind", CASES)
def test_it_is_the_same_wherever_it_begins(kind: str) -> None:
    asked = regression(kind)
    assert farthest_apart(asked, RidgeLogistic.fit) < 1e-9
    assert farthest_apart(asked, by_lbfgs) > 1e-5, "the twin is caught"


def test_steps_that_are_not_halved_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = regression("usual")
    right = asked.fit(np.zeros(asked.rows.shape[1]))
    far = np.random.default_rng(4).normal(size=len(right)) * 30.0
    monkeypatch.setattr(logistic, "ROUNDING", np.inf)
    assert not np.abs(asked.fit(far) - right).max() < 1e-9


def test_it_takes_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[int] = []
    newton = logistic._Place.newton_step
    monkeypatch.setattr(
        logistic._Place, "newton_step", lambda self, way: steps.append(1) or newton(self, way)
    )
    for kind in CASES:
        steps.clear()
        asked = regression(kind)
        asked.fit(np.zeros(asked.rows.shape[1]))
        assert len(steps) <= 15, kind


def inner_steps(asked: RidgeLogistic, start: np.ndarray) -> int:
    """How often a step is multiplied by the Hessian matrix, which takes most of a fit."""
    taken: list[int] = []
    multiplied = sparse.csr_array.__matmul__

    def counted(self: sparse.csr_array, other: np.ndarray) -> np.ndarray:
        taken.append(1)
        return multiplied(self, other)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sparse.csr_array, "__matmul__", counted)
        asked.fit(start)
    return len(taken) // 2


@pytest.mark.parametrize("kind", ["usual", "certain"])
def test_it_takes_few_inner_steps_where_features_hang_together(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that return much the same: as pools have them."""
    asked = regression(kind)
    alike = sparse.hstack([asked.rows, asked.rows[:, -20:], asked.rows[:, -20:]])
    more = np.concatenate([asked.ridge, np.full(40, 5.0)])
    asked, start = RidgeLogistic(sparse.csr_array(alike), asked.shares, more), np.zeros(len(more))
    found, few = asked.fit(start), inner_steps(asked, start)
    monkeypatch.setattr(logistic, "MOST_FEATURES", 0)
    assert few <= 50
    assert 2.0 * few < inner_steps(asked, start)
    np.testing.assert_allclose(asked.fit(start), found, rtol=0.0, atol=1e-9)
