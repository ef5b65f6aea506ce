"""The form of a round's choices. What is allowed is checked by the service, not here."""

import re
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from django import forms

from estimation.core.measures import KINDS
from estimation.core.methods import SAMPLING_METHODS
from estimation.models import Prediction, Round
from estimation.services.rounds import Plan
from judging.forms_shown import ShownForm
from judging.models import Campaign

BETWEEN_MEASURES = re.compile(r"[,;\s]+(?![^()]*\))")
"""Commas and white space, but not those within parentheses: RBP(p=0.8,rel=2)."""
AS_STORED = (
    "goal", "measure", "budget", "batch_size", "labels", "extra_share", "depth", "prior", "method",
    "eps", "rule", "floor", "costs", "interval", "estimator", "with_earlier",
)  # fmt: skip
"""Fields whose values are those of the round's row."""
MORE = (
    "prior", "predictions", "method", "depth", "rule", "floor", "eps", "seed", "costs",
    "cost_table", "estimator", "interval", "with_earlier",
)  # fmt: skip
"""Fields that are folded away."""


def _intervals() -> Iterator[tuple[str, str | list[tuple[str, str]]]]:
    """The usual kind, and those that some methods have besides."""
    yield Round.Interval.STUDENT.value, str(Round.Interval.STUDENT.label)
    for method in SAMPLING_METHODS.values():
        if more := [Round.Interval(kind) for kind in method.intervals[1:]]:
            yield f"With {method.short}", [(kind.value, str(kind.label)) for kind in more]


INTERVALS = list(_intervals())

EPS_HELP = (
    "Only for draws with replacement: added to every pair's weight times its chance of relevance, "
    "so that no pair is left out."
)


