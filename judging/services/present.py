"""Rows that somebody else may remove between being looked up and being acted upon.

Whoever acts on such a row finds out in one of two ways: reading it again, or a conditional UPDATE
that changed nothing. Both end here, in a sentence that says what is gone.
"""

from typing import TypeVar

from django.db.models import Model, QuerySet

from judging.errors import UserError

Row = TypeVar("Row", bound=Model)


def gone(what: str) -> UserError:
    """``what`` names the thing: it begins the sentence."""
    message = f"{what} is not there any more: it has been removed."
    return UserError("gone", message, status=404)


def now(rows: QuerySet[Row], what: str) -> Row:
    """The first of the rows, as it is now. Raises UserError ``gone`` (404) if there is none."""
    found = rows.first()
    if found is None:
        raise gone(what)
    return found


def refuse_if_gone(rows: QuerySet[Row], what: str) -> None:
    """After an UPDATE that changed nothing: is that because none of the rows is there?

    Raises UserError ``gone`` (404).
    """
    if not rows.exists():
        raise gone(what)
