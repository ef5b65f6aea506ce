"""Machine judges: language models that are asked for grades before anything is drawn.

What they say becomes predicted grades (`estimation.models.Prediction`) and nothing else: it may
feed a design and the difference estimator, and is never taken for a judgment.
"""

from django.db import models
from django.db.models import CheckConstraint, F, Q, UniqueConstraint
from django.db.models.functions import Now

from judging.models import MAX_GRADE, Campaign, Topic, Upload, User

NANO = 10**9
"""Costs are whole numbers of so many parts, so that sums of them are exact."""
MAX_REPLY = 500
ASKING, AGREEMENT = "machine-judge", "machine-agreement"
"""Kinds of jobs whose target is a machine judge."""


class MachineJudge(models.Model):
    """A model behind an endpoint of the site, with its prompt and its ceilings.

    ``calls`` counts every request that was sent or may have been: each is counted before it is
    sent. ``spent`` has what answers cost and, of requests without one, the most that they can have
    cost; ``max_cost`` in units of the endpoint's prices. ``plan_file`` holds the pairs to ask about
    in their order, ``planned`` how many these are with those answered before.
    """

    class State(models.TextChoices):
        IDLE = "idle", "Not asked yet"
        ASKING = "asking"
        STOPPING = "stopping"
        STOPPED = "stopped"
        DONE = "done"

    AT_WORK = (State.ASKING, State.STOPPING)

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="machine_judges")
    name = models.CharField(max_length=60)
    endpoint = models.CharField(max_length=40)
    model = models.CharField(max_length=200)
    max_calls = models.PositiveIntegerField()
    max_cost = models.FloatField(null=True, blank=True)
    with_schema = models.BooleanField(default=True)
    document_chars = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=State, default=State.IDLE)
    ended = models.CharField(max_length=500, blank=True, help_text="why it does not ask any more")
    calls = models.PositiveIntegerField(default=0)
    spent = models.BigIntegerField(default=0)
    pauses = models.PositiveIntegerField(default=0, help_text="in a row, as the endpoint wished")
    plan_file = models.CharField(max_length=255, blank=True)
    planned = models.PositiveIntegerField(default=0)
    order = models.CharField(max_length=200, blank=True, help_text="by what pairs are ordered")
    upload = models.ForeignKey(
        Upload, models.SET_NULL, null=True, blank=True, related_name="machine_judges"
    )
    agreement = models.JSONField(default=dict, blank=True)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    asked_by = models.ForeignKey(User, models.PROTECT, null=True, blank=True, related_name="+")
    created = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["pk"]
        constraints = [
            UniqueConstraint(fields=["campaign", "name"], name="machine_judge_name_once"),
            CheckConstraint(
                condition=Q(calls__lte=F("max_calls"), max_calls__gte=1),
                name="machine_judge_calls_within_ceiling",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def is_at_work(self) -> bool:
        return self.state in self.AT_WORK

    @property
    def cost(self) -> float:
        return self.spent / NANO


class MachinePrompt(models.Model):
    """A version of what a machine judge is asked. Never edited; ``digest`` is of all that is asked.

    ``grades`` is the campaign's scale as the prompt tells it: another scale is another version.
    """

    judge = models.ForeignKey(MachineJudge, models.CASCADE, related_name="prompts")
    number = models.PositiveIntegerField()
    text = models.TextField()
    grades = models.JSONField()
    digest = models.CharField(max_length=64)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["number"]
        constraints = [
            UniqueConstraint(fields=["judge", "number"], name="machine_prompt_number_once")
        ]

    def __str__(self) -> str:
        return f"version {self.number}"


class MachineAnswer(models.Model):
    """What became of asking about one pair with one version of the prompt. Once for ever.

    Only pairs of which an endpoint has told nothing (``down``) are asked about again.
    """

    class Outcome(models.TextChoices):
        GRADED = "graded"
        REFUSED = "refused", "the model or its endpoint refused"
        UNPARSABLE = "unparsable", "no grade in the reply"
        OFF_SCALE = "off_scale", "a grade off the scale"
        TOO_LONG = "too_long", "too long for the model"
        DOWN = "down", "no answer from the endpoint"

    prompt = models.ForeignKey(MachinePrompt, models.CASCADE, related_name="answers")
    topic = models.ForeignKey(Topic, models.CASCADE, related_name="+")
    docno = models.CharField(max_length=255)
    outcome = models.CharField(max_length=10, choices=Outcome)
    grade = models.PositiveSmallIntegerField(null=True)
    reply = models.CharField(max_length=MAX_REPLY, blank=True)
    model = models.CharField(max_length=200, blank=True, help_text="as the endpoint names it")
    tokens_in = models.PositiveIntegerField(null=True)
    tokens_out = models.PositiveIntegerField(null=True)
    cost = models.BigIntegerField(default=0)
    tries = models.PositiveSmallIntegerField()
    seconds = models.FloatField()
    created = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            UniqueConstraint(fields=["prompt", "topic", "docno"], name="machine_answer_once"),
            CheckConstraint(
                condition=Q(outcome="graded", grade__isnull=False, grade__lte=MAX_GRADE)
                | (~Q(outcome="graded") & Q(grade__isnull=True)),
                name="machine_answer_graded_has_grade",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.docno}: {self.outcome}"
