"""People and what they say: campaigns, topics, documents, pairs, assignments, judgments.

Nothing here knows of runs, ranks or probabilities. Rows are written by services only."""

import hashlib

from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from judging.accounts import ApiToken as ApiToken  # noqa: PLC0414  (for others to import from here)
from judging.accounts import SignInTries as SignInTries  # noqa: PLC0414
from judging.accounts import User as User  # noqa: PLC0414
from judging.chores import Job as Job  # noqa: PLC0414
from judging.chores import WorkerHeartbeat as WorkerHeartbeat  # noqa: PLC0414
from judging.decided import MAX_GRADE as MAX_GRADE  # noqa: PLC0414
from judging.decided import Decision as Decision  # noqa: PLC0414
from judging.decided import SeniorGrade as SeniorGrade  # noqa: PLC0414
from judging.factors import Identity as Identity  # noqa: PLC0414
from judging.factors import Letter as Letter  # noqa: PLC0414
from judging.factors import RecoveryCode as RecoveryCode  # noqa: PLC0414
from judging.factors import SecondFactor as SecondFactor  # noqa: PLC0414
from judging.known import GoldPair as GoldPair  # noqa: PLC0414
from judging.known import KnownGrade as KnownGrade  # noqa: PLC0414
from judging.known import QualityRules as QualityRules  # noqa: PLC0414
from judging.known import Training as Training  # noqa: PLC0414
from judging.known import TrainingAnswer as TrainingAnswer  # noqa: PLC0414
from judging.known import TrainingPair as TrainingPair  # noqa: PLC0414
from judging.known import TrainingTry as TrainingTry  # noqa: PLC0414
from judging.links import CrowdGuest as CrowdGuest  # noqa: PLC0414
from judging.links import CrowdLink as CrowdLink  # noqa: PLC0414
from judging.norms import NormingAnswer as NormingAnswer  # noqa: PLC0414
from judging.norms import NormingComment as NormingComment  # noqa: PLC0414
from judging.norms import NormingPair as NormingPair  # noqa: PLC0414
from judging.norms import NormingPerson as NormingPerson  # noqa: PLC0414
from judging.norms import NormingSession as NormingSession  # noqa: PLC0414
from judging.notes import AuditEntry as AuditEntry  # noqa: PLC0414
from judging.notes import Exclusion as Exclusion  # noqa: PLC0414
from judging.notes import KeptFigure as KeptFigure  # noqa: PLC0414
from judging.notes import KeptManners as KeptManners  # noqa: PLC0414
from judging.notes import SeenItem as SeenItem  # noqa: PLC0414

OTHER_BETTER, EQUALLY_GOOD, DOCUMENT_BETTER = range(3)
"""The grades of a preference, whatever the campaign's scale."""


class IsWritten(models.Func):
    """Whether a text is not empty. The empty one is part of the statement and no value of it: by a
    value, SQLite does not find the index of the rows that have a text."""

    template = "(%(expressions)s > '')"
    output_field = models.BooleanField()


