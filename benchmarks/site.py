"""What a whole site takes: time to start, memory at rest, eight sign-ins, its environment.

`manage.py up` on SQLite, in a new folder; processor time is that of all its processes, memory what
they have for themselves and their share of what they have in common (PSS). At rest after work is a
site with the demo campaign: its jobs were done, its pages shown, and then nobody was there.
"""

import argparse
import concurrent.futures
import html
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchmarks.figures import Figure, tell
from tests.support.client import Api
from tests.support.ports import free_port
from tests.support.site import PASSWORD, REPO, base_environment, manage

SIGN_INS, AT_REST = 8, 20.0  # people at once; seconds until a site is at rest
RESTS_AFTER, RESTED = 10, 25.0  # seconds without work, and until all that follows is done
JOBS = ("recompute", "label-quality", "preview", "machine-agreement")
DONE_AGAIN = f"""
import time
from judging.models import Job
from judging.services import jobs
asked = [jobs.request(job.kind, job.target, data=job.data)
         for job in Job.objects.filter(kind__in={JOBS})]
ids = [job.pk for job in asked]
while Job.objects.filter(pk__in=ids, state__in=("queued", "running")).exists():
    time.sleep(0.1)
"""
MEGABYTE = 1e6
ORGANIZER = ("organizer", "evalsite-demo")
USERS = f"""
from judging.models import User
for number in range({SIGN_INS}):
    User.objects.create_user(f"user{{number}}", password={PASSWORD!r})
"""


@contextmanager
def started(data: Path, *arguments: str, **values: str) -> Iterator[tuple[psutil.Process, str]]:
    """A site that answers, and its address."""
    port = free_port()
    command = [sys.executable, "manage.py", "up", *arguments, "--port", str(port)]
    with (data / "up.log").open("wb") as log:
        up = subprocess.Popen(
            command, env=base_environment(data, **values), stdout=log, stderr=log, cwd=REPO,
            start_new_session=True,
        )  # fmt: skip
    try:
        while "Stop with Ctrl-C" not in (data / "up.log").read_text():
            if up.poll() is not None:
                raise SystemExit((data / "up.log").read_text())
            time.sleep(0.1)
        yield psutil.Process(up.pid), f"http://127.0.0.1:{port}"
    finally:
        up.terminate()
        up.wait(60)


def family(parent: psutil.Process) -> list[psutil.Process]:
    return [parent, *parent.children(recursive=True)]


def seconds_of(parent: psutil.Process) -> float:
    """Processor time of a process, of those it has, and of those it had."""
    times = [each.cpu_times() for each in family(parent)]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times)


def memory_of(parent: psutil.Process) -> float:
    return sum(each.memory_full_info().pss for each in family(parent)) / MEGABYTE


def largest_while(parent: psutil.Process, work: threading.Event) -> float:
    found = 0.0
    while not work.is_set():
        found = max(found, memory_of(parent))
        time.sleep(0.02)
    return found


def signed_in(parent: psutil.Process, url: str) -> float:
    """By how much memory grows while so many people sign in at once."""
    over, before = threading.Event(), memory_of(parent)
    with concurrent.futures.ThreadPoolExecutor(SIGN_INS + 1) as threads:
        watched = threads.submit(largest_while, parent, over)
        people = [Api(url) for _ in range(SIGN_INS)]
        signs = [
            threads.submit(api.sign_in, f"user{at}", PASSWORD) for at, api in enumerate(people)
        ]
        concurrent.futures.wait(signs)
        over.set()
        if any(each.result().status != 302 for each in signs):
            raise SystemExit("somebody could not sign in")
        return watched.result() - before


def after_work(data: Path) -> tuple[float, float]:
    """Memory of a site with the demo campaign: at work, and when it rests again."""
    with started(data):
        pass
    with started(data, REST_SECONDS=str(RESTS_AFTER)) as (up, url):
        people = Api(url)
        people.sign_in(*ORGANIZER)
        for page in links(people, "/"):
            people.get(page)
        manage(base_environment(data), "shell", "--no-imports", "--command", DONE_AGAIN)
        working = memory_of(up)
        time.sleep(RESTED)
        return working, memory_of(up)


def links(people: Api, page: str, most: int = 100) -> list[str]:
    """So many addresses of the site that are reached from a page, over others."""
    found = [page]
    for each in found:
        for link in re.findall(r'href="(/[^"#]*)"', people.get(each).text):
            if link not in found and not link.startswith("/static/") and len(found) < most:
                found.append(html.unescape(link))
    return found


def size_of_environment() -> float:
    """Megabytes of an environment with what a site needs to run."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        install = [f"{folder}/bin/python", "-m", "pip", "--quiet", "--quiet", "install"]
        subprocess.run([*install, "--requirement", REPO / "requirements.txt"], check=True)
        sizes = (path.lstat().st_size for path in Path(folder).rglob("*") if not path.is_dir())
        return sum(sizes) / MEGABYTE


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        with started(data, "--no-demo"):
            pass  # the database is there from now on, and modules are compiled
        manage(base_environment(data), "shell", "--no-imports", "--command", USERS)
        with started(data, "--no-demo") as (up, url):
            tell(Figure("start of a site", seconds_of(up), "s", most=4.0))
            time.sleep(AT_REST)
            tell(Figure("memory of a site at rest", memory_of(up), "MB", most=300.0))
            work = f"{SIGN_INS} sign-ins at once: more memory"
            tell(Figure(work, signed_in(up, url), "MB", most=200.0))
    with tempfile.TemporaryDirectory() as folder:
        working, rested = after_work(Path(folder))
        work = "memory of a site at rest after work"
        tell(Figure(work, rested, "MB", "at work", working, most=300.0))
    tell(Figure("size of the environment of a site", size_of_environment(), "MB", most=450.0))


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    os.umask(0o077)
    main()
