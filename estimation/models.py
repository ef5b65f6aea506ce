"""Systems and numbers: rounds, draws, estimates, reports; and from here all other models.

Columns too long for rows (rankings, pools, samples, covariances) are files, named by the SHA-256
of their content; rows hold the names. Draws, estimates and reports are never edited.
"""

from typing import Any

from django.db import models
from django.db.models import CheckConstraint, Q, UniqueConstraint
from django.db.models.functions import Now

from estimation.core.inference.looks import Look
from estimation.core.inference.unknown import Reason
from estimation.core.sampling.methods import MOST_FURTHER, SAMPLING_METHODS, SamplingMethod
from estimation.machines import MachineAnswer as MachineAnswer  # noqa: PLC0414  (for others to import from here)
from estimation.machines import MachineJudge as MachineJudge  # noqa: PLC0414
from estimation.machines import MachinePrompt as MachinePrompt  # noqa: PLC0414
from estimation.material import Prediction as Prediction  # noqa: PLC0414
from estimation.material import Run as Run  # noqa: PLC0414
from estimation.material import StoredPool as StoredPool  # noqa: PLC0414
from estimation.offered import choices_of, interval_choices, method_choices
from judging.models import Batch, Campaign, Pair, User

CONFIDENCE = 0.95  # of all that is told of estimates


