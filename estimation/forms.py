"""The form of a round's choices. What is allowed is checked by the service, not here."""

import re
from typing import Any

from django import forms

from estimation.core.measures import KINDS
from estimation.models import Round
from estimation.services.rounds import Plan
from judging.models import Campaign

BETWEEN_MEASURES = re.compile(r"[,;\s]+(?![^()]*\))")
"""Commas and white space, but not those within parentheses: RBP(p=0.8,rel=2)."""


class RoundForm(forms.Form):
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
        "Whole topics serve ERR; active sampling serves AP, R-precision and P.",
    )
    predictions = forms.ChoiceField(
        label="Predicted grades",
        required=False,
        help_text="For the prior of that name, and to choose whole topics by.",
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
        help_text="Added to every pair's share of the draws, so that none is left out.",
    )
    seed = forms.CharField(
        required=False,
        max_length=100,
        help_text="Decides the draw; with it anybody can repeat it. Left empty: a random one.",
    )

    def __init__(self, campaign: Campaign, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        named = [(name, name) for name in campaign.predictions.values_list("name", flat=True)]
        self.fields["predictions"].choices = [("", "None"), *named]  # type: ignore[attr-defined]
        tags = list(campaign.runs.values_list("tag", flat=True))
        for name, default in zip(("run", "baseline"), (tags[:1], tags[1:2]), strict=True):
            self.fields[name].choices = [(tag, tag) for tag in tags]  # type: ignore[attr-defined]
            self.initial.setdefault(name, "".join(default))

    @property
    def measures(self) -> list[str]:
        """Examples to choose from."""
        return [*(kind.example for kind in KINDS.values()), "P@5", "DCG@10", "RBP(p=0.95)"]

    def plan(self) -> Plan:
        """What was chosen; call when the form is valid."""
        chosen = dict(self.cleaned_data)
        reported = [name for name in BETWEEN_MEASURES.split(chosen.pop("reported")) if name]
        return Plan(**chosen | {"reported": reported, "eps": chosen["eps"] or 0.0})


def values_of(row: Round, *, same_seed: bool) -> dict[str, Any]:
    """The round's choices as initial values of the form."""
    names = ("goal", "measure", "budget", "batch_size", "labels", "extra_share", "depth")
    values = {name: getattr(row, name) for name in (*names, "prior", "method", "eps")}
    runs = {"run": row.run, "baseline": row.baseline}
    values |= {name: run.tag for name, run in runs.items() if run is not None}
    return values | {
        "reported": ", ".join(row.reported),
        "predictions": row.predictions.name if row.predictions else "",
        "seed": row.seed if same_seed else "",
    }
