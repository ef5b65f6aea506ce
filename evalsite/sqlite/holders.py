"""Which processes hold locks on a SQLite file, as Linux tells it: for the log, when one waits."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LOCKS = Path("/proc/locks")
OF_A_DATABASE = ("", "-wal", "-shm", "-writers")


def holders(database: str) -> list[str]:
    """Lines like ``process 12 (celery worker) has bytes 120 to 120 of site.sqlite3-shm``.

    Empty where the system does not say; what it does not let us read of others is left out. Raises
    nothing: it is asked while something else goes wrong. Opens none of the files, as closing one
    would give up this process's locks on it.
    """
    files = {}
    for path in (Path(database + ending) for ending in OF_A_DATABASE):
        with suppress(OSError):  # -wal and -shm go when nobody has the database open
            files[_inode(path)] = path.name
    return [
        f"process {process} ({_command(process)}) has bytes {first} to {last} of {files[inode]}"
        for process, inode, first, last in _write_locks()
        if inode in files
    ]


def _inode(path: Path) -> str:
    """Device and inode, as the list of locks has them."""
    status = path.stat()
    return f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}:{status.st_ino}"


def _write_locks() -> Iterator[tuple[int, str, str, str]]:
    """Process, inode, first and last byte; without those that only wait."""
    with suppress(OSError):
        for line in LOCKS.read_text().splitlines():
            match line.split():
                case [_, "POSIX", _, "WRITE", process, inode, first, last]:
                    yield int(process), inode, first, last


def _command(process: int) -> str:
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return "unknown"
    return " ".join(command.decode(errors="replace").split("\0")).strip()[:120]
