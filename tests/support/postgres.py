"""A private PostgreSQL cluster on a unix socket, for as long as this process lives."""

import atexit
import functools
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg

ROLE = "evalsite"
MISSING = "PostgreSQL is not installed (apt-get install postgresql)"


def bin_dir() -> Path | None:
    """Where the newest installed PostgreSQL has its programs."""
    versions = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[-3])
    )
    found = versions[-1] if versions else shutil.which("postgres")
    return Path(found).parent if found else None


def _as_owner() -> list[str]:
    """PostgreSQL refuses to run as root; the kernel ends it when its starter dies."""
    command = ["setpriv", "--pdeathsig=INT"]
    if os.getuid() == 0:
        account = pwd.getpwnam("postgres")
        command += [f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    return command


class Postgres:
    """One cluster; ``durable`` turns fsync on, for drills that kill it.

    With ``rolls_back`` it is for tests whose rows are never committed. Its statistics then tell of
    empty tables in which there are many dead rows, and loops in loops over all of these, which is
    what the planner takes for such tables, take seconds; so there it does without.
    """

    def __init__(self, *, durable: bool = False, rolls_back: bool = False) -> None:
        programs = bin_dir()
        if programs is None:
            raise RuntimeError(MISSING)
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="evs-pg-", dir="/tmp"))
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
        self.durable = durable
        self.rolls_back = rolls_back
        self.process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._run("initdb", "-D", str(self.folder / "data"), "-U", ROLE, "-A", "trust", "-N")

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [*_as_owner(), str(self.programs / program), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
        )

    def start(self) -> None:
        settings = ["listen_addresses=", f"unix_socket_directories={self.folder}"]
        settings += ["max_connections=200", "shared_buffers=64MB"]
        if not self.durable:
            settings += ["fsync=off", "synchronous_commit=off", "full_page_writes=off"]
        if self.rolls_back:
            settings += ["enable_nestloop=off", "jit=off"]
        options = [part for setting in settings for part in ("-c", setting)]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *_as_owner(),
                    str(self.programs / "postgres"),
                    "-D",
                    str(self.folder / "data"),
                    *options,
                ],
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        self.wait_ready()

    def wait_ready(self, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def url(self, database: str) -> str:
        return f"postgres://{ROLE}@/{database}?host={self.folder}"

    def create_database(self, template: str = "template0") -> str:
        """A fresh database; its DATABASE_URL."""
        name = f"site_{os.getpid()}_{next(self._numbers)}"
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return self.url(name)

    def dump(self, url: str, file: Path) -> None:
        """Writes all that is in a database; for ``load``."""
        self._client("pg_dump", url, "--no-owner", "--file", str(file))

    def load(self, url: str, file: Path) -> None:
        self._client("psql", url, "--quiet", "--set", "ON_ERROR_STOP=1", "--file", str(file))

    def _client(self, program: str, url: str, *arguments: str) -> None:
        command = [str(self.programs / program), "--dbname", url, *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")

    def kill(self) -> None:
        """kill -9 of the postmaster; its processes notice and end."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self) -> None:
        """At once, without a checkpoint: nothing of it is kept."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait(timeout=30)
        shutil.rmtree(self.folder, ignore_errors=True)


@functools.cache
def shared_cluster() -> str:
    """URL of a database on the cluster that the whole run shares; started by its first process."""
    known = os.environ.get("EVALSITE_TEST_POSTGRES_URL")
    if known:
        return known
    cluster = Postgres(rolls_back=True)
    cluster.start()
    atexit.register(cluster.stop)
    os.environ["EVALSITE_TEST_POSTGRES_URL"] = cluster.url("postgres")
    return cluster.url("postgres")
