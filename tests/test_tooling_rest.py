"""A site that has worked lets memory go when nobody is there, and loses no work by it."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from benchmarks.site import memory_of
from tests.support import site
from tests.support.client import Api
from tests.support.site import base_environment
from tests.support.up import Up, end, loaded_demo, wait_until

pytestmark = [pytest.mark.services, pytest.mark.slow]
MOST_MEGABYTES = 300
SIGN_IN = ("organizer", "evalsite-demo")
PAUSES = (0.1, 1.0, 1.6, 1.9, 2.0, 2.1, 2.2, 2.3, 2.5, 2.8, 3.3, 4.0)  # about REST_SECONDS
ONE_JOB_AFTER_THE_OTHER = f"""
import time
from judging.models import Job
from judging.services import jobs
job = Job.objects.filter(kind="recompute").latest("pk")
for pause in {PAUSES}:
    time.sleep(pause)
    asked = jobs.request("recompute", job.target)
    deadline = time.monotonic() + 100
    while Job.objects.get(pk=job.pk).done < asked.requested:
        assert time.monotonic() < deadline, pause
        time.sleep(0.05)
print(Job.objects.get(pk=job.pk).state)
"""


@pytest.fixture
def up() -> Iterator[Up]:
    with tempfile.TemporaryDirectory(prefix="evs-rest-") as folder:
        data = Path(folder) / "data"
        shutil.copytree(loaded_demo(), data)
        running = Up(data, env={"REST_SECONDS": "2", "SWEEP_SECONDS": "1"})
        try:
            running.wait_ready()
            yield running
        finally:
            end(running)


def megabytes(up: Up) -> float:
    """Of all processes; one may end while they are looked at."""
    while True:
        with contextlib.suppress(psutil.NoSuchProcess):
            return memory_of(psutil.Process(up.process.pid))


def pool(up: Up) -> set[int]:
    """The processes that do jobs: all that workers have forked."""
    direct = {child.pid for child in psutil.Process(up.process.pid).children()}
    return {child.pid for child in up.children()} - direct


def ready_for_jobs(up: Up) -> list[int]:
    """Those of them that have loaded SciPy."""
    found = []
    for pid in pool(up):
        with contextlib.suppress(psutil.NoSuchProcess):
            if any("_sparsetools" in mapped.path for mapped in psutil.Process(pid).memory_maps()):
                found.append(pid)
    return found


def visited(up: Up) -> None:
    """Pages that take much memory, by somebody who has signed in."""
    people = Api(up.url)
    assert people.sign_in(*SIGN_IN).status == 302
    for path in ("/", "/docs/", "/account/", *["/api/schema/"] * 4):
        assert people.get(path).status == 200, path


def test_memory_goes_back_after_work_and_is_there_before_work(up: Up) -> None:
    wait_until(lambda: not pool(up))
    at_rest = megabytes(up)
    visited(up)
    wait_until(lambda: len(ready_for_jobs(up)) == 2)  # before anything is to be done
    assert megabytes(up) > at_rest + 60
    wait_until(lambda: not pool(up))
    wait_until(lambda: megabytes(up) < MOST_MEGABYTES - 30)

    site.manage(base_environment(up.data), "shell", "--no-imports", "-c", ONE_JOB_AFTER_THE_OTHER)
    wait_until(lambda: not pool(up))
    wait_until(lambda: megabytes(up) < MOST_MEGABYTES - 30)


def test_jobs_that_come_while_processes_end_are_done_at_their_first_try(up: Up) -> None:
    wait_until(lambda: not pool(up))
    told = site.manage(
        base_environment(up.data), "shell", "--no-imports", "-c", ONE_JOB_AFTER_THE_OTHER
    )
    assert told.split() == ["done"]
    logs = "".join(path.read_text() for path in (up.data / "log").glob("*.log"))
    assert "ERROR" not in logs
    assert "lost" not in logs
