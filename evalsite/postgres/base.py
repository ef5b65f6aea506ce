"""Django's PostgreSQL, with an end to waiting for it.

A server that is frozen, or whose host is gone, never answers, and its own statement_timeout does
not run. Here the client gives up after settings.DATABASE_SECONDS and closes the connection.
"""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.conf import settings
from django.db.backends.postgresql import base, operations

CHECK_SECONDS = 2.0


class PreparingCursor(base.ServerBindingCursor):
    """Has the server plan each statement once, and sends the values apart from it.

    The connection may prepare statements as long as this asks for it. Otherwise it would keep the
    latest of all others to count them, with the values that are part of their text.
    """

    def execute(self, query: Any, params: Any = None, **_options: Any) -> Any:
        connection: Any = self.connection  # type: ignore[attr-defined]
        connection.prepare_threshold = 0
        try:
            return super().execute(query, params, prepare=True)  # type: ignore[misc]
        finally:
            connection.prepare_threshold = None


class DatabaseOperations(operations.DatabaseOperations):
    def last_executed_query(self, cursor: Any, sql: Any, params: Any) -> str:
        """For logs: a prepared statement is told without its values."""
        return super().last_executed_query(cursor, sql, params) or str(sql)


class DatabaseWrapper(base.DatabaseWrapper):
    ops_class = DatabaseOperations
    checking = False
    preparing = False

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        return _with_an_end(super().get_new_connection(conn_params), self._patience)

    @contextmanager
    def prepared(self) -> Iterator[None]:
        """Statements inside are prepared, unless a pool of connections stands in between.

        For those that are asked again and again, and whose values the server can tell the types of.
        """
        self.preparing = bool(settings.DATABASE_PREPARES)
        try:
            yield
        finally:
            self.preparing = False

    def create_cursor(self, name: str | None = None) -> Any:
        if name is not None or not self.preparing:
            return super().create_cursor(name)
        usual, self.connection.cursor_factory = self.connection.cursor_factory, PreparingCursor
        try:
            return super().create_cursor(name)
        finally:
            self.connection.cursor_factory = usual

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
