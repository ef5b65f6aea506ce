"""One shape for all errors: ``{"code", "message", "errors": [{"file", "line", "field", "message"}]}``."""

from collections.abc import Iterator
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_exception_handler

from judging.errors import UserError


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Turns every expected exception into the one shape; bugs stay bugs (500)."""
    if isinstance(error, UserError):
        lines = error.data.get("errors") or _one(error.field, error.message)
        return _response(error.status, error.code, error.message, lines)
    response = drf_exception_handler(error, context)
    if response is None:
        return None
    if isinstance(error, exceptions.ValidationError):
        problems = list(_flatten(error.detail, ""))
        body = _body("invalid", "Some fields are wrong: see errors.", problems)
    else:
        body = _body(_code(error), _message(error), [])
    response.data = body
    return response


def _response(status: int, code: str, message: str, errors: list[dict[str, Any]]) -> Response:
    return Response(_body(code, message, errors), status=status)


def _body(code: str, message: str, errors: list[dict[str, Any]]) -> dict[str, Any]:
    return {"code": code, "message": message, "errors": errors}


def _one(field: str | None, message: str) -> list[dict[str, Any]]:
    return [_error(field, message)] if field else []


def _error(field: str | None, message: str) -> dict[str, Any]:
    return {"file": None, "line": None, "field": field, "message": message}


def _code(error: Exception) -> str:
    if isinstance(error, Http404):
        return "not_found"
    if isinstance(error, PermissionDenied):
        return "permission_denied"
    return str(getattr(error, "default_code", "error"))


def _message(error: Exception) -> str:
    if isinstance(error, Http404):
        return "Not found."
    return str(getattr(error, "detail", error)) or "Your role does not allow this."


def _flatten(detail: Any, field: str) -> Iterator[dict[str, Any]]:
    if isinstance(detail, dict):
        for name, value in detail.items():
            inner = name if not field else f"{field}.{name}"
            yield from _flatten(value, "" if name == "non_field_errors" else inner)
    elif isinstance(detail, list):
        for value in detail:
            yield from _flatten(value, field)
    else:
        yield _error(field or None, str(detail))
