"""The period of the site's report, and the rights of an account."""

from datetime import date, timedelta
from typing import Any

from django import forms
from django.utils import timezone

from evalsite.administration.site_report import Period

DAYS = 30
"""Of the period that is shown unless another one is asked for, today among them."""
DAY = forms.DateInput(attrs={"type": "date"})


class PeriodForm(forms.Form):
    since = forms.DateField(label="From", required=False, widget=DAY)
    until = forms.DateField(label="To", required=False, widget=DAY)

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if not self.errors and (period := period_of(**given)).since > period.until:
            self.add_error("until", "The period ends before it begins: choose a later day.")
        return given

    def period(self) -> Period:
        """What was asked for; the last days where nothing was, or nothing that can be."""
        return period_of(**self.cleaned_data) if self.is_valid() else period_of()


class RightsForm(forms.Form):
    creates = forms.BooleanField(
        label="May create campaigns",
        required=False,
        help_text="Uploads, rounds and members of their own campaigns are theirs.",
    )
    admin = forms.BooleanField(
        label="Is an admin",
        required=False,
        help_text="Sees and changes every campaign, these pages, and everybody's rights.",
    )
    active = forms.BooleanField(
        label="May sign in",
        required=False,
        help_text="Whoever is blocked is signed out at once, and their keys are void for good: let "
        "in again, they sign in anew and make new ones. What they judged "
        "stays and counts; a pair that they hold is handed to others when its time is up.",
    )


def period_of(since: Any = None, until: Any = None) -> Period:
    until = until or timezone.now().date()
    return Period(since or until - min(timedelta(days=DAYS - 1), until - date.min), until)
