"""A campaign's pool built in shards: the row and the file of one process, told, fenced, undone."""

import contextlib
import os
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from django.test import Client

from estimation.models import Round, StoredPool
from estimation.services import files, pools, rounds, sharding, unnamed_files
from estimation.services.pools import PoolKind
from judging.clock import seconds_from_now
from judging.errors import UserError
from judging.models import Campaign, Job
from judging.services import jobs
from tests.core.dask_config import dask_set
from tests.core.sharded_pools import NUMBERS
from tests.support import evaluation, factories
from tests.support.deadly_runs import DeadlyRuns
from tests.support.kept import Kept
from tests.support.material import small_material
from tests.support.object_storage import object_storage
from tests.support.ports import free_port

MANY = small_material(topics=128, documents=8, runs=3, depth=6)
TOPICS = 128


@pytest.fixture
def many(kept: Kept) -> Campaign:
    """A campaign of more topics than shards."""
    return kept("many topics", lambda: evaluation.with_material(material=MANY, slug="many"))


@pytest.fixture
def sharded(settings: Any, tmp_path: Path) -> Iterator[Path]:
    """Pools of any size are built in shards, by this process."""
    settings.SHARDED_FROM_LINES, settings.SHARD_WORKERS = 0, 0
    settings.SHARDS_FOLDER, settings.DASK_SCHEDULER = str(tmp_path / "shards"), ""
    forget()
    yield tmp_path / "shards"
    forget()


def forget() -> None:
    """No pool is kept in memory or as a file, as on a new site."""
    pools._load.cache_clear()
    for path in files.path_of("pools").glob("*"):
        path.unlink()


