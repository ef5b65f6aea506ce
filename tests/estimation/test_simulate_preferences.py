"""``manage.py simulate`` with preferences: every two documents of a list, by their grades."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError

from estimation.core import rank_scores
from estimation.core.data.pool import build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.measures.table import parse_measure
from estimation.core.sampling import goals
from estimation.research.simulation import true_values
from estimation.research.trials.settings import Assessors, Setting
from tests.estimation.simulations import Simulate, rows, simulated, write_collection

SWAPS = ("--measure", "#ofSwaps", "--depth", "5")


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    return simulated(write_collection(tmp_path))


@pytest.mark.slow
def test_methods_that_estimate_preferences_are_played(simulate: Simulate) -> None:
    found = rows(simulate, *SWAPS, "--budget", "40", "--trials", "5")
    assert [row["method"] for row in found] == ["adaptive", "poisson", "iid"]
    assert all(row["measure"] == "#ofSwaps" for row in found)
    assert all(row["rmse"] > 0.0 for row in found)
    every = rows(simulate, *SWAPS, "--method", "all", "--budget", "40", "--trials", "1")
    assert {row["method"] for row in every} == {
        "adaptive", "poisson", "priority", "iid", "per-query",
    }  # fmt: skip
    heading = simulate("--measure", "wSwaps", "--budget", "40").splitlines()[0]
    assert heading.startswith("wSwaps, 3 runs, 3 topics, depth 10")


@pytest.mark.slow
def test_everything_judged_is_exact(simulate: Simulate) -> None:
    pairs = rows(simulate, *SWAPS, "--trials", "1")[0]["budget"] * 10
    with pytest.raises(
        CommandError, match=r"at most \d+, not 9999: the pool has (\d+) pairs"
    ) as told:
        simulate(*SWAPS, "--budget", "9999")
    most = str(told.value).split("at most ")[1].split(",")[0]
    assert int(most) <= pairs
    for method in ("adaptive", "poisson"):
        (row,) = rows(simulate, *SWAPS, "--budget", most, "--method", method, "--trials", "2")
        assert row["rmse"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--depth", "1"], "--depth must be at least 2 for #ofSwaps, not 1"),
        (["--prior", "fusion"], "--prior must be constant for #ofSwaps, not 'fusion'"),
        (["--predictions", "a"], "--predictions are of single documents; #ofSwaps compares two"),
        (["--method", "active"], "--method active does not estimate #ofSwaps"),
    ],
)
def test_what_does_not_go_with_preferences(
    simulate: Simulate, more: list[str], message: str
) -> None:
    with pytest.raises(CommandError, match=message):
        simulate("--measure", "#ofSwaps", *more)


def test_assessors_who_err_make_swaps_of_what_are_none() -> None:
    """The truth is what would be told if as many judged as one likes."""
    names = [f"d{number}" for number in range(5)]
    lists = {"1": {name: -float(number) for number, name in enumerate(names)}}
    pool = preference_pool(build_pool(["1"], {"a": rank_scores(lists)}, depth=5), depth=5)
    grades, measure = np.array([2, 1, 0, 2, 1, 0, 2, 1, 0, 2]), parse_measure("#ofSwaps")
    setting = Setting(
        pool, grades, 2, goals.absolute("a"), measure, budget=5, prior="constant",
        assessors=Assessors(noise=0.3),
    )  # fmt: skip
    assert len(list(combinations(names, 2))) == len(pool)
    swapped = np.where(grades == 0, 0.7, 0.15)  # of a pair whose first document is ranked first
    assert setting.truth() == pytest.approx([swapped.mean()])
    right = Setting(pool, grades, 2, goals.absolute("a"), measure, budget=5, prior="constant")
    assert right.truth() == pytest.approx(true_values(pool, grades=grades, measure=measure))
