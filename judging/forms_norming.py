"""Forms about norming sessions."""

from typing import Any

from django import forms

from judging import norming
from judging.formats.known_pairs import MOST_CHARACTERS
from judging.forms_gold import KnownPairsForm
from judging.models import Campaign, NormingSession
from judging.norms import LONGEST_COMMENT
from judging.services.norming import LONGEST_TITLE, SessionPlan


class SessionForm(forms.Form):
    """All assessors take part at first; who does is chosen on the session's page."""

    title = forms.CharField(max_length=LONGEST_TITLE, help_text="Those who take part see it.")
    by_itself = forms.BooleanField(
        required=False,
        initial=True,
        label="The discussion begins by itself when everybody has answered",
    )
    named = forms.BooleanField(
        required=False,
        label="Who takes part sees the others' user names. Off: “Assessor 3”",
    )

    def plan(self) -> SessionPlan:
        return SessionPlan(**self.cleaned_data)


class NormingPairsForm(KnownPairsForm):
    """A file with pairs, or the same pasted; what it says of grades is passed over."""

    graded = False
    text = forms.CharField(
        required=False,
        strip=False,
        max_length=MOST_CHARACTERS,
        label="Or its lines",
        widget=forms.Textarea(attrs={"rows": 5, "spellcheck": "false", "class": "mono"}),
        help_text=(
            "First line: <code>topic,docno</code>. A file of gold or training will do: its grades"
            " and reasons are passed over. JSON lines have the same names."
        ),
    )


class TakeForm(forms.Form):
    """Which pairs are taken over, by their row ids."""

    training = forms.TypedMultipleChoiceField(coerce=int, required=False)
    judged = forms.TypedMultipleChoiceField(coerce=int, required=False)

    def __init__(self, given: Any) -> None:
        super().__init__(given)
        for name in ("training", "judged"):
            field: Any = self.fields[name]
            ids = [each for each in given.getlist(name) if each.isdecimal() and len(each) < 18]
            field.choices = [(each, each) for each in ids]


class PeopleForm(forms.Form):
    people: Any = forms.ModelMultipleChoiceField(
        queryset=None,
        required=False,
        label="Assessors",
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, session: NormingSession, given: Any = None) -> None:
        initial = {"people": list(session.people.values_list("user", flat=True))}
        super().__init__(given, initial=initial)
        field: Any = self.fields["people"]
        field.queryset = norming.candidates(session.campaign)


class RevisionForm(forms.Form):
    """The grade that somebody stands by after talking."""

    grade = forms.TypedChoiceField(coerce=int, label="Your grade now")

    def __init__(self, campaign: Campaign, now: int, given: Any = None) -> None:
        super().__init__(given, initial={"grade": now})
        field: Any = self.fields["grade"]
        field.choices = [(n, f"{n} {each['name']}") for n, each in enumerate(campaign.grades)]


class CommentForm(forms.Form):
    """Plain text, with a key by which a form that is sent twice is known."""

    text = forms.CharField(
        max_length=LONGEST_COMMENT,
        label="Your comment",
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    key = forms.CharField(max_length=64, widget=forms.HiddenInput)
