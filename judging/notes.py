"""What is noted about work: whose does not count, what was looked at, and who did what.

The rest of the application finds these models in ``judging.models``.
"""

from typing import Any

from django.db import models
from django.db.models import Q, UniqueConstraint
from django.db.models.functions import Now

from judging.accounts import User


class Exclusion(models.Model):
    """What an organizer decided: the work of somebody in a campaign does not count, for a reason.

    It ends when it is taken back; the row stays. Estimates stay unbiased where the ``ground`` has
    nothing to do with the grades that were given. ``by_rule``: a rule that ``decided_by`` had set
    found it.
    """

    class Ground(models.TextChoices):
        TIME = "time", "Time: too fast to have read"
        GOLD = "gold", "Gold: wrong answers to pairs that are no part of the sample"
        ATTENTION = "attention", "Attention: failed checks that are no part of the sample"
        IDENTITY = "identity", "Identity: not who they said, or two accounts of one person"
        CONSENT = "consent", "They withdrew their consent"
        GRADES = "grades", "Grades: what they gave, or how far they agree with others"

    campaign = models.ForeignKey("judging.Campaign", models.CASCADE, related_name="exclusions")
    assessor = models.ForeignKey(User, models.PROTECT, related_name="exclusions")
    ground = models.CharField(max_length=10, choices=Ground)
    reason = models.CharField(max_length=500)
    by_rule = models.BooleanField(default=False, db_default=False)
    decided_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created = models.DateTimeField(db_default=Now())
    ended = models.DateTimeField(null=True, blank=True)
    ended_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")
    ended_reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            UniqueConstraint(
                fields=["campaign", "assessor"], condition=Q(ended=None), name="exclusion_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.assessor} of {self.campaign_id}: {self.ground}"

    @property
    def looks_at_grades(self) -> bool:
        """Whether who is excluded depends on grades, so that estimates may be biased by it."""
        return self.ground == self.Ground.GRADES


class SeenItem(models.Model):
    """Something of an organizer's queue that was looked at, and needs nothing more.

    ``target`` is the row id of a pair or an assignment, ``version`` what it was like then: where
    that has changed, it is to be looked at again.
    """

    class Kind(models.TextChoices):
        APART = "apart", "Disagreement"
        COMMENT = "comment", "Comment"

    campaign = models.ForeignKey("judging.Campaign", models.CASCADE, related_name="seen_items")
    kind = models.CharField(max_length=10, choices=Kind)
    target = models.BigIntegerField()
    version = models.CharField(max_length=40)
    seen_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            UniqueConstraint(
                fields=["campaign", "kind", "target", "version"], name="seen_item_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.target}"


class AuditEntry(models.Model):
    """Who did what, when. Written in the same transaction as the change itself."""

    actor = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    campaign = models.ForeignKey(
        "judging.Campaign", models.SET_NULL, null=True, related_name="audit"
    )
    action = models.CharField(max_length=60)
    target = models.CharField(max_length=100, blank=True)
    data = models.JSONField(default=dict)
    created = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-pk"]
        verbose_name_plural = "audit entries"

    def __str__(self) -> str:
        return f"{self.action} {self.target}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        if self.pk is not None:
            raise TypeError("audit entries are never edited")
        super().save(*args, **kwargs)


class KeptFigure(models.Model):
    """What a worker found out about the whole site, as it was when it was ``measured``."""

    name = models.CharField(max_length=40, unique=True)
    value = models.JSONField()
    measured = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return self.name


class KeptManners(models.Model):
    """What a worker told of how everybody in a campaign answers, as it was when it was ``told``.

    ``value`` is by row id of the person (`manners.Manner`), ``entry`` the latest entry of the
    campaign's log before it: while there is none after it, nothing has changed.
    """

    campaign = models.OneToOneField("judging.Campaign", models.CASCADE, related_name="+")
    value = models.JSONField()
    entry = models.BigIntegerField(default=0)
    told = models.DateTimeField(db_default=Now())

    def __str__(self) -> str:
        return f"people of {self.campaign_id}"
