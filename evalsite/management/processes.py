"""The web server and the worker as child processes of one supervisor.

A child leads a process group of its own, so that Ctrl-C in a terminal reaches the supervisor
alone, and so that whatever the child forked can be ended with it.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

WEB_THREADS = 8
WORKER_PROCESSES = 2
READER_PROCESSES = 1
GRACE_SECONDS = 6
PR_SET_PDEATHSIG = 1


def web_command(bind: str, *, threads: int = WEB_THREADS) -> list[str]:
    """The embedded server on ``host:port`` or ``fd://N``; it takes whole requests only."""
    return [sys.executable, "-m", "evalsite.server", bind, "--threads", str(threads)]


def gunicorn_command(bind: str, *, threads: int = WEB_THREADS) -> list[str]:
    """The server of production, which a proxy that buffers requests stands before."""
    shared_memory = Path("/dev/shm")  # noqa: S108  (gunicorn's heartbeat must not wait for a disk)
    usable = os.access(shared_memory, os.W_OK | os.X_OK)
    return [
        *(sys.executable, "-m", "gunicorn", "evalsite.wsgi", "--bind", bind),
        *("--workers", "1", "--threads", str(threads), "--timeout", "120"),
        *("--graceful-timeout", str(GRACE_SECONDS), "--no-control-socket"),
        *("--worker-tmp-dir", str(shared_memory if usable else tempfile.gettempdir())),
    ]


def worker_command(
    *, processes: int = WORKER_PROCESSES, name: str = "evalsite", queues: Sequence[str] = ()
) -> list[str]:
    """A Celery worker that takes from the queues, or from all."""
    return [
        *(sys.executable, "-m", "evalsite.celery_worker", "--name", name),
        *("--processes", str(processes)),
        *(["--queues", ",".join(queues)] if queues else []),
    ]


@dataclass
class Child:
    """One command, started any number of times; its output is appended to ``log``.

    Should this process be killed, the kernel sends the child ``orphan_signal``.
    """

    name: str
    command: Sequence[str]
    log: Path
    env: Mapping[str, str]
    cwd: Path
    orphan_signal: signal.Signals = signal.SIGTERM
    inherit: tuple[int, ...] = ()
    started: float = field(default=0.0, init=False)
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def pid(self) -> int:
        if self.process is None:
            raise RuntimeError(f"{self.name} was not started")
        return self.process.pid

    def start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=dict(self.env),
                cwd=self.cwd,
                process_group=0,
                pass_fds=self.inherit,
                preexec_fn=_dies_with_parent(self.orphan_signal),  # noqa: PLW1509
            )
        self.started = time.monotonic()

    def returncode(self) -> int | None:
        """None while it runs."""
        return self.process.poll() if self.process else None

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        if self.running():
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends the child and everything it forked, at once."""
        if self.process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()


def _dies_with_parent(number: signal.Signals) -> Callable[[], None] | None:
    if not sys.platform.startswith("linux"):
        return None
    prctl = ctypes.CDLL(None).prctl
    parent = os.getpid()

    def before_exec() -> None:
        prctl(PR_SET_PDEATHSIG, int(number))
        if os.getppid() != parent:
            os._exit(1)

    return before_exec


def rotate(log: Path) -> None:
    """Keeps the log of the start before as ``*.log.1``."""
    if log.exists():
        log.replace(log.with_name(log.name + ".1"))
