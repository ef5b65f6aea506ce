"""Bodies and answers about crowd links."""

from decimal import Decimal
from typing import Any

from django.urls import reverse
from rest_framework import serializers

from judging.api.fields import Body, Flag, Text, Whole
from judging.models import CrowdLink
from judging.payments import STATES
from judging.services.crowd_links import (
    MOST_ANSWERS,
    MOST_CONSENT,
    MOST_JUDGMENTS,
    MOST_MONEY,
    MOST_PEOPLE,
    RETURN_EXPECTED,
)

CharField = serializers.CharField
IntegerField = serializers.IntegerField
DateTimeField = serializers.DateTimeField
BooleanField = serializers.BooleanField
Row = serializers.Serializer[Any]


def _money(help_text: str) -> serializers.DecimalField:
    return serializers.DecimalField(
        max_digits=9,
        decimal_places=4,
        min_value=0,
        max_value=MOST_MONEY,
        default=Decimal(0),
        help_text=help_text,
    )


class ChoiceBody(Body):
    text = Text(max_length=200)
    out = Flag(default=False, help_text="Whether who gives this answer is screened out.")


class CrowdLinkBody(Body):
    """What a crowd link is made of."""

    name = Text(max_length=100)
    most_people = Whole(min_value=1, max_value=MOST_PEOPLE)
    judgments = Whole(min_value=1, max_value=MOST_JUDGMENTS, help_text="Of each guest at most.")
    consent = Text(max_length=MOST_CONSENT, help_text="Plain text that guests agree to.")
    expires = DateTimeField(
        allow_null=True, default=None, help_text="Nobody new comes from then on; null: no end."
    )
    least_left = Whole(
        min_value=1,
        max_value=MOST_JUDGMENTS,
        default=1,
        help_text="Nobody new comes while fewer pairs are left for them.",
    )
    question = Text(max_length=500, default="", allow_blank=True)
    answers = serializers.ListField(
        child=ChoiceBody(), default=list, max_length=MOST_ANSWERS, help_text="To the question."
    )
    code_kind = serializers.ChoiceField(
        CrowdLink.CodeKind.choices,
        default=CrowdLink.CodeKind.ONE,
        help_text="One completion code for all, or each guest their own.",
    )
    code = Text(max_length=40, default="", allow_blank=True, help_text="Empty: one is made.")
    out_code = Text(
        max_length=40, default="", allow_blank=True, help_text="For who is screened out."
    )
    return_address = Text(max_length=500, default="", allow_blank=True, help_text=RETURN_EXPECTED)
    currency = Text(max_length=3, default="USD", help_text="Three capital letters.")
    per_judgment = _money("Pay of a judgment.")
    per_hour = _money("Pay of an hour, beside that of judgments.")
    least_minutes = Whole(
        min_value=0, max_value=1440, default=0, help_text="Paid to who finishes faster."
    )
    bonus = _money("For each judgment after ``bonus_above``.")
    bonus_above = Whole(min_value=0, max_value=MOST_JUDGMENTS, default=0)
    out_pay = _money("Pay of who is screened out.")


class ChoiceRow(Row):
    text = CharField()
    out = BooleanField(help_text="Whether who gives this answer is screened out.")


class CrowdLinkRow(Row):
    """An address that makes guests, and how many came by it."""

    id = IntegerField()
    name = CharField()
    address = serializers.SerializerMethodField(help_text="Where guests begin.")
    expires = DateTimeField(allow_null=True)
    closed = DateTimeField(allow_null=True, help_text="Since when nobody new comes; else null.")
    most_people = IntegerField()
    people = IntegerField(help_text="Guests with an account, of `most_people`.")
    judgments = IntegerField(help_text="Of each guest at most.")
    least_left = IntegerField()
    consent = CharField()
    question = CharField()
    answers = ChoiceRow(many=True)
    code_kind = serializers.ChoiceField(CrowdLink.CodeKind.choices)
    code = CharField()
    out_code = CharField()
    return_address = CharField()
    currency = CharField()
    per_judgment = CharField()
    per_hour = CharField()
    least_minutes = IntegerField()
    bonus = CharField()
    bonus_above = IntegerField()
    out_pay = CharField()
    opened = IntegerField(help_text="Browsers in which it was opened.")
    declined = IntegerField(help_text="People who did not agree.")
    screened = IntegerField(help_text="Guests who were screened out by their answer.")
    finished = IntegerField(help_text="Guests who were told that they are done.")
    created = DateTimeField()

    def get_address(self, link: CrowdLink) -> str:
        return str(self.context["request"].build_absolute_uri(reverse("work", args=[link.token])))


class DueRow(Row):
    """A guest, and what they are due. Amounts are text with two decimals."""

    guest = CharField(source="name", help_text="The user name; empty: screened out.")
    participant = CharField(source="guest.participant", help_text="As the platform calls them.")
    submission = CharField(source="guest.submission", help_text="As the platform calls this work.")
    parameters = serializers.DictField(
        source="guest.parameters", child=CharField(), help_text="All that the platform told."
    )
    agreed = DateTimeField(source="guest.agreed")
    consent = CharField(source="guest.consent", help_text="SHA-256 of the text agreed to.")
    answer = CharField(source="guest.answer")
    state = serializers.ChoiceField([(each, each) for each in STATES])
    minutes = CharField(help_text="By the server's clock; of a pause over ten minutes, ten.")
    judgments = IntegerField()
    skipped = IntegerField()
    pay = CharField()
    bonus = CharField()
    total = CharField()
    code = CharField(source="guest.told_code", help_text="Empty: they were told none yet.")
    excluded = BooleanField(help_text="Whether their work counts nowhere.")
    alike = serializers.ListField(
        child=CharField(), help_text="Who has the same device or participant id."
    )


class PaymentsRow(Row):
    """What all guests of a link are due; sums are those of the rows."""

    currency = CharField()
    minutes = CharField()
    judgments = IntegerField()
    pay = CharField()
    bonus = CharField()
    total = CharField()
    guests = DueRow(many=True, source="rows")
