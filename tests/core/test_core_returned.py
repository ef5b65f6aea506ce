"""Means over the runs of a pair: equal to the plain formula, kept or not, whatever the others."""

import numpy as np
import pytest

from estimation.core.arrays import FloatArray
from estimation.core.data import returned
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.returned import Returned, returned_by


def pool_of(runs: int, extra: bool = False) -> Pool:
    """Pairs that one run returns, and pairs that all do; with `extra`, also some that none does."""
    rng = np.random.default_rng(runs)
    docnos = np.array([f"d{number:03}".encode() for number in range(200)])
    lists = {}
    for run in range(runs):
        best = np.argsort(np.arange(200) + rng.exponential(30.0, 200))[:40]
        lists[f"run{run:03}"] = RankedLists(("t",), np.array([0, 40]), docnos[best])
    return build_pool(["t"], lists, depth=40, extra={"t": ["none", "neither"]} if extra else None)


def plainly(pool: Pool, of_all: FloatArray, of_few: FloatArray) -> FloatArray:
    there = pool.by_pair(np.ones(len(pool.run))).toarray()
    number = there.sum(axis=1)
    few = number**2 <= len(pool.runs)
    return there @ of_all / np.maximum(number, 1) + few * (there @ of_few) / np.maximum(number, 1)


@pytest.mark.parametrize("runs", [1, 3, 8, 9, 40, 130])
@pytest.mark.parametrize("extra", [False, True])
def test_means_are_those_of_the_plain_formula(
    runs: int, extra: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(returned, "AT_ONCE", 7)
    pool, rng = pool_of(runs, extra), np.random.default_rng(2)
    of_all, of_few = rng.normal(size=(2, runs))
    found = Returned.of(pool, np.arange(len(pool))).means(of_all, of_few)
    assert found == pytest.approx(plainly(pool, of_all, of_few), rel=1e-12, abs=1e-12)
    if runs > 8:
        assert 0 < len(Returned.of(pool, np.arange(len(pool))).many) < len(pool)


def test_the_bits_depend_neither_on_other_pairs_nor_on_what_is_kept() -> None:
    pool, rng = pool_of(40), np.random.default_rng(3)
    of_all, of_few = rng.normal(size=(2, 40))
    whole = Returned.of(pool, np.arange(len(pool))).means(of_all, of_few)
    some = rng.permutation(len(pool))[:50]
    for keep in (True, True, False):
        found = returned_by(pool, some, keep=keep).means(of_all, of_few)
        assert found.tolist() == whole[some].tolist()
    assert returned_by(pool, some.copy(), keep=True) is returned_by(pool, some, keep=True)


def test_little_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = pool_of(40)
    size = returned_by(pool, np.arange(60), keep=True).nbytes
    monkeypatch.setattr(returned, "MOST_KEPT", 3 * size)
    for first in range(10):
        returned_by(pool, np.arange(first, first + 30), keep=True)
    kept = sum(each.nbytes for each in pool.kept["returned"].values())
    assert 0 < kept <= 3 * size
    assert len(pool.kept["returned"]) < 10
    monkeypatch.setattr(returned, "MOST_KEPT", 0)
    last = returned_by(pool, np.arange(60), keep=True)
    assert list(pool.kept["returned"].values()) == [last]
