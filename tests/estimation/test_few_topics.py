"""Of a handful of topics no reversed verdict is told, and values are covered as they should be."""

from pathlib import Path

import pytest
from scipy import stats

from estimation.core.inference import uncertainty
from estimation.core.inference.unknown import all_known
from estimation.core.rounds.topics import estimates
from tests.core.length import bounded
from tests.estimation.simulations import rows, simulated

TRIALS = 60
CELLS = [
    ("trec8", "P@10", "680", ("--fully-judged",)),
    ("cranfield", "P@10", "205", ()),
    ("cranfield", "ERR@10", "250", ()),
    ("dl2019", "P(rel=2)@10", "240", ()),
]


def played(data_dir: Path, name: str, measure: str, budget: str, *more: str) -> dict[str, float]:
    """Two to five topics in every trial."""
    drawn = ("--measure", measure, "--goal", "absolute", "--method", "query", "--budget", budget)
    (found,) = rows(simulated(data_dir / name), *drawn, "--trials", str(TRIALS), *more)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "measure", "budget", "more"), CELLS[:: bounded(3, 1)])
def test_few_topics_give_no_false_verdict(
    data_dir: Path, name: str, measure: str, budget: str, more: tuple[str, ...]
) -> None:
    found = played(data_dir, name, measure, budget, *more)
    assert found["familywise_error"] <= stats.binom.ppf(0.999, TRIALS, 0.05) / TRIALS
    assert found["rank_coverage"] >= 1.0 - stats.binom.ppf(0.999, TRIALS, 0.05) / TRIALS
    assert 0.92 < found["value_coverage"] < 0.995
    assert found["worst_run_coverage"] > 0.82


@pytest.mark.slow
@pytest.mark.parametrize(("name", "measure", "budget", "more"), CELLS[:: bounded(3, 1)])
def test_the_twin_that_believes_each_difference_alone_is_caught(
    data_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    measure: str,
    budget: str,
    more: tuple[str, ...],
) -> None:
    """By its own squares four topics that differ by the same tenth are a certainty."""
    monkeypatch.setattr(uncertainty, "WORTH", 0.0)
    known = lambda covariance, _: all_known(*covariance.shape)  # noqa: E731
    monkeypatch.setattr(estimates, "unvaried_differences", known)
    found = played(data_dir, name, measure, budget, *more)
    limit = stats.binom.ppf(0.999, TRIALS, 0.05) / TRIALS
    assert found["familywise_error"] > limit or found["worst_run_coverage"] < 0.82
