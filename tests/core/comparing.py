"""Numbers of one evaluation beside those of another."""

import pytest

OF_ONE_RUN = ("value", "se", "df", "low", "high", "unknown")
OF_TWO_RUNS = ("covariance", "expected")


def close(numbers: object) -> object:
    """The same but for rounding: sums over a larger pool may be added up in another order."""
    return pytest.approx(numbers, rel=1e-11, abs=1e-12)
