"""Where the tests of a run write: in memory, if there is room, as a commit of SQLite waits for the
disk, and thousands of them for minutes. What is killed are processes, never the machine.
"""

import atexit
import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

import psutil

MEMORY = Path("/dev/shm")
PREFIX = "evalsite-held-"
ROOM = 4 * 2**30
"""Several times what the files of a run come to."""


def begin() -> None:
    """For the process that starts the others, before it writes anything."""
    if "EVALSITE_TEST_SHARED" not in os.environ and "TMPDIR" not in os.environ and _fits(MEMORY):
        _remove_what_is_left()
        folder = tempfile.mkdtemp(prefix=PREFIX, dir=MEMORY)
        _held(Path(folder))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["TMPDIR"] = tempfile.tempdir = folder


def _remove_what_is_left() -> None:
    """By runs that were killed: nobody holds it, and it was not made just now, to be held next."""
    for folder in MEMORY.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_mtime < time.time() - 60:
                os.close(_held(folder))
                shutil.rmtree(folder, ignore_errors=True)


def _held(folder: Path) -> int:
    """A lock that goes with this process; refused while another one has it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _fits(folder: Path) -> bool:
    """Tests start programs that they have written there, and the memory must be there as well."""
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        return False
    room = os.statvfs(folder)
    runs = not room.f_flag & os.ST_NOEXEC
    return runs and min(room.f_bavail * room.f_frsize, psutil.virtual_memory().available) >= ROOM
