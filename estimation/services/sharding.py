"""Pools of more lines than one process should hold: built in shards, by whom the settings say.

Celery starts the job, fences and reports it as any other; this process asks the workers for
shards, waits, and writes the pool from them without ever holding it. Which pairs are in the pool
hangs neither on shards nor on workers: its file has the bytes that one process would have written.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import contextmanager

from django.conf import settings

from estimation.core.archives import ArchiveError
from estimation.core.data.ranked_lists import PoolError
from estimation.core.shards.executors import open_executor
from estimation.core.shards.frames import MOST_SHARDS, ShardFrame
from estimation.core.shards.joining import JoinedPool, join_shards
from estimation.core.shards.places import Place, place_of
from estimation.core.shards.running import do_steps
from estimation.core.shards.store import remove_all
from estimation.formats.shard_inputs import PoolStoredRuns
from estimation.models import Run
from estimation.services import files
from judging.services import jobs

KEPT = "The shards that are done are kept: try again, and the others are built."
SEEN = "Its workers must see the files of the site, and SHARDS_FOLDER, under the same names."


def is_large(accepted: Sequence[Run]) -> bool:
    """Whether the runs have more lines than one process should pool."""
    return _lines(accepted) > settings.SHARDED_FROM_LINES


def _lines(accepted: Sequence[Run]) -> int:
    return sum(run.line_count for run in accepted)


def folder() -> Place:
    """Where the shards of pools are while they are built."""
    return place_of(settings.SHARDS_FOLDER)


@contextmanager
def pooled(
    topics: Sequence[str],
    accepted: Sequence[Run],
    *,
    depth: int,
    digest: str,
    scores: bool,
    preferences: bool,
    told: jobs.Progress,
) -> Iterator[JoinedPool]:
    """The pool of runs, in shards that go when the block ends well.

    Where work is cut off they stay, and whoever tries again goes on from what is done. Raises
    PoolError for runs that cannot be pooled, `jobs.Hindered` if workers end or are not there.
    """
    runs = sorted(accepted, key=lambda run: run.tag.encode())
    shards = min(-(-_lines(runs) // settings.SHARD_LINES), len(topics), MOST_SHARDS)
    names = tuple(sorted(topics, key=str.encode))
    frame = ShardFrame(names, tuple(run.tag for run in runs), depth, shards)
    stored, root = tuple(files.path_of(run.file) for run in runs), folder() / digest
    steps = [PoolStoredRuns(root, frame, n, stored, scores, preferences) for n in range(shards)]

    def tell(done: int) -> None:
        told(done / shards, f"pooling the runs: {done:,} of {shards:,} shards")

    try:
        places = _done(steps, tell)
    except PoolError:
        remove_all(root)
        raise
    try:
        yield join_shards(frame, places)
    except ArchiveError as error:
        raise jobs.Hindered(f"A shard of the pool cannot be read: {error}. {SEEN}") from None
    remove_all(root)


def _done(steps: Sequence[PoolStoredRuns], tell: Callable[[int], None]) -> list[Place]:
    with _workers() as executor:
        tell(0)
        return do_steps(executor, steps, told=tell)


def cluster_sees_files() -> bool:
    """Whether a worker of the Dask cluster finds the stored files. Raises `jobs.Hindered`."""
    with _workers() as executor:
        return executor.submit(os.path.isdir, str(files.path_of("."))).result()


@contextmanager
def _workers() -> Iterator[Executor]:
    """Who does the work; what is in their way comes out as a sentence."""
    try:
        with open_executor(settings.SHARD_WORKERS, scheduler=settings.DASK_SCHEDULER) as executor:
            yield executor
    except BrokenExecutor:
        who = "The Dask cluster" if settings.DASK_SCHEDULER else "A process that pools the runs"
        why = "perhaps for want of memory"
        raise jobs.Hindered(f"{who} ended before the pool was built, {why}. {KEPT}") from None
    except ImportError as error:
        raise jobs.Hindered(f"The runs cannot be pooled: {error}.") from None
    except OSError as error:
        if not settings.DASK_SCHEDULER:
            raise
        told = f"The Dask cluster at {settings.DASK_SCHEDULER} cannot pool the runs: {error}"
        raise jobs.Hindered(f"{told}. {SEEN}") from None
