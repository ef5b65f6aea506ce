"""The database's clock. Leases are compared on it alone: hosts may disagree about the time."""

from datetime import timedelta

from django.db.models import DateTimeField, ExpressionWrapper, Value
from django.db.models.expressions import Combinable, Expression
from django.db.models.functions import Now


def seconds_from_now(seconds: float) -> Combinable:
    """An expression for the moment ``seconds`` from now (negative: ago)."""
    return from_now(Value(timedelta(seconds=seconds)))


def from_now(duration: Expression) -> Combinable:
    """An expression for the moment that lies so far from now."""
    return ExpressionWrapper(Now() + duration, output_field=DateTimeField())
