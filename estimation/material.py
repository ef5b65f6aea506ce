"""What designs are made of: runs and predictions that were uploaded, and pools of these runs."""

from django.db import models
from django.db.models import UniqueConstraint
from django.db.models.functions import Now

from judging.models import Campaign, Upload


class Run(models.Model):
    """One system's rankings. ``file`` holds them as columns, in trec_eval's order.

    One that is ``withdrawn`` is told of no more, and no later round is made of it; samples that
    were drawn with it stay what they were.
    """

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="runs")
    upload = models.OneToOneField(Upload, models.CASCADE, related_name="run")
    tag = models.CharField(max_length=255)
    file = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)
    topic_count = models.PositiveIntegerField()
    line_count = models.PositiveIntegerField()
    withdrawn = models.DateTimeField(null=True, blank=True)
    created = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["tag"]
        constraints = [UniqueConstraint(fields=["campaign", "tag"], name="run_tag_once")]

    def __str__(self) -> str:
        return self.tag


def taking_part(campaign: Campaign) -> models.QuerySet[Run]:
    """The runs of a campaign that nobody has withdrawn."""
    return Run.objects.filter(campaign=campaign, withdrawn=None)


def can_be_pooled(campaign: Campaign) -> bool:
    """Whether there is what a round is drawn from: topics, and at least one run."""
    return campaign.topics.exists() and taking_part(campaign).exists()


class Prediction(models.Model):
    """What somebody says of pairs beforehand: their grades, or their costs; rows are in ``file``.

    ``max_grade`` is the best grade of the scale that the file was read for; 0 for costs.
    """

    class Form(models.TextChoices):
        GRADES = "grades"
        PROBABILITIES = "probabilities"
        COSTS = "costs"

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="predictions")
    upload = models.OneToOneField(Upload, models.CASCADE, related_name="prediction")
    name = models.CharField(max_length=255)
    form = models.CharField(max_length=15, choices=Form)
    max_grade = models.PositiveSmallIntegerField()
    file = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)
    topic_count = models.PositiveIntegerField()
    pair_count = models.PositiveIntegerField()
    created = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name"]
        constraints = [UniqueConstraint(fields=["campaign", "name"], name="prediction_name_once")]

    def __str__(self) -> str:
        return self.name


class StoredPool(models.Model):
    """All pairs that any accepted run returns down to the depth; the columns are in ``file``.

    ``digest`` is that of what went in: topics, runs, depth.
    """

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="pools")
    digest = models.CharField(max_length=64)
    file = models.CharField(max_length=255)
    depth = models.PositiveIntegerField()
    topic_count = models.PositiveIntegerField()
    run_count = models.PositiveIntegerField()
    pair_count = models.PositiveIntegerField()
    created = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [UniqueConstraint(fields=["campaign", "digest"], name="pool_once")]

    def __str__(self) -> str:
        return self.digest[:12]
