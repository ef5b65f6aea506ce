"""Django's SQLite, with one queue of writers: ``evalsite.sqlite.writers`` says why.

A transaction waits for its turn before BEGIN IMMEDIATE and leaves after its end; a statement that
writes outside of one waits for itself. Readers wait for nobody. Forks wait for all of them:
``evalsite.sqlite.forks``.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.db import OperationalError
from django.db.backends.sqlite3 import base

from evalsite.sqlite.forks import Connection
from evalsite.sqlite.holders import holders
from evalsite.sqlite.writers import Writers, writers_of

log = logging.getLogger(__name__)
WRITING = ("INSERT", "UPDATE", "DELETE", "REPLACE", "CREATE", "DROP", "ALTER", "VACUUM")


class Cursor(base.SQLiteCursorWrapper):
    database: "DatabaseWrapper"

    def execute(self, query: str, params: Any = None) -> Any:
        with self.database.turn(query):
            return super().execute(query, params)

    def executemany(self, query: str, param_list: Any) -> Any:
        with self.database.turn(query):
            return super().executemany(query, param_list)


class DatabaseWrapper(base.DatabaseWrapper):
    ticket: int | None = None
    """Of the transaction under way, if it had to queue for it."""

    @property
    def writers(self) -> Writers | None:
        """None in memory: there is no other process, and the cache is shared with its locks."""
        name = str(self.settings_dict["NAME"])
        in_memory = self.is_in_memory_db() or name.startswith("file:")
        return None if in_memory else writers_of(name)

    def get_connection_params(self) -> dict[str, Any]:
        parameters: dict[str, Any] = super().get_connection_params()
        return {**parameters, "factory": Connection} if self.writers else parameters

    @contextmanager
    def turn(self, query: str) -> Iterator[None]:
        """Around one statement; that of a transaction has its turn already."""
        if self.connection.in_transaction or not query.lstrip()[:7].upper().startswith(WRITING):
            yield
            return
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def create_cursor(self, name: str | None = None) -> Any:
        cursor = self.connection.cursor(factory=Cursor)
        cursor.database = self
        return cursor

    def _start_transaction_under_autocommit(self) -> None:
        self._enter()
        try:
            super()._start_transaction_under_autocommit()  # type: ignore[misc]  # not in the stubs
        except BaseException as failed:
            self._leave()
            if isinstance(failed, OperationalError):
                self._tell(f"It was our turn to write, but SQLite says: {failed}")
            raise

    def _commit(self) -> None:
        super()._commit()  # type: ignore[misc]
        self._leave()

    def _rollback(self) -> None:
        try:
            super()._rollback()  # type: ignore[misc]
        finally:
            self._leave()

    def _close(self) -> None:
        try:
            super()._close()  # type: ignore[misc]
        finally:
            self._leave()

    def _enter(self) -> None:
        if not (writers := self.writers):
            return
        seconds = float(self.settings_dict["OPTIONS"].get("timeout", 5))
        try:
            self.ticket = writers.enter(seconds)
        except TimeoutError:
            message = f"database is locked: no turn to write within {seconds:g} seconds"
            self._tell(message)
            raise OperationalError(message) from None

    def _tell(self, what: str) -> None:
        """Who is in the way, while they still are."""
        in_the_way = holders(str(Path(self.settings_dict["NAME"]).resolve()))
        log.error("%s; %s", what, "; ".join(in_the_way) or "who is in the way is not known")

    def _leave(self) -> None:
        ticket, self.ticket = self.ticket, None
        if ticket is not None and (writers := self.writers):
            writers.leave(ticket)
