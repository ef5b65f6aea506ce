"""All labels of many pairs at once, as columns: an object for each would take most of the time.

The database joins them and hands over each column as one text, so that there is one row whatever
the number of labels, and nothing is done for each of them but by the database and by NumPy.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

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


def label_columns(
    rows: QuerySet[Any, Any], *places: str, taken_back: Collection[int] = ()
) -> LabelColumns:
    """The labels of the pairs of some rows, beside columns of whole numbers of those rows.

    The columns tell pairs apart. A label of a pair that several of the rows have is there several
    times. ``taken_back``: row ids of people whose excluded work counts here, as it would if that
    was taken back: to tell what hangs on it, and for no estimate.
    """
    placed_rows = rows.order_by().values_list("pair_id", *places)
    judged, decided, senior = _read(placed_rows, places)
    if taken_back:
        aside = _read_aside(placed_rows, places, sorted(taken_back))
        there = _any_of(decided[:-2], aside[:-2])  # where there is a judgment, none is decided
        decided = [column[~there] for column in decided]
        judged = [np.concatenate(columns) for columns in zip(judged, aside, strict=True)]
    found = [np.concatenate(columns) for columns in zip(judged, decided, senior, strict=True)]
    *placed, assessor, grade = found
    superseded = _any_of(placed, senior[:-2])
    superseded[len(grade) - len(senior[-1]) :] = False
    numbers = np.unique(assessor)
    names = dict(User.objects.filter(pk__in=numbers.tolist()).values_list("pk", "username"))
    names[_NOBODY] = ""
    ordered = sorted(names.values())
    code = {name: at for at, name in enumerate(ordered)}
    table = np.array([code[names[pk]] for pk in numbers.tolist()], dtype=np.int64)
    codes = table[np.searchsorted(numbers, assessor)]
    return LabelColumns(tuple(placed), codes, grade, assessor == _NOBODY, superseded, ordered)


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


def _read(rows: QuerySet[Any, Any], places: tuple[str, ...]) -> list[list[Column]]:
    """Places, assessor and grade of judgments, of decisions, and of senior grades that count, by
    one statement."""
    sql, parameters = rows.query.get_compiler(connection=connection).as_sql()
    wanted = [f"placed.{connection.ops.quote_name(name)}" for name in places]
    judged = (
        f"SELECT {_texts([*wanted, 'a.assessor_id', 'a.grade'])} FROM ({sql}) AS placed"  # noqa: S608 (names of our own)
        f" JOIN {_table(Assignment)} AS a ON a.pair_id = placed.pair_id AND a.revision > 0"
    )
    decided, senior = (  # CROSS JOIN: SQLite begins with the first, and these are few
        f"SELECT {_texts([*wanted, str(_NOBODY), 'd.grade'])} FROM {_table(model)} AS d"  # noqa: S608
        f" CROSS JOIN ({sql}) AS placed WHERE placed.pair_id = d.pair_id AND {which}"
        for model, which in ((Decision, "d.kind = %s"), (SeniorGrade, "d.counts"))
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT * FROM ({judged}) AS judged CROSS JOIN ({decided}) AS decided"  # noqa: S608
            f" CROSS JOIN ({senior}) AS senior",
            [*parameters, *parameters, Decision.Kind.GRADE.value, *parameters],
        )
        texts = cursor.fetchone()
    columns = [np.fromstring(text or "", dtype=np.int64, sep=",") for text in texts]
    width = len(places) + 2
    return [columns[:width], columns[width : 2 * width], columns[2 * width :]]


def _read_aside(
    rows: QuerySet[Any, Any], places: tuple[str, ...], people: list[int]
) -> list[Column]:
    """Places, assessor and grade of what these people said, whose work is excluded."""
    sql, parameters = rows.query.get_compiler(connection=connection).as_sql()
    wanted = [f"placed.{connection.ops.quote_name(name)}" for name in places]
    whose = ", ".join("%s" for _ in people)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {_texts([*wanted, 'a.assessor_id', 'a.grade'])} FROM ({sql}) AS placed"  # noqa: S608 (names of our own)
            f" JOIN {_table(Assignment)} AS a ON a.pair_id = placed.pair_id AND a.set_aside > 0"
            f" WHERE a.state = %s AND NOT a.gold AND a.assessor_id IN ({whose})",
            [*parameters, Assignment.State.EXCLUDED.value, *people],
        )
        texts = cursor.fetchone()
    return [np.fromstring(text or "", dtype=np.int64, sep=",") for text in texts]


def _texts(columns: list[str]) -> str:
    """Each column as one text; all are in one order, that in which rows come."""
    if connection.vendor == "postgresql":
        return ", ".join(f"string_agg(({column})::text, ',')" for column in columns)
    return ", ".join(f"group_concat({column})" for column in columns)


def _table(model: type[Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)
