"""What organizers ask for when they look through judgments."""

from django import forms

from judging.browsing import ORDERS, JudgmentFilter, assessors
from judging.models import Campaign, preference_scale
from judging.selectors import compares_alone

NAMES = {
    "latest": "Latest first",
    "topic": "By topic and document",
    "apart": "Largest disagreement first",
    "quick": "Quickest first",
}


def _aside(label: str) -> forms.TypedChoiceField:
    """A kind of judgment that is among the others, or not, or alone."""
    return forms.TypedChoiceField(
        required=False,
        label=label,
        coerce=lambda value: value == "only",
        empty_value=None,
        choices=[("", "shown"), ("without", "left out"), ("only", "alone")],
    )


class JudgmentSearch(forms.Form):
    """Sent with GET, so that what was found has an address. What does not fit is left out."""

    words = forms.CharField(
        required=False,
        max_length=200,
        label="Topic or document",
        widget=forms.TextInput(
            attrs={"type": "search", "placeholder": "Topic, its words, or a docno"}
        ),
    )
    assessor = forms.TypedChoiceField(required=False, coerce=int, empty_value=None)
    grade = forms.TypedChoiceField(required=False, coerce=int, empty_value=None)
    apart = forms.TypedChoiceField(
        required=False, coerce=int, empty_value=None, label="Labels apart by"
    )
    seconds = forms.FloatField(required=False, min_value=0, label="Within seconds")
    since = forms.DateField(required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, widget=forms.DateInput(attrs={"type": "date"}))
    comment = forms.BooleanField(required=False, label="With a comment")
    corrected = forms.BooleanField(required=False, label="Corrected")
    excluded = _aside("Excluded work")
    gold = _aside("Gold")
    order = forms.ChoiceField(required=False, choices=[(each, NAMES[each]) for each in ORDERS])

    def __init__(self, campaign: Campaign, data: object) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        people = [(user.pk, user.get_username()) for user in assessors(campaign)]
        scale = [(n, f"{n} {grade['name']}") for n, grade in enumerate(_scale(campaign))]
        steps = [(n, f"{n} or more") for n in range(1, len(scale))]
        for name, choices in (("assessor", people), ("grade", scale), ("apart", steps)):
            self.fields[name].choices = [("", "any"), *choices]  # type: ignore[attr-defined]

    def asked(self) -> JudgmentFilter:
        self.is_valid()
        given = {
            name: value for name, value in self.cleaned_data.items() if value not in ("", None)
        }
        words = "".join(c for c in given.pop("words", "") if c.isprintable())
        return JudgmentFilter(words=words, **given)


def _scale(campaign: Campaign) -> list[dict[str, str]]:
    """That of the campaign, if not all its pairs are of two documents, which have a scale of their
    own."""
    grades: list[dict[str, str]] = campaign.grades
    return preference_scale("first", "second") if compares_alone(campaign) else grades
