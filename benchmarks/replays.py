"""Statements of a piece of work, to be sent again by the driver alone in the way they were sent.

What the product has the server prepare is prepared here, too: otherwise the server would plan it
anew each time, and statements would cost more than the work that they are part of.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import groupby
from typing import Any, NamedTuple

from django.db import connection


class Said(NamedTuple):
    """A statement with its values, and whether it was prepared."""

    sql: str
    values: Any
    prepared: bool


@contextmanager
def recorded(into: list[Said]) -> Iterator[None]:
    def keep(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        into.append(Said(sql, params, getattr(connection, "preparing", False)))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(keep):
        yield


def send(statements: Iterable[Said]) -> None:
    for prepared, some in groupby(statements, lambda each: each.prepared):
        way = connection.prepared() if prepared else nullcontext()
        with way, connection.cursor() as cursor:
            for each in some:
                cursor.execute(each.sql, each.values)
                if cursor.description:
                    cursor.fetchall()
