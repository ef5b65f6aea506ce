"""Quantiles of Poisson numbers off a table are those that are looked for one by one."""

import numpy as np
import pytest
from scipy import special, stats

from estimation.core.inference import poisson_numbers
from estimation.core.inference.poisson_numbers import NEAR, TABLED, poisson_quantiles

SHARES = (0.95, 1.0 - 0.05 / 8256)


def one_by_one(share: float, expected: np.ndarray) -> np.ndarray:
    return np.asarray(np.ceil(special.pdtrik(share, expected)))


@pytest.mark.parametrize("share", SHARES)
def test_any_expectations(share: float) -> None:
    least = -np.log(share) * (1.0 + 1e-6)
    expected = np.geomspace(least, 3.0 * TABLED, 20_000)
    found = poisson_quantiles(share, expected)
    assert np.array_equal(found, one_by_one(share, expected))
    assert np.array_equal(found, stats.poisson.ppf(share, expected))


@pytest.mark.slow
@pytest.mark.parametrize("share", SHARES)
def test_where_the_next_number_begins(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = poisson_numbers._largest_expectations(share)
    expected = (edges[:, None] * (1.0 + np.arange(-40, 41) * 2.0**-52)).ravel()
    assert np.array_equal(poisson_quantiles(share, expected), one_by_one(share, expected))
    monkeypatch.setattr(poisson_numbers, "NEAR", 0.0)  # a broken twin: rounding decides otherwise
    twin = poisson_quantiles(share, expected)
    assert not np.array_equal(twin, one_by_one(share, expected))
    assert np.abs(expected / np.repeat(edges, 81) - 1.0).max() < NEAR


def test_none() -> None:
    assert poisson_quantiles(0.95, np.zeros(0)).shape == (0,)
