"""Some runs of a pool: their entries are what they were, and all pairs stay."""

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import PoolError, RankedLists
from estimation.core.data.restriction import restricted
from estimation.core.measures.table import parse_measure
from tests.core.ratio_pools import shuffled

TOPICS = ["1", "2", "3"]


@pytest.fixture
def lists() -> dict[str, RankedLists]:
    return {f"run{seed}": shuffled(seed, TOPICS, 12) for seed in range(5)}


def same(one: Pool, other: Pool) -> bool:
    return one.digest == other.digest


def test_it_is_the_pool_of_these_runs_with_all_pairs(lists: dict[str, RankedLists]) -> None:
    pool = build_pool(TOPICS, lists, depth=6)
    some = ["run1"]
    extra = {
        topic: [name.decode() for name in pool.docno[pool.topic == place].tolist()]
        for place, topic in enumerate(pool.topics)
    }
    built = build_pool(TOPICS, {tag: lists[tag] for tag in some}, depth=6, extra=extra)
    assert same(restricted(pool, some), built)
    without = build_pool(TOPICS, {tag: lists[tag] for tag in some}, depth=6)
    assert not same(restricted(pool, some), without), "the twin drops pairs that none returns"


def test_weights_of_the_runs_that_stay_are_the_same(lists: dict[str, RankedLists]) -> None:
    pool = build_pool(TOPICS, lists, depth=6)
    some = sorted(lists)[::2]
    measure = parse_measure("DCG@5")
    before = pool.weights(measure).toarray()[:, [pool.run_index(tag) for tag in some]]
    assert np.array_equal(restricted(pool, some).weights(measure).toarray(), before)


def test_all_runs_give_the_pool_itself(lists: dict[str, RankedLists]) -> None:
    pool = build_pool(TOPICS, lists, depth=6)
    assert same(restricted(pool, pool.runs), pool)


@pytest.mark.parametrize("runs", [[], ["nobody"]])
def test_what_is_no_run_is_refused(runs: list[str], lists: dict[str, RankedLists]) -> None:
    with pytest.raises(PoolError):
        restricted(build_pool(TOPICS, lists, depth=6), runs)
