"""The form of a round's choices. What is allowed is checked by the service, not here."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Self

from django import forms
from django.forms.boundfield import BoundField
from django.forms.utils import flatatt
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from estimation.core.measures.kinds import KINDS
from estimation.core.planning.reached import TARGETS, Target
from estimation.core.sampling.methods import SAMPLING_METHODS
from estimation.material import taking_part
from estimation.models import Round
from estimation.options import REQUIRED, Option
from estimation.plans import (
    OPTIONS,
    QUESTIONS,
    SECTIONS,
    USUAL,
    RoundPlan,
    Section,
    completed,
    has_usual_batches,
    plan_of,
)
from judging.errors import UserError
from judging.forms_shown import ShownForm
from judging.models import Campaign

BETWEEN_MEASURES = re.compile(r"[,;\s]+(?![^()]*\))")
"""Commas and white space, but not those within parentheses: RBP(p=0.8,rel=2)."""


FIRST_RUNS = ("run", "baseline")
"""Options that start with the first runs there are."""
IN_UNIT = ("negligible", "stop_width")
"""Options in the unit of the measure."""
OUTSIDE = ("min_value", "max_value", "max_length")
"""What Django calls values that are out of bounds; what the bounds are, the option says."""
SELECTED = mark_safe(" selected")


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


class NameSelect(forms.Select):
    """Names to choose from, maybe hundreds: Django would render two templates for each of them."""

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        chosen = self.format_value(value)
        options = format_html_join(
            "\n",
            '<option value="{}"{}>{}</option>',
            ((key, SELECTED if key in chosen else "", label) for key, label in self.choices),
        )
        given = flatatt({"name": name, **self.build_attrs(self.attrs, attrs)})
        return format_html("<select{}>{}</select>", given, options)


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
    if option.expected:
        given["error_messages"] = dict.fromkeys(OUTSIDE, option.expected)
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
        named = [(name, name) for name in _names(option, campaign)]
        return {"choices": [*first, *named], "widget": NameSelect}
    if option.name == "goal":
        return {"choices": list(QUESTIONS.items()), "widget": forms.RadioSelect}
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
    def steps(self) -> dict[str, list[tuple[str, BoundField]]]:
        """The fields of each step of the wizard, with the classes of what is around them."""
        return {part.step: self._shown(part) for part in SECTIONS if part.step}

    @property
    def sections(self) -> list[tuple[Section, list[tuple[str, BoundField]]]]:
        """The same of the parts that are folded away."""
        return [(part, self._shown(part)) for part in SECTIONS if not part.step]

    def _shown(self, part: Section) -> list[tuple[str, BoundField]]:
        return [(OPTIONS[name].classes, self[name]) for name in part.names if self._asks(name)]

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
        return any(name in self.errors for each in SECTIONS if not each.step for name in each.names)

    def plan(self) -> RoundPlan:
        """What was chosen; call when the form is valid."""
        chosen = dict(self.cleaned_data)
        if self._outgrown() and chosen["batch_size"] > chosen["budget"]:
            chosen["batch_size"] = chosen["budget"]
        chosen["reported"] = [name for name in BETWEEN_MEASURES.split(chosen["reported"]) if name]
        return RoundPlan(
            **{name: value for name, value in chosen.items() if value not in (None, "")}
        )

    def _outgrown(self) -> bool:
        """Whether batches, as nobody has typed them, are larger than the budget is or was."""
        before, size = self.before(), self.cleaned_data["batch_size"]
        if before is None or size is None or "batch_size" in self.touched():
            return False
        was = before.get("budget")
        budgets = [self.cleaned_data["budget"], *([was] if isinstance(was, int) else [])]
        return bool(size > min(budgets))

    def typed(self) -> dict[str, Any]:
        """Whatever stands in the fields, right or wrong, for a form to begin with."""
        return {name: self[name].data for name in self.fields}

    def anew(self) -> RoundPlan:
        """The plan of a new round. The method with which the form began is left open, and the usual
        one for what else is chosen, unless the round before had it because somebody chose it."""
        plan = self.plan()
        is_open = plan.method == self.initial.get("method", USUAL) and self._began_usually()
        chosen = replace(plan, **{name: OPTIONS[name].default for name in self.of_another_unit()})
        return replace(chosen, method="") if is_open else chosen

    def of_another_unit(self) -> list[str]:
        """The choices that nobody has made for this measure: they are in the unit of that of the
        round before, and so is a rule that rests on one of them."""
        if self.cleaned_data["measure"] == self.initial.get("measure", ""):
            return []
        kept = {name: self.cleaned_data[name] == self.initial.get(name) for name in IN_UNIT}
        found = [name for name in IN_UNIT if kept[name] and self.cleaned_data[name]]
        if "stop_width" in found and self.cleaned_data["stop_when"] == Round.Stop.WIDTH:
            found.append("stop_when")
        return found

    def _began_usually(self) -> bool:
        """Whether the method that the form began with is the usual one for its other choices."""
        if "measure" not in self.initial:  # there is no round before
            return "method" not in self.initial
        begun = {name: self.initial[name] for name in OPTIONS if name in self.initial}
        begun["reported"] = [each for each in BETWEEN_MEASURES.split(begun["reported"]) if each]
        return bool(completed(RoundPlan(**begun | {"method": ""})).method == begun["method"])

    def chosen(self) -> dict[str, Any]:
        """What was chosen otherwise than it was shown; call when the form is valid."""
        plan, touched = asdict(self.plan()), self.touched()
        size = self.cleaned_data["batch_size"]
        if "budget" in touched and (size is None or self._outgrown()):  # a tenth, or all of it
            touched.add("batch_size")
        return {name: value for name, value in plan.items() if name in touched}


class TargetForm(forms.Form):
    """What a budget reaches, each in a field of its own: who types into one asks for the budget.

    ``shown`` is what the page showed, so that what nobody typed is no wish. A small budget decides
    0 %, which a browser must not take for a wrong field: it would keep the round from being drawn.
    """

    prefix = "target"
    half_width = forms.FloatField(label="Half width ±, at most", min_value=0)
    best = forms.FloatField(label="Best two told apart, %", min_value=0, max_value=100)
    decided = forms.FloatField(label="Differences decided, %", min_value=0, max_value=100)
    hours = forms.FloatField(label="Hours of work", min_value=0)
    shown = forms.CharField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.required = False
            if isinstance(field, forms.FloatField):
                field.widget.attrs |= {"step": "any", "inputmode": "decimal"}

    @classmethod
    def of(cls, reached: Mapping[str, str]) -> Self:
        """With what the round's budget reaches, as the page shows it."""
        return cls(initial={**reached, "shown": json.dumps(dict(reached))})

    def wish(self) -> tuple[Target, float] | None:
        """What was typed, if anything was. Raises UserError ``reach_invalid`` (400)."""
        try:
            before = json.loads(self["shown"].data or "{}")
        except (ValueError, RecursionError):
            before = {}
        before = before if isinstance(before, dict) else {}
        typed = {name: (self[name].data or "").strip() for name in TARGETS}
        asked = [name for name in TARGETS if typed[name] and typed[name] != before.get(name)]
        if not asked:
            return None
        name, wanted = asked[0], self.cleaned_data.get(asked[0]) if self.is_valid() else None
        if wanted is None or len(asked) > 1:
            message = "Say one thing that you want to reach: a number above 0."
            raise UserError("reach_invalid", message, field="wanted")
        return name, wanted / 100 if name in ("best", "decided") else wanted


class ExtendForm(forms.Form):
    """How many more pairs shall be judged."""

    budget = forms.IntegerField(min_value=1, max_value=OPTIONS["budget"].most)

    def asked(self) -> int:
        """How many. Raises UserError ``round_invalid`` with what is wrong."""
        if not self.is_valid():
            message = f"Say how many more: a whole number from 1 to {OPTIONS['budget'].most:,}."
            raise UserError("round_invalid", message, field="budget")
        return int(self.cleaned_data["budget"])


def values_of(row: Round, *, same_seed: bool) -> dict[str, Any]:
    """The round's choices as initial values of the form."""
    values = vars(plan_of(row)) | {"reported": ", ".join(row.reported)}
    values["batch_size"] = None if has_usual_batches(plan_of(row)) else row.batch_size
    if not same_seed:  # whether rounds may be estimated together is a question of each
        values |= {"seed": "", "with_earlier": False, "top_up": False}
    return {name: value for name, value in values.items() if value or name not in FIRST_RUNS}
