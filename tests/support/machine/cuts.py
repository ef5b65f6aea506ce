"""What comes in the middle of an act: a death, a database that goes away, somebody else's act.

Acts are cut at their statements, before the n-th. A transaction of the product is a savepoint of
the test's: whatever leaves it by an exception takes back what it wrote, as the end of a process or
of a connection does, and what was committed before stays. Somebody else's act comes between two
transactions only, where another connection could have done it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from django.db import OperationalError, connection, transaction

GONE = "the connection was cut"


class Killed(BaseException):
    """The process ends here. Not an Exception: nothing in the product may answer to it."""


def death() -> None:
    raise Killed


def failure() -> None:
    raise OperationalError(GONE)


@contextmanager
def autocommit_inside() -> Iterator[None]:
    """The transaction around an example counts as none: what fails outside of the product's own
    transactions fails alone, and what Django puts into one of its own is taken back as one.
    """
    outside = len(connection.savepoint_ids)
    enter = transaction.Atomic.__enter__

    def begin(self: transaction.Atomic) -> None:
        self.savepoint = self.savepoint or len(connection.savepoint_ids) == outside
        enter(self)

    @contextmanager
    def marked(using: str | None = None) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if len(connection.savepoint_ids) > outside:
                connection.needs_rollback = True
                connection.rollback_exc = error
            raise

    with (
        mock.patch.object(transaction.Atomic, "__enter__", begin),
        mock.patch.object(transaction, "mark_for_rollback_on_error", marked),
    ):
        yield


@dataclass
class Cut:
    """An act that is cut before its statement number ``at``; ``fell`` says whether it came to it.

    ``do`` is None where nothing is cut. ``between``: only between transactions. ``ends``: the act
    ends there, and nobody is answered.
    """

    at: int
    do: Callable[[], None] | None
    between: bool = False
    ends: bool = False
    fell: bool = False

    @contextmanager
    def falling(self) -> Iterator[None]:
        if self.do is None:
            yield
            return
        with connection.execute_wrapper(self._count(len(connection.savepoint_ids))):
            yield

    def _count(self, outside: int) -> Callable[..., Any]:
        count = 0

        def before(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
            nonlocal count
            if not self.fell and not sql.startswith(("RELEASE", "ROLLBACK")):
                count += 1
                here = not self.between or len(connection.savepoint_ids) == outside
                if count > self.at and here and self.do is not None:
                    self.fell = True
                    self.do()
            return execute(sql, params, many, context)

        return before


def nothing() -> Cut:
    return Cut(0, None)
