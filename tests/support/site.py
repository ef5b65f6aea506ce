"""A whole site of real processes: gunicorn, Celery workers, its own database and broker."""

import fcntl
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import psutil

from evalsite.management.processes import Child, gunicorn_command, web_command, worker_command
from tests.support.client import Api
from tests.support.ports import free_port
from tests.support.postgres import Postgres
from tests.support.redis import RedisServer

REPO = Path(__file__).resolve().parents[2]
PASSWORD = "correct-horse-7"
T = TypeVar("T")


def base_environment(data: Path, **values: str) -> dict[str, str]:
    """What a site's processes see: this environment without anybody else's configuration."""
    foreign = (
        *("EVALSITE_", "DJANGO_", "DATABASE_URL", "CELERY_", "SITE_URL", "ALLOWED_HOSTS"),
        *("MACHINE_", "EMAIL_URL", "MAIL_FROM", "OIDC_", "SECOND_FACTOR_FOR"),
        *("SHARD", "DASK_"),
    )
    env = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    env["EVALSITE_DATA"] = str(data)
    return env | values


def manage(env: Mapping[str, str], *arguments: str) -> str:
    """Runs manage.py to its end and returns what it printed. Raises with all its output."""
    command = [sys.executable, str(REPO / "manage.py"), *arguments]
    done = subprocess.run(
        command, env=dict(env), capture_output=True, text=True, cwd=REPO, check=False
    )
    if done.returncode:
        raise AssertionError(
            f"manage.py {' '.join(arguments)[:200]} ended with {done.returncode}\n"
            f"{done.stdout}\n{done.stderr}"
        )
    return done.stdout


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first process of the run makes which asks for it; to be copied."""
    folder = Path(os.environ.get("EVALSITE_TEST_SHARED") or os.environ["EVALSITE_DATA"]) / name
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = folder.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            make(unfinished)
            unfinished.rename(folder)
    return folder


def migrate(env: Mapping[str, str]) -> None:
    """Without looking for mistakes in the code first, which takes as long as to make the tables."""
    manage(env, "migrate", "--skip-checks", "--verbosity", "0")


def migrated(data: Path) -> None:
    migrate(base_environment(data))


def _prepare(data: Path) -> None:
    shutil.copytree(made_once("tables", migrated), data)
    manage(base_environment(data), "collectstatic", "--no-input", "--verbosity", "0")


def prepare(data: Path) -> None:
    """Gives a data directory a migrated SQLite file and static files."""
    shutil.copytree(made_once("prepared", _prepare), data, dirs_exist_ok=True)


@functools.cache
def _migrated(postgres: Postgres) -> str:
    """A database with all tables, to be copied; every process has a cluster of its own."""

    def make(folder: Path) -> None:
        first = postgres.create_database()
        migrate(base_environment(folder, DATABASE_URL=first))
        postgres.dump(first, folder / "tables.sql")

    url = postgres.create_database()
    postgres.load(url, made_once("migrated", make) / "tables.sql")
    return urlsplit(url).path.removeprefix("/")


class Process(Child):
    """A child of the tests, with what drills do to it."""

    def kill_child(self) -> int:
        """kill -9 of one process it forked; its pid."""
        deadline = time.monotonic() + 20
        while not (forked := psutil.Process(self.pid).children()):
            assert time.monotonic() < deadline, f"{self.name} forks no process"
            time.sleep(0.05)
        forked[0].kill()
        return forked[0].pid

    def stop(self, seconds: float = 30) -> int:
        """SIGTERM, and its exit code."""
        self.signal(signal.SIGTERM)
        assert self.process is not None
        return self.process.wait(seconds)

    def restart(self) -> None:
        self.kill()
        self.start()


class Site:
    """Processes on ``stack`` ("sqlite" or "postgres"); ``start`` returns when all is ready."""

    def __init__(
        self,
        stack: str,
        *,
        postgres: Postgres | None = None,
        redis: RedisServer | None = None,
        workers: int = 1,
        processes: int = 1,
        env: Mapping[str, str] | None = None,
        data: Path | None = None,
        like: Path | None = None,
    ) -> None:
        """With ``like``, it begins as that data directory is.

        Workers have one process each, as those of `up`; every process loads SciPy for itself.
        """
        self.stack = stack
        self.data = data or Path(tempfile.mkdtemp(prefix=f"evs-{stack}-"))
        if like is None:
            prepare(self.data)
        else:
            shutil.copytree(like, self.data, dirs_exist_ok=True)
        self.broker = redis
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        values = {"SITE_URL": self.url, "SWEEP_SECONDS": "1"}
        self.database_url = f"sqlite:///{self.data / 'evalsite.sqlite3'}"
        if stack == "postgres":
            assert postgres is not None
            assert redis is not None
            self.database_url = postgres.create_database(_migrated(postgres))
            values |= {"DATABASE_URL": self.database_url, "CELERY_BROKER_URL": redis.url}
        self.env = base_environment(self.data, **values | dict(env or {}))
        web = gunicorn_command if stack == "postgres" else web_command
        self.web = self._process("web", web(f"127.0.0.1:{self.port}"))
        self.workers = [
            self._process(
                f"worker{n}",
                worker_command(processes=processes, name=f"worker{n}"),
                signal.SIGKILL,
            )
            for n in range(1, workers + 1)
        ]

    def _process(
        self, name: str, command: list[str], orphan_signal: signal.Signals = signal.SIGTERM
    ) -> Process:
        log = self.data / "log" / f"{name}.log"
        return Process(name, command, log, self.env, REPO, orphan_signal)

    def start(self) -> "Site":
        for process in (self.web, *self.workers):
            process.start()
        self.wait_ready()
        return self

    def stop(self) -> None:
        """Ends every process (at once: what must survive that is in the database)."""
        for process in (*self.workers, self.web):
            process.kill()
        shutil.rmtree(self.data, ignore_errors=True)

    def ready(self) -> bool:
        """Whether this site answers, and no other server that has come to have its port."""
        try:
            answered = Api(self.url, timeout=5).get("/health/ready").status == 200
        except OSError:
            return False
        return answered and self.web.running()

    def wait_ready(self, seconds: float = 150) -> None:
        self.wait_until(self.ready, seconds, what="the site is ready")

    def wait_until(self, ask: Callable[[], T], seconds: float = 150, *, what: str = "it") -> T:
        """Asks until the answer is true, and returns it; else fails with the logs.

        A machine with other things to do takes several times as long as a quiet one.
        """
        began = time.monotonic()
        while not (answer := ask()):
            waited = time.monotonic() - began
            if waited > seconds:
                raise AssertionError(f"after {seconds} s not yet: {what}\n{self.logs()}")
            time.sleep(min(0.5, 0.05 + waited / 10))  # to ask costs the site as much as an answer
        return answer

    def log(self, name: str) -> str:
        """Of "web" or "worker" (all of them)."""
        files = sorted((self.data / "log").glob(f"{name}*.log"))
        return "\n".join(file.read_text(errors="replace") for file in files)

    def logs(self) -> str:
        return "\n".join(f"{name}:\n{self.log(name)[-3000:]}" for name in ("web", "worker"))

    def manage(self, *arguments: str) -> str:
        return manage(self.env, *arguments)

    def python(self, code: str) -> str:
        """Runs code in a Django process of this site; what it printed."""
        return self.manage("shell", "--no-imports", "--command", code)

    def api(self, key: str | None = None) -> Api:
        return Api(self.url, key)

    def add_users(
        self, *names: str, organizer: bool = False, admin: bool = False
    ) -> dict[str, str]:
        """Accounts with the password PASSWORD; user name to a key of the REST interface."""
        out = self.python(
            f"""
import json
from judging.models import User
from judging.services import members
keys = {{}}
for name in {list(names)!r}:
    user = User.objects.create_user(name, password={PASSWORD!r}, is_organizer={organizer},
        is_staff={admin}, is_superuser={admin})
    keys[name] = members.create_token(user=user, name="test")
print(json.dumps(keys))
"""
        )
        return dict(json.loads(out.strip().splitlines()[-1]))
