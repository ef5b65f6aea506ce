"""Shards on processes: what they return, and what is left when one is killed."""

import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from estimation.core.shards import executors
from estimation.core.shards.building import ShardedPool, build_shards
from estimation.core.shards.executors import open_executor
from estimation.core.shards.lines import Dealt
from estimation.core.shards.running import SerialExecutor, do_steps
from estimation.core.shards.store import is_written, seal_of
from tests.core.dask_config import dask_set
from tests.core.deadly_shards import DeadlyPool
from tests.core.sharded_pools import DEPTH, write_inputs
from tests.core.test_core_shards import built

SHARDS = 7


def deadly_steps(pool: ShardedPool, folder: Path) -> list[DeadlyPool]:
    dealt = Dealt.of(sorted((pool.root / "cutlines").iterdir()), SHARDS)
    marker, width = folder / "killed", dealt.width
    return [
        DeadlyPool(folder, pool.frame, shard, cuts, width, marker)
        for shard, cuts in enumerate(dealt.cuts)
    ]


@contextmanager
def dask_cluster(workers: int) -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        yield cluster


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_changes_nothing(tmp_path: Path) -> None:
    pool = built(tmp_path, SHARDS)
    steps = deadly_steps(pool, tmp_path / "deadly")
    (tmp_path / "deadly").mkdir()
    with pytest.raises(BrokenExecutor), open_executor(1) as executor:
        do_steps(executor, steps)
    assert steps[3].marker.exists()
    assert [is_written(step.place) for step in steps] == [True] * 3 + [False] * 4
    kept = {step.place: (step.place / "facts.json").stat().st_mtime_ns for step in steps[:3]}
    (draft,) = (tmp_path / "deadly" / "deadlypool").glob(".*")
    assert sorted(path.name for path in draft.iterdir())[:1] == ["docno.npy"]
    with open_executor(1) as executor:
        places = do_steps(executor, steps)
    assert [seal_of(place) for place in places] == [seal_of(place) for place in pool.places]
    for place, written in kept.items():
        assert (place / "facts.json").stat().st_mtime_ns == written, "done once"


@pytest.mark.slow
def test_any_number_of_workers_gives_the_same_folders(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path / "inputs")
    seals = []
    for workers in (0, 1, 3):
        with open_executor(workers) as executor:
            pool = build_shards(
                executor, tmp_path / str(workers), inputs, shards=SHARDS, depth=DEPTH
            )
        seals.append([seal_of(place) for place in pool.places])
    assert seals[0] == seals[1] == seals[2]


@pytest.mark.slow
def test_a_dask_cluster_does_the_same(tmp_path: Path) -> None:
    inputs = write_inputs(tmp_path / "inputs")
    alone = build_shards(SerialExecutor(), tmp_path / "alone", inputs, shards=SHARDS, depth=DEPTH)
    with (
        dask_cluster(2) as cluster,
        open_executor(2, scheduler=cluster.scheduler_address) as executor,
    ):
        pool = build_shards(executor, tmp_path / "dask", inputs, shards=SHARDS, depth=DEPTH)
        steps = deadly_steps(pool, tmp_path)
        again = do_steps(executor, steps)  # one kills its worker, and is done by another
    assert steps[3].marker.exists()
    for places in (pool.places, again):
        assert [seal_of(place) for place in places] == [seal_of(place) for place in alone.places]


def ended_worker(executor: Executor, _: Any) -> None:
    executor.submit(os._exit, 1).result(60)


def ended_scheduler(executor: Executor, cluster: Any) -> None:
    future = executor.submit(time.sleep, 60)
    cluster.close()
    future.result(60)


@pytest.mark.slow
@pytest.mark.parametrize("ended", [ended_worker, ended_scheduler])
def test_a_cluster_that_ends_is_told_as_workers_that_end(
    ended: Callable[[Executor, Any], None],
) -> None:
    """Nobody would ask again for what is left after an error of Dask's own."""
    with (
        dask_set({"distributed.scheduler.allowed-failures": 0}),
        dask_cluster(1) as cluster,
        pytest.raises(BrokenExecutor),
        open_executor(1, scheduler=cluster.scheduler_address) as executor,
    ):
        ended(executor, cluster)


