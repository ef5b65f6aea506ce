"""The form that makes a crowd link."""

from datetime import datetime
from typing import Any

from django import forms

from judging.models import CrowdLink
from judging.services.crowd_links import (
    MOST_CONSENT,
    MOST_JUDGMENTS,
    MOST_MONEY,
    MOST_PEOPLE,
    RETURN_EXPECTED,
    LinkPlan,
)

USUAL_CONSENT = (
    "You take part in an evaluation of search engines: you read documents and say how well they"
    " fit a topic. Taking part is voluntary; you may stop at any time.\n\nYour answers are stored"
    " under a made-up name and used to compare search engines. They may be published, without"
    " anything that tells who you are."
)


def _lines(label: str, help_text: str = "") -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 3})
    return forms.CharField(required=False, label=label, widget=area, help_text=help_text)


def _number(label: str, low: int, high: int, first: int, help_text: str = "") -> forms.IntegerField:
    return forms.IntegerField(
        min_value=low, max_value=high, initial=first, label=label, help_text=help_text
    )


def _money(label: str, help_text: str = "") -> forms.DecimalField:
    return forms.DecimalField(
        min_value=0,
        max_value=MOST_MONEY,
        max_digits=9,
        decimal_places=4,
        initial=0,
        label=label,
        help_text=help_text,
    )


class CrowdLinkForm(forms.Form):
    name = forms.CharField(
        max_length=100, help_text="For you alone, such as: Prolific, first wave."
    )
    most_people = _number("People at most", 1, MOST_PEOPLE, 20)
    judgments = _number("Judgments each", 1, MOST_JUDGMENTS, 40)
    least_left = _number(
        "Nobody new below", 1, MOST_JUDGMENTS, 1, "Pairs left that somebody new may judge."
    )
    expires = forms.DateTimeField(
        required=False,
        label="Nobody new after (UTC)",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text="Who has begun goes on. Empty: no end.",
    )
    consent = forms.CharField(
        max_length=MOST_CONSENT,
        initial=USUAL_CONSENT,
        label="What people agree to",
        widget=forms.Textarea(attrs={"rows": 7}),
        help_text="Plain text. Kept with each guest are the time and a digest of this text.",
    )
    question = forms.CharField(
        required=False,
        max_length=500,
        label="A question before the work",
        help_text="Empty: none. Nobody is told which answers let in.",
    )
    lets_in = _lines("Answers that let in", "One a line.")
    screens_out = _lines("Answers that screen out", "One a line.")
    code_kind = forms.ChoiceField(choices=CrowdLink.CodeKind, label="Completion code")
    code = forms.CharField(
        required=False,
        max_length=40,
        label="The code for all",
        help_text="As the platform shows it. Empty: one is made.",
    )
    out_code = forms.CharField(required=False, max_length=40, label="Code for who is screened out")
    return_address = forms.CharField(
        required=False,
        max_length=500,
        label="Address of the platform to return to",
        help_text=RETURN_EXPECTED,
        widget=forms.TextInput(
            attrs={"placeholder": "https://app.prolific.com/submissions/complete?cc={code}"}
        ),
    )
    currency = forms.CharField(max_length=3, initial="USD")
    per_judgment = _money("A judgment")
    per_hour = _money("An hour")
    least_minutes = _number(
        "Minutes at least", 0, 1440, 0, "Paid to who finishes, however fast they were."
    )
    bonus = _money("Bonus a judgment")
    bonus_above = _number("Judgments without it", 0, MOST_JUDGMENTS, 0)
    out_pay = _money("Who is screened out")

    SECTIONS = (
        ("", ("name",), "wide"),
        ("", ("most_people", "judgments", "least_left", "expires"), "numbers"),
        ("", ("consent",), "wide"),
        ("A question that screens out", ("question",), "wide"),
        ("", ("lets_in", "screens_out"), "pairs"),
        ("The way back", ("code_kind", "code", "out_code", "return_address"), "pairs"),
        (
            "Pay",
            (
                "per_judgment",
                "per_hour",
                "least_minutes",
                "bonus",
                "bonus_above",
                "out_pay",
                "currency",
            ),
            "numbers",
        ),
    )

    @property
    def sections(self) -> list[tuple[str, list[forms.BoundField], str]]:
        """Title, fields and layout of each part of the page."""
        return [(title, [self[name] for name in names], how) for title, names, how in self.SECTIONS]

    def add_error(self, field: str | None, error: Any) -> None:
        """What the service says of answers stands beside those that let in."""
        super().add_error("lets_in" if field == "answers" else field, error)

    def plan(self) -> LinkPlan:
        given = dict(self.cleaned_data)
        kinds = (("lets_in", False), ("screens_out", True))
        answers = [
            {"text": text, "out": out} for name, out in kinds for text in _texts(given.pop(name))
        ]
        expires: datetime | None = given.pop("expires")
        return LinkPlan(**given, answers=answers, expires=expires)


def _texts(lines: str) -> list[str]:
    return [line.strip() for line in lines.splitlines() if line.strip()]
