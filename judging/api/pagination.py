"""Lists come in pages: ``{"count", "next", "previous", "results"}``."""

from functools import cache
from typing import Any

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.pagination import PageNumberPagination

from judging.api.fields import Query


class Pages(PageNumberPagination):
    page_size = 100
    page_size_query_param = "page_size"
    max_page_size = 1000


class PageQuery(Query):
    """Which page of a list. One after the last is not there (404)."""

    page = serializers.IntegerField(min_value=1, default=1, help_text="Which page, from 1.")
    page_size = serializers.IntegerField(
        min_value=1, max_value=Pages.max_page_size, default=Pages.page_size,
        help_text="Rows per page.",
    )  # fmt: skip


@cache
def page_shape(row: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """The shape of a page of such rows, for the documentation."""
    return inline_serializer(
        f"{row.__name__}Page",
        {
            "count": serializers.IntegerField(help_text="Rows on all pages."),
            "next": serializers.URLField(allow_null=True, help_text="Address of the next page."),
            "previous": serializers.URLField(allow_null=True),
            "results": row(many=True),
        },
    )
