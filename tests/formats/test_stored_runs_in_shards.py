"""Stored runs pooled in shards: the pool of all of them, whatever it holds, and a shard's room."""

import io
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.preferences import preference_pool
from estimation.core.data.ranked_lists import PoolError, RankedLists
from estimation.core.shards.frames import ShardFrame
from estimation.core.shards.joining import JoinedPool, join_shards
from estimation.core.shards.running import SerialExecutor, do_steps
from estimation.formats.runs import RunFile, load_lists, read_some_lists, save_run
from estimation.formats.shard_inputs import PoolStoredRuns
from tests.core.sharded_pools import DEPTH, NAMES, NUMBERS, whole_runs

TOPICS = tuple(name.decode() for name in NAMES.tolist())
KINDS = {
    "documents": {},
    "scored": {"scores": True},
    "preferences": {"preferences": True},
}


def store(folder: Path, tag: str, lists: RankedLists) -> Path:
    """A run as the site stores it."""
    scores = np.arange(len(lists.docnos), 0.0, -1.0) if lists.scores is None else lists.scores
    path = folder / f"{tag}.stored"
    save_run(path, RunFile(tag, lists, scores, len(scores), 0))
    return path


def stored_runs(folder: Path) -> tuple[Path, ...]:
    """Runs that know more documents than are pooled."""
    folder.mkdir(exist_ok=True)
    return tuple(store(folder, tag, lists) for tag, lists in sorted(whole_runs().items()))


def whole(files: tuple[Path, ...], *, scores: bool = False, preferences: bool = False) -> Pool:
    """As one process builds it, which holds all lists at once."""
    lists = {file.stem: load_lists(file, scores=scores) for file in files}
    pool = build_pool(TOPICS, lists, depth=DEPTH, scores=scores)
    return preference_pool(pool, depth=DEPTH) if preferences else pool


def in_shards(folder: Path, files: tuple[Path, ...], shards: int, **kind: bool) -> JoinedPool:
    frame = ShardFrame(TOPICS, tuple(file.stem for file in files), DEPTH, shards)
    steps = [PoolStoredRuns(folder, frame, number, files, **kind) for number in range(shards)]
    return join_shards(frame, do_steps(SerialExecutor(), steps))


def written(pool: Pool | JoinedPool) -> bytes:
    file = io.BytesIO()
    pool.save(file)
    return file.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_shards_gives_the_file_of_one_process(tmp_path: Path, kind: str) -> None:
    files = stored_runs(tmp_path / "runs")
    expected = written(whole(files, **KINDS[kind]))
    for shards in NUMBERS:
        pool = in_shards(tmp_path / str(shards), files, shards, **KINDS[kind])
        assert written(pool) == expected, f"{shards} shards"


def test_shards_of_one_kind_are_not_taken_for_those_of_another(tmp_path: Path) -> None:
    files = stored_runs(tmp_path / "runs")
    pools = [in_shards(tmp_path, files, 2, **kind) for kind in KINDS.values()]
    assert len({shard["run"].path for pool in pools for shard in pool.shards}) == 6


def test_some_lists_are_those_of_all(tmp_path: Path) -> None:
    (file, *_) = stored_runs(tmp_path / "runs")
    every = load_lists(file, scores=True)
    some = read_some_lists(file, {"t05", "t80", "unknown"}, depth=4, scores=True)
    assert some.topics == ("t05", "t80")
    for at, topic in enumerate(some.topics):
        place = every.topics.index(topic)
        own = slice(*some.indptr[at : at + 2])
        its = slice(every.indptr[place], min(every.indptr[place] + 4, every.indptr[place + 1]))
        assert some.docnos[own].tolist() == every.docnos[its].tolist()
        assert some.scores is not None
        assert every.scores is not None
        assert some.scores[own].tolist() == every.scores[its].tolist()
    none = read_some_lists(file, {"unknown"}, depth=4, scores=False)
    assert (none.topics, none.docnos.tolist(), none.scores) == ((), [], None)


def test_what_cannot_be_pooled_is_told_as_by_one_process(tmp_path: Path) -> None:
    lists = RankedLists(("t01",), np.array([0, 2]), np.array([b"d1", b"d1"]))
    files = (store(tmp_path, "twice", lists),)
    for work in (lambda: whole(files), lambda: in_shards(tmp_path, files, 4)):
        with pytest.raises(PoolError, match="'twice' returns 'd1' twice in topic 't01'"):
            work()


def largest_step(folder: Path, topics: int, shards: int) -> int:
    """The most bytes that the pool of a shard takes, of runs of so many topics."""
    folder.mkdir()
    names, documents = tuple(f"{topic:04}" for topic in range(topics)), 500
    files = []
    for tag in ("a", "b", "c", "d"):
        docnos = np.array(
            [f"{tag if each % 2 else ''}{each:09}".encode() for each in range(documents)] * topics
        )
        lists = RankedLists(names, np.arange(topics + 1) * documents, docnos)
        files.append(store(folder, tag, lists))
    frame = ShardFrame(names, ("a", "b", "c", "d"), documents, shards)
    step = PoolStoredRuns(folder, frame, 0, tuple(files))
    tracemalloc.start()
    try:
        step.work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_worker_holds_a_shard_and_no_run(tmp_path: Path) -> None:
    largest_step(tmp_path / "first", 4, 1)  # what is made at first use
    few, many = largest_step(tmp_path / "few", 8, 2), largest_step(tmp_path / "many", 80, 20)
    assert few > 400_000
    assert many < 1.25 * few, (few, many)
    assert largest_step(tmp_path / "one", 80, 1) > 8 * many, "in one shard it is seen"
