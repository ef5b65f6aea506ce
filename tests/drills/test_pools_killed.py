"""Real sites whose pools are built in shards, by a Dask cluster or by processes that are killed."""

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import MakeSite
from tests.support.client import Api
from tests.support.crowd import Organizer, got
from tests.support.material import small_material
from tests.support.ports import free_port
from tests.support.site import PASSWORD, REPO, Process, Site, base_environment

pytestmark = [pytest.mark.services, pytest.mark.slow]
TOPICS, RUNS, DOCUMENTS = 300, 4, 40
MATERIAL = small_material(topics=TOPICS, documents=DOCUMENTS, runs=RUNS, depth=DOCUMENTS)
SMALL_SHARDS = {"SHARDED_FROM_LINES": "1000", "SHARD_LINES": str(RUNS * DOCUMENTS)}
"""A topic each."""
POOLS = """
import json
from estimation.models import StoredPool
from estimation.services import files, pools
from estimation.services.pools import PoolKind
told = []
for row in StoredPool.objects.order_by("pk"):
    topics = list(row.campaign.topics.values_list("topic_id", flat=True))
    alone = pools._pooled(topics, list(row.campaign.runs.all()), row.depth, PoolKind.DOCUMENTS)
    told.append([row.file, files.keep_written("pools", alone.save), row.pair_count, len(alone)])
print(json.dumps(told))
"""


class Cluster:
    """A scheduler and two workers of one thread each, as an administrator starts them."""

    def __init__(self, folder: Path) -> None:
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.folder = folder
        self.env = base_environment(folder / "none", PYTHONPATH=str(REPO))
        port = self.address.rpartition(":")[2]
        self.scheduler = self._process("scheduler", "--host", "127.0.0.1", "--port", port)
        self.workers = [
            self._process("worker", self.address, "--no-nanny", "--nthreads", "1", number=n)
            for n in (1, 2)
        ]

    def _process(self, kind: str, *options: str, number: int = 0) -> Process:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", *options, "--no-dashboard"]
        log = self.folder / f"{kind}{number or ''}.log"
        return Process(f"{kind}{number}", command, log, self.env, self.folder, signal.SIGKILL)

    def start(self) -> None:
        for process in (self.scheduler, *self.workers):
            if not process.running():
                process.start()

    def kill(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip("distributed")
    made = Cluster(tmp_path_factory.mktemp("dask"))
    made.start()
    try:
        yield made
    finally:
        made.kill()


@pytest.fixture(scope="module")
def site(make_site: MakeSite, cluster: Cluster) -> Site:
    return make_site(
        "sqlite",
        env=SMALL_SHARDS
        | {
            "DASK_SCHEDULER": cluster.address,
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "2s",
        },
    )


@pytest.fixture(scope="module")
def organizer(site: Site) -> Organizer:
    return with_runs(site)


def with_runs(site: Site) -> Organizer:
    made = Organizer(site, site.api(site.add_users("olga", organizer=True)["olga"]), "large")
    made.create()
    made.bring(MATERIAL)
    return made


def shards(site: Site) -> int:
    """How many shards of a pool that is being built are there."""
    return len(list(site.data.glob("shards/*/*/*/facts.json")))


def draft(organizer: Organizer, *, depth: int) -> int:
    """Asks for a round over another pool than those before, and returns its number."""
    plan = {"measure": "DCG@5", "budget": 60, "batch_size": 30, "depth": depth}
    plan |= {"method": "poisson"}
    return int(got(organizer.api.post(f"{organizer.base}rounds/", plan), 201)["number"])


def preview(organizer: Organizer, number: int) -> dict[str, Any]:
    """The job of the preview, with what came of it."""
    row = got(organizer.api.get(f"{organizer.base}rounds/{number}/"))
    return row["jobs"]["preview"] | {"found": row["preview"]}


def begun(organizer: Organizer) -> None:
    """Waits until some shards are there, and asserts that most are still to come."""
    site = organizer.site
    there = site.wait_until(lambda: shards(site) >= 5 and shards(site), what="some shards")
    assert there < TOPICS / 2, "it was too quick, which shows nothing"


def is_that_of_one_process(site: Site, pools: int) -> bool:
    """Whether the files of all pools have the bytes that one process writes, and no shard stays."""
    told = json.loads(site.python(POOLS).strip().splitlines()[-1])
    assert len(told) == pools
    return all(file == alone and n == m for file, alone, n, m in told) and not shards(site)


def test_a_worker_that_is_killed_changes_nothing(organizer: Organizer, cluster: Cluster) -> None:
    number = draft(organizer, depth=30)
    begun(organizer)
    cluster.workers[0].kill()
    done = organizer.site.wait_until(
        lambda: (told := preview(organizer, number))["found"] and told, what="the preview"
    )
    assert done["found"]["error"] is None
    assert is_that_of_one_process(organizer.site, 1)
    cluster.start()


def test_a_scheduler_that_is_killed_is_told_and_the_job_can_be_tried_again(
    organizer: Organizer, cluster: Cluster
) -> None:
    site = organizer.site
    number = draft(organizer, depth=20)
    begun(organizer)
    cluster.kill()
    failed = site.wait_until(
        lambda: (told := preview(organizer, number))["state"] == "failed" and told,
        what="the failure",
    )
    assert f"The Dask cluster at {cluster.address} cannot pool the runs" in failed["error"]
    left = shards(site)
    assert 5 <= left < TOPICS, "what is done is kept"
    browser = Api(site.url)
    browser.sign_in("olga", PASSWORD)
    page = f"/c/{organizer.slug}/rounds/{number}/"
    assert "cannot pool the runs" in browser.get(page).text
    cluster.start()
    got(organizer.api.post(f"{organizer.base}work/{failed['id']}/retry/"), 202)
    done = site.wait_until(
        lambda: (told := preview(organizer, number))["found"] and told, what="the preview"
    )
    assert done["found"]["error"] is None
    assert "cannot pool the runs" not in browser.get(page).text
    assert is_that_of_one_process(site, 2)


def spawned(worker: Process) -> list[psutil.Process]:
    """The processes that build shards for a worker."""
    every = psutil.Process(worker.pid).children(recursive=True)
    return [each for each in every if "spawn_main" in " ".join(each.cmdline())]


def test_a_worker_of_the_site_that_is_killed_leaves_no_process_and_the_next_goes_on(
    make_site: MakeSite,
) -> None:
    site = make_site("sqlite", env=SMALL_SHARDS | {"SHARD_WORKERS": "2", "JOB_LEASE_SECONDS": "2"})
    organizer = with_runs(site)
    number = draft(organizer, depth=30)
    begun(organizer)
    building = spawned(site.workers[0])
    assert len(building) == 2
    site.workers[0].kill_child()
    site.wait_until(lambda: not any(map(alive, building)), what="nobody builds shards for it")
    done = site.wait_until(
        lambda: (told := preview(organizer, number))["found"] and told, what="the preview"
    )
    assert done["found"]["error"] is None
    assert is_that_of_one_process(site, 1)
    assert not spawned(site.workers[0])


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