class RoundForm(ShownForm):
    """Every choice with one sentence and a default that is sensible."""

    goal = forms.ChoiceField(
        choices=Round.Goal.choices,
        initial=Round.Goal.ABSOLUTE,
        help_text="What the sample shall be best at. Other numbers are estimated all the same.",
    )
    run = forms.ChoiceField(
        required=False, help_text="The run whose value, or difference, is wanted."
    )
    baseline = forms.ChoiceField(required=False, help_text="The run that it is compared with.")
    measure = forms.CharField(
        max_length=60,
        initial="DCG@10",
        widget=forms.TextInput(attrs={"list": "measures", "autocomplete": "off"}),
        help_text="The measure that the sample is made for, written as ir-measures writes it.",
    )
    reported = forms.CharField(
        label="Further measures",
        required=False,
        max_length=600,
        widget=forms.TextInput(attrs={"placeholder": "P@10, RBP(p=0.8)", "autocomplete": "off"}),
        help_text="Estimated from the same judgments, as far as they reach. At most 10.",
    )
    budget = forms.IntegerField(
        min_value=1,
        initial=1000,
        help_text="How many (topic, document) pairs to judge, as expected over all batches.",
    )
    batch_size = forms.IntegerField(
        min_value=1,
        initial=100,
        help_text="The estimates are computed anew after each batch.",
    )
    labels = forms.IntegerField(
        label="Labels per pair",
        min_value=1,
        initial=1,
        help_text="So many assessors judge each pair; their labels are averaged.",
    )
    extra_share = forms.FloatField(
        label="Share with one label more",
        min_value=0,
        max_value=1,
        initial=0.2,
        widget=forms.NumberInput(attrs={"step": "0.05"}),
        help_text="From 0 to 1. Pairs judged twice show how far assessors agree.",
    )
    prior = forms.ChoiceField(
        choices=Round.Prior.choices,
        initial=Round.Prior.RANK,
        help_text="Which documents are expected to be relevant before anybody has judged. "
        "It decides how precise the numbers are, never whether they are right.",
    )
    method = forms.ChoiceField(
        choices=Round.Method.choices,
        initial=Round.Method.POISSON,
        help_text="Poisson never draws a pair twice. Independent draws are simpler to describe. "
        "Whole topics serve ERR as well; active sampling serves AP, R-precision and P.",
    )
    predictions = forms.ChoiceField(
        label="Predicted grades",
        required=False,
        help_text="For the prior of that name, to choose whole topics by, or to estimate with.",
    )
    depth = forms.IntegerField(
        required=False,
        min_value=1,
        help_text="How far down the runs are looked at. Left empty: as far as the campaign does; "
        "ten ranks for preferences between documents.",
    )
    eps = forms.FloatField(
        label="Smoothing",
        required=False,
        min_value=0,
        initial=0.0,
        widget=forms.NumberInput(attrs={"step": "any"}),
        help_text=EPS_HELP,
    )
    rule = forms.ChoiceField(
        label="Chance of a pair",
        required=False,
        choices=[("", "The method's own"), *Round.Rule.choices],
        help_text="How the prior becomes the chance to be drawn. The root is better when the prior "
        "is unsure, and what Poisson and priority do by themselves.",
    )
    floor = forms.FloatField(
        label="Spread evenly",
        required=False,
        min_value=0,
        max_value=1,
        initial=0.1,
        widget=forms.NumberInput(attrs={"step": "0.05"}),
        help_text="From 0 to 1: this share of the chances goes to all pairs alike, whatever the "
        "prior says, so that surprises are found.",
    )
    costs = forms.ChoiceField(
        label="Cost of a pair",
        required=False,
        choices=Round.Costs.choices,
        initial=Round.Costs.EQUAL,
        help_text="Unequal costs buy more of the cheap pairs and fewer of the dear ones. Budget "
        "and batch size are then counted in costs.",
    )
    cost_table = forms.ChoiceField(
        label="Table of costs",
        required=False,
        help_text="Every pair of the pool needs a line: topic, docno, cost.",
    )
    estimator = forms.ChoiceField(
        required=False,
        choices=[("", "The method's own"), *Round.Estimator.choices],
        help_text="Good predicted grades narrow the intervals, bad ones cost nothing; both leave "
        "the estimates unbiased.",
    )
    interval = forms.ChoiceField(
        label="Intervals",
        required=False,
        choices=INTERVALS,
        initial=Round.Interval.STUDENT,
        help_text="Student's hold if enough pairs carry each estimate. Guaranteed ones hold for "
        "any sample and are far wider.",
    )
    with_earlier = forms.BooleanField(
        label="Estimate together with the earlier rounds",
        required=False,
        help_text="Uses the judgments of all earlier rounds with the same method, topics and "
        "depth, also if runs came since then. Valid if this round was not planned because of what "
        "they found.",
    )
    seed = forms.CharField(
        required=False,
        max_length=100,
        help_text="Decides the draw; with it anybody can repeat it. Left empty: a random one.",
    )

    def __init__(self, campaign: Campaign, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        brought = campaign.predictions.values_list("name", "form")
        tables = [(name, name) for name, form in brought if form == Prediction.Form.COSTS]
        named = [(name, name) for name, form in brought if form != Prediction.Form.COSTS]
        self.fields["predictions"].choices = [("", "None"), *named]  # type: ignore[attr-defined]
        self.fields["cost_table"].choices = [("", "None"), *tables]  # type: ignore[attr-defined]
        tags = list(campaign.runs.values_list("tag", flat=True))
        for name, default in zip(("run", "baseline"), (tags[:1], tags[1:2]), strict=True):
            self.fields[name].choices = [(tag, tag) for tag in tags]  # type: ignore[attr-defined]
            self.initial.setdefault(name, "".join(default))

    @property
    def measures(self) -> list[str]:
        """Examples to choose from."""
        return [*(kind.example for kind in KINDS.values()), "P@5", "DCG@10", "RBP(p=0.95)"]

    @property
    def is_unfolded(self) -> bool:
        """Whether something is wrong with a field that is folded away."""
        return any(name in self.errors for name in MORE)

    def plan(self) -> Plan:
        """What was chosen; call when the form is valid."""
        chosen = dict(self.cleaned_data)
        chosen["reported"] = [name for name in BETWEEN_MEASURES.split(chosen["reported"]) if name]
        return Plan(**{name: value for name, value in chosen.items() if value not in (None, "")})

    def chosen(self) -> dict[str, Any]:
        """What was chosen otherwise than it was shown; call when the form is valid."""
        plan, touched = asdict(self.plan()), self.touched()
        return {name: value for name, value in plan.items() if name in touched}


def values_of(row: Round, *, same_seed: bool) -> dict[str, Any]:
    """The round's choices as initial values of the form."""
    values = {name: getattr(row, name) for name in AS_STORED}
    runs = {"run": row.run, "baseline": row.baseline}
    values |= {name: run.tag for name, run in runs.items() if run is not None}
    if not same_seed:  # whether rounds may be estimated together is a question of each
        values["with_earlier"] = False
    return values | {
        "reported": ", ".join(row.reported),
        "predictions": row.predictions.name if row.predictions else "",
        "cost_table": row.cost_table.name if row.cost_table else "",
        "seed": row.seed if same_seed else "",
    }
