"""What a step holds does not grow with the collection, as long as shards stay as large."""

import tracemalloc
from collections import defaultdict
from concurrent.futures import Future
from pathlib import Path

import pytest

from benchmarks import scaling
from estimation.core.sampling import goals
from estimation.core.shards.building import build_shards
from estimation.core.shards.designing import design_shards, draw_shards
from estimation.core.shards.running import SerialExecutor, do_steps
from estimation.core.shards.values import estimate_shards, evaluate_shards

pytestmark = pytest.mark.usefixtures("no_disk_waits")
TOPICS = 4  # of an input
KINDS = {
    "MadeTopics", "CutLines", "ShardPool", "RawSizes", "ShardSizes", "ShardDraw", "TopicValues",
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


@pytest.mark.slow
def test_no_step_holds_more_for_more_topics_in_more_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, number in {"RUNS": 6, "DEPTH": 300, "DOCUMENTS": 600}.items():
        monkeypatch.setattr(scaling, name, number)
    weighed(tmp_path / "first", 1, 1)  # what is made at first use
    few, many = (weighed(tmp_path / str(shards), shards, shards) for shards in (2, 10))
    assert set(few) >= KINDS
    assert few["ShardPool"] > 100_000
    grown = {kind: many[kind] / few[kind] for kind in KINDS}
    assert max(grown.values()) < 1.25, grown
    whole = weighed(tmp_path / "whole", 10, 1)
    assert whole["ShardPool"] > 4 * many["ShardPool"], "in one shard it is seen"