class Campaign(models.Model):
    """One evaluation: topics, documents, runs, a grade scale, members, one judged collection.

    ``grades`` lists the scale from 0 upwards as ``[{"name": ..., "meaning": ...}]``; a grade is
    its position. One that is ``archived`` is over, and stands apart from the others. ``deleting``:
    it is there for nobody any more, and its rows go. ``salt`` makes its pseudonyms.
    """

    class State(models.TextChoices):
        DRAFT = "draft"
        OPEN = "open"
        PAUSED = "paused"
        CLOSED = "closed"
        DELETING = "deleting"

    class Seniors(models.TextChoices):
        BESIDE = "beside", "Stand beside what assessors said"
        SUPERSEDE = "supersede", "Take the place of what assessors said"

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=200)
    guidelines = models.TextField(blank=True)
    grades = models.JSONField()
    depth = models.PositiveIntegerField(default=100)
    lease_minutes = models.PositiveIntegerField(default=20)
    gold_every = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="one pair in so many is gold; 0: none"
    )
    hour_cost = models.FloatField(
        default=0.0, db_default=0.0, help_text="what an hour of judging costs; 0: nobody said"
    )
    currency = models.CharField(max_length=3, blank=True, default="", db_default="")
    senior_grades = models.CharField(
        max_length=10, choices=Seniors, default=Seniors.BESIDE, db_default=Seniors.BESIDE
    )
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT)
    archived = models.DateTimeField(null=True, blank=True)
    run_fields = models.JSONField(
        default=list, blank=True, help_text="names of what is said of each run, beside its team"
    )
    salt = models.CharField(max_length=32, blank=True, default="", db_default="", editable=False)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created = models.DateTimeField(db_default=Now())
    asked_by: tuple[int, set[str]] | None = None  # who asked for this very row, and their roles

    class Meta:
        ordering = ["-created", "-pk"]
        constraints = [
            CheckConstraint(condition=Q(depth__gte=1), name="campaign_depth_positive"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def max_grade(self) -> int:
        return len(self.grades) - 1

    @property
    def takes_judgments(self) -> bool:
        """Whether judgments of pairs in hand are saved, be others handed out or not."""
        return self.state in (self.State.OPEN, self.State.PAUSED)

    def cost_of(self, hours: float) -> str:
        """What hours of judging cost, in words; empty where nobody said what one does."""
        if not self.hour_cost:
            return ""
        cost = hours * self.hour_cost
        return f"{cost:,.0f} {self.currency}" if cost >= 0.5 else f"less than 1 {self.currency}"


class Membership(models.Model):
    """``held``: since when they are handed nothing new, until an organizer has looked.

    ``held_after``: how many answers to gold there were when one last did. ``learns``: until they
    have passed the campaign's training, or an organizer lets them judge without.
    """

    class Role(models.TextChoices):
        ORGANIZER = "organizer"
        ASSESSOR = "assessor"

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role)
    held = models.DateTimeField(null=True, blank=True)
    held_why = models.CharField(max_length=500, blank=True, default="", db_default="")
    held_after = models.PositiveIntegerField(default=0, db_default=0)
    learns = models.BooleanField(default=False, db_default=False)
    created = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            UniqueConstraint(fields=["campaign", "user", "role"], name="membership_once")
        ]

    def __str__(self) -> str:
        return f"{self.user} as {self.role} of {self.campaign}"


class Upload(models.Model):
    """A file as it came, and what reading it brought. Its rows are visible once it is accepted.

    ``kind_why``: by what its kind was told; empty where somebody has said it. Files that came
    at once have one ``drop``. One that ``replaces`` another is a new version of what that brought.
    ``about``: what people say of it, as ``{"team", "description", "fields": {name: value}}``.
    """

    class State(models.TextChoices):
        STORED = "stored"
        READING = "reading"
        ACCEPTED = "accepted"
        CHECKED = "checked"
        REJECTED = "rejected"

    class Kind(models.TextChoices):
        TOPICS = "topics"
        DOCUMENTS = "documents"
        RUN = "run"
        QRELS = "qrels"
        PREDICTIONS = "predictions", "Predicted grades or costs"
        ARCHIVE = "archive", "Archive of such files"

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="uploads")
    kind = models.CharField(max_length=20, choices=Kind)
    kind_why = models.CharField(max_length=200, blank=True, default="")
    drop = models.CharField(max_length=32, blank=True, default="")
    replaces = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="replaced_by"
    )
    about = models.JSONField(default=dict, blank=True)
    name = models.CharField(max_length=255)
    file = models.FileField(upload_to="uploads/", max_length=255)
    size = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    check_only = models.BooleanField(default=False)
    state = models.CharField(max_length=10, choices=State, default=State.STORED)
    errors = models.JSONField(default=list, blank=True)
    error_count = models.PositiveIntegerField(default=0)
    warnings = models.JSONField(default=list, blank=True)
    warning_count = models.PositiveIntegerField(default=0)
    summary = models.JSONField(default=dict, blank=True)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created = models.DateTimeField(db_default=Now())
    finished = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_sampled(self) -> bool:
        """Whether every round draws from what such a file brings, so that it stays from then on."""
        return self.kind in (self.Kind.TOPICS, self.Kind.DOCUMENTS, self.Kind.RUN)


class Topic(models.Model):
    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="topics")
    upload = models.ForeignKey(Upload, models.CASCADE, related_name="topics")
    topic_id = models.CharField(max_length=255)
    title = models.TextField()
    description = models.TextField(blank=True)
    narrative = models.TextField(blank=True)

    class Meta:
        constraints = [UniqueConstraint(fields=["campaign", "topic_id"], name="topic_once")]

    def __str__(self) -> str:
        return f"{self.topic_id} {self.title}"


class Document(models.Model):
    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="documents")
    upload = models.ForeignKey(Upload, models.CASCADE, related_name="documents")
    docno = models.CharField(max_length=255)
    title = models.TextField(blank=True)
    text = models.TextField(blank=True)

    class Meta:
        constraints = [UniqueConstraint(fields=["campaign", "docno"], name="document_once")]

    def __str__(self) -> str:
        return self.docno


