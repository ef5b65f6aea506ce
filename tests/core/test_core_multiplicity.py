"""The largest of many deviates: the fast way says what the plain one says, to the last bit."""

import numpy as np
import pytest
from scipy import special

from estimation.core.arrays import FloatArray
from estimation.core.inference import multiplicity
from estimation.core.inference.multiplicity import FAR, NEAR, holm, largest_deviates
from estimation.core.inference.normal import normal_vectors


def asked(runs: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """P-values of differences, near, far and between, and a covariance; two runs are equal."""
    rng = np.random.default_rng([seed, runs])
    mixed = rng.normal(size=(runs, runs + 3))
    mixed[-1] = mixed[0]
    single = 2.0 * special.ndtr(-np.abs(rng.normal(size=(runs, runs)) * 3.0))
    single[0, 1:3] = 1.0
    upper = np.triu(single, 1)
    return upper + upper.T + np.eye(runs), mixed @ mixed.T


def plainly(p_values: FloatArray, covariance: FloatArray, vectors: int) -> FloatArray:
    """Every vector against every difference, those that are less likely last."""
    runs = len(p_values)
    rows, columns = np.triu_indices(runs, k=1)
    order = np.argsort(-p_values[rows, columns], kind="stable")
    rows, columns = rows[order], columns[order]
    wanted = -special.ndtri(np.maximum(p_values[rows, columns] / 2.0, 1e-300))
    values = multiplicity._values(covariance, vectors).T
    variance = np.diag(covariance)
    spread = variance[rows] + variance[columns] - 2.0 * covariance[rows, columns]
    differ = spread > multiplicity.NUGGET * (variance[rows] + variance[columns])
    scale = np.where(differ, 1.0 / np.sqrt(np.where(differ, spread, 1.0)), 0.0)
    deviates = np.abs(values[:, rows] - values[:, columns]) * scale
    deviates[:, wanted >= FAR] = 0.0
    so_far = np.maximum.accumulate(deviates, axis=1)
    near = wanted < NEAR
    if near.any():
        so_far[:, near] = deviates[:, near].max(axis=1)[:, None]
    count = np.count_nonzero((so_far >= wanted) & (wanted < FAR), axis=0)
    stepped = np.maximum.accumulate(((1.0 + count) / (1.0 + vectors))[::-1])[::-1]
    adjusted = np.ones((runs, runs))
    adjusted[rows, columns] = adjusted[columns, rows] = stepped
    return np.maximum(np.minimum(adjusted, holm(p_values)), np.where(np.eye(runs), 1.0, p_values))


@pytest.mark.slow
@pytest.mark.parametrize("runs", [2, 3, 7, 40, 70])
@pytest.mark.parametrize("piece", [1, multiplicity.PIECE], ids=["small", "large"])
def test_adjusted_p_values_are_those_of_the_plain_way(
    runs: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(multiplicity, "PIECE", piece)
    for seed in range(3):
        p_values, covariance = asked(runs, seed)
        vectors = int(np.clip(2_000_000 // (runs * (runs - 1) // 2), 250, 4000))
        expected = plainly(p_values, covariance, vectors)
        assert largest_deviates(p_values, covariance).tolist() == expected.tolist()
        assert runs < 7 or len(np.unique(expected)) > 5


@pytest.mark.parametrize("runs", [2, 5, 12])
def test_nothing_hangs_on_what_runs_are_called(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the twin runs have vectors by their names, and a verdict may come with another one."""
    p_values, covariance = asked(runs + 1, 7)
    p_values, covariance = p_values[:-1, :-1], covariance[:-1, :-1]
    other = np.ix_(*2 * [np.random.default_rng(1).permutation(runs)])

    def moved() -> float:
        renamed = largest_deviates(p_values[other], covariance[other])
        return float(np.abs(renamed - largest_deviates(p_values, covariance)[other]).max())

    assert moved() < 1e-12
    monkeypatch.setattr(
        multiplicity,
        "_values",
        lambda covariance, number: (
            (normal_vectors(number, len(covariance)) @ multiplicity._root(covariance).T).T
        ),
    )
    assert runs == 2 or moved() > 1e-3


@pytest.mark.parametrize("factor", [2.0**-600, 2.0**-150, 2.0**150, 2.0**600])
def test_values_may_be_of_any_size(factor: float) -> None:
    """Deviates of half the digits know only shares of the largest number."""
    p_values, covariance = asked(40, 2)
    expected = largest_deviates(p_values, covariance)
    assert largest_deviates(p_values, covariance * factor).tolist() == expected.tolist()


def test_twin_that_forgets_earlier_differences_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    of = multiplicity._Reached.of

    def forgetful(deviates: FloatArray, wanted: FloatArray, start: int) -> multiplicity._Reached:
        return of(deviates[-1:], wanted[-1:], start + len(deviates) - 1)

    p_values, covariance = asked(40, 0)
    expected = largest_deviates(p_values, covariance)
    monkeypatch.setattr(multiplicity._Reached, "of", forgetful)
    assert largest_deviates(p_values, covariance).tolist() != expected.tolist()


def test_root_is_one_of_the_covariance() -> None:
    _, covariance = asked(30, 1)
    root = multiplicity._root(covariance)
    assert (np.triu(root, 1) == 0.0).all()
    assert root @ root.T == pytest.approx(covariance, rel=1e-6)


def error_of_normal_values(
    runs: int, correlation: float, trials: int, error: float = 0.05
) -> float:
    """How often some of k values without any difference have a verdict; their covariance is known.

    The least p-value of all is what a verdict goes by, and the largest deviate has it.
    """
    covariance = np.eye(runs) * (1.0 - correlation) + correlation
    rng = np.random.default_rng(5)
    values = rng.multivariate_normal(np.zeros(runs), covariance, size=trials)
    size = (values.max(axis=1) - values.min(axis=1)) / np.sqrt(2.0 * (1.0 - correlation))
    low, high = 1.5, 6.0  # the size from which on there is one
    for _ in range(20):
        middle = (low + high) / 2.0
        p_values = np.ones((runs, runs))
        p_values[0, 1] = p_values[1, 0] = 2.0 * special.ndtr(-middle)
        found = largest_deviates(p_values, covariance, error=error)[0, 1]
        low, high = (low, middle) if found <= error else (middle, high)
    return float(np.mean(size >= high))


@pytest.mark.parametrize("correlation", [0.0, 0.8])
@pytest.mark.parametrize("runs", [2, 3, 5, 8, 12])
def test_the_error_of_all_verdicts_is_what_it_shall_be(runs: int, correlation: float) -> None:
    """Rather less than more: the vectors are the same in every campaign."""
    assert 0.04 < error_of_normal_values(runs, correlation, 60_000) < 0.053


def test_a_thousand_vectors_are_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiplicity, "MOST_VECTORS", 1000)
    assert error_of_normal_values(5, 0.0, 60_000) > 0.055


def test_none_is_less_than_a_difference_has_alone() -> None:
    for p_value in (0.06, 0.05, 0.0451, 0.02, 1e-4):
        alone = np.array([[1.0, p_value], [p_value, 1.0]])
        assert largest_deviates(alone, np.eye(2))[0, 1] == pytest.approx(p_value, rel=1e-12)
