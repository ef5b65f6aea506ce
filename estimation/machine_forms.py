"""The form of a machine judge. What is allowed is checked by the service, not here."""

from typing import Any

from django import forms

from estimation.machine_rows import endpoints
from estimation.models import MachineJudge
from estimation.services.machines import prompts
from estimation.services.machines.judges import MOST_CALLS, MachinePlan
from judging.forms_shown import ShownForm

DEFAULT_CALLS = 1000
FIXED = ("name", "source")
PLACES_HELP = "Put in place of: " + ", ".join(
    f"{{{name}}} {what}" for name, what in prompts.PLACES.items()
)


class MachineForm(ShownForm):
    """``source`` is an endpoint and a model of it, with a slash between them."""

    name = forms.CharField(
        max_length=60, help_text="Its predicted grades are called so, with the prompt's version."
    )
    source = forms.ChoiceField(label="Model", help_text="Documents go to the host in brackets.")
    max_calls = forms.IntegerField(
        label="Ceiling of calls",
        min_value=1,
        max_value=MOST_CALLS,
        initial=DEFAULT_CALLS,
        help_text="Every request counts, also one that is tried again.",
    )
    max_cost = forms.FloatField(
        label="Ceiling of cost",
        required=False,
        min_value=0,
        help_text="In units of the endpoint's prices. Empty: none.",
    )
    document_chars = forms.IntegerField(
        label="Characters of a document",
        min_value=prompts.LEAST_CHARS,
        max_value=prompts.MOST_CHARS,
        initial=prompts.DEFAULT_CHARS,
        help_text="Longer ones are cut there.",
    )
    with_schema = forms.BooleanField(
        label="Send a JSON schema, so that a server that knows them answers in no other form",
        required=False,
        initial=True,
    )
    prompt = forms.CharField(
        initial=prompts.DEFAULT,
        widget=forms.Textarea(attrs={"rows": 18, "class": "code"}),
        help_text=PLACES_HELP + ". A line whose places are all empty is left out.",
    )

    def __init__(self, *args: Any, judge: MachineJudge | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial = _values(judge) if judge else {}
        source = self.fields["source"]
        assert isinstance(source, forms.ChoiceField)  # noqa: S101  (for the type checker)
        source.choices = _sources(judge)
        for name in FIXED if judge else ():
            self.fields[name].disabled = True

    def plan(self) -> MachinePlan:
        """What was chosen; call when the form is valid."""
        chosen = dict(self.cleaned_data)
        endpoint, _, model = chosen.pop("source").partition("/")
        return MachinePlan(endpoint=endpoint, model=model, **chosen)

    def chosen(self) -> dict[str, Any]:
        """What was chosen otherwise than it was shown; call when the form is valid."""
        touched = self.touched()
        return {name: value for name, value in self.cleaned_data.items() if name in touched}


def _sources(judge: MachineJudge | None) -> list[tuple[str, str]]:
    offered = [
        (f"{each.name}/{model}", f"{model} at {each.name} ({each.host})")
        for each in endpoints()
        for model in each.models
    ]
    own = f"{judge.endpoint}/{judge.model}" if judge else ""
    gone = [(own, f"{own}, which is not offered any more")] if own else []
    return offered if own in dict(offered) else [*gone, *offered]


def _values(judge: MachineJudge) -> dict[str, Any]:
    names = ("name", "max_calls", "max_cost", "document_chars", "with_schema")
    last = judge.prompts.last()
    chosen = {name: getattr(judge, name) for name in names}
    text = last.text if last is not None else prompts.DEFAULT
    return chosen | {"source": f"{judge.endpoint}/{judge.model}", "prompt": text}
