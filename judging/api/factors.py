"""One's own second factors. Passkeys are added in browsers: nothing else can be asked for one."""

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from judging.access import address_of
from judging.api.accounts import Password
from judging.api.base import ApiView
from judging.api.fields import Body, Text, checked
from judging.api.serializers_account import DraftRow, FactorRow, RecoveryCodesRow
from judging.models import SecondFactor
from judging.services import factors, sign_in


class PasswordBody(Body):
    password = Password()


class FactorView(ApiView):
    """What opens the account is changed by who gives its password once more."""

    section = "You"
    without_second_factor = True
    refusals = {"POST": (429,)}

    def confirm(self, request: Request) -> None:
        given = checked(PasswordBody, request.data)["password"]
        sign_in.confirm(user=self.user, password=given, address=address_of(request))


class SecondFactors(FactorView):
    @extend_schema(responses=FactorRow(many=True))
    def get(self, request: Request) -> Response:
        """Your second factors."""
        return Response(FactorRow(self.user.factors.order_by("pk"), many=True).data)


class SecondFactorRemoval(FactorView):
    @extend_schema(request=PasswordBody, responses={204: None})
    def post(self, request: Request, factor: int) -> Response:
        """Remove a second factor. With the last one, recovery codes go too."""
        rows = SecondFactor.objects.select_related("user")
        row = get_object_or_404(rows, pk=factor, user=self.user)
        self.confirm(request)
        factors.remove(factor=row, by=self.user)
        return Response(status=204)


class FactorCodes(FactorView):
    @extend_schema(request=PasswordBody, responses={201: DraftRow})
    def post(self, request: Request) -> Response:
        """A secret for an app that shows codes. Nothing is set up before the first one fits."""
        self.confirm(request)
        return Response(DraftRow(factors.draft(user=self.user)).data, 201)


class SetUpBody(Body):
    token = Text(max_length=1000, help_text="Of the secret.")
    code = Text(max_length=10, help_text="That the app shows now.")


class FactorCodesSetUp(FactorView):
    @extend_schema(request=SetUpBody, responses={201: RecoveryCodesRow})
    def post(self, request: Request) -> Response:
        """Have codes of the app asked for from now on. Recovery codes are told this once."""
        fresh = factors.set_up_codes(user=self.user, **checked(SetUpBody, request.data))
        return Response(RecoveryCodesRow({"recovery_codes": fresh}).data, 201)


class RecoveryCodes(FactorView):
    @extend_schema(request=PasswordBody, responses={201: RecoveryCodesRow})
    def post(self, request: Request) -> Response:
        """New recovery codes; earlier ones are void."""
        self.confirm(request)
        fresh = factors.renew_recovery_codes(user=self.user)
        return Response(RecoveryCodesRow({"recovery_codes": fresh}).data, 201)
