"""Lists of the runs of a pool: those of some pairs are what is left of those of all."""

import numpy as np
import pytest

from estimation.core.data.labels import LabelRows
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.estimates import ratios
from estimation.core.estimates.ratio_frames import Frame, Gains, lists_of
from estimation.core.estimates.ratio_lines import Numerator
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.draws import draw
from tests.core.ratio_pools import (
    AP,
    RATIOS,
    TOPICS,
    design_for,
    grades_of,
    shuffled,
)
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


def of_all_lengths(*, as_long: bool) -> Pool:
    """Runs that return 20 documents of every topic, or ever fewer from topic to topic."""
    runs = {}
    for seed, tag in enumerate(["one", "three", "two"]):
        lists = shuffled(seed, TOPICS, 40)
        some = [lists.docnos[40 * at : 40 * at + 20 - (not as_long) * at] for at in range(20)]
        bounds = np.cumsum([0, *map(len, some)])
        runs[tag] = RankedLists(tuple(TOPICS), bounds, np.concatenate(some))
    return build_pool(TOPICS, runs, depth=20)


@pytest.mark.parametrize("as_long", [True, False], ids=["as long as another", "of all lengths"])
def test_neighbors_in_lists_are_those_of_plain_loops(as_long: bool) -> None:
    pool, rng = of_all_lengths(as_long=as_long), np.random.default_rng(5)
    share = rng.random(len(pool)) * (rng.random(len(pool)) < 0.5)
    gains = Gains(np.ones(1), share[None], np.arange(len(pool)), rng.uniform(0.2, 1.0, len(pool)))
    frame = Frame.of(pool, AP, gains, None)
    slope = Numerator.of(frame, AP).slope
    for entry in range(0, len(slope), 7):
        of_list = np.flatnonzero(frame.cell == frame.cell[entry])
        others = of_list[of_list != entry]
        shares = 1.0 / np.maximum(frame.rank[others], frame.rank[entry])
        near = (frame.expanded[frame.place[others]] * shares).sum()
        assert slope[entry] == pytest.approx(1.0 / frame.rank[entry] + near, rel=1e-12)
    cells = frame.per_cell(slope)
    for cell in np.unique(frame.cell):
        total = sum(slope[frame.cell == cell].tolist())
        assert cells.ravel()[cell] == total


@pytest.mark.parametrize("repeated", [0.0, 0.3], ids=["one label", "some have two"])
def test_estimates_are_the_same_from_lists_of_all_pairs_and_of_those_that_count(
    repeated: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing that a pair without any utility adds is anything but 0."""
    pool = of_all_lengths(as_long=False)
    design = design_for(pool, "poisson", 200)
    sample, rng = draw(pool, design, seed="lists"), np.random.default_rng(6)
    pair = np.repeat(sample.pair, 1 + (rng.random(len(sample.pair)) < repeated))
    grade = np.minimum(grades_of(pool)[pair] + (rng.random(len(pair)) < 0.1), 3)
    found = []
    for many in (0, 10**6):
        monkeypatch.setattr(ratios, "MANY", many)
        told = evaluate(
            pool,
            PairRound(design, sample),
            labels=LabelRows(pair, grade),
            measures=RATIOS,
            max_grade=3,
        )
        found.append(told.results)
    for few, all_pairs in zip(*found, strict=True):
        one, other = few.estimate, all_pairs.estimate
        for name in ("value", "covariance", "low", "high"):
            assert np.array_equal(getattr(one, name), getattr(other, name)), (few.measure, name)
        assert np.array_equal(few.ratio_bias, all_pairs.ratio_bias)
