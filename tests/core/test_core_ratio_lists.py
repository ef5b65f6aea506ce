"""Lists of the runs of a pool: those of some pairs are what is left of those of all."""

import numpy as np
import pytest

from estimation.core.estimates.ratio_lines import lists_of
from tests.core.simulated_pools import simulated_pool

SOME = {"none": 0.0, "few": 0.1, "many": 0.6, "all": 1.0}


@pytest.mark.parametrize("share", SOME.values(), ids=SOME)
@pytest.mark.parametrize("last", [1, 7, 30])
def test_entries_of_pairs_stand_by_topic_run_and_rank(share: float, last: int) -> None:
    pool, _ = simulated_pool()
    pairs = np.flatnonzero(np.random.default_rng(3).random(len(pool)) < share)
    wanted = sorted(
        (int(topic) * len(pool.runs) + int(run), int(rank), int(np.searchsorted(pairs, pair)))
        for pair, topic, run, rank in zip(
            pool.entry_pair, pool.topic[pool.entry_pair], pool.run, pool.rank, strict=True
        )
        if rank <= last and np.isin(pair, pairs)
    )
    place, cell, rank, bounds = lists_of(pool, pairs, last)
    assert list(zip(cell.tolist(), rank.tolist(), place.tolist(), strict=True)) == wanted
    starts = [at for at, entry in enumerate(wanted) if not at or wanted[at - 1][0] != entry[0]]
    assert bounds.tolist() == [*starts, len(wanted)]
