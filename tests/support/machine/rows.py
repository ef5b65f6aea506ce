"""Rows of models, read by statements that are compiled once.

They are read after every act, and to compile such statements takes Django several times as long as
to run them.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Generic, TypeVar

from django.db import connection
from django.db.models import Model, QuerySet

from judging.statements import reads

M = TypeVar("M", bound=Model)


class Rows(Generic[M]):
    """All columns of a QuerySet whose values are slots. Rows that columns name are not joined:
    whoever needs them puts them in (``beside``)."""

    def __init__(self, build: Callable[[], QuerySet[M]]) -> None:
        self._build = build
        self._statement = reads(self._columns)

    @cached_property
    def _model(self) -> type[M]:
        return self._build().model

    @cached_property
    def _names(self) -> list[str]:
        return [field.attname for field in self._model._meta.concrete_fields]

    def _columns(self) -> QuerySet[Any, Any]:
        return self._build().values_list(*self._names)

    def __call__(self, **values: Any) -> list[M]:
        found = self._statement.rows(**values)
        return [self._model.from_db(connection.alias, self._names, row) for row in found]


def beside(row: Any, **named: Any) -> None:
    """Puts in rows that columns of this one name, as ``select_related`` does."""
    for name, other in named.items():
        setattr(row, name, other)
