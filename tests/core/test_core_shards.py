"""Pools in shards: the same pairs, weights and bits as in one pool, however many shards."""

import errno
import pickle
import shutil
from concurrent.futures import Executor
from pathlib import Path

import numpy as np
import pytest

from estimation.core.archives import ArchiveError
from estimation.core.data.pool import Pool
from estimation.core.data.ranked_lists import PoolError
from estimation.core.measures.table import parse_measure
from estimation.core.shards.building import ShardedPool, build_shards
from estimation.core.shards.frames import ShardFrame
from estimation.core.shards.lines import Dealt, run_lines
from estimation.core.shards.pools import read_pool
from estimation.core.shards.running import SerialExecutor, ShardStep, StepResult, do_step
from estimation.core.shards.store import is_written, read_columns, seal_of, write_columns
from tests.core.sharded_pools import DEPTH, NAMES, NUMBERS, TAGS, whole_pool, write_inputs

pytestmark = pytest.mark.usefixtures("no_disk_waits")


def built(folder: Path, shards: int, executor: Executor | None = None) -> ShardedPool:
    inputs = (
        write_inputs(folder / "inputs")
        if not (folder / "inputs").exists()
        else sorted((folder / "inputs").iterdir())
    )
    names = [name.decode() for name in NAMES.tolist()]
    return build_shards(
        executor or SerialExecutor(),
        folder / "results",
        inputs,
        shards=shards,
        depth=DEPTH,
        topics=names,
    )


def pools(sharded: ShardedPool) -> list[Pool]:
    return [read_pool(sharded.frame, place) for place in sharded.places]


@pytest.mark.slow
@pytest.mark.parametrize("shards", NUMBERS)
def test_the_shards_are_the_pool_cut_by_topic(tmp_path: Path, shards: int) -> None:
    whole, sharded = whole_pool(), built(tmp_path, shards)
    assert len(sharded.places) == shards
    assert (sharded.pairs, sharded.entries) == (len(whole), len(whole.run))
    of = sharded.frame.shard
    sizes = np.bincount(of, minlength=shards)
    assert sizes.max() - sizes.min() <= 1
    for shard, pool in enumerate(pools(sharded)):
        pairs = np.flatnonzero(of[whole.topic] == shard)
        entries, _ = whole.entries_of(pairs)
        assert (pool.topics, pool.runs, pool.depth) == (whole.topics, whole.runs, whole.depth)
        assert pool.docno.tolist() == whole.docno[pairs].tolist()
        for name, expected in {
            "topic": whole.topic[pairs],
            "indptr": np.append(0, np.cumsum(np.diff(whole.indptr)[pairs])),
            "run": whole.run[entries],
            "rank": whole.rank[entries],
        }.items():
            found = getattr(pool, name)
            assert found.dtype == getattr(whole, name).dtype
            np.testing.assert_array_equal(found, expected)
        for measure in ("DCG@10", "AP"):
            weights = pool.entry_weights(parse_measure(measure))
            same = whole.entry_weights(parse_measure(measure))[entries]
            assert weights.tobytes() == same.tobytes()


def test_what_is_read_takes_the_digest_that_the_content_has(tmp_path: Path) -> None:
    (pool,) = pools(built(tmp_path, 1))
    digest = pool.__dict__.pop("digest")
    assert pool.digest == digest
    assert isinstance(pool.run, np.ndarray)
    assert not pool.run.flags.owndata, "columns are mapped, not read"


@pytest.mark.slow
def test_a_shard_looks_only_at_inputs_that_have_lines_for_it(tmp_path: Path) -> None:
    """Else the work would grow with shards times inputs, however little is in each input."""
    inputs, topics = [], [f"t{number:02}" for number in range(40)]
    for topic in topics:
        inputs.append(tmp_path / topic)
        name, docno = np.array([topic.encode()]), np.array([b"d" * (1 + len(inputs) % 3)])
        codes = {"topic": np.zeros(1, dtype=int), "run": np.zeros(1, dtype=int)}
        names = {"topics": name, "runs": TAGS[:1]}
        lines = run_lines(**names, **codes, docno=docno, score=np.ones(1))
        write_columns(inputs[-1], *lines)
    pool = build_shards(SerialExecutor(), tmp_path / "results", inputs, shards=10, depth=3)
    dealt = Dealt.of(sorted((tmp_path / "results" / "cutlines").iterdir()), 10)
    assert [len(cuts) for cuts in dealt.cuts] == [4] * 10
    assert dealt.width == 3
    assert pool.pairs == 40


@pytest.mark.slow
def test_inputs_in_another_number_and_order_give_the_same_columns(tmp_path: Path) -> None:
    one = build_shards(
        SerialExecutor(), tmp_path / "a", write_inputs(tmp_path / "one", 1), shards=3, depth=DEPTH
    )
    many = build_shards(
        SerialExecutor(), tmp_path / "b", write_inputs(tmp_path / "many", 9)[::-1], shards=3,
        depth=DEPTH,
    )  # fmt: skip
    assert [each.digest for each in pools(one)] == [each.digest for each in pools(many)]


