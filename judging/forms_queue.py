"""What organizers send from their queue."""

from typing import Any

from django import forms

from judging.models import Pair, SeenItem


class SeenForm(forms.Form):
    kind = forms.ChoiceField(choices=SeenItem.Kind)
    target = forms.IntegerField(min_value=1, max_value=2**63 - 1)
    version = forms.CharField(max_length=40, required=False)


class WhyForm(forms.Form):
    reason = forms.CharField(max_length=500, label="Why")


class SeniorForm(forms.Form):
    grade = forms.TypedChoiceField(coerce=int, label="Senior grade")
    reason = forms.CharField(
        max_length=500, label="Why", help_text="Recorded with the grade; the report counts it."
    )

    def __init__(self, *args: Any, pair: Pair, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        grades: Any = self.fields["grade"]
        grades.choices = [
            (grade, each["name"] if pair.other else f"{grade} {each['name']}")
            for grade, each in enumerate(pair.scale)
        ]
