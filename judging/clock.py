"""The database's clock. Leases are compared on it alone: hosts may disagree about the time."""

from datetime import timedelta

from django.db.models import DateTimeField, ExpressionWrapper, Value
from django.db.models.expressions import Combinable
from django.db.models.functions import Now


def seconds_from_now(seconds: float) -> Combinable:
    """An expression for the moment ``seconds`` from now (negative: ago)."""
    delta = Value(timedelta(seconds=seconds))
    return ExpressionWrapper(Now() + delta, output_field=DateTimeField())
