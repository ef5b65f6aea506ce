"""Orders of values: ties by rounding, places, and the agreement of two orders."""

import numpy as np
import pytest
from scipy import stats

from estimation.core.inference.orders import kendall_tau, places

CLOSE = np.array([0.1 + 0.2, 0.3, 0.1])  # the first two differ by rounding only


def test_tau_b_is_that_of_scipy() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        first, second = rng.integers(0, 6, size=(2, 9)).astype(float)
        assert kendall_tau(first, second) == pytest.approx(
            stats.kendalltau(first, second).statistic
        )


def test_tau_without_order() -> None:
    rising = np.array([1.0, 2.0, 3.0])
    assert kendall_tau(np.zeros(3), rising) == 0.0
    assert kendall_tau(rising, np.ones(3)) is None
    assert kendall_tau(rising, 1.0 + rising * 1e-15) is None
    assert kendall_tau(np.zeros(0), np.zeros(0)) is None


def test_an_order_with_ties_agrees_with_itself() -> None:
    assert CLOSE[0] != CLOSE[1]
    assert kendall_tau(CLOSE, np.array([0.3, 0.3, 0.1])) == pytest.approx(1.0)


@pytest.mark.parametrize(("lower", "expected"), [(False, [1, 1, 3]), (True, [2, 2, 1])])
def test_equal_values_share_the_better_place(lower: bool, expected: list[int]) -> None:
    assert places(CLOSE, lower_is_better=lower).tolist() == expected


def test_places_are_those_of_scipy() -> None:
    rng = np.random.default_rng(4)
    for _ in range(50):
        values = rng.integers(0, 6, size=9).astype(float)
        assert places(-values, lower_is_better=True).tolist() == places(values).tolist()
        assert places(-values).tolist() == stats.rankdata(values, method="min").tolist()
