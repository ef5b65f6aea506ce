"""Where nearly everything is judged, one document that was missed is neither a verdict nor a miss.

Verdicts tell no tie apart by it, and intervals of values reach up to it.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.judgments.material import noisy_machine
from estimation.core.arrays import IntArray
from estimation.core.inference.missed import Missed
from estimation.core.inference.outlook import Outlook
from estimation.core.rounds import limits
from estimation.core.rounds.adaptive import answers
from estimation.core.rounds.adaptive.outlooks import Missing
from estimation.management.judged_collections import grades_of, read_collection
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


def predicted(folder: Path, file: Path) -> Path:
    """Predicted grades of a modeled machine for what is judged of TREC-8."""
    read = read_collection(folder / "runs", folder / "qrels.txt", after_each=lambda _: None)
    collection = read.only_fully_judged(10)
    pool = collection.pool(depth=10)
    grades, _ = grades_of(pool, collection.grades)
    said = noisy_machine(pool, grades, max_grade=collection.max_grade, seed="2026")
    lines = zip(pool.topic.tolist(), pool.docno.tolist(), said.tolist(), strict=True)
    file.write_text("".join(f"{pool.topics[t]} 0 {d.decode()} {g:.6f}\n" for t, d, g in lines))
    return file


def with_predictions(data_dir: Path, tmp_path: Path) -> float:
    """The share of trials with any false verdict, with predictions that leave little doubt."""
    file = predicted(data_dir / "trec8", tmp_path / "predicted.txt")
    given = (*NEARLY_ALL, "adaptive", "--predictions", str(file), "--seed", "2026")
    (found,) = rows(simulated(data_dir / "trec8"), *given)
    assert found["true_verdicts"] > 3800, "of 4,005"
    return float(found["familywise_error"])


@pytest.mark.slow
def test_two_documents_that_were_missed_tell_no_tie_apart(data_dir: Path, tmp_path: Path) -> None:
    """The model gives next to no chance to either of them, which are relevant in every trial."""
    assert with_predictions(data_dir, tmp_path) == 0.0


@pytest.mark.slow
def test_the_twin_that_trusts_standard_errors_there_tells_it_apart(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = limits._of_missed

    def errors_alone(missed: Missed | None, confidence: float) -> dict[str, Any]:
        return {**told(missed, confidence), "missed": None}

    monkeypatch.setattr(limits, "_of_missed", errors_alone)
    assert with_predictions(data_dir, tmp_path) > 0.05


def verdicts_of_a_third(data_dir: Path) -> float:
    """True ones of a trial, of 1,830, a third of a pool judged of which a third is relevant."""
    given = ("--measure", "DCG@10", "--goal", "ranking", "--budget", "1000", "--method", "adaptive")
    (found,) = rows(simulated(data_dir / "dl2019"), *given, "--trials", str(TRIALS))
    assert found["familywise_error"] == 0.0
    assert found["difference_coverage"] > 0.94
    return float(found["true_verdicts"])


@pytest.mark.slow
def test_what_is_expected_of_documents_that_are_not_judged_is_not_missed(data_dir: Path) -> None:
    assert verdicts_of_a_third(data_dir) > 1050


@pytest.mark.slow
def test_the_twin_that_takes_all_of_it_for_missed_tells_a_fifth_less(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = answers._Expected.of

    def all_of_it(missing: Missing, outlook: Outlook, pairs: IntArray) -> answers._Expected:
        return replace(
            expected(missing, outlook, pairs), beyond=outlook.moments(missing.measure, pairs)
        )

    monkeypatch.setattr(answers._Expected, "of", all_of_it)
    assert verdicts_of_a_third(data_dir) < 950


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
    monkeypatch.setattr(Missed, "p_values", lambda self, _: np.zeros_like(self.squares))
    monkeypatch.setattr(Missed, "least_margins", lambda self, **_: np.zeros_like(self.squares))
    (found,) = rows(simulated(data_dir / "trec8"), *NEARLY_ALL, "poisson")
    assert found["familywise_error"] > 0.4
    assert found["difference_coverage"] < 0.94


@pytest.mark.slow
def test_active_twins_without_what_was_missed_are_caught(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tie told apart, where there is none with it; and a run that is hardly ever covered."""
    monkeypatch.setattr(Missed, "p_values", lambda self, _: np.zeros_like(self.squares))
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
