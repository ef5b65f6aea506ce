"""The pool of a campaign written from its shards: the bytes of one process, not its memory."""

import hashlib
import io
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from estimation.core.archives import ArchiveError, write_archive
from estimation.core.arrays import Pieces, content_digest
from estimation.core.data.pool import Pool, build_pool
from estimation.core.data.ranked_lists import PoolError
from estimation.core.shards.building import ShardedPool, build_shards
from estimation.core.shards.frames import ShardFrame
from estimation.core.shards.joining import JoinedPool, join_shards
from estimation.core.shards.lines import run_lines
from estimation.core.shards.running import SerialExecutor, StepResult
from estimation.core.shards.store import write_columns
from tests.core.sharded_pools import DEPTH, NUMBERS, whole_pool, whole_runs, write_inputs

pytestmark = pytest.mark.usefixtures("no_disk_waits")
LONG = "a-docno-that-is-longer-than-others"


def written(pool: Pool | JoinedPool) -> bytes:
    file = io.BytesIO()
    pool.save(file)
    return file.getvalue()


def one_line(topic: str) -> StepResult:
    return run_lines(
        topics=np.array([topic.encode()]),
        runs=np.array([b"run0"]),
        topic=np.zeros(1, dtype=np.int64),
        run=np.zeros(1, dtype=np.int64),
        docno=np.array([LONG.encode()]),
        score=np.ones(1),
    )


def built(folder: Path, shards: int, *more: str) -> ShardedPool:
    """The shards of `whole_pool` and of further topics, one of which has a longer docno."""
    topics = [*whole_pool().topics, *more]
    inputs = write_inputs(folder / "inputs")
    if more:
        inputs.append(folder / "inputs" / "more")
        write_columns(inputs[-1], *one_line(more[0]))
    executor = SerialExecutor()
    return build_shards(executor, folder, inputs, shards=shards, depth=DEPTH, topics=topics)


def joined(pool: ShardedPool) -> JoinedPool:
    return join_shards(pool.frame, pool.places)


@pytest.mark.slow
@pytest.mark.parametrize("shards", NUMBERS)
def test_the_file_is_that_of_one_process(tmp_path: Path, shards: int) -> None:
    whole, pool = whole_pool(), joined(built(tmp_path, shards))
    assert len(pool.shards) == shards
    assert (len(pool), pool.digest) == (len(whole), whole.digest)
    assert hashlib.sha256(written(pool)).digest() == hashlib.sha256(written(whole)).digest()


def test_docnos_are_as_wide_as_the_longest_of_all_shards(tmp_path: Path) -> None:
    """Topics without a document are counted, and have no pair."""
    runs = whole_runs()
    of_run = runs["run0"]
    runs["run0"] = replace(
        of_run,
        topics=(*of_run.topics, "u1"),
        indptr=np.append(of_run.indptr, of_run.indptr[-1] + 1),
        docnos=np.append(of_run.docnos, LONG.encode()),
        scores=None,
    )
    whole = build_pool([*whole_pool().topics, "u1", "u2"], runs, depth=DEPTH)
    pool = joined(built(tmp_path, 7, "u1", "u2"))
    assert pool.kinds["docno"].itemsize == len(LONG)
    assert written(pool) == written(whole)


def test_shards_of_another_campaign_or_in_another_order_are_no_pool(tmp_path: Path) -> None:
    pool = built(tmp_path, 3)
    one, two, three = pool.places
    other = ShardFrame(pool.frame.topics, pool.frame.runs, DEPTH + 1, 3)
    for frame, places in ((pool.frame, (two, one, three)), (other, pool.places)):
        with pytest.raises(PoolError, match="is no pool of shard 0 of this campaign"):
            join_shards(frame, places)


def test_a_damaged_shard_is_no_part_of_a_pool(tmp_path: Path) -> None:
    pool = built(tmp_path, 3)
    file = pool.places[1] / "rank.npy"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + b"\x07")
    with pytest.raises(ArchiveError, match="'rank' is damaged"):
        joined(pool)


def held(work: object) -> int:
    """The most bytes that are held while something is done."""
    tracemalloc.start()
    try:
        work()  # type: ignore[operator]
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_no_more_is_held_for_a_pool_of_more_topics(tmp_path: Path) -> None:
    """Of each topic are kept five numbers and its name; what it has is read when it is written."""
    most = {}
    for topics in (40, 400):
        lists, documents = 3, 300
        grid = np.indices((topics, lists, documents)).reshape(3, -1)
        folder = tmp_path / str(topics)
        lines = run_lines(
            topics=np.array([f"{topic:04}".encode() for topic in range(topics)]),
            runs=np.array([b"a", b"b", b"c"]),
            topic=grid[0],
            run=grid[1],
            docno=np.array([f"d{each % 500:09}".encode() for each in grid.sum(axis=0).tolist()]),
            score=-grid[2].astype(np.float64),
        )
        write_columns(folder / "input", *lines)
        shards = build_shards(
            SerialExecutor(), folder, [folder / "input"], shards=topics // 20, depth=documents
        )
        pool = joined(shards)
        most[topics] = held(lambda pool=pool, at=folder / "pool": pool.save(at))
    assert (tmp_path / "400" / "pool").stat().st_size > 4_000_000
    assert most[400] < 1.25 * most[40] + 200 * 360, most
    whole = held(lambda: Pool.load(tmp_path / "400" / "pool").save(io.BytesIO()))
    assert whole > 8 * most[400], "whole it is seen"


def pieces(*parts: np.ndarray, size: int) -> Pieces:
    return Pieces(np.dtype(np.int32), size, lambda: iter(parts))


def test_pieces_count_as_the_array_that_they_make() -> None:
    whole = np.arange(10, dtype=np.int32)
    cut = pieces(whole[:3], whole[3:3], whole[3:], size=10)
    assert content_digest([b"head", cut]) == content_digest([b"head", whole])
    files = [io.BytesIO(), io.BytesIO()]
    for file, column in zip(files, (cut, whole), strict=True):
        write_archive(file, "form", {}, {"column": column})
    assert files[0].getvalue() == files[1].getvalue()


def test_pieces_of_another_length_or_type_are_refused() -> None:
    whole = np.arange(10, dtype=np.int32)
    for column, told in (
        (pieces(whole, size=9), "the pieces have more than 9 numbers"),
        (pieces(whole, size=11), "the pieces lack 1 of 11 numbers"),
        (pieces(whole.astype(np.int64), size=10), "a piece is of int64, not of int32"),
    ):
        with pytest.raises(ValueError, match=told):
            content_digest([column])
