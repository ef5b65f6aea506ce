"""Forms about gold, and rules about people."""

from typing import Any

from django import forms

from judging.formats.known_pairs import MOST_CHARACTERS, MOST_REASON
from judging.models import Campaign
from judging.services.quality import RulesPlan


class KnownPairsForm(forms.Form):
    """A file with pairs and their grades, or the same pasted; ``graded``: whether they need one."""

    graded = True
    file = forms.FileField(
        required=False,
        label="A CSV or JSONL file",
        widget=forms.ClearableFileInput(attrs={"accept": ".csv,.jsonl,.ndjson,text/csv"}),
    )
    text = forms.CharField(
        required=False,
        strip=False,
        max_length=MOST_CHARACTERS,
        label="Or its lines",
        widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false", "class": "mono"}),
        help_text=(
            "First line: <code>topic,docno,grade,reason</code>. Several grades may be right:"
            " <code>2|3</code>. JSON lines have the same names."
        ),
    )

    def clean_file(self) -> str:
        file = self.cleaned_data["file"]
        if file is None:
            return ""
        if file.size > 4 * MOST_CHARACTERS:
            raise forms.ValidationError("The file is too large for pairs with known grades.")
        try:
            text: str = file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise forms.ValidationError("The file is no text in UTF-8.") from None
        return text

    def clean(self) -> dict[str, Any]:
        given = [name for name in ("file", "text") if self.cleaned_data.get(name, "").strip()]
        if len(given) != 1 and not self.errors:
            raise forms.ValidationError("Choose a file, or paste its lines.")
        return self.cleaned_data

    def asked(self) -> tuple[str, str]:
        """The text, and the name of where it is from."""
        if self.cleaned_data["file"].strip():
            uploaded: Any = self.files["file"]
            return self.cleaned_data["file"], str(uploaded.name)
        return self.cleaned_data["text"], "pasted"


class MixForm(forms.Form):
    every = forms.TypedChoiceField(
        coerce=int,
        label="How much of what people judge is gold",
        choices=[(0, "None"), *((n, f"About one in {n}") for n in (4, 5, 8, 12, 20, 40))],
    )

    def __init__(self, campaign: Campaign, given: Any = None) -> None:
        super().__init__(given, initial={"every": campaign.gold_every})
        field: Any = self.fields["every"]
        now = campaign.gold_every
        if now not in dict(field.choices):
            field.choices = [*field.choices, (now, f"About one in {now}")]


class RulesForm(forms.Form):
    least = forms.IntegerField(
        label="Answers to gold before a score is told", help_text="10 at least."
    )
    warn_below = forms.FloatField(
        required=False, label="Warn below", help_text="A score from 0 to 1; empty: never."
    )
    hold_below = forms.FloatField(
        required=False,
        label="Have them wait below",
        help_text="They get nothing new until you look.",
    )
    exclude_below = forms.FloatField(
        required=False,
        label="Exclude below",
        help_text="Recorded with its score; taken back by you.",
    )
    exclude_hasty = forms.BooleanField(
        required=False, label="Exclude whoever is too fast to have read, by their times alone"
    )

    def __init__(self, plan: RulesPlan, given: Any = None) -> None:
        super().__init__(given, initial=vars(plan))

    def plan(self) -> RulesPlan:
        return RulesPlan(**self.cleaned_data)


class MarkForm(forms.Form):
    grades = forms.TypedMultipleChoiceField(
        coerce=int, label="Right grades", widget=forms.CheckboxSelectMultiple
    )
    reason = forms.CharField(
        required=False, max_length=MOST_REASON, label="Why", help_text="For other organizers."
    )

    def __init__(self, campaign: Campaign, given: Any = None) -> None:
        super().__init__(given, auto_id="gold_%s")  # beside the form of a senior grade
        field: Any = self.fields["grades"]
        field.choices = [(n, f"{n} {each['name']}") for n, each in enumerate(campaign.grades)]
