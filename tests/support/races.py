"""Two transactions that meet at a place of our choice."""

import threading
import time
from collections.abc import Callable
from typing import Any

from django.db import connection

WAIT_SECONDS = 20
WAITING = """
    SELECT EXISTS (
        SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY (pg_blocking_pids(pid))
    )
"""


class Other:
    """Work in a thread with a connection of its own; its outcome is a value or an exception."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self._work = work
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.value = self._work()
        except BaseException as error:
            self.error = error
        finally:
            connection.close()

    def until_it_waits(self) -> "Other":
        """Returns once it waits for a lock of ours, or has ended without meeting one.

        SQLite has one writer: there it waits for all of our transaction, and so nothing is seen.
        """
        deadline = time.monotonic() + WAIT_SECONDS
        while connection.vendor == "postgresql" and self._thread.is_alive() and not _waits():
            assert time.monotonic() < deadline, "the other transaction neither waits nor ends"
            time.sleep(0.01)
        return self

    def outcome(self) -> Any:
        self._thread.join()
        if self.error is not None:
            raise self.error
        return self.value


def _waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(WAITING)
        return bool(cursor.fetchone()[0])


def at_once(works: list[Callable[[], Any]]) -> list[Any]:
    """All in threads that begin together: what each returned or raised, in the order given."""
    gate = threading.Barrier(len(works))

    def held(work: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            gate.wait(WAIT_SECONDS)
            return work()

        return run

    others = [Other(held(work)) for work in works]
    for other in others:
        other._thread.join()
    return [other.error if other.error is not None else other.value for other in others]
