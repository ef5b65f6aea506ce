"""Pairs whose grades are known, what people learn from them, and rules about how they answer.

The rest of the application finds them in ``judging.models``.
"""

from typing import Any

from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
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


class Training(models.Model):
    """The test that new assessors of a campaign pass before they judge, if it is ``obligatory``.

    ``threshold`` is the share of its pairs that must be right; it may be taken ``tries`` times, as
    often as they like if that is 0.
    """

    campaign = models.OneToOneField("judging.Campaign", models.CASCADE, related_name="training")
    obligatory = models.BooleanField(default=False)
    threshold = models.FloatField(default=0.7)
    tries = models.PositiveSmallIntegerField(default=2)

    def __str__(self) -> str:
        return f"training of campaign {self.campaign_id}"


class TrainingPair(models.Model):
    """A document of a topic whose grade is known, with the reason that a learner is told.

    It is no `Pair`: nothing that is said of it can be taken for a judgment.
    """

    campaign = models.ForeignKey("judging.Campaign", models.CASCADE, related_name="training_pairs")
    topic = models.ForeignKey("judging.Topic", models.PROTECT, related_name="+")
    docno = models.CharField(max_length=255)
    accepted = models.JSONField()
    reason = models.CharField(max_length=1000, blank=True)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [
            UniqueConstraint(fields=["campaign", "topic", "docno"], name="training_pair_once")
        ]

    def __str__(self) -> str:
        return f"training pair {self.docno}"


class TrainingTry(models.Model):
    """One walk of somebody through all training pairs; ``passed`` is told when it has ended."""

    campaign = models.ForeignKey("judging.Campaign", models.CASCADE, related_name="training_tries")
    user = models.ForeignKey(User, models.PROTECT, related_name="training_tries")
    number = models.PositiveSmallIntegerField()
    began = models.DateTimeField(db_default=Now())
    ended = models.DateTimeField(null=True, blank=True)
    asked = models.PositiveIntegerField(default=0)
    right = models.PositiveIntegerField(default=0)
    passed = models.BooleanField(null=True, blank=True)

    class Meta:
        ordering = ["number"]
        constraints = [
            UniqueConstraint(fields=["campaign", "user", "number"], name="training_try_once"),
            UniqueConstraint(
                fields=["campaign", "user"], condition=Q(ended=None), name="training_try_open_once"
            ),
        ]

    def __str__(self) -> str:
        return f"try {self.number} of {self.user_id}"


class TrainingAnswer(models.Model):
    """What somebody said of a training pair in a try: the first answer is the one."""

    attempt = models.ForeignKey(TrainingTry, models.CASCADE, related_name="answers")
    pair = models.ForeignKey(TrainingPair, models.CASCADE, related_name="answers")
    grade = models.PositiveSmallIntegerField()
    right = models.BooleanField()
    created = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [UniqueConstraint(fields=["attempt", "pair"], name="training_answer_once")]

    def __str__(self) -> str:
        return f"{self.grade} for {self.pair_id}"


class AcceptedGrades(models.Manager["KnownGrade"]):
    """Those of accepted qrels: a file that is half read has none."""

    def get_queryset(self) -> "models.QuerySet[KnownGrade]":
        return super().get_queryset().filter(upload__state="accepted")


class KnownGrade(models.Model):
    """A line of qrels: a grade brought along, used only when the organizer says so.

    Rows of a file that is being read, or was not accepted, are found by ``every`` alone.
    """

    campaign = models.ForeignKey("judging.Campaign", models.CASCADE, related_name="known_grades")
    upload = models.ForeignKey("judging.Upload", models.CASCADE, related_name="known_grades")
    topic = models.ForeignKey("judging.Topic", models.CASCADE, related_name="+")
    docno = models.CharField(max_length=255)
    grade = models.PositiveSmallIntegerField()

    objects = AcceptedGrades()
    every: models.Manager["KnownGrade"] = models.Manager()

    class Meta:
        constraints = [
            UniqueConstraint(fields=["campaign", "topic", "docno"], name="known_grade_once")
        ]

    def __str__(self) -> str:
        return f"{self.docno} {self.grade}"
