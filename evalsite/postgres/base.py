"""Django's PostgreSQL, with an end to waiting for it.

A server that is frozen, or whose host is gone, never answers, and its own statement_timeout does
not run. Here the client gives up after settings.DATABASE_SECONDS and closes the connection.
"""

import time
from collections.abc import Callable, Generator
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base

CHECK_SECONDS = 2.0


class DatabaseWrapper(base.DatabaseWrapper):
    checking = False

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        return _with_an_end(super().get_new_connection(conn_params), self._patience)

    def _patience(self) -> float:
        seconds = float(settings.DATABASE_SECONDS)
        return min(CHECK_SECONDS, seconds) if self.checking else seconds

    def is_usable(self) -> bool:
        """Asked before a kept connection is used again: there is nothing that may take long, and
        whoever waits for this has to wait for a new connection as well.
        """
        self.checking = True
        try:
            return bool(super().is_usable())
        finally:
            self.checking = False


def _with_an_end(connection: Any, patience: Callable[[], float]) -> Any:
    wait = connection.wait

    def wait_until(gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return wait(_limited(gen, patience()), *args, **kwargs)
        except NoAnswer:
            connection.close()
            raise

    connection.wait = wait_until
    return connection


class NoAnswer(psycopg.OperationalError):
    """The server has not answered within settings.DATABASE_SECONDS."""


def _limited(gen: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """The same steps of a protocol; psycopg comes by many times a second while nothing happens."""
    deadline = time.monotonic() + seconds
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise NoAnswer(f"the database has not answered within {seconds:g} seconds")
            wanted = gen.send(ready)
    except StopIteration as done:
        return done.value
