"""Crowd links and who came by them: the models.

The rest of the application finds them in ``judging.models``.
"""

from decimal import Decimal
from typing import Any

from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now
from django.utils import timezone

from judging.accounts import User

MONEY: dict[str, Any] = {"max_digits": 9, "decimal_places": 4, "default": Decimal(0)}
SUBMISSIONS = ("SESSION_ID", "assignmentId", "submission")
"""Parameters by which platforms name a piece of work."""


class CrowdLink(models.Model):
    """An address that makes a guest of whoever opens it and agrees.

    ``people`` have come of ``most_people``: a place is taken by one conditional UPDATE. Each
    guest judges ``judgments`` pairs at most. Nobody new comes after ``expires``, while it is
    ``closed``, or when fewer than ``least_left`` pairs are left; who has begun goes on.

    ``answers``: ``[{"text", "out"}]`` to ``question``; an ``out`` answer screens out. ``opened``
    counts browsers, ``declined`` people; nothing else is kept of these.
    """

    class CodeKind(models.TextChoices):
        ONE = "one", "One for all, as Prolific asks for"
        EACH = "each", "Another for everybody, as Mechanical Turk asks for"

    campaign = models.ForeignKey("judging.Campaign", models.CASCADE, related_name="crowd_links")
    name = models.CharField(max_length=100)
    token = models.CharField(max_length=40, unique=True)
    expires = models.DateTimeField(null=True, blank=True)
    closed = models.DateTimeField(null=True, blank=True)
    most_people = models.PositiveIntegerField()
    people = models.PositiveIntegerField(default=0)
    judgments = models.PositiveIntegerField()
    least_left = models.PositiveIntegerField(default=1)
    consent = models.TextField()
    question = models.CharField(max_length=500, blank=True)
    answers = models.JSONField(default=list, blank=True)
    code_kind = models.CharField(max_length=10, choices=CodeKind, default=CodeKind.ONE)
    code = models.CharField(max_length=40, blank=True)
    out_code = models.CharField(max_length=40, blank=True)
    return_address = models.CharField(max_length=500, blank=True)
    currency = models.CharField(max_length=8, default="USD")
    per_judgment = models.DecimalField(**MONEY)
    per_hour = models.DecimalField(**MONEY)
    least_minutes = models.PositiveIntegerField(default=0)
    bonus = models.DecimalField(**MONEY)
    bonus_above = models.PositiveIntegerField(default=0)
    out_pay = models.DecimalField(**MONEY)
    opened = models.PositiveIntegerField(default=0)
    declined = models.PositiveIntegerField(default=0)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["-pk"]
        constraints = [
            CheckConstraint(
                condition=Q(people__lte=F("most_people")), name="crowd_link_people_le_most"
            ),
            CheckConstraint(condition=Q(judgments__gte=1), name="crowd_link_judgments_positive"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def has_expired(self) -> bool:
        """As far as a page tells; who comes in is asked on the database's clock."""
        return self.expires is not None and self.expires <= timezone.now()


class CrowdGuest(models.Model):
    """Somebody who came by a link and agreed, once for each ``identity`` there.

    ``identity`` is made of the platform's participant id, or of the device where there is none.
    ``account`` is null of who was screened out. ``consent`` is the SHA-256 of the text that was
    agreed to at ``agreed``. ``device`` is a keyed hash. ``finished``: when they were done; a code
    of their own is given with it, once. ``failed``: when they had used up all tries of the
    campaign's training; they are told what those are who were screened out.
    """

    link = models.ForeignKey(CrowdLink, models.CASCADE, related_name="guests")
    account = models.OneToOneField(User, models.PROTECT, null=True, related_name="crowd_guest")
    identity = models.CharField(max_length=64)
    participant = models.CharField(max_length=100, blank=True)
    parameters = models.JSONField(default=dict)
    device = models.CharField(max_length=64)
    consent = models.CharField(max_length=64)
    agreed = models.DateTimeField(db_default=Now())
    answer = models.CharField(max_length=200, blank=True)
    code = models.CharField(max_length=40, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    failed = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            UniqueConstraint(fields=["link", "identity"], name="crowd_guest_once"),
            UniqueConstraint(fields=["code"], condition=~Q(code=""), name="crowd_guest_code_once"),
        ]
        indexes = [
            models.Index(fields=["device"], name="crowd_guest_device"),
            models.Index(fields=["participant"], name="crowd_guest_participant"),
        ]

    def __str__(self) -> str:
        return self.participant or f"guest {self.pk}"

    @property
    def told_code(self) -> str:
        """What they tell the platform: that they are done, or screened out. Empty: nothing yet."""
        if self.is_out:
            return self.link.out_code
        return (self.code or self.link.code) if self.finished else ""

    @property
    def submission(self) -> str:
        """What the platform calls this piece of work."""
        told = self.parameters
        return next((str(told[name]) for name in SUBMISSIONS if told.get(name)), "")

    @property
    def is_out(self) -> bool:
        """Whether the answer to the question has screened them out, or the training."""
        return self.account_id is None or self.failed is not None
