"""A forgotten password and one's own address, by letters."""

from drf_spectacular.utils import extend_schema
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from judging.access import address_of
from judging.api.accounts import Password
from judging.api.base import ApiView
from judging.api.fields import Body, Text, checked
from judging.api.serializers_account import AddressRow
from judging.services import addresses, resets, sign_in


class ForgotBody(Body):
    who = Text(max_length=254, help_text="A user name or a confirmed e-mail address.")


class Forgot(ApiView):
    section = "You"
    authentication_classes = []
    permission_classes = [AllowAny]
    refusals = {"POST": (429,)}

    @extend_schema(request=ForgotBody, responses={202: None}, auth=[])
    def post(self, request: Request) -> Response:
        """Have a letter sent, whose link sets a new password. The answer is the same for all."""
        given = checked(ForgotBody, request.data)
        resets.ask(who=given["who"], address=address_of(request))
        return Response(status=202)


class ResetBody(Body):
    uid = Text(max_length=50, help_text="Of the link: /reset/{uid}/{token}/")
    token = Text(max_length=100)
    password = Password()


class Reset(ApiView):
    section = "You"
    authentication_classes = []
    permission_classes = [AllowAny]

    @extend_schema(request=ResetBody, responses={204: None}, auth=[])
    def post(self, request: Request) -> Response:
        """Set a new password by the link of a letter. Keys and sessions end with the old one."""
        resets.set_password(**checked(ResetBody, request.data))
        return Response(status=204)


class AddressBody(Body):
    address = Text(max_length=254)
    password = Password()


class Address(ApiView):
    section = "You"
    refusals = {"POST": (429,)}

    @extend_schema(responses=AddressRow)
    def get(self, request: Request) -> Response:
        """Your e-mail address, and whether you have shown that letters reach you."""
        return Response(AddressRow(self.user).data)

    @extend_schema(request=AddressBody, responses={202: None})
    def post(self, request: Request) -> Response:
        """Have a letter sent to an address, whose link makes it yours."""
        given = checked(AddressBody, request.data)
        sign_in.confirm(user=self.user, password=given["password"], address=address_of(request))
        addresses.ask(user=self.user, address=given["address"])
        return Response(status=202)


class ConfirmBody(Body):
    token = Text(max_length=1000, help_text="Of the link: /account/address/{token}/")


class AddressConfirm(ApiView):
    section = "You"

    @extend_schema(request=ConfirmBody, responses=AddressRow)
    def post(self, request: Request) -> Response:
        """Confirm the address to which the letter came."""
        addresses.confirm(user=self.user, token=checked(ConfirmBody, request.data)["token"])
        self.user.refresh_from_db()
        return Response(AddressRow(self.user).data)
