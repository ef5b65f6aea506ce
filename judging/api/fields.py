"""Fields that take what the documentation says and nothing else.

A number in quotes is no number, a field nobody knows is an error, and text that a database would
refuse (NUL, other control characters, lone surrogates) never gets that far.
"""

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from typing import Any

from rest_framework import serializers

from judging.formats.problems import text_problem

WHOLE_MIN, WHOLE_MAX = -(2**31), 2**31 - 1


class Text(serializers.CharField):
    """Text that every database stores."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        if problem := text_problem(data):
            raise serializers.ValidationError(f"{problem[:1].upper()}{problem[1:]}.")
        return super().to_internal_value(data)


class Whole(serializers.IntegerField):
    """A whole number as JSON writes it, within what a database column holds."""

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("min_value", WHOLE_MIN)
        kwargs.setdefault("max_value", WHOLE_MAX)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, bool) or not isinstance(data, int | float) or not _is_whole(data):
            self.fail("invalid")
        return int(data)


def _is_whole(number: float) -> bool:
    return isinstance(number, int) or number.is_integer()


class Number(serializers.FloatField):
    """A finite number. In answers an infinite or undefined one is null: JSON has neither."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool) or not isinstance(data, int | float):
            self.fail("invalid")
        value: float = super().to_internal_value(data)
        if not math.isfinite(value):
            self.fail("invalid")
        return value

    def to_representation(self, value: Any) -> float | None:  # type: ignore[override]
        number = float(value)
        return number if math.isfinite(number) else None


class Flag(serializers.BooleanField):
    """True or false as JSON writes them."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


class OneOf(serializers.ChoiceField):
    """One of several names. Another one is answered with what there is, and what may be meant."""

    def to_internal_value(self, data: Any) -> Any:
        with suppress(serializers.ValidationError):
            return super().to_internal_value(data)
        known = [str(name) for name in self.choices]
        told = f"Expected {'one of ' if len(known) > 1 else ''}{', '.join(known)}"
        raise serializers.ValidationError(f"{told}, not {str(data)[:100]!r}{meant(data, known)}.")


def meant(name: object, known: Iterable[str]) -> str:
    """ " (did you mean ...?)" with the known name that is most like a wrong one, if any is.

    As `nearest` of estimation's core has it, which nothing of judging may import.
    """
    found = get_close_matches(str(name).lower(), list(known), n=1, cutoff=0.7)
    return f" (did you mean {found[0]!r}?)" if found else ""


class Body(serializers.Serializer[Any]):
    """The body of a request. A field that is not declared is an error that names it."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = [str(name) for name in data if name not in self.fields]
            if unknown:
                told = {name: [f"Unknown field{meant(name, self.fields)}."] for name in unknown}
                raise serializers.ValidationError(told)
        return super().to_internal_value(data)


class Query(Body):
    """What stands in an address after its question mark. Nothing, unless a view says otherwise."""


class NoBody(Body):
    """For actions that take nothing."""


def checked(kind: type[serializers.Serializer[Any]], data: Any) -> Any:
    """The validated values, or a 400 that names every field at fault."""
    with suppress(serializers.ValidationError):
        return _kept(kind).run_validation(data)
    serializer = kind(data=data)
    serializer.is_valid(raise_exception=True)
    return serializer.validated_data


def shown(kind: type[serializers.Serializer[Any]], row: Any) -> Any:
    """What an answer tells of a row."""
    return _kept(kind).to_representation(row)


@cache
def _kept(kind: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """To copy all fields for each request takes longer than to use them, which changes nothing."""
    return kind()
