"""Rows of answers about one's own account."""

from typing import Any

from rest_framework import serializers

from judging.models import SecondFactor

CharField = serializers.CharField
Row = serializers.Serializer[Any]


class FactorRow(Row):
    id = serializers.IntegerField(source="pk")
    kind = serializers.ChoiceField(SecondFactor.Kind.choices)
    name = CharField()
    created = serializers.DateTimeField()
    last_used = serializers.DateTimeField(allow_null=True)


class DraftRow(Row):
    """Of codes that are not set up yet."""

    secret = CharField()
    address = CharField(help_text="The same as apps read it: otpauth://…")
    token = CharField(help_text="To be sent back with the first code, within the hour.")


class RecoveryCodesRow(Row):
    recovery_codes = serializers.ListField(
        child=CharField(), help_text="Each opens the account once; told here only."
    )


class AddressRow(Row):
    address = CharField(source="email", help_text="Empty: none.")
    confirmed = serializers.BooleanField(source="address_confirmed")
