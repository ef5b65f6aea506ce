"""A pool block by block: the same designs and draws to the bit, the same promises, less memory."""

import os
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from estimation.core.data import blocks
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.pool_ranks import number_by_rank
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import RankedLists
from estimation.core.data.restriction import of_topics
from estimation.core.inference.out_of_reach import OutOfReach
from estimation.core.measures.table import parse_measure
from estimation.core.planning import moves
from estimation.core.planning.planning import (
    expected_half_widths,
    half_width_curve,
    largest_effect,
    largest_values,
)
from estimation.core.planning.prospects import reached_by_budget
from estimation.core.planning.splits import best_split
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.overlap import plan_of_design
from estimation.core.rounds.rounds import draw_round
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.priors import Prior, make_prior
from estimation.core.sampling.random_numbers import permanent_random_numbers
from estimation.core.sampling.top_up import top_up

TOPICS, DOCUMENTS, RUNS, DEPTH = 11, 40, 6, 20
SAME = {"rel": 1e-12, "abs": 1e-13}
CASES = [
    ("documents", "DCG@10", "rank"),
    ("documents", "AP", "fusion"),
    ("documents", "nDCG@5", "scores"),
    ("preferences", "#ofSwaps", "constant"),
    ("scored", "MAE", "constant"),
]


def lists(scores: bool, runs: int = RUNS, topics: int = TOPICS) -> tuple[list[str], dict]:
    rng = np.random.default_rng(4)
    names = [f"t{topic:03}" for topic in range(topics)]
    found = {}
    for run in range(runs):
        order = np.argsort(rng.random((topics, DOCUMENTS)) + np.arange(DOCUMENTS) / 30.0, axis=1)
        docnos = np.array([b"d%02d" % each for each in order[:, :DEPTH].ravel()])
        told = np.tile(np.linspace(3.0, 0.0, DEPTH).round(), topics) if scores else None
        found[f"r{run}"] = RankedLists(tuple(names), np.arange(topics + 1) * DEPTH, docnos, told)
    return names, found


@pytest.fixture(scope="module")
def made() -> dict[str, Pool]:
    names, runs = lists(scores=False)
    documents = build_pool(names, runs, depth=DEPTH, extra={names[3]: ["nobody's"]})
    of_two = preference_pool(build_pool(names, runs, depth=6), depth=6)
    return {
        "documents": documents,
        "preferences": of_two,
        "scored": build_pool(*lists(scores=True), depth=DEPTH, scores=True),
    }