class Round(models.Model):
    """One sampling design. Frozen once drawn.

    ``design`` is what was drawn, in plain values, written with the draw: what is said of a drawn
    round is said from it. ``stopping`` is empty until the rule of the round has come true.
    """

    class State(models.TextChoices):
        DRAFTED = "drafted"
        DRAWING = "drawing"
        DRAWN = "drawn"
        JUDGING = "judging"
        COMPLETE = "complete"
        STOPPED = "stopped"

    class Goal(models.TextChoices):
        ABSOLUTE = "absolute", "Absolute values of all runs"
        RANKING = "ranking", "Ranking of all runs"
        WINNER = "winner", "Find the best run"
        BASELINE = "baseline", "All runs against a baseline"
        PAIR = "pair", "Difference of two runs"
        SINGLE = "single", "Value of one run"

    Method: Any = choices_of("Method", method_choices())
    """The ways of sampling there are, as the table of them says."""

    class Prior(models.TextChoices):
        RANK = "rank", "By rank"
        FUSION = "fusion", "By all runs together"
        SCORES = "scores", "Predicted grades that were uploaded"
        CONSTANT = "constant", "Constant"

    class Rule(models.TextChoices):
        FIRST = "first", "By expected utility, as in the papers"
        SECOND = "second", "By the root of the expected squared utility"
        UNIFORM = "uniform", "The same for all pairs, to compare with"

    class Costs(models.TextChoices):
        EQUAL = "equal", "Every pair costs the same"
        LENGTH = "length", "Reading time, by the length of the documents"
        UPLOADED = "uploaded", "A table of costs that was uploaded"

    Interval: Any = choices_of("Interval", interval_choices())
    """The kinds of intervals there are, as their table says."""

    class Estimator(models.TextChoices):
        DIFFERENCE = "difference", "Predicted grades, corrected by the judgments"

    class Stop(models.TextChoices):
        BEST = "best", "The best run is known"
        TOP = "top", "The first few runs are known"
        WIDTH = "width", "All intervals are short enough"

    NOT_DRAWN = (State.DRAFTED, State.DRAWING)
    ENDED = (State.COMPLETE, State.STOPPED)

    campaign = models.ForeignKey(Campaign, models.CASCADE, related_name="rounds")
    number = models.PositiveIntegerField()
    goal = models.CharField(max_length=10, choices=Goal, default=Goal.ABSOLUTE)
    run = models.ForeignKey(Run, models.PROTECT, null=True, blank=True, related_name="+")
    baseline = models.ForeignKey(Run, models.PROTECT, null=True, blank=True, related_name="+")
    measure = models.CharField(max_length=60)
    reported = models.JSONField(default=list, blank=True)
    prior = models.CharField(max_length=10, choices=Prior, default=Prior.RANK)
    method = models.CharField(max_length=20, choices=method_choices, default=Method.POISSON)
    predictions = models.ForeignKey(
        Prediction, models.PROTECT, null=True, blank=True, related_name="rounds"
    )
    more_predictions = models.JSONField(default=list, blank=True, help_text="names of further ones")
    depth = models.PositiveIntegerField(
        null=True, blank=True, help_text="ranks that are looked at; empty: the campaign's depth"
    )
    eps = models.FloatField(default=0.0)
    rule = models.CharField(
        max_length=10, choices=Rule, blank=True, default="", help_text="empty: the method's own"
    )
    floor = models.FloatField(
        default=0.1, help_text="share of the sizes that is spread evenly, without replacement"
    )
    costs = models.CharField(max_length=10, choices=Costs, default=Costs.EQUAL)
    cost_table = models.ForeignKey(
        Prediction, models.PROTECT, null=True, blank=True, related_name="rounds_at_cost"
    )
    interval = models.CharField(max_length=20, choices=interval_choices, default=Interval.STUDENT)
    estimator = models.CharField(
        max_length=10,
        choices=Estimator,
        blank=True,
        default="",
        help_text="empty: the method's own",
    )
    with_earlier = models.BooleanField(
        default=False, help_text="estimated together with the earlier rounds"
    )
    top_up = models.BooleanField(
        default=False, help_text="made to add to what is judged when it is drawn"
    )
    labels = models.PositiveSmallIntegerField(default=1)
    extra_share = models.FloatField(default=0.0)
    further = models.FloatField(
        default=0.0, help_text="labels of a pair beyond these, on average, where they pay"
    )
    seconds = models.PositiveIntegerField(default=30, help_text="that a judgment takes")
    keeps_hours = models.BooleanField(default=False, help_text="the hours are the budget")
    paces = models.JSONField(default=list, blank=True, help_text="that batches were planned by")
    topic_minimum = models.PositiveIntegerField(default=1, help_text="pairs of a topic in a batch")
    topic_seconds = models.PositiveIntegerField(default=0, help_text="that reading a topic takes")
    negligible = models.FloatField(
        default=0.0, help_text="differences up to this one do not matter; 0: all do"
    )
    stop_when = models.CharField(
        max_length=10,
        choices=Stop,
        blank=True,
        default="",
        help_text="empty: when the budget is spent",
    )
    stop_top = models.PositiveIntegerField(default=3, help_text="so many runs are the first")
    stop_width = models.FloatField(default=0.0, help_text="half width that is short enough")
    stopping = models.JSONField(
        default=dict,
        blank=True,
        help_text="the rule that was found true, after which batch, and what that saved",
    )
    budget = models.PositiveIntegerField()
    batch_size = models.PositiveIntegerField()
    seed = models.CharField(max_length=100)
    state = models.CharField(max_length=10, choices=State, default=State.DRAFTED)
    preview = models.JSONField(default=dict, blank=True)
    pool = models.ForeignKey(
        StoredPool, models.PROTECT, null=True, blank=True, related_name="rounds"
    )
    design = models.JSONField(default=dict, blank=True)
    design_file = models.CharField(max_length=255, blank=True)
    sample_file = models.CharField(max_length=255, blank=True)
    provenance = models.JSONField(default=dict, blank=True)
    created_by = models.ForeignKey(User, models.PROTECT, related_name="+")
    created = models.DateTimeField(db_default=Now())
    drawn = models.DateTimeField(null=True, blank=True)
    paused = models.DateTimeField(
        null=True, blank=True, help_text="since when none of its batches is handed out"
    )

    class Meta:
        ordering = ["number"]
        constraints = [
            UniqueConstraint(fields=["campaign", "number"], name="round_number_once"),
            CheckConstraint(
                condition=Q(budget__gte=1, batch_size__gte=1, labels__gte=1),
                name="round_sizes_positive",
            ),
            CheckConstraint(
                condition=Q(extra_share__gte=0, extra_share__lte=1, eps__gte=0),
                name="round_shares_in_range",
            ),
            CheckConstraint(
                condition=Q(further=0) | Q(further__gt=0, method__in=["adaptive", "poisson"]),
                name="round_further_can_be",
            ),
            CheckConstraint(
                condition=Q(state__in=["drafted", "drawing"])
                | Q(pool__isnull=False, drawn__isnull=False),
                name="round_drawn_has_pool",
            ),
            CheckConstraint(condition=Q(floor__gte=0, floor__lte=1), name="round_floor_is_share"),
            CheckConstraint(
                condition=Q(costs="uploaded", cost_table__isnull=False)
                | (~Q(costs="uploaded") & Q(cost_table__isnull=True)),
                name="round_costs_have_table",
            ),
            CheckConstraint(
                condition=Q(estimator="") | Q(method="poisson", predictions__isnull=False),
                name="round_difference_has_predictions",
            ),
            CheckConstraint(
                condition=Q(with_earlier=False)
                | Q(method__in=["poisson", "iid"])
                | Q(method="adaptive", top_up=True),
                name="round_with_earlier_can_be",
            ),
            CheckConstraint(
                condition=Q(topic_minimum=1) | Q(method="adaptive"), name="round_by_topics_can_be"
            ),
            CheckConstraint(
                condition=Q(keeps_hours=False) | Q(method="adaptive", costs="equal", further=0),
                name="round_keeps_hours_can_be",
            ),
            CheckConstraint(
                condition=Q(top_up=False) | Q(method__in=["poisson", "adaptive"]),
                name="round_top_up_can_be",
            ),
        ]

    def __str__(self) -> str:
        return f"round {self.number}"

    @property
    def labels_each(self) -> float:
        """Labels that a pair gets, on average."""
        return float(self.labels + self.extra_share + self.further)

    @property
    def most_labels(self) -> int:
        """Labels that some pairs may get, each by somebody else."""
        return self.labels + (MOST_FURTHER if self.further else int(self.extra_share > 0))

    @property
    def predicted_by(self) -> list[str]:
        """The names of all predicted grades that it uses."""
        return [str(self.predictions), *self.more_predictions] if self.predictions else []

    @property
    def is_drawn(self) -> bool:
        return self.state not in self.NOT_DRAWN

    @property
    def has_ended(self) -> bool:
        """Whether nothing more is judged for it: it is complete, or stopped by its rule."""
        return self.state in self.ENDED

    @property
    def is_going(self) -> bool:
        """Whether it is drawn, and more is to be judged for it."""
        return self.is_drawn and not self.has_ended and not self.stopping

    @property
    def is_paused(self) -> bool:
        return self.is_going and self.paused is not None

    @property
    def sampling(self) -> SamplingMethod:
        """What its method can do."""
        return SAMPLING_METHODS[self.method]

    @property
    def is_of_a_union(self) -> bool:
        """Whether earlier rounds count with it as they are judged, and not as by its draw."""
        return self.with_earlier and self.sampling.draws == "pairs"

    @property
    def draws_again(self) -> bool:
        """Whether pairs are drawn with replacement."""
        return self.sampling.again

    @property
    def has_floor(self) -> bool:
        """Whether a share of the sizes is spread evenly."""
        return "floor" in self.sampling.options

    @property
    def unit(self) -> str:
        """What budget and batches are counted in."""
        if self.costs != self.Costs.EQUAL:
            by_length = self.costs == self.Costs.LENGTH
            return "documents of average length" if by_length else "units of cost"
        return "draws" if self.draws_again else "new pairs" if self.top_up else "pairs"

    def in_units(self, number: int) -> str:
        """So many of the unit: 1 pair, 2 pairs."""
        noun, of, what = self.unit.partition(" of ")
        return f"{number:,} {noun.removesuffix('s') if number == 1 else noun}{of}{what}"

    @property
    def budget_told(self) -> str:
        return self.in_units(self.budget)