class SampledPairs(models.Manager["Pair"]):
    """All pairs but gold: nobody who asks for the pairs of a campaign or of a topic meets it."""

    def get_queryset(self) -> "models.QuerySet[Pair]":
        return super().get_queryset().filter(gold=False)


class Pair(models.Model):
    """A (topic, document) pair that is, or was, worth a judgment; or a preference.

    A preference names two documents: which of them is better for the topic? Then ``docno`` comes
    before ``other`` in the order of their UTF-8 bytes, and the grade is 2 if ``docno`` is better,
    1 if both are equally good, 0 if ``other`` is better. ``other`` is empty otherwise.

    ``wanted`` labels; ``held`` places taken by live leases and judgments; ``judged`` judgments.
    Places are taken by one conditional UPDATE, so no pair gets more labels than wanted.
    ``decided``: the organizer closed it (see Decision).

    A ``gold`` pair is a row of its own, beside the sampled one of the same document if there is
    one. It stands in no batch, and is found by ``every`` alone.
    """

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="pairs")
    topic = models.ForeignKey(Topic, models.PROTECT, related_name="pairs")
    docno = models.CharField(max_length=255)
    other = models.CharField(max_length=255, blank=True, default="", db_default="")
    wanted = models.PositiveSmallIntegerField()
    held = models.PositiveSmallIntegerField(default=0)
    judged = models.PositiveSmallIntegerField(default=0)
    decided = models.BooleanField(default=False)
    gold = models.BooleanField(default=False, db_default=False)

    objects = SampledPairs()
    every: models.Manager["Pair"] = models.Manager()

    class Meta:
        constraints = [
            UniqueConstraint(
                fields=["campaign", "topic", "docno", "other", "gold"], name="pair_once"
            ),
            CheckConstraint(condition=~Q(other=F("docno")), name="pair_documents_differ"),
            CheckConstraint(
                condition=Q(judged__lte=F("held"), held__lte=F("wanted")),
                name="pair_judged_le_held_le_wanted",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.topic_id}/{self.documents}"

    @property
    def documents(self) -> str:
        """The docno, or both."""
        return f"{self.docno} and {self.other}" if self.other else self.docno

    @property
    def scale(self) -> list[dict[str, str]]:
        """What its grades mean, from 0 upwards: the campaign's scale, or that of preferences."""
        if self.other:
            return preference_scale(self.docno, self.other)
        grades: list[dict[str, str]] = self.campaign.grades
        return grades

    @property
    def max_grade(self) -> int:
        return DOCUMENT_BETTER if self.other else self.campaign.max_grade


def preference_scale(docno: str, other: str) -> list[dict[str, str]]:
    names = (f"{other} is better", "Equally good", f"{docno} is better")
    return [{"name": name, "meaning": ""} for name in names]


class Batch(models.Model):
    """Pairs that are served together. ``remaining`` counts unfinished pairs while it is open.

    ``dropped``: it waited, or was open, when what it was for had ended; it is served no more.
    ``held``: what it is for pauses, and nobody is given its pairs until then.
    """

    class State(models.TextChoices):
        PREPARING = "preparing"
        WAITING = "waiting"
        OPEN = "open"
        HELD = "held"
        COMPLETE = "complete"
        DROPPED = "dropped"

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="batches")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.PREPARING)
    pair_count = models.PositiveIntegerField(default=0)
    remaining = models.PositiveIntegerField(default=0)
    opened = models.DateTimeField(null=True, blank=True)
    completed = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["number"]
        constraints = [UniqueConstraint(fields=["campaign", "number"], name="batch_number_once")]

    def __str__(self) -> str:
        return f"batch {self.number} of {self.campaign_id}"


