"""Estimators over every sequence of draws of four topics, also when a budget ends the draws.

Each statement comes with a broken twin that the same enumeration must catch.
"""

import math
from collections.abc import Callable, Iterator
from itertools import combinations, product

import numpy as np
import pytest

from estimation.core.rounds.topics.estimators import (
    QueryEstimate,
    ratio_estimate,
    unbiased_estimate,
)

EXACT = {"rel": 1e-12, "abs": 1e-12}
CHANCE = np.array([0.15, 0.3, 0.35, 0.2])
COST = np.array([2.0, 3.0, 3.0, 2.5])
BUDGET = 6.0  # for any two topics, for no three
VALUES = np.array([[1.0, 0.2], [0.3, 0.0], [0.1, 0.9], [0.7, 0.5]])
WEIGHT = 1.0 / (4.0 * CHANCE)
TRUTH = VALUES.mean(axis=0)
Function = Callable[..., QueryEstimate]


def sequences(draws: int) -> Iterator[tuple[float, np.ndarray]]:
    for sequence in product(range(4), repeat=draws):
        yield float(np.prod(CHANCE[list(sequence)])), np.bincount(sequence, minlength=4)


def multisets(draws: int, topics: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Counts of n draws that hit exactly these topics (one or two of them)."""
    for first in [draws] if len(topics) == 1 else range(1, draws):
        counts = np.zeros(4, dtype=np.int64)
        counts[list(topics)] = (first, draws - first)[: len(topics)]
        yield counts


def to_the_budget(longest: int = 75) -> Iterator[tuple[float, np.ndarray, float]]:
    """Draws before the first that cannot be paid: chance, counts, chance of each next topic."""
    for topics in (pair for size in (1, 2) for pair in combinations(range(4), size)):
        paid = COST[list(topics)].sum()
        for draws in range(1, longest):
            for counts in multisets(draws, topics):
                ways = math.comb(draws, int(counts[topics[0]]))
                chance = ways * float(np.prod(CHANCE**counts))
                for following in range(4):
                    if following not in topics and paid + COST[following] > BUDGET:
                        yield chance * CHANCE[following], counts, following


def estimate(function: Function, counts: np.ndarray, weight: np.ndarray = WEIGHT) -> QueryEstimate:
    hit = counts > 0
    return function(VALUES[hit], weight=weight[hit], counts=counts[hit])


@pytest.mark.parametrize("draws", [2, 4])
def test_importance_sampling_is_unbiased_over_all_sequences(draws: int) -> None:
    every = [(chance, estimate(unbiased_estimate, counts)) for chance, counts in sequences(draws)]
    mean = sum(chance * each.value for chance, each in every)
    square = sum(chance * np.multiply.outer(each.value, each.value) for chance, each in every)
    assert mean == pytest.approx(TRUTH, **EXACT)
    covariance = sum(chance * each.covariance for chance, each in every)
    assert covariance == pytest.approx(square - np.multiply.outer(TRUTH, TRUTH), **EXACT)
    twin = sum(c * estimate(unbiased_estimate, n, np.ones(4)).value for c, n in sequences(draws))
    assert twin != pytest.approx(TRUTH, rel=1e-2)  # twin: not weighted


@pytest.mark.slow
def test_importance_sampling_is_unbiased_for_draws_to_a_budget() -> None:
    chances, values, squares, covariances, twins = [], [], [], [], []
    known: dict[bytes, QueryEstimate] = {}
    for chance, counts, following in to_the_budget():
        key = counts.tobytes()
        if key not in known:
            known[key] = estimate(unbiased_estimate, counts)
        found = known[key]
        chances.append(chance)
        values.append(found.value)
        squares.append(np.multiply.outer(found.value, found.value))
        covariances.append(found.covariance)
        draws = counts.sum()
        twins.append((draws * found.value + WEIGHT[following] * VALUES[following]) / (draws + 1))
    weights = np.array(chances)
    assert weights.sum() == pytest.approx(1.0, **EXACT)
    assert weights @ np.array(values) == pytest.approx(TRUTH, **EXACT)
    variance = np.tensordot(weights, np.array(squares), 1) - np.multiply.outer(TRUTH, TRUTH)
    assert np.tensordot(weights, np.array(covariances), 1) == pytest.approx(variance, **EXACT)
    twin = weights @ np.array(twins)  # the draw that exceeds the budget is kept
    assert np.abs(twin - TRUTH).max() > 0.005


@pytest.mark.slow
def test_the_ratio_has_a_bias_of_order_one_over_n() -> None:
    limit = -np.sum(WEIGHT[:, None] * (VALUES - TRUTH), axis=0) / 4.0  # -Cov(w, w (L - R))
    for draws in (6, 12):
        mean = np.zeros(2)
        for cut in combinations(range(draws + 3), 3):
            counts = np.diff([-1, *cut, draws + 3]) - 1
            ways = math.factorial(draws) / math.prod(math.factorial(int(c)) for c in counts)
            chance = ways * float(np.prod(CHANCE**counts))
            mean += chance * estimate(ratio_estimate, counts).value
        assert draws * (mean - TRUTH) == pytest.approx(limit, rel=4.0 / draws, abs=0.01)
        assert np.abs(mean - TRUTH).max() > 1e-3


@pytest.mark.parametrize("function", [ratio_estimate, unbiased_estimate])
def test_estimates_need_two_draws_and_weights(function: Function) -> None:
    one = np.ones(1)
    for weight, counts in [(one, [1]), (-one, [2]), (one, [0]), (np.ones(2), [2])]:
        with pytest.raises(ValueError, match=r"draw|topics|weight must|counts must"):
            function(np.ones((1, 3)), weight=weight, counts=np.array(counts))