class RoundBatch(models.Model):
    """Which of the round's batches is which batch of the judging side."""

    round = models.ForeignKey(Round, models.CASCADE, related_name="round_batches")
    number = models.PositiveIntegerField()
    batch = models.OneToOneField(Batch, models.PROTECT, related_name="round_batch")

    class Meta:
        ordering = ["number"]
        constraints = [UniqueConstraint(fields=["round", "number"], name="round_batch_once")]

    def __str__(self) -> str:
        return f"batch {self.number} of round {self.round_id}"


class Draw(models.Model):
    """A drawn pair: where it stands in the pool, when it enters, how likely it was to.

    In adaptive rounds ``probability`` is that of its batch, as the pair had not been drawn before.
    ``repeated`` is the chance with which it was to get two labels or more, where further labels
    go where they pay; decided with the batch, before anybody judged the pair. Null: as for all.
    """

    round = models.ForeignKey(Round, models.CASCADE, related_name="draws", db_index=False)
    pair = models.ForeignKey(Pair, models.PROTECT, related_name="draws")
    position = models.PositiveIntegerField(help_text="index of the pair in the pool")
    batch_number = models.PositiveIntegerField()
    count = models.PositiveIntegerField(default=1)
    probability = models.FloatField(help_text="inclusion probability at the full budget")
    repeated = models.FloatField(null=True, help_text="chance of two labels or more")

    class Meta:
        constraints = [
            UniqueConstraint(fields=["round", "pair"], name="draw_once"),
            CheckConstraint(
                condition=Q(repeated__isnull=True) | Q(repeated__gt=0, repeated__lte=1),
                name="draw_repeated_in_range",
            ),
            CheckConstraint(
                condition=Q(probability__gt=0, probability__lte=1), name="draw_probability_in_range"
            ),
            CheckConstraint(condition=Q(count__gte=1), name="draw_count_positive"),
        ]
        indexes = [
            # The pair before the batch: PostgreSQL may begin with any table of a join, and looks up
            # each pair of it here, at its place and not among all of the first batches.
            models.Index(fields=["round", "pair", "batch_number", "position"], name="draw_of_label")
        ]

    def __str__(self) -> str:
        return f"{self.pair_id} p={self.probability:.4g}"


