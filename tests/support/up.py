"""``manage.py up`` as a process of the tests; and the demo campaign that its first start loads."""

import contextlib
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import psutil

from tests.support import site
from tests.support.client import Api
from tests.support.site import REPO, base_environment

STOP_SECONDS = 60  # how long is waited; nothing is said of how long it takes


class Up:
    """One run of ``manage.py up`` on a free port."""

    def __init__(
        self,
        data: Path,
        *arguments: str,
        demo: bool = False,
        env: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.data = data
        self.output = data.parent / f"{data.name}.out"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                command(*arguments, *([] if demo else ["--no-demo"])),
                env=base_environment(data, **env),
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def text(self) -> str:
        return self.output.read_text()

    def wait_ready(self) -> None:
        """Until it announced its address."""
        over = re.compile(r"Stop with Ctrl-C\.\n$")
        wait_until(lambda: bool(over.search(self.text())) or self.process.poll() is not None, 300)
        assert self.process.poll() is None, self.text()

    @property
    def url(self) -> str:
        found = re.search(r"ready: (http://\S+)/", self.text())
        assert found, self.text()
        return found[1]

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def child(self, words: str) -> psutil.Process:
        return next(
            child
            for child in psutil.Process(self.process.pid).children()
            if words in " ".join(child.cmdline())
        )


def command(*arguments: str) -> list[str]:
    defaults = [] if "--port" in arguments else ["--port", "0"]
    return [sys.executable, "-u", str(REPO / "manage.py"), "up", *defaults, *arguments]


def wait_until(ask: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not ask():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def none_left(processes: list[psutil.Process]) -> bool:
    return not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in processes)


def end(running: Up) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        for process in [*running.children(), psutil.Process(running.process.pid)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
    running.process.wait()


def served_queues(data: Path) -> set[str]:
    """What the workers say of themselves in their heartbeats."""
    with contextlib.closing(sqlite3.connect(data / "evalsite.sqlite3")) as database:
        return {row[0] for row in database.execute("SELECT queues FROM judging_workerheartbeat")}


def everybody(up: Up) -> list[psutil.Process]:
    """A web server, and two workers of celery with their pools; ready is the site with one."""
    wait_until(lambda: len(up.children()) >= 5 and len(served_queues(up.data)) == 2)
    served = [up.child("--queues celery"), up.child("--queues uploads,celery")]
    assert served[0].pid != served[1].pid
    assert served_queues(up.data) == {"celery", "celery,uploads"}
    return up.children()


def assert_stops(up: Up, children: list[psutil.Process]) -> None:
    """It was told to, and leaves nothing behind."""
    assert up.process.wait(STOP_SECONDS) == 0
    assert none_left(children)
    assert up.text().endswith("Stopped.\n")


def loaded_demo() -> Path:
    """A data directory to be copied: up was started on it once, which loads the demo for half a
    minute, and was stopped as by Ctrl-C."""
    return site.made_once("demo", _started_with_the_demo)


def _started_with_the_demo(data: Path) -> None:
    site.prepare(data)
    first = Up(data, demo=True)
    try:
        first.wait_ready()
        assert "Loading the demo campaign" in first.text()
        shown = re.findall(r"^  (\w+) +password (\S+)", first.text(), re.MULTILINE)
        assert [name for name, _ in shown] == ["assessor", "organizer", "admin"]
        for name, password in shown:
            assert Api(first.url).sign_in(name, password).status == 302
        children = everybody(first)
        first.process.send_signal(signal.SIGINT)
        assert_stops(first, children)
    finally:
        end(first)
