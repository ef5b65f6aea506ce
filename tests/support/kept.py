"""Rows that many tests begin with: made by the services once per process, then put back.

A fixture names the state that it makes::

    @pytest.fixture
    def judged(campaign: Campaign, kept: Kept) -> Round:
        return kept("judged", lambda: make_it(campaign), campaign)

The first test that asks for it makes it through the services; what they left in tables and files is
remembered, and later tests get just that, by a hundred statements instead of thousands. A state may
follow another one (here that of ``campaign``). If anything else was written in between, by a test
or another fixture, nothing is put back, and the state is made anew.

Times are moved on by as much as has passed since, so that no lease has run out meanwhile. Only
fixtures may ask: what a test has patched would have no part in what is put back.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import DateTimeField, Model

from tests.support.tables import models

T = TypeVar("T")
READS = ("SELECT", "SAVEPOINT", "RELEASE")


@dataclass(frozen=True)
class State:
    """All rows and new files, and what the fixture returned."""

    result: Any
    tables: dict[type[Model], list[tuple[Any, ...]]]
    files: dict[Path, bytes]
    taken: float


_states: dict[tuple[object, ...], State] = {}
"""By the way to each, and by whether it was made in a transaction (what waits for a commit is not
done there)."""


class Kept:
    """The states that a test has come to, as long as nothing else was written."""

    def __init__(self) -> None:
        self._way: tuple[str, ...] | None = () if _nothing_is_there() else None
        self._written = False

    def __call__(self, name: str, make: Callable[[], T], *changed: Model) -> T:
        """What ``make`` returned: a row is read again, anything else must not be changed.

        So are the rows that others hold already and that ``make`` changes.
        """
        if self._way is None or self._written:
            return make()
        way = (*self._way, f"{make.__module__}: {name}")  # files call different states the same
        known = (connection.in_atomic_block, *way)
        if known not in _states:
            _states[known] = _made(make)
        else:
            _put_back(_states[known], over=bool(self._way))
        for row in changed:
            row.refresh_from_db()
        self._way, self._written = way, False
        result: T = _states[known].result
        return type(result)._base_manager.get(pk=result.pk) if isinstance(result, Model) else result

    def watch(self, execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        """Sees every statement of the test's connection."""
        self._written = self._written or not sql.startswith(READS)
        return execute(sql, *rest)


@contextmanager
def keeping() -> Iterator[Kept]:
    """For one test, which has written nothing yet."""
    kept = Kept()
    with connection.execute_wrapper(kept.watch):
        yield kept


def _made(make: Callable[[], Any]) -> State:
    start = time.time()
    result = make()
    files = [path for path in Path(settings.MEDIA_ROOT).rglob("*") if path.is_file()]
    new = {path: path.read_bytes() for path in files if path.stat().st_mtime > start - 1}
    return State(result, {model: _rows(model) for model in models()}, new, time.time())


def _put_back(state: State, *, over: bool) -> None:
    """With ``over``, in the place of the rows that are there."""
    passed = timedelta(seconds=time.time() - state.taken)
    with transaction.atomic(), connection.cursor() as cursor:
        for model in state.tables if over else ():
            cursor.execute(f"DELETE FROM {_table(model)}")
        for model, rows in state.tables.items():
            if rows:
                marks = ", ".join(["%s"] * len(rows[0]))
                insert = f"INSERT INTO {_table(model)} ({_columns(model)}) VALUES ({marks})"
                cursor.executemany(insert, list(_later(model, rows, passed)))
        if reset := connection.ops.sequence_reset_sql(no_style(), list(state.tables)):
            cursor.execute(" ".join(reset))
        _refresh_statistics(cursor, [name for name, rows in state.tables.items() if len(rows) > 20])
    for path, content in state.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)  # it may be mapped, and is not changed in its place
        path.write_bytes(content)


def _refresh_statistics(cursor: CursorWrapper, models: list[type[Model]]) -> None:
    """PostgreSQL would plan joins as of tables that are empty, and compare all rows with all."""
    if connection.vendor == "postgresql" and models:
        cursor.execute(f"ANALYZE {', '.join(map(_table, models))}")


def _nothing_is_there() -> bool:
    found = " OR ".join(f"EXISTS (SELECT 1 FROM {_table(model)})" for model in models())
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {found}")
        return not cursor.fetchone()[0]


def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _columns(model: type[Model]) -> str:
    names = (field.column for field in model._meta.concrete_fields)
    return ", ".join(map(connection.ops.quote_name, names))


def _rows(model: type[Model]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {_columns(model)} FROM {_table(model)}")
        return list(cursor.fetchall())


def _later(
    model: type[Model], rows: list[tuple[Any, ...]], passed: timedelta
) -> Iterator[list[Any]]:
    times = [isinstance(field, DateTimeField) for field in model._meta.concrete_fields]
    for row in rows:
        yield [
            _moved(value, passed) if moves and value is not None else value
            for value, moves in zip(row, times, strict=True)
        ]


def _moved(value: datetime | str, passed: timedelta) -> datetime | str:
    """SQLite has text for a time."""
    if isinstance(value, str):
        return str(datetime.fromisoformat(value) + passed)
    return value + passed