class BatchPair(models.Model):
    batch = models.ForeignKey(Batch, models.CASCADE, related_name="batch_pairs")
    pair = models.ForeignKey(Pair, models.PROTECT, related_name="batch_pairs")
    labels = models.PositiveSmallIntegerField()

    class Meta:
        constraints = [
            UniqueConstraint(fields=["batch", "pair"], name="batch_pair_once"),
            CheckConstraint(condition=Q(labels__gte=1), name="batch_pair_labels_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.batch_id}/{self.pair_id}"


class Assignment(models.Model):
    """One pair given to one assessor, under a lease. One row per (pair, assessor) for ever.

    ``revision`` is that of the judgment that counts (0: none), and nothing else says so. Where the
    assessor's work is excluded it is 0, and ``set_aside`` is what it would be (0: nothing was
    said). So it is of a ``gold`` pair, whose answers never count: the database refuses others.
    ``grade`` is that of this judgment, which never changes, and ``campaign`` that of the pair:
    labels, and what was told of late, are found without looking up either.
    """

    class State(models.TextChoices):
        LEASED = "leased"
        JUDGED = "judged"
        SKIPPED = "skipped"
        LAPSED = "lapsed"
        EXCLUDED = "excluded"

    campaign = models.ForeignKey(
        Campaign, models.CASCADE, related_name="assignments", db_index=False
    )
    pair = models.ForeignKey(Pair, models.CASCADE, related_name="assignments", db_index=False)
    assessor = models.ForeignKey(User, models.PROTECT, related_name="assignments")
    state = models.CharField(max_length=10, choices=State, default=State.LEASED)
    lease_until = models.DateTimeField()
    revision = models.PositiveIntegerField(default=0)
    set_aside = models.PositiveIntegerField(default=0, db_default=0)
    gold = models.BooleanField(default=False, db_default=False)
    grade = models.PositiveSmallIntegerField(null=True)
    skip_reason = models.CharField(max_length=500, blank=True)
    created = models.DateTimeField(db_default=Now())
    changed = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            UniqueConstraint(fields=["pair", "assessor"], name="assignment_once"),
            CheckConstraint(
                condition=Q(state="judged", gold=False, revision__gte=1)
                | Q(state="judged", gold=True, revision=0, set_aside__gte=1)
                | (~Q(state="judged") & Q(revision=0)),
                name="assignment_judged_has_revision",
            ),
            CheckConstraint(
                condition=Q(state="excluded") | Q(gold=True) | Q(set_aside=0),
                name="assignment_excluded_set_aside",
            ),
            CheckConstraint(
                condition=Q(grade__isnull=False) | Q(revision=0, set_aside=0),
                name="assignment_said_has_grade",
            ),
        ]
        indexes = [
            models.Index(
                fields=["lease_until"], condition=Q(state="leased"), name="assignment_leases"
            ),
            models.Index(fields=["assessor", "state", "changed"], name="assignment_own_work"),
            # all that reading labels asks of it, so that no row is looked up for that
            models.Index(
                fields=["pair", "assessor", "revision", "grade"], name="assignment_of_label"
            ),
            models.Index(
                fields=["assessor", "pair"], condition=Q(gold=True), name="assignment_gold"
            ),
            models.Index(fields=["campaign", "state", "created", "gold"], name="assignment_pace"),
            # what every judgment counts of its author's work
            models.Index(
                fields=["assessor", "campaign", "state", "created", "gold"],
                name="assignment_so_far",
            ),
            models.Index(fields=["campaign", "changed"], name="assignment_latest"),
        ]

    def __str__(self) -> str:
        return f"{self.pair_id} to {self.assessor_id}: {self.state}"

    @property
    def swapped(self) -> bool:
        """Whether this assessor sees the ``other`` document of a preference first.

        A fair coin that falls once per assignment: over many of them, what stands first gains
        nothing by it, and whoever comes back finds the documents where they were.
        """
        digest = hashlib.sha256(f"first/{self.pk}".encode()).digest()
        return bool(self.pair.other) and digest[0] % 2 == 1


class Judgment(models.Model):
    """One assessor's grade for one pair. Appended, never edited: a correction is a new revision."""

    assignment = models.ForeignKey(
        Assignment, models.PROTECT, related_name="judgments", db_index=False
    )
    assessor = models.ForeignKey(User, models.PROTECT, related_name="judgments")
    revision = models.PositiveIntegerField(default=1)
    grade = models.PositiveSmallIntegerField()
    max_grade = models.PositiveSmallIntegerField()
    comment = models.TextField(blank=True)
    seconds = models.FloatField(null=True, blank=True)
    key = models.CharField(max_length=64)
    created = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            UniqueConstraint(fields=["assignment", "revision"], name="judgment_once"),
            UniqueConstraint(fields=["assessor", "key"], name="judgment_key_once"),
            CheckConstraint(
                condition=Q(grade__lte=F("max_grade"), max_grade__lte=MAX_GRADE),
                name="judgment_grade_in_scale",
            ),
        ]
        indexes = [
            models.Index(
                fields=["assignment"], condition=Q(IsWritten("comment")), name="judgment_commented"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.assignment_id}: {self.grade}"

    @property
    def is_excluded(self) -> bool:
        """Whether it is stored and does not count, as its assessor's work is excluded."""
        aside = self.assignment.state == Assignment.State.EXCLUDED
        return aside and self.revision == self.assignment.set_aside
