"""What a step holds does not grow with the collection, as long as shards stay as large."""

import tracemalloc
import weakref
from collections import defaultdict
from concurrent.futures import Future
from pathlib import Path

import pytest

from benchmarks import scaling
from estimation.core.sampling import goals
from estimation.core.shards import pools
from estimation.core.shards.building import build_shards
from estimation.core.shards.designing import design_shards, draw_shards
from estimation.core.shards.running import SerialExecutor, do_steps
from estimation.core.shards.values import estimate_shards, evaluate_shards
from tests.core.sharded_pools import DEPTH, whole_pool, write_inputs, write_judgments

pytestmark = pytest.mark.usefixtures("no_disk_waits")
TOPICS = 4  # of an input
KINDS = {
    "MadeTopics", "CutLines", "PoolLines", "RawSizes", "ShardSizes", "ShardDraw", "TopicValues",
    "SampledTerms",
}  # fmt: skip


class Weighed(SerialExecutor):
    """Does what it is given at once, and notes the most bytes that each kind of step held."""

    def __init__(self) -> None:
        self.most: dict[str, int] = defaultdict(int)

    def submit(self, fn, /, *args, **kwargs) -> Future:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        future = super().submit(fn, *args, **kwargs)
        _, peak = tracemalloc.get_traced_memory()
        kind = type(args[0]).__name__
        self.most[kind] = max(self.most[kind], peak - before)
        return future


def weighed(folder: Path, inputs: int, shards: int) -> dict[str, int]:
    """The most bytes of each kind of step of a campaign."""
    executor, topics = Weighed(), inputs * TOPICS
    tracemalloc.start()
    try:
        blocks = [(first, TOPICS) for first in range(0, topics, TOPICS)]
        lines, judgments = (
            do_steps(executor, [scaling.MadeTopics(folder, *block, judged) for block in blocks])
            for judged in (False, True)
        )
        pool = build_shards(executor, folder, lines, shards=shards, depth=scaling.DEPTH)
        design = design_shards(
            executor, pool, goal=goals.absolute(*pool.frame.runs), measure=scaling.DESIGN,
            budget=5 * topics, batch_size=5 * topics, reported=scaling.MEASURES,
        )  # fmt: skip
        sample = draw_shards(executor, design, seed="any")
        evaluate_shards(executor, pool, judgments, measures=scaling.MEASURES)
        estimate_shards(executor, pool, sample, judgments, measure=scaling.DESIGN, unlisted=0)
    finally:
        tracemalloc.stop()
    return executor.most


def held(folder: Path, inputs: int, shards: int) -> dict[str, int]:
    """The same twice, and the less of each kind: what another thread of the process, left by
    another test, allocates meanwhile counts as well, but hardly ever in both."""
    one, other = (weighed(folder / turn, inputs, shards) for turn in ("one", "other"))
    return {kind: min(most, other[kind]) for kind, most in one.items()}


@pytest.mark.slow
def test_no_step_holds_more_for_more_topics_in_more_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, number in {"RUNS": 6, "DEPTH": 300, "DOCUMENTS": 600}.items():
        monkeypatch.setattr(scaling, name, number)
    weighed(tmp_path / "first", 1, 1)  # what is made at first use
    few, many = (held(tmp_path / str(shards), shards, shards) for shards in (2, 10))
    assert set(few) >= KINDS
    assert few["PoolLines"] > 100_000
    grown = {kind: many[kind] / few[kind] for kind in KINDS}
    assert max(grown.values()) < 1.25, grown
    whole = weighed(tmp_path / "whole", 10, 1)
    assert whole["PoolLines"] > 4 * many["PoolLines"], "in one shard it is seen"


@pytest.mark.slow
def test_values_take_no_room_for_topics_of_other_shards(tmp_path: Path) -> None:
    """All topics times all runs in every shard would be too much: here 800 KB for each measure."""
    inputs, pool = write_inputs(tmp_path / "inputs"), whole_pool()
    judgments = [write_judgments(tmp_path, pool, least=1)]
    many = [f"u{number:05}" for number in range(20_000)]
    most = {}
    for others, shards in (([], 1), (many, 60)):
        executor, folder = Weighed(), tmp_path / str(shards)
        topics = [*pool.topics, *others]
        built = build_shards(executor, folder, inputs, shards=shards, depth=DEPTH, topics=topics)
        assert built.pairs == len(pool)
        tracemalloc.start()
        evaluate_shards(executor, built, judgments, measures=scaling.MEASURES)
        tracemalloc.stop()
        most[shards] = executor.most["TopicValues"]
    assert most[60] < max(1.25 * most[1], 500_000), most


def test_one_input_is_mapped_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mapped pages are no allocation, so that `Weighed` does not see them."""
    mapped: list[weakref.ref] = []
    at_once = []
    read = pools.lines_of

    def watched(cut: Path, shard: int) -> dict:
        found = read(cut, shard)
        mapped.append(weakref.ref(found["docno"]))
        at_once.append(sum(each() is not None for each in mapped))
        return found

    monkeypatch.setattr(pools, "lines_of", watched)
    inputs = write_inputs(tmp_path / "inputs", 12)
    build_shards(SerialExecutor(), tmp_path, inputs, shards=3, depth=DEPTH)
    assert len(at_once) == 36
    assert max(at_once) == 2, "the one before goes when the next has come"
