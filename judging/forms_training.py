"""Forms about training."""

from typing import Any

from django import forms

from judging.models import Training
from judging.services.training import MOST_TRIES, TrainingPlan


class TrainingForm(forms.Form):
    """A share in percent, as people say it."""

    obligatory = forms.BooleanField(required=False, label="New assessors pass it before they judge")
    percent = forms.FloatField(
        min_value=1, max_value=100, label="Right, at least, %", widget=forms.NumberInput()
    )
    tries = forms.IntegerField(
        min_value=0, max_value=MOST_TRIES, help_text="0: as many as they like."
    )

    def __init__(self, row: Training, given: Any = None) -> None:
        percent = round(100 * row.threshold, 2)
        whole = int(percent) if percent == int(percent) else percent
        now = {"obligatory": row.obligatory, "percent": whole, "tries": row.tries}
        super().__init__(given, initial=now)

    def plan(self) -> TrainingPlan:
        found = self.cleaned_data
        return TrainingPlan(found["obligatory"], found["percent"] / 100, found["tries"])


class LearnedForm(forms.Form):
    """What somebody says of a pair of training or norming."""

    pair = forms.IntegerField(min_value=1, max_value=2**62)
    grade = forms.IntegerField(min_value=0, max_value=100)
