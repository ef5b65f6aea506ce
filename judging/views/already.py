"""Acts that take something away or settle it, asked for once more: by a second click, or from an
old page.

What was wanted is so by then. Whoever asks again is led to what is there, with a calm sentence.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from django.contrib import messages
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from judging.errors import UserError
from judging.services import present

GONE = "gone"
SETTLED = (
    GONE,
    "taken_back",
    "wrong_state",
    "not_checked",
    "not_reading",
    "not_going",
    "ended",
)
"""Codes of errors that say so."""
Row = TypeVar("Row", bound=Model)
View = TypeVar("View", bound=Callable[..., HttpResponse])


def leads_back(place: str, *names: str) -> Callable[[View], View]:
    """To the page ``place``, whose address has these of the view's ``names``."""

    def decorate(view: View) -> View:
        @wraps(view)
        def act(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
            try:
                return view(request, *args, **kwargs)
            except UserError as error:
                if error.code not in SETTLED:
                    raise
                messages.info(request, error.message)
                return redirect(place, *(str(kwargs[name]) for name in names))

        return cast(View, act)

    return decorate


def there(rows: QuerySet[Row], what: str, **which: int) -> Row:
    """The row to act on. Raises UserError ``gone`` (404)."""
    return present.now(rows.filter(**which), what)


def tell(request: HttpRequest, error: UserError) -> None:
    """Why it was not done, for a page that the view leads to; what is gone has none."""
    if error.code == GONE:
        raise error
    level = messages.info if error.code in SETTLED else messages.error
    level(request, error.message)
