"""No process forks while a thread of it has a SQLite file open.

SQLite remembers, for every file, which locks its process holds. A forked child inherits the memory
but not the locks. What a thread of its parent was writing stays locked in it for ever: it keeps its
turn to write until it gives up, and so do those behind it. And what it believes to hold, others
take: they remove or overwrite what it reads ("disk I/O error", "database disk image is malformed").
To close the inherited connection in the child is no help, as it is the library that remembers.

So a fork closes the connection of its own thread, waits until those of other threads are closed,
and lets none open in between. For its own it never waits, as nobody else would close them. Some
stay: those in a transaction, and those that Django does not show where an event loop runs.
"""

import gc
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from django.db import connections

log = logging.getLogger(__name__)
WAIT_SECONDS = 25.0  # longer than anybody waits for a turn to write


class Forks:
    """The connections of this process, and forks that wait for them."""

    def __init__(self) -> None:
        self.begin_anew()
        os.register_at_fork(
            before=self.wait, after_in_parent=self.over, after_in_child=self.begin_anew
        )

    def begin_anew(self) -> None:
        """In a child: nothing is open."""
        self._changed = threading.Condition()
        self._forking = False
        self._open: WeakKeyDictionary[sqlite3.Connection, threading.Thread] = WeakKeyDictionary()

    @contextmanager
    def opening(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Around its opening, which waits for a fork that is under way."""
        with self._changed:
            self._changed.wait_for(lambda: not self._forking, WAIT_SECONDS)
            self._open[connection] = threading.current_thread()
        try:
            yield
        except BaseException:
            self.closed(connection)
            raise

    def closed(self, connection: sqlite3.Connection) -> None:
        with self._changed:
            self._open.pop(connection, None)
            self._changed.notify_all()

    def wait(self) -> None:
        """Before a fork."""
        _close_mine()
        deadline = time.monotonic() + WAIT_SECONDS
        with self._changed:
            self._forking = True
            if self._others_have_some():
                gc.collect()  # one that was left behind refers to itself, by its statements
            while self._others_have_some() and time.monotonic() < deadline:
                self._changed.wait(0.1)  # nobody tells of those that a thread left behind
            if self._others_have_some():
                log.error("forks while a thread has the database open: the child may not use it")

    def over(self) -> None:
        with self._changed:
            self._forking = False
            self._changed.notify_all()

    def _others_have_some(self) -> bool:
        me = threading.current_thread()
        return any(thread is not me for thread in self._open.values())


def _close_mine() -> None:
    for each in connections.all(initialized_only=True):
        if not each.in_atomic_block:
            each.close()


forks = Forks()


class Connection(sqlite3.Connection):
    """One that forks wait for, as long as it is open and somebody has it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        with forks.opening(self):
            super().__init__(*args, **kwargs)

    def close(self) -> None:
        super().close()
        forks.closed(self)
