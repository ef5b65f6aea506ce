"""The options of a round as fields of bodies and of answers."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from rest_framework import serializers

from estimation.options import REQUIRED, Kind, Option
from estimation.plans import LONGEST_MEASURE, MAX_MEASURES, NAMED, OPTIONS
from judging.api.fields import Body, Flag, Number, OneOf, Text, Whole

LONGEST_NAME = 255
Fields: TypeAlias = dict[str, Any]
Made: TypeAlias = Callable[[Option, dict[str, Any]], Any]

SENT: Mapping[Kind, Made] = {
    "choice": lambda option, given: OneOf(option.labels, **given),
    "named": lambda option, given: Text(max_length=LONGEST_NAME, **given),
    "several": lambda option, given: serializers.ListField(
        child=Text(max_length=LONGEST_NAME), max_length=option.longest, **given
    ),
    "flag": lambda option, given: Flag(**given),
    "whole": lambda option, given: Whole(**given),
    "number": lambda option, given: Number(**given),
    "measures": lambda option, given: serializers.ListField(
        child=Text(max_length=LONGEST_MEASURE), max_length=MAX_MEASURES, **given
    ),
    "text": lambda option, given: Text(max_length=option.longest, **given),
}
ANSWERED: Mapping[Kind, Made] = {
    **SENT,
    "named": lambda option, given: serializers.CharField(
        source=f"{option.name}.{option.key}", default=None, allow_null=True
    ),
    "whole": lambda option, given: serializers.IntegerField(**given),
    "several": lambda option, given: serializers.ListField(child=serializers.CharField(), **given),
    "measures": lambda option, given: serializers.ListField(child=serializers.CharField(), **given),
    "text": lambda option, given: serializers.CharField(**given),
}


def _given(option: Option, told: str, **more: Any) -> dict[str, Any]:
    """What is said of every field; empty and null are answers if they are the default, and null
    where answers have it for what is named by nothing."""
    help_text = {"help_text": told} if told else {}
    empty = {"allow_blank": True} if option.default == "" else {}
    null = {"allow_null": True} if option.default is None or option.kind == "named" else {}
    return more | help_text | empty | null


def answers() -> Fields:
    return {
        name: ANSWERED[option.kind](option, _given(option, option.answered))
        for name, option in OPTIONS.items()
    }


class RoundBody(Body):
    whole = True
    """Whether options without a default are required."""

    def get_fields(self) -> Fields:
        return {name: self.sent(option) for name, option in OPTIONS.items()}

    def validate(self, attrs: Fields) -> Fields:
        return attrs | {name: "" for name in NAMED if attrs.get(name, "") is None}

    def sent(self, option: Option) -> Any:
        required = self.whole and option.default is REQUIRED
        return SENT[option.kind](option, _given(option, option.asked, required=required))


class RoundChange(RoundBody):
    whole = False
