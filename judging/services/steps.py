"""Services that have a transaction of their own, and are also steps of a greater one.

In a ``whole`` their changes are committed together or not at all, without savepoints in between:
whatever a step raises undoes the whole, so that nobody may catch it inside and go on.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.db import transaction

_inside: ContextVar[bool] = ContextVar("inside a whole", default=False)


@contextmanager
def whole() -> Iterator[None]:
    with transaction.atomic():
        before = _inside.set(True)
        try:
            yield
        finally:
            _inside.reset(before)


@contextmanager
def step() -> Iterator[None]:
    """A transaction, or a part of the whole under way."""
    if _inside.get():
        yield
    else:
        with transaction.atomic():
            yield


def is_part() -> bool:
    """Whether a whole is under way, so that an error is not to be mended here."""
    return _inside.get()