class EstimateSet(models.Model):
    """One recompute: from which batches and labels, how long it took, where the matrices are.

    ``matrices_file`` holds covariances, difference intervals and verdicts between runs.
    ``digest`` covers every number in canonical form: a recompute from scratch gives the same one.
    """

    round = models.ForeignKey(Round, models.CASCADE, related_name="estimate_sets")
    number = models.PositiveIntegerField()
    quality = models.JSONField(null=True, help_text="of the labels; null: not looked at yet")
    batches = models.PositiveIntegerField(help_text="complete batches in a row, from the first")
    look = models.PositiveIntegerField(
        default=0,
        help_text="which of the planned looks it is, if it holds at all of them at once; 0: at one",
    )
    looks = models.PositiveIntegerField(
        default=0, help_text="looks that were planned before the draw; 0: from an earlier version"
    )
    earlier = models.JSONField(
        default=dict,
        blank=True,
        help_text="complete batches of the rounds estimated together with this one, by number",
    )
    pair_count = models.PositiveIntegerField()
    label_count = models.PositiveIntegerField()
    decided_count = models.PositiveIntegerField(default=0)
    matrices_file = models.CharField(max_length=255)
    facts: dict[str, Any] | None = None  # of this file, once they are read
    label_digest = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    noise_measured = models.BooleanField(help_text="whether any pair has two judgments or more")
    relevant_found = models.FloatField(
        null=True,
        blank=True,
        help_text="median number of relevant documents found per topic, for ratio measures",
    )
    ratio_bias = models.JSONField(
        default=dict,
        blank=True,
        help_text="what was taken off values by ratio measures, on average over runs, by measure",
    )
    left_out = models.JSONField(
        default=list, blank=True, help_text="tags of later runs that the round's method cannot take"
    )
    withdrawn = models.JSONField(
        default=list, blank=True, help_text="tags of runs that were withdrawn, and are left out"
    )
    intervals = models.JSONField(
        default=dict, blank=True, help_text="kind of the intervals of each measure"
    )
    provenance = models.JSONField(default=dict)
    seconds = models.FloatField()
    created = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["number"]
        constraints = [UniqueConstraint(fields=["round", "number"], name="estimate_set_once")]

    def __str__(self) -> str:
        return f"estimates {self.number} of round {self.round_id}"

    @property
    def at_this_look(self) -> float:
        """The confidence at which its intervals and verdicts were worked out."""
        return Look(self.look, self.looks).confidence(CONFIDENCE) if self.look else CONFIDENCE

    @property
    def all_batches(self) -> dict[int, int]:
        """Complete batches that it rests on, by the number of their round, in its order."""
        earlier = {int(number): batches for number, batches in self.earlier.items()}
        return dict(sorted({**earlier, self.round.number: self.batches}.items()))


