"""Keys of the REST interface, and who the caller is."""

from typing import Any

from django.db import transaction
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny, BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from judging import selectors
from judging.access import address_of
from judging.api.base import ApiView
from judging.api.fields import Body, OneOf, Text, Whole, checked
from judging.api.serializers import MeRow, NewTokenRow, TokenRow
from judging.models import ApiToken
from judging.services import factors, members, sign_in


class Password(serializers.CharField):
    def __init__(self) -> None:
        super().__init__(max_length=4096, trim_whitespace=False, style={"input_type": "password"})

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class SignIn(Body):
    username = Text(max_length=150)
    password = Password()
    code = Text(
        max_length=40,
        default="",
        allow_blank=True,
        help_text="Of the app, or a recovery code, where the account has a second factor.",
    )
    name = Text(max_length=100, default="API", help_text="What the key is for.")
    scope = OneOf(ApiToken.Scope.choices, default=ApiToken.Scope.FULL, help_text="What it may do.")
    expires_in_days = Whole(
        min_value=1, max_value=members.MAX_KEY_DAYS, default=members.KEY_DAYS,
        help_text="For how long it works, if the password is not changed before.",
    )  # fmt: skip


class Tokens(ApiView):
    section = "You"
    refusals = {"POST": (429,)}

    def get_authenticators(self) -> list[Any]:
        signing_in = self.request is not None and self.request.method == "POST"
        return [] if signing_in else super().get_authenticators()

    def get_permissions(self) -> list[BasePermission]:
        return [AllowAny() if self.request.method == "POST" else IsAuthenticated()]

    @extend_schema(responses=TokenRow(many=True))
    def get(self, request: Request) -> Response:
        """Your keys, without the keys themselves."""
        return Response(TokenRow(selectors.keys_of(self.user), many=True).data)

    @extend_schema(request=SignIn, responses={201: NewTokenRow}, auth=[])
    def post(self, request: Request) -> Response:
        """Sign in and get a key.

        Send it with every request as "Authorization: Bearer <key>". It is shown this once. Of an
        account with a second factor a code is asked for (401, `second_factor_needed`); one that
        has passkeys alone makes its keys on the account page.
        """
        given = checked(SignIn, request.data)
        user = sign_in.authenticate(
            username=given["username"],
            password=given["password"],
            address=address_of(request),
        )
        factors.ask(user=user, code=given["code"])
        with transaction.atomic():  # nobody else can end it before it is read
            key = members.create_token(
                user=user, name=given["name"], scope=given["scope"], days=given["expires_in_days"]
            )
            token = selectors.keys_of(user).get(digest=ApiToken.digest_of(key))
        return Response({**TokenRow(token).data, "key": key}, status=201)


class Token(ApiView):
    section = "You"

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, token: int) -> Response:
        """Revoke one of your keys."""
        row = get_object_or_404(ApiToken, pk=token, user=self.user)
        members.revoke_token(token=row, by=self.user)
        return Response(status=204)


class Me(ApiView):
    section = "You"
    without_second_factor = True

    @extend_schema(responses=MeRow)
    def get(self, request: Request) -> Response:
        """Who you are, and of which campaigns you are a member."""
        user = self.user
        mine = user.memberships.select_related("campaign").order_by("-campaign", "role")
        shown = {
            "username": user.username,
            "is_superuser": user.is_superuser,
            "may_create_campaigns": user.is_superuser or user.is_organizer,
            "has_second_factor": user.has_second_factor,
            "memberships": mine,
        }
        return Response(MeRow(shown).data)
