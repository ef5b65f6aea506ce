"""What all views of the REST interface share: bodies, addresses of campaigns, pages of lists."""

import json
from collections.abc import Callable
from typing import Any, ClassVar

from django.conf import settings
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.cache import add_never_cache_headers
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, serializers
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.permissions import AllowAny
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from judging.access import (
    assessed_campaign,
    member_campaign,
    organized_campaign,
    user_of,
)
from judging.api.errors import TooLarge
from judging.api.fields import Query, checked
from judging.api.pagination import Pages
from judging.models import Campaign, User
from judging.services import factors

Access = Callable[[User, str], Campaign]
MEMBER: Access = member_campaign
ORGANIZER: Access = organized_campaign
ASSESSOR: Access = assessed_campaign

ROOM_FOR_FORM_FIELDS = 2**20


class JsonBody(BaseParser):
    """JSON in UTF-8, of bounded size."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        _refuse_larger(parser_context, settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        try:
            return json.loads(stream.read().decode("utf-8"), parse_constant=_no_constant)
        except ValueError as error:
            raise exceptions.ParseError(f"The body is not valid JSON: {error}") from None
        except RecursionError:
            raise exceptions.ParseError("The body is nested too deeply.") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


class FilesBody(MultiPartParser):
    """Files and fields as multipart/form-data; all files of a request together are bounded."""

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        _refuse_larger(parser_context, settings.UPLOAD_MAX_BYTES + ROOM_FOR_FORM_FIELDS)
        return super().parse(stream, media_type, parser_context)


def _refuse_larger(parser_context: Any, most: int) -> None:
    if int(parser_context["request"].META.get("CONTENT_LENGTH") or 0) > most:
        raise TooLarge(f"The request is too large: expected at most {most // 2**20} MB at once.")


class AnyAccept(BaseContentNegotiation):
    """For downloads: a file has the type that it has."""

    def select_parser(self, request: Request, parsers: Any) -> BaseParser:
        first: BaseParser = parsers[0]
        return first

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        return renderers[0], renderers[0].media_type


class ApiView(APIView):
    """A view of the REST interface.

    ``without_second_factor``: also for those who must set one up first (SECOND_FACTOR_FOR).
    ``section`` is its heading in the documentation; ``refusals`` the statuses, beside the usual
    ones, with which a method may refuse; ``query`` what GET takes after the question mark. A
    parameter that is not told of is refused, and ``asked`` has the values of the others.
    """

    section: ClassVar[str] = "Campaigns"
    refusals: ClassVar[dict[str, tuple[int, ...]]] = {}
    query: ClassVar[type[Query]] = Query
    without_second_factor: ClassVar[bool] = False
    asked: dict[str, Any]
    parser_classes = [JsonBody]
    http_method_names = ["get", "head", "post", "patch", "delete"]

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        request.encoding = "utf-8"  # whatever the content type says: some codecs are no text
        return super().initialize_request(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if request.user.is_authenticated and not self.without_second_factor:
            factors.refuse_without(self.user)
        reads = request.method in ("GET", "HEAD")
        self.asked = asked(self.query if reads else Query, request)

    def finalize_response(
        self, request: Request, response: Response, *args: Any, **kwargs: Any
    ) -> Response:
        answer = super().finalize_response(request, response, *args, **kwargs)
        add_never_cache_headers(answer)
        return answer

    @property
    def user(self) -> User:
        return user_of(self.request)


class CampaignView(ApiView):
    """A view under ``campaigns/{slug}/``: loads the campaign as far as the user may see it.

    ``access`` names who may use which method.
    """

    access: ClassVar[dict[str, Access]]
    campaign: Campaign

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        method = "GET" if request.method == "HEAD" else request.method or ""
        if method not in self.access:
            raise exceptions.MethodNotAllowed(method)
        self.campaign = self.found(self.access[method], kwargs["slug"])

    def found(self, access: Access, slug: str) -> Campaign:
        """The campaign of the address, if the user may see it."""
        return access(self.user, slug)


def asked(kind: type[Query], request: Request) -> dict[str, Any]:
    """The values after the question mark, or a 400 that names what is wrong."""
    given = {
        name: values
        for name, values in request.query_params.lists()
        if name != api_settings.URL_FORMAT_OVERRIDE  # the framework's own: the type of the answer
    }
    if repeated := [name for name, values in given.items() if len(values) > 1]:
        raise exceptions.ValidationError({name: ["Given more than once."] for name in repeated})
    values: dict[str, Any] = checked(kind, {name: values[0] for name, values in given.items()})
    return values


def page(
    request: Request, rows: QuerySet[Any] | list[Any], kind: type[serializers.Serializer[Any]]
) -> Response:
    """One page of a list."""
    pages = Pages()
    shown = pages.paginate_queryset(rows, request)
    return pages.get_paginated_response(kind(shown, many=True, context={"request": request}).data)


@extend_schema(exclude=True)
class UnknownAddress(ApiView):
    """Every other address: there is nothing, in the one shape of errors."""

    authentication_classes = []
    permission_classes = [AllowAny]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise exceptions.NotFound("There is no such address. All addresses end with a slash.")
