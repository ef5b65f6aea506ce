"""Where nearly everything is judged, one document that was missed is neither a verdict nor a miss.

Verdicts tell no tie apart by it, and intervals of values reach up to it.
"""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from estimation.core.inference.missed import Missed
from tests.estimation.simulations import rows, simulated

TRIALS = 12
NEARLY_ALL = (
    "--measure", "P@10", "--goal", "absolute", "--budget", "8000", "--budget-unit", "pairs",
    "--trials", str(TRIALS), "--fully-judged", "--method",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("method", ["poisson", "adaptive"])
def test_ties_are_not_told_apart(data_dir: Path, method: str) -> None:
    (found,) = rows(simulated(data_dir / "trec8"), *NEARLY_ALL, method)
    assert found["familywise_error"] <= stats.binom.ppf(0.999, TRIALS, 0.05) / TRIALS
    assert found["true_verdicts"] > 3500, "of 4,005"
    assert found["difference_coverage"] > 0.95


@pytest.mark.slow
def test_active_rounds_allow_for_what_was_missed(data_dir: Path) -> None:
    (found,) = rows(simulated(data_dir / "trec8"), *NEARLY_ALL, "active")
    assert found["familywise_error"] == 0.0
    assert found["true_verdicts"] > 3500, "of 4,005"
    assert found["worst_run_coverage"] > 0.65
    assert found["difference_coverage"] > 0.95


@pytest.mark.slow
def test_the_twin_without_a_least_error_tells_ties_apart(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Missed, "least_errors", lambda self, **_: np.zeros_like(self.squares))
    monkeypatch.setattr(Missed, "least_margins", lambda self, **_: np.zeros_like(self.squares))
    (found,) = rows(simulated(data_dir / "trec8"), *NEARLY_ALL, "poisson")
    assert found["familywise_error"] > 0.4
    assert found["difference_coverage"] < 0.94


@pytest.mark.slow
def test_active_twins_without_what_was_missed_are_caught(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tie told apart, where there is none with it; and a run that is hardly ever covered."""
    monkeypatch.setattr(Missed, "least_errors", lambda self, **_: np.zeros_like(self.squares))
    monkeypatch.setattr(Missed, "least_reach", lambda self, **_: np.zeros_like(self.step))
    (found,) = rows(simulated(data_dir / "trec8"), *NEARLY_ALL, "active")
    assert found["familywise_error"] > 0.0
    assert found["worst_run_coverage"] < 0.6


def worst_run(data_dir: Path) -> tuple[float, float]:
    """Coverage of the values of all runs, and of the one that is covered least."""
    drawn = ("--measure", "P@10", "--goal", "absolute", "--method", "poisson", "--trials", "80")
    (found,) = rows(simulated(data_dir / "cranfield"), *drawn, "--budget", "12000")
    return found["value_coverage"], found["worst_run_coverage"]


@pytest.mark.slow
def test_intervals_reach_up_to_what_was_missed(data_dir: Path) -> None:
    every, worst = worst_run(data_dir)
    assert every > 0.95
    assert worst > 0.9, "80 trials of 40 runs that are covered .95 have about this as the least"


@pytest.mark.slow
def test_the_twin_without_a_least_reach_leaves_a_run_out(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run returns two relevant documents that were likely to be missed."""
    monkeypatch.setattr(Missed, "least_reach", lambda self, **_: np.zeros_like(self.step))
    assert worst_run(data_dir)[1] < 0.88
