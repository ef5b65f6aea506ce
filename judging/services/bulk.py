"""Many rows of one model at once, as columns: an object and placeholders for each row take most of
the time of a draw of many pairs.

Columns are named as fields are, and hold a list with a value for each row, or one value for all:
numbers, text and row ids, as the database has them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from django.db import connection, models, transaction

Columns = Mapping[str, Any]
Rows: TypeAlias = Sequence[tuple[Any, ...]]
AnyField: TypeAlias = "models.Field[Any, Any]"


def insert(model: type[models.Model], columns: Columns, *, keep: bool = False) -> None:
    """Inserts rows in the order given; fields that are not named get their default.

    With ``keep`` a row that is there already stays as it is; without, it raises IntegrityError.
    Nothing of the model runs: no ``save``, no signals, no checks but the database's.
    """
    values = {**_defaults(model), **columns}
    table = _quoted(model._meta.db_table)
    names = [_name(field) for field in _fields(model, values)]
    write = _copy if connection.vendor == "postgresql" else _execute
    with transaction.atomic(), connection.cursor() as cursor:
        write(cursor, table, names, list(_rows(values)), keep=keep)


def _copy(cursor: Any, table: str, names: Sequence[str], rows: Rows, *, keep: bool) -> None:
    """COPY takes a third of what arrays take, but knows no rows that are there already: these are
    told apart from a table of this transaction, in their order."""
    listed = ", ".join(names)
    like = f"SELECT {listed} FROM {table} WITH NO DATA"  # noqa: S608 (names of our own)
    if keep:
        cursor.execute(f"CREATE TEMPORARY TABLE given ON COMMIT DROP AS {like}")
    into = "given" if keep else table
    with connection.wrap_database_errors, cursor.copy(f"COPY {into} ({listed}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row(row)
    if keep:
        same = f"INSERT INTO {table} ({listed}) SELECT * FROM given"  # noqa: S608
        cursor.execute(f"{same} ON CONFLICT DO NOTHING")
        cursor.execute("DROP TABLE given")


def _execute(cursor: Any, table: str, names: Sequence[str], rows: Rows, *, keep: bool) -> None:
    """As many rows in a statement as it has room for: SQLite needs as long to begin one as it needs
    for a row."""
    most = (connection.features.max_query_params or len(names)) // len(names)
    whole = len(rows) - len(rows) % most
    groups = [rows[start : start + most] for start in range(0, whole, most)]
    into = f"INSERT INTO {table} ({', '.join(names)})"
    row = f"({', '.join(['%s'] * len(names))})"
    end = " ON CONFLICT DO NOTHING" if keep else ""
    for some in (groups, [rows[whole:]] if rows[whole:] else []):
        if some:
            statement = f"{into} VALUES {', '.join([row] * len(some[0]))}{end}"
            cursor.executemany(statement, [list(chain.from_iterable(group)) for group in some])


def find(model: type[models.Model], columns: Columns) -> list[int]:
    """The row ids of what the columns name, in their order.

    Raises
    ------
    LookupError
        A row is missing.
    """
    fields = _fields(model, columns)
    rows = list(_rows(columns))
    if connection.vendor == "postgresql":
        names = ", ".join(map(_name, fields))
        given = f"{_unnest(fields)} WITH ORDINALITY AS given({names}, place)"
        values, place = [f"given.{_name(field)}" for field in fields], "given.place"
        parameters: list[Any] = _turned(rows, fields)
    else:
        given = "json_each(%s) AS given"
        values, place = [f"given.value ->> {n}" for n in range(len(fields))], "given.key"
        parameters = [json.dumps(rows)]
    same = (f"stored.{_name(f)} = {value}" for f, value in zip(fields, values, strict=True))
    stored = f"{_quoted(model._meta.db_table)} AS stored ON {' AND '.join(same)}"
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT stored.id FROM {given} JOIN {stored} ORDER BY {place}", parameters)  # noqa: S608 (names of our own)
        ids = [pk for (pk,) in cursor.fetchall()]
    if len(ids) != len(rows):
        raise LookupError(f"{len(rows)} rows of {model.__name__} asked for, {len(ids)} found")
    return ids


def _fields(model: type[models.Model], names: Iterable[str]) -> list[AnyField]:
    by_name = {field.name: field for field in model._meta.concrete_fields}
    return [by_name[name] for name in names]


def _defaults(model: type[models.Model]) -> dict[str, Any]:
    """As the ORM fills in; what the database fills in by itself is left to it."""
    return {
        field.name: field.get_default()
        for field in model._meta.concrete_fields
        if field.has_default() and not field.has_db_default()
    }


def _rows(values: Columns) -> Iterator[tuple[Any, ...]]:
    number = next(len(each) for each in values.values() if isinstance(each, list))
    lists = [each if isinstance(each, list) else [each] * number for each in values.values()]
    return zip(*lists, strict=True)


def _turned(rows: Rows, fields: Sequence[AnyField]) -> list[list[Any]]:
    """Columns again, one list for each field, also of no rows at all."""
    return [[row[place] for row in rows] for place in range(len(fields))]


def _unnest(fields: Sequence[AnyField]) -> str:
    return f"unnest({', '.join(f'%s::{_type(field)}[]' for field in fields)})"


def _type(field: AnyField) -> str:
    """Of the database; text without its limit, as a cast to that would cut what is too long."""
    kind = str(field.db_type(connection))
    return "text" if kind.startswith("varchar") else kind


def _name(field: AnyField) -> str:
    return _quoted(str(field.column))


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)