class Estimate(models.Model):
    """A run's value of a measure with its interval.

    ``support`` is the share of the run's weight on pairs that could be drawn: below 1 the value is
    a lower bound only. ``late``: the run is not of the round's pool, it came after the draw. Rank
    columns are filled for the primary estimator. ``unknown``: why the value is not known; its
    number is then not to be shown, and it has no rank.
    """

    class Estimator(models.TextChoices):
        HT = "ht", "Horvitz-Thompson"
        IS = "is", "importance sampling"
        SN = "sn", "self-normalized importance sampling"
        SQ = "sq", "active sampling, sequential weights"
        CO = "co", "active sampling, product formula"
        PA = "pa", "active sampling, as published"
        DI = "di", "difference (prediction-powered)"
        AD = "ad", "adaptive (sequential difference)"

    estimate_set = models.ForeignKey(EstimateSet, models.CASCADE, related_name="estimates")
    run = models.ForeignKey(Run, models.PROTECT, related_name="estimates")
    measure = models.CharField(max_length=60)
    estimator = models.CharField(max_length=2, choices=Estimator)
    primary = models.BooleanField()
    value = models.FloatField()
    se = models.FloatField()
    df = models.FloatField()
    low = models.FloatField()
    high = models.FloatField()
    support = models.FloatField()
    sample_size = models.FloatField(help_text="effective sample size")
    late = models.BooleanField(default=False, help_text="accepted after the round was drawn")
    unknown = models.PositiveSmallIntegerField(
        choices=[(reason.value, reason.name) for reason in Reason], default=Reason.KNOWN.value
    )
    rank = models.PositiveIntegerField(null=True)
    rank_low = models.PositiveIntegerField(null=True)
    rank_high = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [
            UniqueConstraint(
                fields=["estimate_set", "measure", "estimator", "run"], name="estimate_once"
            )
        ]

    def __str__(self) -> str:
        value = "not known" if self.unknown else f"{self.value:.4f}"
        return f"{self.measure} of {self.run_id}: {value}"


class Report(models.Model):
    """A file made by the worker from one estimate set; what kinds there are, the services know.

    ``refused``: why there is no such file of this round, and no ``file`` then.
    """

    estimate_set = models.ForeignKey(EstimateSet, models.CASCADE, related_name="reports")
    name = models.CharField(max_length=40)
    file = models.CharField(max_length=255, blank=True)
    digest = models.CharField(max_length=64, blank=True)
    size = models.PositiveBigIntegerField()
    refused = models.CharField(max_length=500, blank=True, default="", db_default="")
    created = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [UniqueConstraint(fields=["estimate_set", "name"], name="report_once")]

    def __str__(self) -> str:
        return self.name
