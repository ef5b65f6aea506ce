"""What must be true or done before the servers start; each failure is one sentence."""

import contextlib
import errno
import fcntl
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command, get_commands
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from evalsite.management.tables import why_too_new
from judging.models import Campaign, User

LOCK = "up.lock"


class Refusal(Exception):
    """The site cannot start; the message says why and what helps."""


def check_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise Refusal(
            f"The data directory {folder} cannot be written ({error.strerror}). Give this user"
            " the right to write there, or set EVALSITE_DATA to another folder."
        ) from None
    free = shutil.disk_usage(folder).free
    if free < settings.MIN_FREE_BYTES:
        raise Refusal(
            f"The disk of {folder} has {free // 2**20} MB free, and the site would never be ready"
            f" with less than {settings.MIN_FREE_BYTES // 2**20}. Make room, set EVALSITE_DATA to"
            " another folder, or lower MIN_FREE_MB."
        )


@dataclass(frozen=True)
class DataLock:
    """The hold on a data directory, and the file where it is noted who has it."""

    file: TextIO

    def note(self, address: str) -> None:
        """Where the site answers, for ``running_address``."""
        self.file.truncate(0)
        self.file.write(f"{os.getpid()}\n{address}")
        self.file.flush()

    def fileno(self) -> int:
        return self.file.fileno()


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[DataLock]:
    """Holds the data directory; the kernel lets go of it however this process ends."""
    with (folder / LOCK).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise Refusal(
                f"evalsite is already running on {folder} (process {file.readline().strip()}). Stop"
                " it first, or set EVALSITE_DATA to another folder for a second site."
            ) from None
        lock = DataLock(file)
        lock.note("")
        yield lock
        file.truncate(0)


def running_address(folder: Path) -> str | None:
    """Where the site on this data directory answers, if ``manage.py up`` runs it."""
    lock = folder / LOCK
    lines = lock.read_text().splitlines() if lock.exists() else []
    return lines[1] if len(lines) == 2 else None


def listen(host: str, port: int) -> socket.socket:
    """The listening socket; held here, it stays open while the web server is started again."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=512)
    except (OSError, OverflowError) as error:
        raise Refusal(_why_not_listening(host, port, error)) from None


def _why_not_listening(host: str, port: int, error: Exception) -> str:
    if not 0 <= port <= 65_535:
        return f"There is no port {port}. Choose one from 1024 to 65535 with PORT=."
    number = error.errno if isinstance(error, OSError) else None
    if number == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use. Choose another one, for example PORT={port + 1}."
    if number == errno.EACCES:
        return f"This user may not listen on port {port}. Choose a port above 1023 with PORT=."
    if number == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
        return f"{host} is not an address of this machine. Choose another one with HOST=."
    return f"Cannot listen on {host}, port {port}: {error}."


def migrate() -> bool:
    """Applies what is missing; True if anything was."""
    try:
        executor = MigrationExecutor(connection)
        if newer := why_too_new(executor.loader):
            raise Refusal(newer)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if plan:
            call_command("migrate", interactive=False, verbosity=0)
    except DatabaseError as error:
        reason = " ".join(str(error).split())
        raise Refusal(f"The database does not work: {reason}.") from None
    return bool(plan)


def static_fingerprint() -> str:
    """Changes whenever a static file does."""
    digest = hashlib.sha256(settings.VERSION.encode())
    for finder in get_finders():
        for path, storage in finder.list([]):
            facts = Path(storage.path(path)).stat()
            digest.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def collect_static() -> bool:
    """Collects static files if they changed since the last time; True if they had."""
    stamp = settings.STATIC_ROOT / ".fingerprint"
    fingerprint = static_fingerprint()
    if stamp.exists() and stamp.read_text() == fingerprint:
        return False
    call_command("collectstatic", interactive=False, clear=True, verbosity=0)
    stamp.write_text(fingerprint)
    return True


def demo_is_due() -> bool:
    """On a site that has no campaign yet, or where loading the demo was interrupted."""
    if "load_demo" not in get_commands():
        return False
    return _demo_mark().exists() or not Campaign.objects.exists()


def load_demo() -> None:
    """Loads the demo campaign in a process of its own, whose memory is free again afterwards."""
    mark = _demo_mark()
    mark.touch()
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "load_demo"]
    done = subprocess.run(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, text=True
    )
    if done.returncode:
        raise Refusal(
            "The demo campaign could not be loaded; start without it (up --no-demo). The reason:\n"
            + done.stdout[-2000:]
        )
    mark.unlink()


def _demo_mark() -> Path:
    return settings.DATA_DIR / "demo-is-being-loaded"


def working_demo_sign_ins() -> list[tuple[str, str, str]]:
    """Those of settings.DEMO_SIGN_INS with which somebody really can sign in."""
    names = [name for name, _, _ in settings.DEMO_SIGN_INS]
    users = {user.username: user for user in User.objects.filter(username__in=names)}
    return [
        (name, password, what)
        for name, password, what in settings.DEMO_SIGN_INS
        if name in users and users[name].is_active and users[name].check_password(password)
    ]
