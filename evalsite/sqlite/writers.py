"""Writers of one SQLite file, served in the order in which they come.

SQLite lets one transaction write at a time. Whoever comes meanwhile asks again after pauses that
grow, so that the one who has waited longest asks least often and is passed by all who come later.

Here a writer takes a ticket and waits until the one before it has left: a thread of this process
says so, one of another process gives up the lock of the operating system on a byte of a file beside
the database. Such locks end with their process, however it ends, and are not inherited by a fork.
SQLite's own lock stands behind all this: what goes wrong here costs the order, never data.
"""

import fcntl
import os
import threading
import time
from functools import cache
from pathlib import Path

COUNTER_BYTES = 8
ASK_SECONDS = 0.0005
ENDING = "-writers"


class Writers:
    """The queue before one file.

    Locks belong to the process: should it close ``_file``, or the same file opened in another way,
    they are gone.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self.forget()
        os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """What this process holds: nothing, at its beginning."""
        self._guard = threading.Lock()
        self._mine: dict[int, threading.Event] = {}

    def enter(self, seconds: float) -> int | None:
        """Returns when it is our turn, with the ticket; None where files cannot be locked.

        Raises TimeoutError.
        """
        deadline = time.monotonic() + seconds
        try:
            ticket, before = self._take(deadline)
        except TimeoutError:
            raise
        except OSError:
            return None
        try:
            self._wait(ticket - 1, before, deadline)
        except BaseException:  # also a signal's: this process may live on
            self.leave(ticket)
            raise
        return ticket

    def leave(self, ticket: int) -> None:
        with self._guard:
            event = self._mine.pop(ticket, None)
        self._unlock(COUNTER_BYTES + ticket, 1)
        if event is not None:
            event.set()

    def _take(self, deadline: float) -> tuple[int, threading.Event | None]:
        """The next ticket, and what says that the one before it has left, if that is ours too."""
        with self._guard:
            file = self._opened()
            self._lock(0, COUNTER_BYTES, deadline)
            try:
                ticket = 1 + int.from_bytes(os.pread(file, COUNTER_BYTES, 0), "little")
                os.pwrite(file, ticket.to_bytes(COUNTER_BYTES, "little"), 0)
                self._lock(COUNTER_BYTES + ticket, 1, deadline)
                self._mine[ticket] = threading.Event()
            finally:
                self._unlock(0, COUNTER_BYTES)
            return ticket, self._mine.get(ticket - 1)

    def _wait(self, ticket: int, event: threading.Event | None, deadline: float) -> None:
        """Nobody but its successor asks for the lock of a ticket, so that asking is fair."""
        if event is None:
            self._lock(COUNTER_BYTES + ticket, 1, deadline)
            self._unlock(COUNTER_BYTES + ticket, 1)
        elif not event.wait(max(0.0, deadline - time.monotonic())):
            raise TimeoutError

    def _opened(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        return self._file

    def _lock(self, start: int, length: int, deadline: float) -> None:
        while True:
            try:
                fcntl.lockf(self._opened(), fcntl.LOCK_EX | fcntl.LOCK_NB, length, start)
                return
            except (BlockingIOError, PermissionError):  # what POSIX says of a lock that is taken
                if time.monotonic() > deadline:
                    raise TimeoutError from None
                time.sleep(ASK_SECONDS)

    def _unlock(self, start: int, length: int) -> None:
        fcntl.lockf(self._opened(), fcntl.LOCK_UN, length, start)


@cache
def writers_of(database: str) -> Writers:
    """The one queue of this process before a database file."""
    path = Path(database).resolve()
    return Writers(path.with_name(path.name + ENDING))
