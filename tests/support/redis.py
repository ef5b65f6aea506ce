"""A private Redis on a unix socket, as production runs it: appendonly, noeviction."""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import redis

MISSING = "Redis is not installed (apt-get install redis-server)"


class RedisServer:
    """``kill`` and ``start`` keep the data; ``stop`` removes it."""

    def __init__(self, *, appendonly: bool = True) -> None:
        if shutil.which("redis-server") is None:
            raise RuntimeError(MISSING)
        self.folder = Path(tempfile.mkdtemp(prefix="evs-redis-", dir="/tmp"))
        self.socket = self.folder / "socket"
        self.appendonly = appendonly
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """For CELERY_BROKER_URL."""
        return f"redis+socket://{self.socket}"

    @property
    def pid(self) -> int:
        if self.process is None:
            raise RuntimeError("Redis was not started")
        return self.process.pid

    def client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.socket))

    def start(self) -> None:
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "dir": str(self.folder),
            "appendonly": "yes" if self.appendonly else "no",
            "appendfsync": "always",
            "maxmemory-policy": "noeviction",
            "save": "",
            "logfile": str(self.folder / "log"),
        }
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", "redis-server"]
            + [part for name, value in options.items() for part in (f"--{name}", value)],
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._wait_ready()

    def _wait_ready(self, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.client().ping()
                return
            except redis.ConnectionError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def kill(self) -> None:
        """kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()

    def stop(self) -> None:
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
