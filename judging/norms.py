"""Pairs that several people judge blind and then talk about.

The rest of the application finds them in ``judging.models``.
"""

from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from judging.accounts import User

HIGHEST_GRADE = 20
"""Of any scale."""
LONGEST_COMMENT = 2000


class NormingSession(models.Model):
    """Several people judge the same pairs, each alone, and then see and discuss what they said.

    Nobody is told of grades before ``discussed``, organizers neither. ``by_itself``: the discussion
    begins as soon as everybody has answered. ``named``: the people see each other's user names, and
    otherwise their numbers.
    """

    class State(models.TextChoices):
        DRAFT = "draft"
        JUDGING = "judging"
        DISCUSSION = "discussion"
        CLOSED = "closed"

    campaign = models.ForeignKey(
        "judging.Campaign", models.CASCADE, related_name="norming_sessions"
    )
    title = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=State, default=State.DRAFT)
    by_itself = models.BooleanField(default=True)
    named = models.BooleanField(default=False)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created = models.DateTimeField(db_default=Now())
    begun = models.DateTimeField(null=True, blank=True)
    discussed = models.DateTimeField(null=True, blank=True)
    closed = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-pk"]
        constraints = [
            CheckConstraint(
                condition=Q(state="draft", begun=None, discussed=None, closed=None)
                | Q(state="judging", begun__isnull=False, discussed=None, closed=None)
                | Q(state="discussion", discussed__isnull=False, closed=None)
                | Q(state="closed", discussed__isnull=False, closed__isnull=False),
                name="norming_session_state",
            )
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def is_blind(self) -> bool:
        """Whether nobody is told yet what others say."""
        return self.discussed is None


class NormingPair(models.Model):
    """A document of a topic that is talked about.

    It is no `Pair`: nothing that is said of it can be taken for a judgment.
    """

    session = models.ForeignKey(NormingSession, models.CASCADE, related_name="pairs")
    topic = models.ForeignKey("judging.Topic", models.PROTECT, related_name="+")
    docno = models.CharField(max_length=255)
    created = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [
            UniqueConstraint(fields=["session", "topic", "docno"], name="norming_pair_once")
        ]

    def __str__(self) -> str:
        return f"norming pair {self.docno}"


class NormingPerson(models.Model):
    """Somebody who takes part. ``number`` stands for them to the others, in no order of theirs."""

    session = models.ForeignKey(NormingSession, models.CASCADE, related_name="people")
    user = models.ForeignKey(User, models.PROTECT, related_name="norming")
    number = models.PositiveSmallIntegerField()

    class Meta:
        ordering = ["number"]
        constraints = [
            UniqueConstraint(fields=["session", "user"], name="norming_person_once"),
            UniqueConstraint(fields=["session", "number"], name="norming_number_once"),
        ]

    def __str__(self) -> str:
        return f"person {self.number} of {self.session_id}"


class NormingAnswer(models.Model):
    """What somebody said of a pair: ``grade`` is given blind, and stays.

    ``revised`` is what they say after the discussion, where that is another grade.
    """

    pair = models.ForeignKey(NormingPair, models.CASCADE, related_name="answers")
    person = models.ForeignKey(NormingPerson, models.CASCADE, related_name="answers")
    grade = models.PositiveSmallIntegerField()
    created = models.DateTimeField(db_default=Now())
    revised = models.PositiveSmallIntegerField(null=True, blank=True)
    revised_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            UniqueConstraint(fields=["pair", "person"], name="norming_answer_once"),
            CheckConstraint(
                condition=Q(grade__lte=HIGHEST_GRADE)
                & (Q(revised=None) | Q(revised__lte=HIGHEST_GRADE)),
                name="norming_answer_in_scale",
            ),
            CheckConstraint(
                condition=Q(revised=None, revised_at=None)
                | (Q(revised__isnull=False, revised_at__isnull=False) & ~Q(revised=F("grade"))),
                name="norming_answer_revised",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.grade} for {self.pair_id}"

    @property
    def now(self) -> int:
        """The grade that they stand by."""
        return self.grade if self.revised is None else self.revised


class NormingComment(models.Model):
    """Plain text that somebody wrote of a pair; sent again with its ``key`` it is the same one."""

    pair = models.ForeignKey(NormingPair, models.CASCADE, related_name="comments")
    author = models.ForeignKey(User, models.PROTECT, related_name="+")
    text = models.CharField(max_length=LONGEST_COMMENT)
    key = models.CharField(max_length=64)
    created = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [
            UniqueConstraint(fields=["pair", "author", "key"], name="norming_comment_once"),
            CheckConstraint(condition=~Q(text=""), name="norming_comment_says_something"),
        ]

    def __str__(self) -> str:
        return f"comment {self.pk} on {self.pair_id}"
