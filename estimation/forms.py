"""The form of a round's choices. What is allowed is checked by the service, not here."""

import re
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

from django import forms
from django.forms.boundfield import BoundField

from estimation.core.measures.kinds import KINDS
from estimation.core.planning.reached import Target
from estimation.core.sampling.methods import SAMPLING_METHODS
from estimation.material import taking_part
from estimation.models import Round
from estimation.options import REQUIRED, Option
from estimation.plans import OPTIONS, SECTIONS, USUAL, RoundPlan, Section, plan_of
from judging.errors import UserError
from judging.forms_shown import ShownForm
from judging.models import Campaign

BETWEEN_MEASURES = re.compile(r"[,;\s]+(?![^()]*\))")
"""Commas and white space, but not those within parentheses: RBP(p=0.8,rel=2)."""


FIRST_RUNS = ("run", "baseline")
"""Options that start with the first runs there are."""


class MethodSelect(forms.Select):
    """Every method says what it has, so that the page shows the options of the chosen one."""

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        made = super().create_option(name, value, *args, **kwargs)
        method = SAMPLING_METHODS[str(value)]
        has = [
            *sorted(method.options),
            method.draws,
            *(["intervals"] * (len(method.intervals) > 1)),
        ]
        made["attrs"]["class"] = " ".join(f"has-{each}" for each in has)
        return made


def _field(option: Option, campaign: Campaign) -> forms.Field:
    initial = option.initial
    if initial is None and option.default not in (REQUIRED, "", []):
        initial = option.default
    given: dict[str, Any] = {
        "label": option.label,
        "help_text": option.help,
        "required": option.required,
        "initial": initial,
    }
    if option.kind == "flag":
        return forms.BooleanField(**given)
    if option.kind == "several":
        names = [(name, name) for name in _names(option, campaign)]
        boxes = forms.CheckboxSelectMultiple()
        return forms.MultipleChoiceField(**given, choices=names, widget=boxes)
    if option.kind in ("choice", "named"):
        return forms.ChoiceField(**given | _choices(option, campaign))
    attrs = dict(option.attrs)
    if option.kind == "whole":  # how much is too much is said by the service
        widget = forms.NumberInput(attrs)
        return forms.IntegerField(**given, min_value=option.least, widget=widget)
    if option.kind == "number":
        given |= {"min_value": option.least, "max_value": option.most}
        return forms.FloatField(**given, widget=forms.NumberInput(attrs))
    return forms.CharField(**given, max_length=option.longest, widget=forms.TextInput(attrs))


def _choices(option: Option, campaign: Campaign) -> dict[str, Any]:
    first = [("", option.empty)] if option.empty else []
    if option.named:
        return {"choices": [*first, *((name, name) for name in _names(option, campaign))]}
    if option.of_method:
        return {"choices": list(_by_method(option))}
    given = {"choices": [*first, *option.labels]}
    return given | ({"widget": MethodSelect} if option.name == "method" else {})


def _names(option: Option, campaign: Campaign) -> list[str]:
    if option.named is None:
        return []
    return list(option.named.rows(campaign).values_list(option.key, flat=True))


def _by_method(option: Option) -> Iterator[tuple[str, str | list[tuple[str, str]]]]:
    """The choices that all methods have, and those that some have besides."""
    labels = dict(option.labels)
    usual = [
        each for each in labels if all(each in option.values(name) for name in SAMPLING_METHODS)
    ]
    for each in usual:
        yield each, labels[each]
    for name, method in SAMPLING_METHODS.items():
        if more := [each for each in option.values(name) if each not in usual]:
            yield f"With {method.short}", [(each, labels[each]) for each in more]


class RoundForm(ShownForm):
    """Every choice with one sentence and a default that is sensible."""

    def __init__(self, campaign: Campaign, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = [name for section in SECTIONS for name in section.names]
        self.fields = {name: _field(OPTIONS[name], campaign) for name in names}
        tags = list(taking_part(campaign).values_list("tag", flat=True)[:2])
        for name, tag in zip(FIRST_RUNS, tags, strict=False):
            self.initial.setdefault(name, tag)

    @property
    def measures(self) -> list[str]:
        """Examples to choose from."""
        return [*(kind.example for kind in KINDS.values()), "P@5", "DCG@10", "RBP(p=0.95)"]

    @property
    def sections(self) -> list[tuple[Section, list[tuple[str, BoundField]]]]:
        """The fields of each part of the page, with the classes of what is around them."""
        return [
            (part, [(OPTIONS[name].classes, self[name]) for name in part.names if self._asks(name)])
            for part in SECTIONS
        ]

    def _asks(self, name: str) -> bool:
        """Further rows are a question only where there are two, or something is wrong with them."""
        field = self.fields[name]
        several = isinstance(field, forms.MultipleChoiceField)
        if not several or (self.is_bound and name in self.errors):
            return True
        return len(list(field.choices)) > 1  # type: ignore[attr-defined]

    @property
    def is_unfolded(self) -> bool:
        """Whether something is wrong with a field that is folded away."""
        return any(name in self.errors for section in SECTIONS[1:] for name in section.names)

    def plan(self) -> RoundPlan:
        """What was chosen; call when the form is valid."""
        chosen = dict(self.cleaned_data)
        chosen["reported"] = [name for name in BETWEEN_MEASURES.split(chosen["reported"]) if name]
        return RoundPlan(
            **{name: value for name, value in chosen.items() if value not in (None, "")}
        )

    def anew(self) -> RoundPlan:
        """The plan of a new round: if the method is that with which forms begin, it is left open,
        and the round has another one where that could not do what else is chosen."""
        plan = self.plan()
        is_open = plan.method == USUAL and "method" not in self.initial
        return replace(plan, method="") if is_open else plan

    def chosen(self) -> dict[str, Any]:
        """What was chosen otherwise than it was shown; call when the form is valid."""
        plan, touched = asdict(self.plan()), self.touched()
        return {name: value for name, value in plan.items() if name in touched}


class ReachForm(forms.Form):
    """What shall be reached: a half width, a share of decided differences in percent, or hours."""

    target = forms.ChoiceField(
        label="What do you want to reach?",
        choices=[
            ("half_width", "a half width of the middle run of"),
            ("decided", "decided differences, in percent,"),
            ("hours", "hours of work"),
        ],
    )
    wanted = forms.FloatField(
        label="How much",
        min_value=1e-9,
        widget=forms.NumberInput({"step": "any", "inputmode": "decimal"}),
    )

    def asked(self) -> tuple[Target, float]:
        """What was asked. Raises UserError ``reach_invalid`` with what is wrong."""
        if not self.is_valid():
            message = "Choose what you want to reach, and say how much: a number above 0."
            raise UserError("reach_invalid", message, field="wanted")
        target, wanted = self.cleaned_data["target"], self.cleaned_data["wanted"]
        return target, wanted / 100 if target == "decided" else wanted


def values_of(row: Round, *, same_seed: bool) -> dict[str, Any]:
    """The round's choices as initial values of the form."""
    values = vars(plan_of(row)) | {"reported": ", ".join(row.reported)}
    if not same_seed:  # whether rounds may be estimated together is a question of each
        values |= {"seed": "", "with_earlier": False, "top_up": False}
    return {name: value for name, value in values.items() if value or name not in FIRST_RUNS}
