"""All labels of many pairs at once, as columns: an object for each would take most of the time.

The database hands over each column as one text, so that there is one row whatever the number of
labels, and nothing is done for each of them but by the database and by NumPy. Whose rows have the
pairs is looked up by NumPy: a database seeks each pair, which takes three times as long as the
labels.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

import numpy as np
from django.db import connection
from django.db.models import FloatField, Func, Model, QuerySet
from numpy.typing import NDArray

from judging.models import Assignment, Decision, SeniorGrade, User

Column = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class LabelColumns:
    """One row per label, in no particular order: judgments that count, and what was decided.

    ``places`` are the columns that were asked for. ``assessor`` counts in ``names``, which are in
    the order of their code points; what was decided is of nobody, whose name is empty and the
    first. ``superseded``: a senior grade, which has a row of its own, counts in their place.
    """

    places: tuple[Column, ...]
    assessor: Column
    grade: Column
    decided: NDArray[np.bool_]
    superseded: NDArray[np.bool_]
    names: list[str]

    def counting(self) -> "LabelColumns":
        """Those that estimates rest on."""
        return self._those(~self.superseded)

    def without_seniors(self) -> "LabelColumns | None":
        """What would count without senior grades; None where none counts."""
        if not self.superseded.any():
            return None
        overruled = _any_of(self.places, [each[self.superseded] for each in self.places])
        return self._those(self.superseded | ~overruled)

    def _those(self, kept: NDArray[np.bool_]) -> "LabelColumns":
        return LabelColumns(
            tuple(each[kept] for each in self.places),
            self.assessor[kept],
            self.grade[kept],
            self.decided[kept],
            self.superseded[kept],
            self.names,
        )


@dataclass(frozen=True, eq=False)
class PlacedPairs:
    """The pairs of some rows, ascending, beside columns of whole numbers of those rows.

    A pair that several of the rows have is there several times. ``starts`` says where each row id
    of a pair from the first to the last begins, and where these end; None where most of them are
    of other pairs. Labels are then read of ``those``, SQL for their row ids, and else of all from
    the first to the last.
    """

    pair: Column
    places: tuple[Column, ...]
    starts: Column | None
    those: tuple[str, Sequence[Any]]

    @classmethod
    def of(cls, rows: QuerySet[Any, Any], *places: str) -> Self:
        """Read them; two rows that agree in pair and places should not be there."""
        return cls._ordered(_read_columns(rows, places), rows)

    def with_more(self, rows: QuerySet[Any, Any], more: QuerySet[Any, Any], *places: str) -> Self:
        """The same of all `rows`, of which `more` are read, as the others are here."""
        read = _read_columns(more, places)
        here = (self.pair, *self.places)
        return self._ordered([np.append(*both) for both in zip(here, read, strict=True)], rows)

    @classmethod
    def _ordered(cls, columns: list[Column], rows: QuerySet[Any, Any]) -> Self:
        order = np.argsort(columns[0], kind="stable")
        pair, *places = (column[order] for column in columns)
        sql, parameters = _sql_of(rows, ["pair_id"])
        those = f"SELECT placed.pair_id FROM ({sql}) AS placed", parameters  # noqa: S608
        return cls(pair, tuple(places), _starts(pair), those)

    def where(self, kept: NDArray[np.bool_], *places: Column) -> Self:
        """Some of the rows, with other columns."""
        pair = self.pair[kept]
        starts = self.starts if kept.all() else _starts(pair)
        return replace(self, pair=pair, places=tuple(each[kept] for each in places), starts=starts)

    def beside(self, pair: Column, *said: Column) -> list[Column]:
        """Places and what was said of pairs, with one row for each of these and each row here."""
        if self.starts is None:
            first, end = (np.searchsorted(self.pair, pair, side=side) for side in ("left", "right"))
        else:
            from_first = pair - self.pair[:1]
            first, end = self.starts[from_first], self.starts[from_first + 1]
        number = end - first
        if len(number) and number.min() == number.max() == 1:
            return [*(column[first] for column in self.places), *said]
        behind = np.cumsum(number)
        row = np.arange(behind[-1] if len(behind) else 0) + np.repeat(
            first - behind + number, number
        )
        return [
            *(column[row] for column in self.places),
            *(np.repeat(column, number) for column in said),
        ]

    def condition(self, column: str) -> tuple[str, list[Any]]:
        """SQL that holds for the pairs, and for others only where these lie among them."""
        ends = [int(self.pair[0]), int(self.pair[-1])] if len(self.pair) else [0, -1]
        between = f"{column} BETWEEN %s AND %s"
        if self.starts is not None:
            return between, ends
        sql, parameters = self.those
        return f"{between} AND {column} IN ({sql})", [*ends, *parameters]


def _read_columns(rows: QuerySet[Any, Any], places: Sequence[str]) -> list[Column]:
    """Row ids of pairs, and other columns of whole numbers."""
    names = ["pair_id", *places]
    sql, parameters = _sql_of(rows, names)
    wanted = [f"placed.{connection.ops.quote_name(name)}" for name in names]
    return _columns(f"SELECT {_texts(wanted)} FROM ({sql}) AS placed", parameters)  # noqa: S608 (names of our own)


def _sql_of(rows: QuerySet[Any, Any], names: Sequence[str]) -> tuple[str, Sequence[Any]]:
    placed = rows.order_by().values_list(*names)
    sql, parameters = placed.query.get_compiler(connection=connection).as_sql()
    return sql, parameters


_SPARSE = 4
"""Row ids from the first pair to the last, for each pair, above which the others are left out."""


def _starts(pair: Column) -> Column | None:
    if not len(pair) or pair[-1] - pair[0] >= _SPARSE * len(pair):
        return None
    return np.append(0, np.cumsum(np.bincount(pair - pair[0])))


def label_columns(placed: PlacedPairs, *, taken_back: Collection[int] = ()) -> LabelColumns:
    """The labels of the pairs of some rows, beside columns of whole numbers of those rows.

    The columns tell pairs apart. A label of a pair that several of the rows have is there several
    times. ``taken_back``: row ids of people whose excluded work counts here, as it would if that
    was taken back: to tell what hangs on it, and for no estimate.
    """
    judged, decided, senior = _read(placed)
    if taken_back:
        aside = _read_aside(placed, sorted(taken_back))
        there = _any_of(decided[:-2], aside[:-2])  # where there is a judgment, none is decided
        decided = [column[~there] for column in decided]
        judged = [np.concatenate(columns) for columns in zip(judged, aside, strict=True)]
    found = [np.concatenate(columns) for columns in zip(judged, decided, senior, strict=True)]
    *places, assessor, grade = found
    superseded = _any_of(places, senior[:-2])
    superseded[len(grade) - len(senior[-1]) :] = False
    numbers = np.flatnonzero(np.bincount(assessor))  # row ids, which a table has room for
    names = dict(User.objects.filter(pk__in=numbers.tolist()).values_list("pk", "username"))
    names[_NOBODY] = ""
    ordered = sorted(names.values())
    code = {name: at for at, name in enumerate(ordered)}
    table = np.zeros(1 + int(numbers.max(initial=0)), dtype=np.int64)
    table[numbers] = [code[names[pk]] for pk in numbers.tolist()]
    return LabelColumns(
        tuple(places), table[assessor], grade, assessor == _NOBODY, superseded, ordered
    )


def _any_of(rows: Sequence[Column], others: Sequence[Column]) -> NDArray[np.bool_]:
    """Which rows are among some others, both as columns."""
    if not len(others[0]):
        return np.zeros(len(rows[0]), dtype=np.bool_)
    sizes = [
        1 + int(max(one.max(initial=0), two.max())) for one, two in zip(rows, others, strict=True)
    ]
    one, two = (
        reduce(
            lambda key, part: key * part[0] + part[1], zip(sizes, each, strict=True), 0 * each[0]
        )
        for each in (rows, others)
    )
    return np.isin(one, two)


def number_columns(rows: QuerySet[Any, Any], *names: str) -> list[NDArray[np.float64]]:
    """Columns of numbers of some rows, by the names that `values_list` knows, in one row.

    Row i of all is that of one row; rows come in no particular order. Where a column is null in
    one row, all of them lack it: ask for `Coalesce`.
    """
    sql, parameters = (
        rows.order_by().values_list(*names).query.get_compiler(connection=connection).as_sql()
    )
    wanted = _texts([f"placed.{connection.ops.quote_name(name)}" for name in names])
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {wanted} FROM ({sql}) AS placed", parameters)  # noqa: S608
        texts = cursor.fetchone()
    return [np.fromstring(text or "", dtype=np.float64, sep=",") for text in texts]


class EpochSeconds(Func):
    """Seconds since 1970 of a column of times, to less than a millisecond."""

    output_field = FloatField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "((julianday(%(expressions)s) - 2440587.5) * 86400.0)"
        return self.as_sql(compiler, connection, template=template, **context)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "EXTRACT(EPOCH FROM %(expressions)s)"
        return self.as_sql(compiler, connection, template=template, **context)


_NOBODY = 0
"""In the place of an assessor's row id, which begin with 1."""


