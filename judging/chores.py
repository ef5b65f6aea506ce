"""Long work and who does it: the models.

The rest of the application finds them in ``judging.models``.
"""

from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now


class Job(models.Model):
    """Long work as a row: what is due, who does it, how far it is.

    ``requested`` and ``done`` are generations: asking again while it runs makes it run once more.
    ``token`` fences: only the holder of the current token may write results. ``data`` says what
    was asked for, where kind and target do not.
    """

    class State(models.TextChoices):
        QUEUED = "queued"
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    PENDING = (State.QUEUED, State.RUNNING)

    kind = models.CharField(max_length=30)
    target = models.BigIntegerField()
    campaign = models.ForeignKey("judging.Campaign", models.CASCADE, related_name="jobs", null=True)
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    data = models.JSONField(default=dict, blank=True)
    requested = models.PositiveIntegerField(default=1)
    done = models.PositiveIntegerField(default=0)
    attempts = models.PositiveSmallIntegerField(default=0)
    progress = models.PositiveSmallIntegerField(default=0)
    note = models.CharField(max_length=200, blank=True)
    error = models.TextField(blank=True)
    token = models.CharField(max_length=32, blank=True)
    due = models.DateTimeField(db_default=Now())
    lease_until = models.DateTimeField(null=True, blank=True)
    hinted = models.DateTimeField(null=True, blank=True)
    started = models.DateTimeField(null=True, blank=True)
    finished = models.DateTimeField(null=True, blank=True)
    created = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            UniqueConstraint(fields=["kind", "target"], name="job_once"),
            CheckConstraint(condition=Q(progress__lte=100), name="job_progress_percent"),
        ]
        indexes = [
            models.Index(
                fields=["due"], condition=Q(state__in=["queued", "running"]), name="job_pending"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.target}: {self.state}"


class WorkerHeartbeat(models.Model):
    """``queues`` that the worker takes work from, separated by commas; empty: all."""

    name = models.CharField(max_length=200, unique=True)
    seen = models.DateTimeField(db_default=Now())
    queues = models.CharField(max_length=1000, default="", blank=True)

    def __str__(self) -> str:
        return self.name
