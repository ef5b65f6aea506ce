"""``manage.py simulate`` with measures of predictions: the scores of runs against the grades."""

from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError

from tests.estimation.simulations import Simulate, rows, simulated, write_collection

MAE = ("--measure", "MAE")


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    return simulated(write_collection(tmp_path))


@pytest.mark.slow
def test_methods_that_estimate_errors_of_scores_are_played(simulate: Simulate) -> None:
    found = rows(simulate, *MAE, "--budget", "20", "--trials", "5")
    assert [row["method"] for row in found] == ["adaptive", "poisson", "iid"]
    assert all(row["measure"] == "MAE" for row in found)
    assert all(row["rmse"] > 0.0 for row in found)


@pytest.mark.slow
def test_everything_judged_is_exact(simulate: Simulate) -> None:
    """Scores are 12 to 19, and errors those of the files: all pairs are in the pool of 36."""
    with pytest.raises(CommandError, match=r"the pool has (\d+) pairs") as told:
        simulate(*MAE, "--budget", "9999")
    pairs = str(told.value).split("the pool has ")[1].split()[0]
    for method in ("adaptive", "poisson"):
        given = ("--method", method, "--budget", pairs, "--trials", "1")
        (row,) = rows(simulate, *MAE, *given)
        assert row["rmse"] == pytest.approx(0.0, abs=1e-12)
        assert np.isfinite(row["rmse"])


def test_another_prior_than_the_constant_one_is_refused(simulate: Simulate) -> None:
    with pytest.raises(CommandError, match="--prior must be constant for MAE, not 'fusion'"):
        simulate(*MAE, "--prior", "fusion", "--budget", "20")
