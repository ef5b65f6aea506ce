"""Statements that are compiled once for each kind of database, and run with other values each time.

To build a QuerySet and to compile it takes Django several times as long as the database needs to
answer. What is asked with every judgment is therefore written as a QuerySet whose values are
``Slot`` expressions, compiled at its first use, and then given to the driver with the values in
their places. It is the same SQL: nothing is kept of what was read.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from django.db import connection
from django.db.models import Aggregate, Expression, F, Field, Model, QuerySet
from django.db.models.sql import InsertQuery, UpdateQuery

Row = tuple[Any, ...]
Kind = TypeVar("Kind", bound=Model)


class Slot(Expression):
    """A value that is given whenever the statement is run, under this name.

    With a field it is written as that field writes its values; plain numbers and text need none.
    """

    def __init__(self, name: str, field: "Field[Any, Any] | None" = None) -> None:
        super().__init__(output_field=field)
        self.written = field
        self.name = name

    def as_sql(self, compiler: Any, connection: Any) -> Any:
        return "%s", [self]


@dataclass(frozen=True)
class Compiled:
    """``converters`` turn columns of a row, by position, into values of Python, as the ORM does."""

    sql: str
    parameters: Sequence[Any]
    converters: dict[int, tuple[list[Callable[..., Any]], Any]]
    columns: int

    def run(self, values: dict[str, Any]) -> list[Row]:
        prepared = getattr(connection, "prepared", nullcontext)  # a driver that can
        with prepared(), connection.cursor() as cursor:
            cursor.execute(self.sql, [_filled(each, values) for each in self.parameters])
            rows = cursor.fetchall()
        return [self._converted(row) for row in rows] if self.converters else rows

    def _converted(self, row: Row) -> Row:
        changed = list(row)
        for place, (converters, expression) in self.converters.items():
            for convert in converters:
                changed[place] = convert(changed[place], expression, connection)
        return tuple(changed)


def _filled(parameter: Any, values: dict[str, Any]) -> Any:
    if not isinstance(parameter, Slot):
        return parameter
    value, field = values[parameter.name], parameter.written
    return value if field is None else field.get_db_prep_value(value, connection)


class Statement:
    """``build`` compiles it; afterwards it is run with the values of its slots."""

    def __init__(self, build: Callable[[], Compiled]) -> None:
        self._build = build
        self._compiled: dict[str, Compiled] = {}

    @property
    def compiled(self) -> Compiled:
        vendor = connection.vendor
        if vendor not in self._compiled:
            self._compiled[vendor] = self._build()
        return self._compiled[vendor]

    def rows(self, **values: Any) -> list[Row]:
        return self.compiled.run(values)

    def first(self, **values: Any) -> Row | None:
        return next(iter(self.rows(**values)), None)


def reads(build: Callable[[], QuerySet[Any, Any]]) -> Statement:
    """The columns of a QuerySet of ``values_list``, in their order."""
    return Statement(lambda: _compiled(build().query.get_compiler(connection=connection)))


def _compiled(compiler: Any) -> Compiled:
    sql, parameters = compiler.as_sql()
    columns = [each[0] for each in compiler.select]
    return Compiled(sql, parameters, compiler.get_converters(columns), len(columns))


def counts(build: Callable[[], QuerySet[Any, Any]], **aggregates: Aggregate) -> Statement:
    """Aggregates over all rows of a QuerySet: one row, in their order."""

    def compiled() -> Compiled:
        query = build().query.clone()
        query.clear_ordering(force=True)
        query.clear_select_clause()
        for name, aggregate in aggregates.items():
            query.add_annotation(aggregate, name)
        return _compiled(query.get_compiler(connection=connection))

    return Statement(compiled)


def beside(first: Statement, *others: Statement) -> Statement:
    """Several reads of one row each as one statement, their columns one after the other.

    The first has exactly one row; where another has none, its columns are null.
    """

    def build() -> Compiled:
        parts = [each.compiled for each in (first, *others)]
        tables = [f"({part.sql}) AS part{number}" for number, part in enumerate(parts)]
        converters: dict[int, tuple[list[Callable[..., Any]], Any]] = {}
        place = 0
        for part in parts:
            converters |= {place + at: each for at, each in part.converters.items()}
            place += part.columns
        joined = "".join(f" LEFT JOIN {table} ON 1 = 1" for table in tables[1:])
        parameters = [each for part in parts for each in part.parameters]
        return Compiled(f"SELECT * FROM {tables[0]}{joined}", parameters, converters, place)  # noqa: S608

    return Statement(build)


def renamed(statement: Statement, **names: str) -> Statement:
    """The same with other names for its slots, for whoever asks it several times at once."""

    def build() -> Compiled:
        found = statement.compiled
        return replace(found, parameters=[_renamed(each, names) for each in found.parameters])

    return Statement(build)


def _renamed(parameter: Any, names: dict[str, str]) -> Any:
    if not isinstance(parameter, Slot):
        return parameter
    return Slot(names.get(parameter.name, parameter.name), parameter.written)


def changes(
    build: Callable[[], tuple[QuerySet[Any], dict[str, Any]]],
    *,
    returning: Sequence[Any] = ("id",),
) -> Statement:
    """UPDATE of a QuerySet's rows with these values; answers with columns of those it changed.

    Rows are locked first, in their order, where the QuerySet says ``select_for_update``: compile
    that in a transaction.
    """

    def compiled() -> Compiled:
        rows, values = build()
        locks = rows.query.select_for_update
        changed = rows.model._base_manager.all() if locks else rows
        query: Any = changed.query.chain(UpdateQuery)
        query.add_update_values(values)
        sql, parameters = query.get_compiler(connection=connection).as_sql()
        if locks:
            inner, more = rows.values("pk").query.get_compiler(connection=connection).as_sql()
            column = connection.ops.quote_name(rows.model._meta.pk.column)
            sql, parameters = f"{sql} WHERE {column} IN ({inner})", (*parameters, *more)
        return _returning(rows.model, sql, parameters, returning)

    return Statement(compiled)


def inserts(
    model: type[Model], values: dict[str, Any], *, returning: Sequence[Any] = ("id",)
) -> Statement:
    """INSERT of one row, what is not named as the model has it; answers with columns of it."""

    def compiled() -> Compiled:
        fields = [field for field in model._meta.concrete_fields if not field.primary_key]
        query = InsertQuery(model)
        query.insert_values(fields, [model(**values)])
        ((sql, parameters),) = query.get_compiler(connection=connection).as_sql()
        return _returning(model, sql, parameters, returning)

    return Statement(compiled)


def _returning(
    model: type[Model], sql: str, parameters: Sequence[Any], wanted: Sequence[Any]
) -> Compiled:
    """The statement with its answer: columns by their names, or expressions over the row."""
    query = model._base_manager.order_by().query.clone()
    compiler = query.get_compiler(connection=connection)
    columns = [
        (F(each) if isinstance(each, str) else each).resolve_expression(query) for each in wanted
    ]
    told = [compiler.compile(column) for column in columns]
    return Compiled(
        f"{sql} RETURNING {', '.join(part for part, _ in told)}",
        [*parameters, *(each for _, more in told for each in more)],
        compiler.get_converters(columns),
        len(columns),
    )


def columns_of(kind: type[Model], prefix: str = "") -> list[str]:
    """The columns of a table, as ``values_list`` wants them."""
    return [prefix + field.attname for field in kind._meta.concrete_fields]


def row_of(kind: type[Kind], values: Sequence[Any]) -> Kind:
    """An instance, as if it had been read by itself, from the columns ``names`` asked for."""
    return kind.from_db(connection.alias, columns_of(kind), values)
