"""Pairs whose grades are known, and rules about how people answer them: the models.

The rest of the application finds them in ``judging.models``.
"""

from typing import Any

from django.db import models
from django.db.models import CheckConstraint, Q
from django.db.models.functions import Now

from judging.accounts import User

LEAST_ANSWERS = 10
"""Answers to gold from which a score is told, unless the organizer asks for more."""


class GoldPair(models.Model):
    """A pair whose grade the organizer knows, mixed in among those that are judged.

    Any of the ``accepted`` grades is right. One that is ``retired`` is handed to nobody any more;
    what was said of it stays, and still tells of whoever said it.
    """

    campaign = models.ForeignKey("judging.Campaign", models.CASCADE, related_name="gold_pairs")
    pair = models.OneToOneField("judging.Pair", models.PROTECT, related_name="gold_pair")
    accepted = models.JSONField()
    reason = models.CharField(max_length=1000, blank=True)
    retired = models.DateTimeField(null=True, blank=True)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"gold {self.pair_id}"


_SHARE: dict[str, Any] = {"null": True, "blank": True}


class QualityRules(models.Model):
    """What happens by itself to somebody whose answers are bad; what is null happens to nobody.

    A score of gold is held against ``warn_below``, ``hold_below`` and ``exclude_below`` by the
    upper end of its interval, from ``least`` answers on. ``exclude_hasty``: whoever seems not to
    read, by times alone. None of these looks at the grade of a pair that counts.
    """

    campaign = models.OneToOneField(
        "judging.Campaign", models.CASCADE, related_name="quality_rules"
    )
    least = models.PositiveSmallIntegerField(default=LEAST_ANSWERS)
    warn_below = models.FloatField(**_SHARE, default=0.6)
    hold_below = models.FloatField(**_SHARE)
    exclude_below = models.FloatField(**_SHARE)
    exclude_hasty = models.BooleanField(default=False)
    set_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    changed = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            CheckConstraint(condition=Q(least__gte=LEAST_ANSWERS), name="quality_rules_least")
        ]

    def __str__(self) -> str:
        return f"rules of {self.campaign_id}"
