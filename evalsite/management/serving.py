"""What ``up`` becomes once the site is prepared: ``python -m evalsite.management.serving``.

The supervisor lives as long as the site and needs nothing of Django, which took 60 MB in a process
that only waits. It is the same process: its id, the hold on the data directory and the listening
socket stay.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

from evalsite.management.processes import (
    READER_PROCESSES,
    WORKER_PROCESSES,
    Child,
    rotate,
    web_command,
    worker_command,
)
from evalsite.management.supervisor import STOP_SIGNALS, GaveUp, Supervisor

BASE_DIR = Path(__file__).resolve().parents[2]
LOOPBACK = {"127.0.0.1", "::1", "localhost"}
EVERY_ADDRESS = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
ANSWER_SECONDS = 5


@dataclass(frozen=True)
class Serving:
    """A prepared site: ``listener`` and ``lock`` are open files, ``announcement`` is said when it
    is ready, ``queue`` and ``uploads`` name what workers take from."""

    host: str
    port: int
    listener: int
    lock: int
    data: str
    queue: str
    uploads: str
    announcement: str

    def children(self) -> list[Child]:
        """The web server; one worker that never reads uploads, so that no file keeps estimates
        waiting; and a reader, which does everything else, too, while there is nothing to read."""
        web = web_command(f"fd://{self.listener}")
        worker = worker_command(processes=WORKER_PROCESSES - READER_PROCESSES, queues=[self.queue])
        reader = worker_command(
            processes=READER_PROCESSES, name="reader", queues=[self.uploads, self.queue]
        )
        # SIGTERM would let an orphan finish a job of an hour; leases make SIGQUIT safe.
        return [
            self._child("web", web, signal.SIGTERM, self.listener),
            self._child("worker", worker, signal.SIGQUIT),
            self._child("reader", reader, signal.SIGQUIT),
        ]

    def _child(
        self, name: str, command: list[str], orphan_signal: signal.Signals, *inherit: int
    ) -> Child:
        log = Path(self.data) / "log" / f"{name}.log"
        env = child_environment(self.host, self.port, self.data)
        return Child(name, command, log, env, BASE_DIR, orphan_signal, inherit)


def become(serving: Serving) -> NoReturn:
    """Goes on as the supervisor of the site. A stop signal in between waits for it."""
    for number in (serving.listener, serving.lock):
        os.set_inheritable(number, True)
    sys.stdout.flush()
    signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    os.chdir(BASE_DIR)
    command = [sys.executable, "-m", "evalsite.management.serving", json.dumps(asdict(serving))]
    os.execv(sys.executable, command)  # noqa: S606


def main(described: str) -> int:
    serving = Serving(**json.loads(described))
    children = serving.children()
    for child in children:
        rotate(child.log)
    listener = socket.socket(fileno=serving.listener)
    supervisor = Supervisor(children, say, on_stop=listener.close)
    try:
        supervisor.run(
            ready=lambda: answers(serving.host, serving.port), announcement=serving.announcement
        )
    except GaveUp as reason:
        sys.stderr.write(f"{reason}\n")
        return 1
    finally:
        os.ftruncate(serving.lock, 0)
    supervisor.tell("Stopped.")
    return 0


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def address(host: str, port: int) -> str:
    shown = EVERY_ADDRESS.get(host, host)
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def child_environment(host: str, port: int, data: str) -> Mapping[str, str]:
    """This environment; where it does not say how the site is reached, host and port do."""
    env = os.environ | {"EVALSITE_DATA": data}
    if "SITE_URL" not in env:
        env["SITE_URL"] = address(host, port)
        if "ALLOWED_HOSTS" not in env and host in EVERY_ADDRESS:
            env["ALLOWED_HOSTS"] = ",".join([*sorted(LOOPBACK - {"::1"}), "[::1]", *own_names()])
    return env


def own_names() -> list[str]:
    """This machine's names and the address by which its network knows it."""
    names = {socket.gethostname(), socket.getfqdn()}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; the kernel chooses the interface
            names.add(probe.getsockname()[0])
        except OSError:
            pass
    return sorted(names)


def answers(host: str, port: int) -> bool:
    """Does /health/ready say that everything works?"""
    place = (EVERY_ADDRESS.get(host, host), port)
    try:
        with socket.create_connection(place, timeout=ANSWER_SECONDS) as web:
            web.sendall(b"GET /health/ready HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
            with web.makefile("rb") as answer:
                return answer.readline(1000).split()[1:2] == [b"200"]
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
