"""Tiers say what verdicts say, whatever these are, and nothing that hangs on values or on order."""

from itertools import combinations

import numpy as np
import pytest

from estimation.core.arrays import BoolArray, IntArray
from estimation.core.inference.ranks import rank_runs
from estimation.core.inference.tiers import places, tiers


def verdicts_of(runs: int, *better: tuple[int, int]) -> np.ndarray:
    found = np.zeros((runs, runs), dtype=np.int8)
    for above, below in better:
        found[above, below], found[below, above] = 1, -1
    return found


def all_of(runs: int) -> BoolArray:
    return np.ones(runs, dtype=np.bool_)


def plainly(verdicts: np.ndarray) -> list[int]:
    """By looking at every set of runs whether it is a cut."""
    runs = len(verdicts)
    cuts = [
        set(some)
        for size in range(1, runs)
        for some in combinations(range(runs), size)
        if all(verdicts[a, b] == 1 for a in some for b in set(range(runs)) - set(some))
    ]
    return [1 + sum(run not in cut for cut in cuts) for run in range(runs)]


def in_order_of_value(verdicts: np.ndarray, value: np.ndarray) -> IntArray:
    """The broken twin: a new tier wherever neighbors by value have a verdict."""
    order = np.argsort(-value, kind="stable")
    number = np.ones(len(value), dtype=np.int64)
    steps = verdicts[order[:-1], order[1:]] == 1
    number[order[1:]] += np.cumsum(steps)
    return number


@pytest.mark.parametrize("density", [0.3, 0.7, 0.9, 1.0])
def test_tiers_are_what_lies_between_all_cuts(density: float) -> None:
    """Of verdicts of any kind: open ones, circles, runs that are surely better than all others."""
    rng = np.random.default_rng([1, int(10 * density)])
    several = 0
    for _ in range(150):
        runs = int(rng.integers(1, 8))
        strength = rng.permutation(runs) + rng.normal(scale=0.7, size=runs)
        found = np.sign(np.subtract.outer(strength, strength)).astype(np.int8)
        keep = np.triu(rng.random((runs, runs)) < density, 1)
        turned = np.where(np.triu(rng.random((runs, runs)) < 0.05, 1), -1, 1)
        found = found * (keep + keep.T) * np.where(np.triu(turned, 1) != 0, turned, turned.T)
        numbers = tiers(found, all_of(runs))
        assert numbers.tolist() == plainly(found)
        several += numbers.max() > 1
        again = rng.permutation(runs)
        assert np.array_equal(tiers(found[np.ix_(again, again)], all_of(runs)), numbers[again])
    assert several > 5


def test_a_chain_of_open_comparisons_is_one_tier_though_its_ends_are_decided() -> None:
    chain = verdicts_of(4, (0, 2), (0, 3), (1, 3))
    assert tiers(chain, all_of(4)).tolist() == [1, 1, 1, 1]


def test_verdicts_that_are_not_transitive_make_no_order() -> None:
    """The first beats the second and that the third; but first and third are open, or reversed."""
    assert tiers(verdicts_of(3, (0, 1), (1, 2)), all_of(3)).tolist() == [1, 1, 1]
    assert tiers(verdicts_of(3, (0, 1), (1, 2), (2, 0)), all_of(3)).tolist() == [1, 1, 1]
    twin = in_order_of_value(verdicts_of(3, (0, 1), (1, 2)), np.array([3.0, 2.0, 1.0]))
    assert twin.tolist() == [1, 2, 3]


def test_equal_runs_share_a_tier_and_a_decided_order_is_all_tiers() -> None:
    same = verdicts_of(4, (0, 1), (0, 2), (0, 3), (1, 3), (2, 3))
    assert tiers(same, all_of(4)).tolist() == [1, 2, 2, 3]
    assert tiers(np.tril(-np.ones((3, 3), np.int8), -1) + np.triu(np.ones((3, 3), np.int8), 1),
                 all_of(3)).tolist() == [1, 2, 3]  # fmt: skip
    assert tiers(verdicts_of(5), all_of(5)).tolist() == [1] * 5


def test_runs_that_are_not_known_are_in_no_tier_and_hold_nobody_together() -> None:
    found = verdicts_of(3, (0, 2))
    assert tiers(found, all_of(3)).tolist() == [1, 1, 1]
    assert tiers(found, np.array([True, False, True])).tolist() == [1, 0, 2]
    assert tiers(found, np.zeros(3, dtype=bool)).tolist() == [0, 0, 0]
    assert tiers(np.zeros((0, 0), np.int8), all_of(0)).tolist() == []


def test_places_are_those_that_a_tier_takes_up() -> None:
    first, last = places(np.array([2, 1, 0, 2, 3]))
    assert (first.tolist(), last.tolist()) == ([2, 1, 0, 2, 4], [3, 1, 0, 3, 4])
    assert [each.tolist() for each in places(np.array([0, 0]))] == [[0, 0], [0, 0]]


@pytest.mark.slow
def test_tiers_of_estimates_are_false_as_seldom_as_verdicts() -> None:
    """Seeded: normal estimates of runs in groups; a false order of two tiers is a false verdict.

    The twin, which looks at neighbors alone, orders equal runs in most of the trials.
    """
    rng, trials = np.random.default_rng(3), 400
    truth = np.array([3.0, 3.0, 3.0, 2.0, 2.0, 0.0, 0.0, 0.0])
    tags = tuple("abcdefgh")
    false, twin_false, divided = 0, 0, 0
    above = np.subtract.outer(truth, truth) <= 0.0
    for _ in range(trials):
        value = truth + rng.normal(scale=0.25, size=8)
        found = rank_runs(value, covariance=np.eye(8) * 0.25**2, df=np.full((8, 8), 1e9), tags=tags)
        numbers = tiers(found.verdicts, all_of(8))
        false += bool(np.any(above & (np.subtract.outer(numbers, numbers) < 0)))
        divided += int(numbers.max() > 1)
        twin = in_order_of_value(np.sign(np.subtract.outer(value, value)), value)
        twin_false += bool(np.any(above & (np.subtract.outer(twin, twin) < 0)))
    assert false <= 0.05 * trials + 3 * np.sqrt(0.05 * 0.95 * trials)
    assert divided > 0.8 * trials
    assert twin_false > 0.5 * trials
