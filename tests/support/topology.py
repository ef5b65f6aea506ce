"""The two ways in which evalsite is run for people: as compose.yaml composes it, and `up`."""

import contextlib
import functools
import os
import pwd
import random
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psutil
import yaml

from tests.support.ports import free_port
from tests.support.postgres import Postgres
from tests.support.redis import RedisServer
from tests.support.site import REPO, Process, Site

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
NGINX_MISSING = "nginx is not installed (apt-get install nginx)"
AROUND = """
daemon off; pid {folder}/pid; error_log {folder}/error.log; user {user}; worker_processes 1;
events {{ worker_connections 1000; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    {server}
}}
"""
VICTIMS = ("web worker", "web group", "worker parent", "worker child")


def nginx_command(folder: Path, port: int, web: int) -> list[str]:
    """nginx on ``port`` with deploy/nginx.conf, before the server on ``web``."""
    if NGINX is None:
        raise RuntimeError(NGINX_MISSING)
    server = (REPO / "deploy" / "nginx.conf").read_text("utf-8")
    assert "listen 8000;" in server
    assert "http://web:8000" in server
    server = server.replace("listen 8000;", f"listen 127.0.0.1:{port};")
    server = server.replace("http://web:8000", f"http://127.0.0.1:{web}")
    folder.mkdir(exist_ok=True)
    user = pwd.getpwuid(os.getuid()).pw_name
    conf = folder / "nginx.conf"
    conf.write_text(AROUND.format(folder=folder, server=server, user=user), "utf-8")
    return [NGINX, "-p", str(folder), "-c", str(conf)]


@functools.cache
def _services() -> dict[str, Any]:
    composed = yaml.safe_load((REPO / "compose.yaml").read_text("utf-8"))
    return dict(composed["services"])


def composed_command(service: str, *, port: int = 0) -> list[str]:
    """What compose.yaml runs as this service, here and now."""
    command: str = _services()[service]["command"]
    words = [word.replace("0.0.0.0:8000", f"127.0.0.1:{port}") for word in shlex.split(command)]
    words = [sys.executable, "-m", *words]
    if "celery" in words:  # containers have host names of their own
        words += ["--hostname", f"{service}@%h"]
    return words


class Production(Site):
    """gunicorn behind nginx, two workers, PostgreSQL and Redis, as in compose.yaml."""

    def __init__(
        self, *, postgres: Postgres, redis: RedisServer, env: Mapping[str, str] | None = None
    ) -> None:
        values = {"BEHIND_PROXY": "true", "SWEEP_SECONDS": "3"} | dict(env or {})
        super().__init__("postgres", postgres=postgres, redis=redis, env=values)
        self.postgres = postgres
        behind = free_port()
        self.web = self._process("web", composed_command("web", port=behind))
        self.workers = [
            self._process(f"worker-{name}", composed_command(name), signal.SIGKILL)
            for name in ("worker", "reader")
        ]
        self.proxy = self._process("proxy", nginx_command(self.data / "nginx", self.port, behind))

    def start(self) -> "Production":
        self.proxy.start()
        super().start()
        return self

    def stop(self) -> None:
        self.proxy.kill()
        super().stop()

    def strike(self, victim: str, rng: random.Random) -> None:
        """kill -9. A container dies with its first process, and is started again."""
        process = self.web if victim.startswith("web") else rng.choice(self.workers)
        if victim in ("web group", "worker parent"):
            process.restart()
        elif process.running():
            _kill_one(psutil.Process(process.pid).children(), rng)


class Embedded(Site):
    """`manage.py up`: one process that looks after all others."""

    def __init__(self, env: Mapping[str, str] | None = None, *, data: Path | None = None) -> None:
        super().__init__("sqlite", env={"SWEEP_SECONDS": "3"} | dict(env or {}), data=data)
        up = [sys.executable, "-u", str(REPO / "manage.py"), "up", "--no-demo"]
        self.web = self._process("up", [*up, "--port", str(self.port)])
        self.workers = []

    def stop(self) -> None:
        self.kill_all()
        super().stop()

    def kill_all(self) -> None:
        """kill -9 of `up` and everything under it, at once."""
        under = self._under(self.web)
        self.web.kill()
        for process in under:
            _kill(process)
        psutil.wait_procs(under, timeout=20)

    def strike(self, victim: str, rng: random.Random) -> None:
        """kill -9. Its web server forks nothing: the group is all of `up`, started again here."""
        if victim == "web group":
            self.kill_all()
            self.web.start()
            return
        words = "evalsite.server" if victim == "web worker" else "celery"
        parents = [p for p in psutil.Process(self.web.pid).children() if words in _words(p)]
        children = [child for parent in parents for child in _children(parent)]
        _kill_one(children if victim == "worker child" else parents, rng)

    def logs(self) -> str:
        return self.log("up")[-3000:] + super().logs()

    @staticmethod
    def _under(process: Process) -> list[psutil.Process]:
        if not process.running():
            return []
        return list(psutil.Process(process.pid).children(recursive=True))


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return list(process.children())
    except psutil.Error:
        return []


def _kill(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.kill()


def _kill_one(processes: list[psutil.Process], rng: random.Random) -> None:
    if processes:
        _kill(rng.choice(processes))
