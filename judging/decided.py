"""What organizers decide about pairs. Everybody else finds it in ``judging.models``."""

from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint
from django.db.models.functions import Now

from judging.accounts import User

MAX_GRADE = 20


class Decision(models.Model):
    """What the organizer decided about a pair that waited for it. Reports state it."""

    class Kind(models.TextChoices):
        GRADE = "grade", "use this grade"
        AS_IS = "as_is", "use the judgments it has"

    pair = models.OneToOneField("judging.Pair", models.PROTECT, related_name="decision")
    kind = models.CharField(max_length=10, choices=Kind)
    grade = models.PositiveSmallIntegerField(null=True, blank=True)
    reason = models.CharField(max_length=500)
    decided_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            CheckConstraint(
                condition=Q(kind="grade", grade__isnull=False, grade__lte=MAX_GRADE)
                | Q(kind="as_is", grade__isnull=True),
                name="decision_grade_iff_kind_grade",
            )
        ]

    def __str__(self) -> str:
        return f"{self.pair_id}: {self.kind}"


class SeniorGrade(models.Model):
    """What an organizer says of a pair that assessors have judged, after looking at what they said.

    It ``counts`` in place of all their labels where the campaign says so, and else stands beside
    them. One is in force for a pair; those before it have ``ended``, and count nowhere.
    """

    pair = models.ForeignKey("judging.Pair", models.PROTECT, related_name="senior_grades")
    grade = models.PositiveSmallIntegerField()
    reason = models.CharField(max_length=500)
    counts = models.BooleanField()
    given_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created = models.DateTimeField(db_default=Now())
    ended = models.DateTimeField(null=True, blank=True)
    ended_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")
    ended_reason = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            UniqueConstraint(
                fields=["pair"], condition=Q(ended=None), name="senior_grade_in_force_once"
            ),
            CheckConstraint(condition=Q(grade__lte=MAX_GRADE), name="senior_grade_in_scale"),
            CheckConstraint(condition=Q(ended=None) | Q(counts=False), name="senior_grade_ended"),
        ]
        indexes = [
            Index(fields=["pair", "grade"], condition=Q(counts=True), name="senior_grade_counts")
        ]

    def __str__(self) -> str:
        return f"{self.pair_id}: {self.grade}"
