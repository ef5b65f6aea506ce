"""``simulate --stop``: when rounds would stop by a rule, and whether what is told is true."""

from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError

from estimation.core.arrays import BoolArray
from estimation.research.trials.honesty import Claims, Standings, Truth, check
from tests.estimation.simulations import Simulate, rows, simulated, write_collection

SOME = ("--budget", "30", "--trials", "10", "--looks", "4", "--method", "poisson")


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    return simulated(write_collection(tmp_path))


@pytest.mark.slow
def test_a_rule_that_is_easy_stops_early_and_one_that_is_not_never(simulate: Simulate) -> None:
    (easy,) = rows(simulate, *SOME, "--stop", "width=1000")
    told = easy["stops"]["told"]
    assert told["early"] > 0.5
    assert told["judged_pairs"] < easy["judged_pairs"]
    assert told["honesty"]["familywise_error"] is not None
    (never,) = rows(simulate, *SOME, "--stop", "width=0.000001")
    assert never["stops"]["told"]["early"] == 0.0
    assert never["stops"]["told"]["judged_pairs"] == never["judged_pairs"]
    (without,) = rows(simulate, *SOME)
    assert without["stops"] is None


@pytest.mark.slow
def test_the_twin_stops_no_later_and_both_are_printed(simulate: Simulate) -> None:
    (found,) = rows(simulate, *SOME, "--stop", "width=4")
    told, one_look = found["stops"]["told"], found["stops"]["one_look"]
    assert one_look["judged_pairs"] <= told["judged_pairs"]
    lines = simulate(*SOME, "--stop", "width=4").splitlines()
    assert sum(line.endswith("all looks") for line in lines) == 1
    assert sum(line.endswith(" one look") for line in lines) == 1


@pytest.mark.slow
def test_with_everything_negligible_the_best_is_known_soon(simulate: Simulate) -> None:
    (matter,) = rows(simulate, *SOME, "--stop", "best")
    (not_,) = rows(simulate, *SOME, "--stop", "best", "--negligible", "1000")
    assert not_["stops"]["told"]["judged_pairs"] < matter["stops"]["told"]["judged_pairs"]
    assert not_["rmse"] == matter["rmse"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stop", "best"], "--stop needs several looks; say how many with --looks"),
        ([*SOME, "--stop", "soon"], "--stop must be best, top=M or width=W, not 'soon'"),
        ([*SOME, "--stop", "width=0"], "--stop width=W needs a number above 0, not '0'"),
        ([*SOME, "--stop", "top=none"], "--stop top=M must be a whole number"),
        ([*SOME, "--negligible", "-1"], "--negligible must be 0, or a difference above 0"),
    ],
)
def test_bad_rules(simulate: Simulate, arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        simulate(*arguments)


@pytest.mark.slow
@pytest.mark.parametrize(("apart", "false"), [(0.5, False), (1.5, True)])
def test_runs_that_are_falsely_called_equivalent_are_counted(apart: float, false: bool) -> None:
    """Where they differ by more than what is negligible, which is 1."""
    alike: BoolArray = ~np.eye(2, dtype=np.bool_)
    none, ranks = np.zeros((2, 2), np.int8), np.array([1, 1])
    standings = Standings(none, ranks, ranks + 1, alike, 1.0)
    claims = Claims(np.zeros(2), np.full(2, 9.0), np.ones(2, np.bool_), standings)
    found = check([claims], Truth.of(np.array([1.0, 1.0 + apart])))
    assert found.order is not None
    assert found.order.any_false == false
