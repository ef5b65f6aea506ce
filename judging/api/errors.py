"""All errors have one shape: code, message, and ``errors`` of file, line, field and message.

What a caller can mend is a 4xx; a database that does not answer is a 503 and a disk without room a
507, both to be tried again; all else is a bug, which reaches the log and is told as a 500 in the
same shape.
"""

import errno
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFilesSent,
)
from django.core.signals import got_request_exception
from django.db import InterfaceError, OperationalError
from django.db.models import ProtectedError
from django.http import Http404
from django.http.multipartparser import MultiPartParserError
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_exception_handler

from judging.errors import UserError

log = logging.getLogger("django.request")

TOO_LARGE = "The request is too large. Send less at once."
EXPECTED: tuple[tuple[type[Exception] | tuple[type[Exception], ...], int, str, str], ...] = (
    ((RequestDataTooBig, TooManyFilesSent), 413, "too_large", TOO_LARGE),
    (MultiPartParserError, 400, "parse_error", "The multipart body cannot be read."),
    (SuspiciousOperation, 400, "bad_request", "The request is malformed."),
    (ProtectedError, 409, "in_use", "Something else rests on this; it cannot be removed."),
)
DATABASE_AWAY = (OperationalError, InterfaceError)
DATABASE_MESSAGE = "The database does not answer. Try again in a moment."
DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
DISK_MESSAGE = "The disk of this site is full. Try again when its administrator has made room."
RETRY_SECONDS = 2


class TooLarge(exceptions.APIException):
    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_detail = TOO_LARGE
    default_code = "too_large"


def exception_handler(error: Exception, context: dict[str, Any]) -> Response:
    """Turns every exception into the one shape."""
    if isinstance(error, UserError):
        return _of_user_error(error)
    response = drf_exception_handler(error, context)
    if response is None:
        return _of_django_error(error) or _of_bug(error, context)
    if isinstance(error, exceptions.ValidationError):
        problems = list(_flatten(error.detail, ""))
        response.data = body("invalid", "Some fields are wrong: see errors.", problems)
    else:
        response.data = body(_code(error), _message(error), ())
    return response


def body(code: str, message: str, errors: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The one shape; text that was quoted from a request is made printable."""
    return {"code": code, "message": _clean(message), "errors": [line(**e) for e in errors]}


def line(
    message: str,
    *,
    file: str | None = None,
    line: int | None = None,
    field: str | None = None,
    **_rest: Any,
) -> dict[str, Any]:
    """One problem. An upload's stored problems have this shape too, and come through here."""
    return {
        "file": _clean(file) if file else None,
        "line": line,
        "field": _clean(field) if field else None,
        "message": _clean(message),
    }


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\x00", "\ufffd")[:1000]


def _of_user_error(error: UserError) -> Response:
    lines = error.data.get("errors") or (
        [{"field": error.field, "message": error.message}] if error.field else []
    )
    response = Response(body(error.code, error.message, lines), status=error.status)
    if error.status == status.HTTP_401_UNAUTHORIZED:
        response["WWW-Authenticate"] = "Bearer"
    if wait := error.data.get("retry_after"):
        response["Retry-After"] = str(wait)
    return response


def not_now(error: BaseException | None) -> tuple[int, str, str] | None:
    """Status, code and message if it is the machine that fails, so that a later try may succeed."""
    full = isinstance(error, OSError) and error.errno in DISK_FULL
    if full or (isinstance(error, OperationalError) and "disk is full" in str(error)):
        return status.HTTP_507_INSUFFICIENT_STORAGE, "storage_full", DISK_MESSAGE
    if isinstance(error, DATABASE_AWAY):
        return status.HTTP_503_SERVICE_UNAVAILABLE, "database_unavailable", DATABASE_MESSAGE
    return None


def _of_django_error(error: Exception) -> Response | None:
    if refusal := not_now(error):
        code, name, message = refusal
        log.error("%s: %s", type(error).__name__, error)
        return Response(body(name, message, ()), code, headers={"Retry-After": str(RETRY_SECONDS)})
    for kinds, code, name, message in EXPECTED:
        if isinstance(error, kinds):
            return Response(body(name, message, ()), status=code)
    return None


def _of_bug(error: Exception, context: dict[str, Any]) -> Response:
    request = context.get("request")
    got_request_exception.send(sender=None, request=getattr(request, "_request", None))
    log.error("%s in %s", type(error).__name__, context.get("view"), exc_info=error)
    message = "Something went wrong on the server. It has been written to its log."
    return Response(body("server_error", message, ()), status=500)


def _code(error: Exception) -> str:
    if isinstance(error, Http404):
        return "not_found"
    if isinstance(error, PermissionDenied):
        return "permission_denied"
    return str(getattr(error, "default_code", "error"))


def _message(error: Exception) -> str:
    if isinstance(error, Http404):
        return "There is nothing at this address, or it is not yours to see."
    return str(getattr(error, "detail", error)) or "Your role does not allow this."


def _flatten(detail: Any, field: str) -> Iterator[dict[str, Any]]:
    """Nested problems as rows; a place in a list is named by its number, from 0."""
    if isinstance(detail, dict):
        for name, value in detail.items():
            own = "" if name == "non_field_errors" else str(name)
            yield from _flatten(value, ".".join(part for part in (field, own) if part))
    elif isinstance(detail, list):
        for number, value in enumerate(detail):
            inner = f"{field}.{number}" if isinstance(value, dict) else field
            yield from _flatten(value, inner)
    else:
        yield {"field": field or None, "message": str(detail)}
