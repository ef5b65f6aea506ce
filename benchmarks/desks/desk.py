"""What a desk is that judgments are given at: a server that runs, and people who have signed in."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple

import psutil

from benchmarks.clients import DOCUMENTS, GRADES, TEXT, TOPICS, Client, NoAnswer
from benchmarks.site import seconds_of
from tests.support.client import Api
from tests.support.site import Process, base_environment

WAIT = 300.0  # seconds until a server must answer
SCALE = [str(grade) for grade in range(GRADES)]


class Label(NamedTuple):
    """A grade that is stored, by the number of who gave it."""

    item: str
    person: int
    grade: int


@dataclass(frozen=True)
class Desk:
    """``processes`` are the server's, without those that these have started."""

    processes: Sequence[int]
    clients: Sequence[Client]
    stored: Callable[[], Sequence[Label]]

    def seconds(self) -> float:
        """Processor time of all processes of the server, also of those that have ended."""
        return sum(seconds_of(psutil.Process(process)) for process in self.processes)


def items() -> list[tuple[str, str, str]]:
    """Name, topic and document of each item: the pairs that are judged on a site of ours."""
    return [
        (f"t{topic}-d{document}", f"topic {topic}", TEXT)
        for topic in range(1, TOPICS + 1)
        for document in range(DOCUMENTS)
    ]


def numbered(name: str) -> int:
    """The number that the name of an account has."""
    found = re.search(r"\d+", name)
    if found is None:
        raise NoAnswer(f"nobody is called {name}")
    return int(found[0])


def environment(folder: Path, values: Mapping[str, str]) -> dict[str, str]:
    """What a server of others sees: no configuration of ours, and a home of its own."""
    return base_environment(folder, HOME=str(folder), OMP_NUM_THREADS="1", **values)


def process(name: str, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> Process:
    return Process(name, list(command), folder / f"{name}.log", env, folder)


def wait_ready(server: Process, url: str, path: str) -> None:
    """Until the server answers. Raises NoAnswer if it ends before, or never does."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        if not server.running():
            lines = server.log.read_text(errors="replace").split("\n")
            last = next(filter(None, map(str.strip, reversed(lines))), "nothing")
            raise NoAnswer(f"its server ended with {server.returncode()} and said {last}")
        try:
            if Api(url, timeout=5).get(path).status < 400:
                return
        except (OSError, HTTPException):
            pass
        time.sleep(0.2)
    raise NoAnswer(f"its server did not answer in {WAIT:.0f} s")
