"""Values of ratios are covered where many topics have few relevant documents, and few are found."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimation.core.estimates.ratio_labels import BiasLeft
from estimation.core.inference import ratio_outlook, second_order
from estimation.core.rounds.adaptive import ratios
from estimation.core.rounds.adaptive.beyond import Beyond
from tests.estimation.simulations import rows, simulated

ROUND = (
    "--measure", "nDCG@10", "--goal", "ranking", "--method", "adaptive", "--budget", "3000",
    "--budget-unit", "pairs", "--depth", "50", "--trials", "4", "--seed", "2026",
)  # fmt: skip


@pytest.fixture(scope="module")
def usual(data_dir: Path) -> dict[str, Any]:
    """What no twin has a part in."""
    (found,) = rows(simulated(data_dir / "cranfield"), *ROUND)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("twin", [False, True])
def test_values_allow_for_a_bias_that_few_finds_deny(
    data_dir: Path, usual: dict[str, Any], monkeypatch: pytest.MonkeyPatch, twin: bool
) -> None:
    """The twin goes by the bias that finds tell, however few they are.

    And it knows nothing of what topics without a find hold, of counts that are not taken below what
    was found, and of second orders, which by themselves make intervals here long enough; and it
    divides estimates by estimates, whatever is known of these, which makes the bias twice as large.
    """
    if twin:
        monkeypatch.setattr(ratio_outlook, "BENT", 0.0)
        monkeypatch.setattr(ratios, "EXPECTED", 1e-9)
        monkeypatch.setattr(Beyond, "told_low", lambda _, told, *_given: np.zeros(told.shape[1]))
        monkeypatch.setattr(ratios, "lowered", lambda _tangent, _measure, told: 0.0 * told[0])
        monkeypatch.setattr(second_order, "LEAST_TOPICS", 10**9)
    found = rows(simulated(data_dir / "cranfield"), *ROUND)[0] if twin else usual
    assert found["value_coverage"] < 0.9 if twin else found["value_coverage"] > 0.95
    assert found["true_verdicts"] > 140.0, "differences have no part in it"
    assert found["familywise_error"] == 0.0


@pytest.mark.slow
def test_what_is_told_more_than_sums_say_would_cost_verdicts(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin of these verdicts: values here are too high, which a model's bias has already."""
    (told,) = rows(simulated(data_dir / "cranfield"), "--measure", "nDCG", *ROUND[2:])

    def told_low_or_high(
        self: Beyond, told: np.ndarray, ratios: np.ndarray, share: np.ndarray
    ) -> np.ndarray:
        there = np.minimum(self.times * ratios, 1.0 / len(share)) * share[:, None]
        return np.asarray((told - there)[self.topics].sum(axis=0))

    monkeypatch.setattr(Beyond, "told_low", told_low_or_high)
    monkeypatch.setattr(ratios, "lowered", lambda _tangent, _measure, told: 0.0 * told[0])
    monkeypatch.setattr(BiasLeft, "further_down", property(lambda left: left.told_low))
    (found,) = rows(simulated(data_dir / "cranfield"), "--measure", "nDCG", *ROUND[2:])
    assert found["true_verdicts"] < 0.9 * told["true_verdicts"]