def in_shards(settings: Any, number: int) -> None:
    """Cut the lines of the runs into so many shards: none has more than these lines."""
    lines = 3 * 6 * TOPICS
    settings.SHARD_LINES = -(-lines // number)


def whole(campaign: Campaign, settings: Any, kind: PoolKind) -> StoredPool:
    """The pool by one process; nothing of it stays."""
    settings.SHARDED_FROM_LINES = 1_000_000
    row, _ = pools.ensure(campaign, kind=kind)
    row.delete()
    forget()
    settings.SHARDED_FROM_LINES = 0
    return row


@pytest.mark.slow
@pytest.mark.parametrize("kind", PoolKind)
def test_any_number_of_shards_gives_the_row_and_the_file_of_one_process(
    many: Campaign,
    sharded: Path,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    kind: PoolKind,
) -> None:
    alone = whole(many, settings, kind)
    for number in NUMBERS:
        in_shards(settings, number)
        done = watched(monkeypatch)
        row, pool = pools.ensure(many, kind=kind)
        assert done == [number]
        assert not files.damaged(row.file)
        for name in ("digest", "file", "depth", "topic_count", "run_count", "pair_count"):
            assert getattr(row, name) == getattr(alone, name), name
        assert len(pool) == row.pair_count > TOPICS
        assert pools.ensure(many, kind=kind)[0] == row, "and it is found again"
        assert not list(sharded.iterdir()), "no shard is left"
        row.delete()
        forget()


def watched(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many shards each pool was built in."""
    done: list[int] = []
    work = sharding.do_steps

    def watch(executor: Any, steps: Any, **options: Any) -> Any:
        done.append(len(steps))
        return work(executor, steps, **options)

    monkeypatch.setattr(sharding, "do_steps", watch)
    return done


@pytest.mark.slow
def test_processes_give_the_same_file(
    many: Campaign, sharded: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = whole(many, settings, PoolKind.DOCUMENTS)
    in_shards(settings, 7)
    settings.SHARD_WORKERS = 2
    assert pools.ensure(many)[0].file == alone.file


@pytest.mark.slow
def test_shards_can_be_at_object_storage(
    many: Campaign, sharded: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Processes share nothing with each other but the stored runs; what they put there goes."""
    fsspec = pytest.importorskip("fsspec")
    pytest.importorskip("s3fs")
    alone = whole(many, settings, PoolKind.DOCUMENTS)
    in_shards(settings, 7)
    settings.SHARD_WORKERS = 2
    monkeypatch.setenv("EVALSITE_COPIES", str(sharded.with_name("copies")))
    with object_storage() as bucket:
        settings.SHARDS_FOLDER = f"{bucket}/of-a-site"
        seen = []
        join = sharding.join_shards
        monkeypatch.setattr(
            sharding, "join_shards", lambda *given: seen.extend(given[1]) or join(*given)
        )
        assert pools.ensure(many)[0].file == alone.file
        assert [str(place).startswith(settings.SHARDS_FOLDER) for place in seen] == [True] * 7
        storage = fsspec.filesystem("s3")
        storage.invalidate_cache()
        assert storage.find(settings.SHARDS_FOLDER) == []
        sharding.remove_all(sharding.folder())  # which is gone already
    assert not sharded.exists()


def test_a_pool_of_few_lines_stays_in_one_process(
    many: Campaign, sharded: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, lines = watched(monkeypatch), sum(many.runs.values_list("line_count", flat=True))
    settings.SHARDED_FROM_LINES = lines
    pools.ensure(many)[0].delete()
    assert done == []
    settings.SHARDED_FROM_LINES = lines - 1
    pools.ensure(many)
    assert done == [1]


def test_runs_that_cannot_be_pooled_are_told_and_leave_no_shards(
    many: Campaign, sharded: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "".join(f"t{topic} Q0 d1 1 {'1e301' if topic == 9 else 1} wild\n" for topic in (1, 9))
    factories.stored_upload(many, lines.encode(), name="wild.run", kind="run")
    in_shards(settings, 7)
    told = []
    for most in (1_000_000, 0):
        settings.SHARDED_FROM_LINES = most
        sharding.remove_all(sharded)
        sharded.mkdir()
        with pytest.raises(UserError) as refused:
            pools.ensure(many, kind=PoolKind.SCORED)
        told.append((refused.value.code, refused.value.message))
        assert not list(sharded.iterdir())
    assert told[0] == told[1]
    assert told[0][0] == "pool_impossible"
    assert "'wild'" in told[0][1]


def test_a_round_of_a_pool_in_shards_is_drawn_as_any_other(
    many: Campaign, sharded: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = []
    for lines in (1_000_000, 0):
        settings.SHARDED_FROM_LINES = lines
        row = evaluation.drawn(many)
        pairs = row.draws.order_by("pair__topic", "pair__docno")
        columns = pairs.values_list("pair__topic__topic_id", "pair__docno", "probability")
        drawn.append((row.design_file, row.sample_file, row.pool.file, list(columns)))
        assert len(drawn[-1][-1]) > 10
        many.rounds.all().delete()
        StoredPool.objects.all().delete()
        forget()
    assert drawn[0] == drawn[1]


# ------------------------------------------------------------------------------- as a job


def requested(campaign: Campaign) -> tuple[Round, Job]:
    """A round whose preview has been asked for."""
    plan = evaluation.plan()
    row = rounds.draft(campaign=campaign, by=campaign.created_by, plan=plan)
    return row, Job.objects.get(kind="preview", target=row.pk)


def attempt(job: Job) -> Job:
    """What a worker does when the job is due again."""
    Job.objects.filter(pk=job.pk).update(due=seconds_from_now(-1))
    jobs.run(job.pk)
    job.refresh_from_db()
    return job


def steal(job: Job) -> None:
    """Another worker takes a job over, whose lease has lapsed."""
    Job.objects.filter(pk=job.pk).update(token="another", lease_until=seconds_from_now(600))


def test_the_job_tells_how_many_shards_are_done(
    many: Campaign, sharded: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_shards(settings, 7)
    told: list[tuple[float, str]] = []
    report = jobs.Running.report
    monkeypatch.setattr(
        jobs.Running,
        "report",
        lambda running, *what: (told.append(what), report(running, *what)),
    )
    row, job = requested(many)
    assert attempt(job).state == Job.State.DONE
    assert [note for _, note in told] == [
        f"pooling the runs: {done} of 7 shards" for done in range(8)
    ]
    assert [share for share, _ in told] == sorted(share for share, _ in told)
    Round.objects.update(preview={})
    Job.objects.update(state=Job.State.RUNNING, token="one", note=told[3][1])
    client = Client()
    client.force_login(many.created_by)
    page = client.get(f"/c/{many.slug}/rounds/{row.number}/").content.decode()
    assert "Pooling the runs: 3 of 7 shards" in page


@pytest.mark.parametrize("when", ["in a shard", "while it is written"])
def test_who_has_lost_the_lease_keeps_no_pool(
    many: Campaign, sharded: Path, settings: Any, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """The shards stay: the other worker goes on from them."""
    in_shards(settings, 7)
    row, job = requested(many)
    save, work = sharding.JoinedPool.save, sharding.PoolStoredRuns.work
    stolen: list[int] = []

    def at_once(of: Any) -> None:
        if not stolen:
            stolen.append(1)
            steal(job)

    def saved(pool: Any, file: BinaryIO) -> None:
        save(pool, file)
        at_once(pool)

    def worked(step: Any) -> Any:
        if step.shard == 3:
            at_once(step)
        return work(step)

    if when == "in a shard":
        monkeypatch.setattr(sharding.PoolStoredRuns, "work", worked)
    else:
        monkeypatch.setattr(sharding.JoinedPool, "save", saved)
    jobs.run(job.pk)
    assert stolen == [1]
    assert not StoredPool.objects.exists()
    row.refresh_from_db()
    assert not row.preview
    (folder,) = sharded.iterdir()
    done = {path.name for path in (folder / "poolstoredruns").iterdir()}
    assert len(done) == (4 if when == "in a shard" else 7), "nothing more was begun"
    Job.objects.filter(pk=job.pk).update(lease_until=seconds_from_now(-1))
    assert attempt(job).state == Job.State.DONE
    assert StoredPool.objects.count() == 1
    assert not list(sharded.iterdir())


@pytest.mark.slow
def test_a_process_that_is_killed_is_told_and_the_rest_is_done_the_next_time(
    many: Campaign, sharded: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = whole(many, settings, PoolKind.DOCUMENTS)
    in_shards(settings, 7)
    settings.SHARD_WORKERS = 1
    monkeypatch.setattr(sharding, "PoolStoredRuns", DeadlyRuns)
    _, job = requested(many)
    attempt(job)
    assert job.state == Job.State.QUEUED
    assert job.error == (
        "A process that pools the runs ended before the pool was built, perhaps for want of "
        "memory. The shards that are done are kept: try again, and the others are built."
    )
    assert not StoredPool.objects.exists()
    done = written(sharded)
    assert len(done) == 6
    assert attempt(job).state == Job.State.DONE
    assert StoredPool.objects.get().file == alone.file


def written(folder: Path) -> dict[str, int]:
    """When each shard was written."""
    facts = folder.glob("*/*/*/facts.json")
    return {str(each): each.stat().st_mtime_ns for each in facts}


@pytest.mark.slow
def test_a_scheduler_that_is_gone_is_told_on_the_page_and_the_job_can_be_tried_again(
    many: Campaign, sharded: Path, settings: Any
) -> None:
    settings.DASK_SCHEDULER = f"tcp://127.0.0.1:{free_port()}"
    row, job = requested(many)
    client, told = Client(), f"The Dask cluster at {settings.DASK_SCHEDULER} cannot pool the runs"
    client.force_login(many.created_by)
    page = f"/c/{many.slug}/rounds/{row.number}/"
    with dask_set({"distributed.comm.timeouts.connect": "100ms"}):
        for _ in range(jobs.MAX_ATTEMPTS):
            attempt(job)
            assert told in client.get(page).content.decode()
    assert job.state == Job.State.FAILED
    assert job.error.startswith(f"{told}: Timed out")
    settings.DASK_SCHEDULER = ""
    jobs.retry(job)
    factories.run_due_jobs()
    job.refresh_from_db()
    assert job.state == Job.State.DONE
    assert "cannot pool the runs" not in client.get(page).content.decode()


def test_other_hindrances_are_sentences_too(
    many: Campaign, sharded: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DASK_SCHEDULER = "tcp://nowhere:1"
    told = {
        BrokenExecutor("x"): "The Dask cluster ended before the pool was built",
        ImportError("No module named 'distributed'"): "cannot be pooled: No module named",
        PermissionError(13, "Permission denied", "/files"): "SHARDS_FOLDER, under the same names",
    }
    for error, sentence in told.items():

        def fail(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(sharding, "open_executor", fail)
        with pytest.raises(jobs.Hindered, match=sentence):
            pools.ensure(many)


def test_a_shard_that_another_worker_removed_is_no_bug(
    many: Campaign, sharded: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both built the same pool, and one was done earlier: the next attempt finds it."""
    in_shards(settings, 7)

    def removed(frame: Any, places: Any) -> Any:
        sharding.remove_all(sharded)
        return join(frame, places)

    join = sharding.join_shards
    monkeypatch.setattr(sharding, "join_shards", removed)
    with pytest.raises(jobs.Hindered, match="A shard of the pool cannot be read"):
        pools.ensure(many)


# ------------------------------------------------------------------------------ its room


@pytest.mark.slow
@pytest.mark.django_db
def test_what_a_pool_takes_does_not_grow_with_its_topics(
    sharded: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this process, which here does all work: four times the topics, four times the shards."""
    settings.SHARD_LINES = 20_000
    held = {}
    for topics in (5, 20, 80):
        material = small_material(topics=topics, documents=1000, runs=4, depth=1000, seed=1)
        campaign = evaluation.with_material(material=material, slug=f"of-{topics}")
        for lines in (0, 10_000_000):
            settings.SHARDED_FROM_LINES = lines
            tracemalloc.start()
            pools.ensure(campaign, depth=1000)
            held[topics, lines] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            StoredPool.objects.all().delete()
            forget()
    assert held[80, 0] < 1.5 * held[20, 0], held
    assert held[80, 10_000_000] > 3 * held[20, 10_000_000], "in one process it does"


def test_shards_that_nobody_goes_on_with_are_removed_once_they_are_old(
    many: Campaign, sharded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old is what nothing was added to for as long as any work may take."""
    old, young = sharded / "old" / "poolstoredruns", sharded / "young" / "poolstoredruns"
    for folder in (old, young):
        (folder / "shard").mkdir(parents=True)
    long_ago = time.time() - unnamed_files.grace() - 10
    for path in (old, old.parent, young.parent):
        os.utime(path, (long_ago, long_ago))
    sweep = jobs.claim(jobs.request(unnamed_files.SWEEP, 0).pk)
    assert sweep is not None
    with contextlib.suppress(jobs.NotYet):
        unnamed_files.sweep(sweep)
    assert [path.name for path in sharded.iterdir()] == ["young"]