class Elsewhere:
    """Of a package that the other process does not have."""

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, ("no_such_package",)


@pytest.mark.slow
def test_a_cluster_that_lacks_a_package_says_so() -> None:
    told = "the Dask scheduler and its workers need .*: No module named 'no_such_package'"
    with (
        dask_cluster(1) as cluster,
        pytest.raises(ImportError, match=told),
        open_executor(1, scheduler=cluster.scheduler_address) as executor,
    ):
        executor.submit(id, Elsewhere()).result(60)


def test_errors_of_steps_come_out(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        SerialExecutor().submit(lambda: 1 // 0).result()
    assert SerialExecutor().submit(len, [1, 2]).result() == 2


class Stopped(Exception):
    pass


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_who_is_told_of_steps_can_stop_them(tmp_path: Path, workers: int) -> None:
    steps = deadly_steps(built(tmp_path, SHARDS), tmp_path / "again")
    (tmp_path / "killed").touch()  # so that none is deadly
    told = []

    def tell(done: int) -> None:
        told.append(done)
        if done == 2:
            raise Stopped

    steps = [replace(step, root=tmp_path / "again", marker=tmp_path / "killed") for step in steps]
    with pytest.raises(Stopped), open_executor(workers) as executor:
        do_steps(executor, steps, told=tell)
    done = [is_written(step.place) for step in steps]
    assert told == [1, 2]
    assert done[:2] == [True, True]
    assert not done[-1], "what had not begun is left undone"


PARENT = """
import os, signal, sys
from estimation.core.shards.executors import open_executor

if __name__ == "__main__":
    with open_executor(1) as executor:
        print(executor.submit(os.getpid).result(), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """They would wait for ever: each holds an end of the pipe that work comes by."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    killed = subprocess.run(
        [sys.executable, script], env=env, stdout=subprocess.PIPE, check=False, timeout=60
    )
    assert killed.returncode == -signal.SIGKILL
    worker = Path(f"/proc/{int(killed.stdout)}/stat")
    assert waited(lambda: not worker.exists() or worker.read_text().split()[2] == "Z")


def waited(ended: Callable[[], bool]) -> bool:
    return any(ended() or time.sleep(0.1) for _ in range(300))


@pytest.mark.slow
def test_a_cluster_without_workers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it was given would wait for ever."""
    monkeypatch.setattr(executors, "WORKERS_SECONDS", 0.2)
    with (
        dask_cluster(0) as cluster,
        pytest.raises(OSError, match="has no worker"),
        open_executor(1, scheduler=cluster.scheduler_address),
    ):
        pass


@pytest.mark.slow
def test_a_cluster_whose_workers_are_gone_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask keeps what is left for workers that may come, without end."""
    monkeypatch.setattr(executors, "WORKERS_SECONDS", 0.5)
    waited_on = threading.Event()
    with (
        dask_cluster(1) as cluster,
        pytest.raises(BrokenExecutor),
        open_executor(1, scheduler=cluster.scheduler_address) as executor,
    ):
        _without_workers(executor, cluster, waited_on)
    assert not waited_on.is_set()


def _without_workers(executor: Executor, cluster: Any, waited_on: threading.Event) -> None:
    left = executor.map(time.sleep, [0.0, 60.0, 60.0])
    next(left)
    cluster.scale(0)
    late = threading.Timer(20.0, lambda: (waited_on.set(), cluster.close()))
    late.start()  # so that a failure comes to an end
    try:
        next(left)
    finally:
        late.cancel()


@pytest.mark.slow
def test_ctrl_c_ends_workers_without_a_word() -> None:
    with open_executor(1) as executor:
        answer = executor.submit(signal.getsignal, signal.SIGINT).result()
    assert answer == signal.SIG_DFL
