"""Where nearly everything is judged, no tie is told apart by one document that was missed."""

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from estimation.core.inference.uncertainty import Missed
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


@pytest.mark.slow
def test_the_twin_without_a_least_error_tells_ties_apart(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Missed, "least_errors", lambda self, **_: np.zeros_like(self.squares))
    (found,) = rows(simulated(data_dir / "trec8"), *NEARLY_ALL, "poisson")
    assert found["familywise_error"] > 0.4