def test_a_document_that_a_run_returns_twice_is_named(tmp_path: Path) -> None:
    for part in ("a", "b"):
        lines = run_lines(
            topics=np.array([b"t1"]),
            runs=np.array([b"r1"]),
            topic=np.array([0]),
            run=np.array([0]),
            docno=np.array([b"d1"]),
            score=np.array([1.0]),
        )
        write_columns(tmp_path / part, *lines)
    inputs = [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(PoolError, match="'r1' returns 'd1' twice in topic 't1'"):
        build_shards(SerialExecutor(), tmp_path / "results", inputs, shards=2, depth=5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"topic": np.array([1])}, "topic must be a position among 1 topics"),
        ({"run": np.array([-1])}, "run must be a position among 1 runs"),
        ({"score": np.array([np.nan])}, "line 0 has nan"),
        ({"score": np.array([1.0, 2.0])}, "one length"),
    ],
)
def test_lines_that_are_none_are_refused(changed: dict[str, np.ndarray], message: str) -> None:
    lines = {
        "topics": np.array([b"t1"]), "runs": np.array([b"r1"]), "topic": np.array([0]),
        "run": np.array([0]), "docno": np.array([b"d1"]), "score": np.array([1.0]),
    }  # fmt: skip
    with pytest.raises(PoolError, match=message):
        run_lines(**(lines | changed))


# ----------------------------------------------------------------------------------- the store


def test_a_folder_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    class Strange:
        """No column: writing it fails when the first one is written already."""

        def __array__(self, *_: object, **__: object) -> np.ndarray:
            raise RuntimeError("killed")

    place = tmp_path / "result"
    with pytest.raises(RuntimeError, match="killed"):
        write_columns(place, {}, {"a": np.arange(3), "b": Strange()})
    assert list(tmp_path.iterdir()) == []
    write_columns(place, {"x": 1}, {"a": np.arange(3), "nothing": np.array([])})
    seal = seal_of(place)
    write_columns(place, {"x": 2}, {"a": np.arange(4)})  # of another worker, too late
    facts, columns = read_columns(place)
    assert (facts, columns["a"].tolist(), columns["nothing"].tolist()) == ({"x": 1}, [0, 1, 2], [])
    assert seal_of(place) == seal
    assert [path.name for path in tmp_path.iterdir()] == ["result"]


def test_a_column_that_does_not_fit_says_why(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    least, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, most))
    try:
        with pytest.raises(OSError, match="File too large") as refused:
            write_columns(tmp_path / "place", {}, {"numbers": np.arange(10_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (least, most))
    assert refused.value.errno == errno.EFBIG
    assert list(tmp_path.iterdir()) == []


def test_damage_is_found(tmp_path: Path) -> None:
    place = tmp_path / "result"
    write_columns(place, {}, {"a": np.arange(3)})
    with pytest.raises(ArchiveError, match="no column 'b'"):
        read_columns(place, ["b"])
    content = (place / "a.npy").read_bytes()
    (place / "a.npy").write_bytes(content[:-1] + b"\x01")
    with pytest.raises(ArchiveError, match="'a' is damaged"):
        read_columns(place)
    (place / "facts.json").write_text("{}")
    with pytest.raises(ArchiveError, match="no folder of the form"):
        seal_of(place)


def test_a_cut_whose_ends_are_damaged_is_found(tmp_path: Path) -> None:
    """Lines would be left out, and a pool made of the rest."""
    built(tmp_path, 3)
    cut = min((tmp_path / "results" / "cutlines").iterdir())
    np.save(cut / "ends.npy", np.zeros(4, dtype=np.int64))
    shutil.rmtree(tmp_path / "results" / "poollines")
    with pytest.raises(ArchiveError, match=f"{cut.name}: the column 'ends' is damaged"):
        built(tmp_path, 3)


class Counted(ShardStep):
    done = 0

    @property
    def inputs(self) -> tuple[int, ...]:
        return (1, 2)

    def work(self) -> StepResult:
        Counted.done += 1
        return {}, {"a": np.arange(2)}


def test_a_step_is_done_once(tmp_path: Path) -> None:
    place = do_step(Counted(tmp_path))
    assert is_written(place)
    assert do_step(Counted(tmp_path)) == place
    assert Counted.done == 1


def test_more_lines_do_not_repeat_the_cut_of_old_ones(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path / "inputs")
    for number in (2, 3):
        build_shards(SerialExecutor(), tmp_path / "r", inputs[:number], shards=2, depth=DEPTH)
    assert len(list((tmp_path / "r" / "cutlines").iterdir())) == 3
    assert len(list((tmp_path / "r" / "poollines").iterdir())) == 4
    assert len(TAGS) == 5


def test_a_process_that_is_sent_many_steps_holds_one_frame() -> None:
    frame = ShardFrame(("tö", "t\n2"), ("r",), 3, 2)
    sent = [pickle.loads(pickle.dumps((frame, step))) for step in range(3)]
    assert [found for found, _ in sent] == [frame] * 3
    assert len({id(found) for found, _ in sent}) == 1
    other = pickle.loads(pickle.dumps(ShardFrame(frame.topics, frame.runs, 3, 1)))
    assert (other.shards, other.key != frame.key) == (1, True)
