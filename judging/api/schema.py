"""The OpenAPI document: every operation states its error responses."""

import re
from http import HTTPStatus
from typing import Any

from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers


class ErrorLine(serializers.Serializer[Any]):
    file = serializers.CharField(allow_null=True, help_text="The uploaded file, if one is meant.")
    line = serializers.IntegerField(allow_null=True, help_text="Line of the file, from 1.")
    field = serializers.CharField(allow_null=True, help_text="Field of the body or of the line.")
    message = serializers.CharField()


class Error(serializers.Serializer[Any]):
    """The shape of every error."""

    code = serializers.CharField(help_text="A stable word for programs.")
    message = serializers.CharField(help_text="What is wrong and how to mend it.")
    errors = ErrorLine(many=True)  # type: ignore[assignment]  # Serializer.errors is of inputs


ALWAYS = (400, 401, 403, 404, 406)
WITH_BODY = (409, 413, 415)
MEANINGS = {
    400: "A field, a parameter or the body is wrong.",
    401: "No key or session, or not a valid one.",
    403: "The role does not allow this, or the CSRF token is missing.",
    404: "Not there, or not visible to the caller.",
    406: "The answer cannot have the type that Accept asks for.",
    409: "The state of things does not allow this.",
    413: "The request is too large.",
    415: "The body has another content type than expected.",
    422: "The Idempotency-Key was used for something else.",
    429: "Too many tries: wait for Retry-After seconds.",
    507: "The disk of the site has no room for this.",
}


class Schema(AutoSchema):
    """Adds the one error shape to every operation, and its heading, title and text."""

    def get_override_parameters(self) -> list[Any]:
        """The view's query, which only reading takes."""
        query = getattr(self.view, "query", None)
        return [query] if query is not None and query().fields and self.method == "GET" else []

    def get_tags(self) -> list[str]:
        return [getattr(self.view, "section", "Site")]

    def get_operation_id(self) -> str:
        """Method and view, which have one address each: "post_campaigns"."""
        words = re.findall(r"[A-Z][a-z]+", type(self.view).__name__)
        return "_".join([self.method.lower(), *(word.lower() for word in words)])

    def get_summary(self) -> str | None:
        return super().get_summary() or self._text()[0] or None

    def get_description(self) -> str:  # type: ignore[override]  # as its parent here does
        return self._text()[1]

    def _text(self) -> tuple[str, str]:
        """The method's documentation: its first line, and the rest."""
        text = getattr(self.view, self.method.lower()).__doc__ or ""
        first, _, rest = text.partition("\n")
        return first.strip(), " ".join(rest.split())

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        for status in self._refusals():
            error = OpenApiResponse(Error, description=MEANINGS[status])
            if str(status) not in bodies:
                bodies[str(status)] = self._get_response_for_code(  # type: ignore[no-untyped-call]
                    error, str(status)
                )
        return dict(sorted(bodies.items()))

    def _refusals(self) -> set[int]:
        own = getattr(self.view, "refusals", {}).get(self.method, ())
        changing = () if self.method == "GET" else WITH_BODY
        return {HTTPStatus(status).value for status in (*ALWAYS, *changing, *own)}
