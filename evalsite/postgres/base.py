"""Django's PostgreSQL, with an end to waiting for it.

A server that is frozen, or whose host is gone, never answers, and its own statement_timeout does
not run. Here the client gives up after settings.DATABASE_SECONDS and closes the connection.
"""

import time
from collections.abc import Generator
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        return _with_an_end(super().get_new_connection(conn_params))


def _with_an_end(connection: Any) -> Any:
    wait = connection.wait

    def wait_until(gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return wait(_limited(gen, settings.DATABASE_SECONDS), *args, **kwargs)
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
