"""What is kept with a pool is of what was asked for, and little."""

import numpy as np

from estimation.core.inference import out_of_reach
from estimation.core.inference.out_of_reach import OutOfReach
from estimation.core.inference.slack import slack
from estimation.core.measures.table import parse_measure
from tests.core.test_core_slack import DEEP, deep_pool


def test_what_is_kept_with_a_pool_is_of_these_pairs_and_no_others() -> None:
    pool, other = deep_pool(), deep_pool()
    few = np.arange(len(pool)) % 10 > 0
    measures = [parse_measure(text) for text in ("DCG@12", "P@4")]
    asked = [
        (eligible, measure, scale) for eligible in (DEEP, few) for measure in measures
        for scale in (1, 2)
    ]  # fmt: skip
    alone = [
        slack(OutOfReach(other, eligible), measure, max_grade=scale)
        for eligible, measure, scale in asked
    ]
    for _ in range(2):
        for (eligible, measure, scale), expected in zip(asked, alone, strict=True):
            found = slack(OutOfReach.of(pool, eligible), measure, max_grade=scale)
            assert found.tolist() == expected.tolist()
    assert not found.flags.writeable
    assert slack(OutOfReach.of(pool, few.copy()), measure, max_grade=scale) is found


def test_little_is_kept_with_a_pool() -> None:
    pool = deep_pool()
    first, *rest = [np.arange(len(pool)) % number > 0 for number in range(2, 8)]
    kept = OutOfReach.of(pool, first)
    for eligible in rest:
        assert OutOfReach.of(pool, first) is kept  # used again and again, it stays
        OutOfReach.of(pool, eligible)
    assert len(pool.kept["out of reach"]) == out_of_reach.MOST_KEPT < 1 + len(rest)