def _read(placed: PlacedPairs) -> list[list[Column]]:
    """Places, assessor and grade of judgments, of decisions, and of senior grades that count, by
    one statement."""
    parts, parameters = [], []
    for model, whose, which in (
        (Assignment, "said.assessor_id", "said.revision > 0"),
        (Decision, str(_NOBODY), f"said.kind = '{Decision.Kind.GRADE.value}'"),
        (SeniorGrade, str(_NOBODY), "said.counts"),
    ):
        condition, its = placed.condition("said.pair_id")
        wanted = _texts(["said.pair_id", _said(whose)])
        of_pairs = f"SELECT {wanted} FROM {_table(model)} AS said WHERE {condition}"  # noqa: S608 (names of our own)
        parts.append(f"({of_pairs} AND {which})")
        parameters += its
    judged, decided, senior = parts
    columns = _columns(
        f"SELECT * FROM {judged} AS judged CROSS JOIN {decided} AS decided"  # noqa: S608
        f" CROSS JOIN {senior} AS senior",
        parameters,
    )
    return [placed.beside(*_apart(*columns[start : start + 2])) for start in (0, 2, 4)]


def _read_aside(placed: PlacedPairs, people: list[int]) -> list[Column]:
    """Places, assessor and grade of what these people said, whose work is excluded."""
    condition, parameters = placed.condition("said.pair_id")
    whose = ", ".join("%s" for _ in people)
    wanted = _texts(["said.pair_id", _said("said.assessor_id")])
    found = _columns(
        f"SELECT {wanted} FROM {_table(Assignment)} AS said WHERE {condition}"  # noqa: S608 (names of our own)
        f" AND said.set_aside > 0 AND said.state = %s AND NOT said.gold"
        f" AND said.assessor_id IN ({whose})",
        [*parameters, Assignment.State.EXCLUDED.value, *people],
    )
    return placed.beside(*_apart(*found))


def _said(whose: str) -> str:
    """Somebody and a grade as one number, which takes half the time of two."""
    return f"{whose} * {1 << _GRADE_BITS} + said.grade"


def _apart(pair: Column, said: Column) -> tuple[Column, Column, Column]:
    return pair, said >> _GRADE_BITS, said & ((1 << _GRADE_BITS) - 1)


_GRADE_BITS = 16
"""Grades are small integers of a database."""


def _columns(sql: str, parameters: Sequence[Any]) -> list[Column]:
    """The texts of one row, as whole numbers."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        texts = cursor.fetchone()
    return [np.fromstring(text or "", dtype=np.int64, sep=",") for text in texts]


def _texts(columns: list[str]) -> str:
    """Each column as one text; all are in one order, that in which rows come."""
    if connection.vendor == "postgresql":
        return ", ".join(f"string_agg(({column})::text, ',')" for column in columns)
    return ", ".join(f"group_concat({column})" for column in columns)


def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)
