"""What the tables of the core offer, as columns of a database have choices."""

from typing import Any

from django.db import models

from estimation.core.sampling.interval_kinds import INTERVALS
from estimation.core.sampling.methods import SAMPLING_METHODS


def method_choices() -> list[tuple[str, str]]:
    """Asked for when they are needed, so that a further method is no migration."""
    return [(name, method.label) for name, method in SAMPLING_METHODS.items()]


def interval_choices() -> list[tuple[str, str]]:
    """Asked for when they are needed, so that a further kind is no migration."""
    return [(kind, offer.label) for kind, offer in INTERVALS.items()]


def choices_of(name: str, labels: list[tuple[str, str]]) -> Any:
    """Choices by the names that their values give: a table has what they are."""
    members = [(value.upper().replace("-", "_"), (value, label)) for value, label in labels]
    return models.TextChoices(name, members)  # type: ignore[call-overload]