@pytest.fixture
def cut(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets no block have more entries, or pairs."""

    def to(most: int) -> None:
        monkeypatch.setattr(blocks, "MOST_ENTRIES", most)
        monkeypatch.setattr(blocks, "MOST_PAIRS", most)
        monkeypatch.setattr(moves, "AT_ONCE", 0)

    return to


def designs(pool: Pool, text: str, prior: str) -> Iterator[tuple[Prior, Design]]:
    """Of all methods and goals that there are for a measure."""
    measure, runs, rng = parse_measure(text), pool.runs, np.random.default_rng(3)
    grades = rng.integers(0, 4, size=len(pool)).astype(float) if prior == "scores" else None
    for goal in (goals.absolute(*runs), goals.pair(*runs[:2]), goals.ranking(*runs)):
        believed = make_prior(
            pool, name=prior, goal=goal, measure=measure, max_grade=3, grades=grades
        )
        for method in ("poisson", "priority", "iid", "per-query", "adaptive"):
            asked = {"goal": goal, "measure": measure, "prior": believed, "method": method}
            yield believed, make_design(pool, **asked, budget=90, batch_size=30, max_grade=3)


def bits(pool: Pool, text: str, prior: str) -> list[bytes]:
    """Designs, beliefs and samples, and which labels pairs get."""
    found = []
    for believed, design in designs(pool, text, prior):
        arrays = [believed.expected, design.size, design.steps, design.belief]
        if design.method != "adaptive":
            served = draw_round(pool, design, seed="any").served(pool)
            arrays += [served.pair, served.batch, served.probability, served.draws]
        if design.measure.family == "gain" and design.method == "poisson":
            plan = plan_of_design(pool, design, labels=1, share=0.1, further=0.5)
            arrays += [plan.least, plan.more]
        found += [each.tobytes() for each in arrays]
    return found


@pytest.mark.parametrize(("kind", "text", "prior"), CASES)
def test_designs_and_draws_have_the_same_bits_in_one_block_and_in_many(
    made: dict[str, Pool], cut: Callable, kind: str, text: str, prior: str
) -> None:
    pool = made[kind]
    whole = bits(pool, text, prior)
    for most in (1, 130, 700):
        cut(most)
        assert len(list(blocks.blocks(pool))) > 1
        assert bits(pool, text, prior) == whole


def test_a_block_that_counts_its_own_topics_alone_is_seen(
    made: dict[str, Pool], cut: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, block_of = made["documents"], blocks._block
    whole = bits(pool, "DCG@10", "rank")

    def own_topics(pool: Pool, first: int, last: int) -> blocks.PoolBlock:
        block = block_of(pool, first, last)
        topics, topic = np.unique(block.pool.topic, return_inverse=True)
        names = tuple(pool.topics[at] for at in topics)
        mine = replace(block.pool, topics=names, topic=topic.astype(np.int32))
        return blocks.PoolBlock(block.pairs, mine)

    cut(700)
    monkeypatch.setattr(blocks, "_block", own_topics)
    assert bits(pool, "DCG@10", "rank") != whole


def promised(pool: Pool, text: str, prior: str) -> list[float]:
    """All that a preview tells."""
    measure, found = parse_measure(text), [*largest_values(pool, parse_measure(text), best=3)]
    for believed, design in designs(pool, text, prior):
        about: dict[str, Any] = {"measure": measure, "prior": believed, "max_grade": 3}
        widths = expected_half_widths(pool, design, **about)
        found += [*widths.half_width, *widths.difference_half_width.ravel()]
        found += half_width_curve(pool, design, budgets=[40, 70], **about).ravel().tolist()
        if design.goal.kind != "absolute":
            continue
        table = reached_by_budget(pool, design, **about).facts()
        found += [value for line in table for value in line.values() if value is not None]
        if measure.family == "gain" and design.method == "poisson":
            split = best_split(pool, design, work=150.0)
            found += [split.pairs, split.further, split.variance]
            found += largest_effect(pool, measure, design.inclusion())
            union = top_up(design, 0.5 * design.inclusion())
            found += half_width_curve(pool, union, budgets=[20, 40], **about).ravel().tolist()
    return found


@pytest.mark.parametrize(("kind", "text", "prior"), CASES)
def test_previews_tell_the_same_in_one_block_and_in_many(
    made: dict[str, Pool], cut: Callable, kind: str, text: str, prior: str
) -> None:
    pool = made[kind]
    whole = promised(pool, text, prior)
    cut(130)
    some = replace(pool)  # which keeps nothing of what was worked out
    assert promised(some, text, prior) == pytest.approx(whole, **SAME)


def test_blocks_are_whole_topics_in_the_order_of_pairs(
    made: dict[str, Pool], cut: Callable
) -> None:
    pool = made["documents"]
    for most in (1, 130, 700):
        cut(most)
        found = list(blocks.blocks(pool))
        assert np.concatenate([np.arange(len(pool))[each.pairs] for each in found]).tolist() == [
            *range(len(pool))
        ]
        topics = [set(each.pool.topic.tolist()) for each in found]
        assert sum(map(len, topics)) == len(set().union(*topics)), "no topic is in two"
        assert all(
            len(of) == 1 or len(each.pool.run) <= most
            for of, each in zip(topics, found, strict=True)
        )
        assert all(np.shares_memory(each.pool.rank, pool.rank) for each in found)


def test_counts_of_lists_are_those_of_the_whole(made: dict[str, Pool], cut: Callable) -> None:
    pool, rng = made["documents"], np.random.default_rng(5)
    lengths, ranks = pool.list_lengths, number_by_rank(pool)
    eligible = rng.random(len(pool)) < 0.4
    measure = parse_measure("DCG@10")
    missing = OutOfReach(pool, eligible).missing(measure)
    assert missing.any()
    cut(130)
    some = replace(pool)
    assert (some.list_lengths == lengths).all()
    assert (number_by_rank(some) == ranks).all()
    assert (OutOfReach(some, eligible).missing(measure) == missing).all()


# ------------------------------------------------------------------------------------- memory


def peak(work: Callable[[], object]) -> int:
    """The most bytes that are allocated at once while something is done."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def deep_pool(runs: int, topics: int = 40, documents: int = 100) -> Pool:
    """All runs return all documents: so many entries for every pair."""
    pairs = topics * documents
    ranks = np.arange(documents, dtype=np.int32)
    rank = np.stack([np.roll(ranks, run) for run in range(runs)], axis=1) + 1
    return Pool(
        topics=tuple(f"t{topic:04}" for topic in range(topics)),
        runs=tuple(f"r{run:03}" for run in range(runs)),
        depth=documents,
        topic=np.repeat(np.arange(topics, dtype=np.int32), documents),
        docno=np.tile(np.array([b"d%04d" % each for each in range(documents)]), topics),
        indptr=np.arange(pairs + 1) * runs,
        run=np.tile(np.arange(runs, dtype=np.int32), pairs),
        rank=np.tile(rank.ravel(), topics).astype(np.int32),
    )


def designed(pool: Pool, text: str = "DCG@100", method: str = "poisson") -> tuple[Prior, Design]:
    goal, measure = goals.absolute(*pool.runs[:3]), parse_measure(text)
    prior = make_prior(pool, name="rank", goal=goal, measure=measure, max_grade=1)
    asked = {"goal": goal, "measure": measure, "prior": prior, "method": method}
    return prior, make_design(pool, **asked, budget=400, batch_size=100)


def previewed(pool: Pool, text: str) -> None:
    prior, design = designed(pool, text)
    about = {"measure": design.measure, "prior": prior, "max_grade": 1}
    expected_half_widths(pool, design, **about)
    reached_by_budget(pool, design, **about)
    largest_values(pool, design.measure, best=1)
    largest_effect(pool, design.measure, design.inclusion())


def drawn(pool: Pool) -> None:
    _, design = designed(pool)
    draw_round(pool, design, seed="any")


def drawn_first(pool: Pool) -> None:
    _, design = designed(pool, method="adaptive")
    draw_round(pool, AdaptivePlan(design, 1), seed="any")


WORK = {
    "preview": lambda pool: previewed(pool, "DCG@100"),
    "preview of a ratio": lambda pool: previewed(pool, "AP"),
    "draw": drawn,
    "first batch": drawn_first,
    "random numbers": lambda pool: permanent_random_numbers(pool, seed="any"),
}
MOST_BYTES = {"preview": 90, "draw": 80, "first batch": 110, "random numbers": 30}
"""For each pair more. Before there were blocks it were 238, 189, 330 and 145."""


@pytest.mark.parametrize("kind", ["preview", "preview of a ratio", "draw", "first batch"])
def test_memory_does_not_grow_with_entries(cut: Callable, kind: str) -> None:
    """Six times as many entries for as many pairs: without blocks it is 1.5 to 10 numbers each."""
    cut(20_000)
    work = WORK[kind]
    work(deep_pool(8))  # what is made at first use
    few, many = deep_pool(8, topics=150), deep_pool(48, topics=150)
    grown = (peak(lambda: work(many)) - peak(lambda: work(few))) / (8 * len(many.run))
    assert grown < 0.8, grown


@pytest.mark.parametrize("kind", MOST_BYTES)
def test_a_pair_takes_a_small_number_of_bytes(cut: Callable, kind: str) -> None:
    cut(10_000)
    work = WORK[kind]
    work(deep_pool(4))
    small, large = deep_pool(4, topics=400), deep_pool(4, topics=1600)
    grown = (peak(lambda: work(large)) - peak(lambda: work(small))) / (len(large) - len(small))
    assert grown < MOST_BYTES[kind], grown


def test_the_first_batch_needs_nothing_that_is_learned_from() -> None:
    pool = deep_pool(8)
    drawn_first(pool)
    assert "features" not in pool.kept


def test_some_topics_are_taken_without_a_number_for_entries_of_others() -> None:
    """A round is played on some topics of a large pool."""
    pool = deep_pool(48, topics=300)
    taken = peak(lambda: of_topics(pool, np.arange(10))) / len(pool.run)
    assert taken < 2, taken


def resident(path: Path) -> int:
    """Bytes of a mapped file that count as memory of this process."""
    total, mine = 0, False
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines():
        name, *rest = line.split()
        if not name.endswith(":"):
            mine = line.endswith(str(path))
        elif mine and name == "Rss:":
            total += int(rest[0]) * 1024
    return total


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="needs Linux's /proc")
def test_what_was_looked_at_of_a_mapped_pool_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "pool"
    deep_pool(100, topics=300).save(path)
    pool = Pool.load(path, check=False)
    size, most, total = path.stat().st_size, 0, 0
    for block in blocks.blocks(pool):
        total += int(block.pool.rank.sum()) + int(block.pool.run.sum())
        most = max(most, resident(path))
    assert most < size / 3
    again = int(pool.rank.sum()) + int(pool.run.sum())
    assert again == total, "the pages are those of the file"
    assert resident(path) > size / 2, "it is seen where nothing is given back"
