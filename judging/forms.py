"""Forms of the judging side. They check what can be checked alone; the services check the rest."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm, UsernameField
from django.forms import BaseFormSet, formset_factory

from judging import selectors
from judging.access import address_of
from judging.errors import UserError
from judging.forms_shown import ShownForm
from judging.models import MAX_GRADE, ApiToken, Campaign, Membership, Pair
from judging.services import sign_in
from judging.services.campaigns import DEFAULT_GRADES, MOST_HOUR_COST, CampaignPlan
from judging.services.judgments import MAX_COMMENT, MAX_KEY, Saying
from judging.services.members import KEY_DAYS

SPARE_ROWS = 2
KEY_DAYS_OFFERED = ((7, "A week"), (30, "30 days"), (KEY_DAYS, "90 days"), (365, "A year"))


def blame(form: forms.Form, error: UserError) -> None:
    """Puts a service's error at the field it names, or on top of the form."""
    form.add_error(error.field if error.field in form.fields else None, error.message)


class SignInForm(AuthenticationForm):
    """Django's form, with the service that counts tries."""

    username = UsernameField(label="User name", widget=forms.TextInput(attrs={"autofocus": True}))

    def clean(self) -> dict[str, Any]:
        username, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if username and password and self.request is not None:
            address = address_of(self.request)
            try:
                self.user_cache = sign_in.authenticate(
                    username=username, password=password, address=address
                )
            except UserError as error:
                raise forms.ValidationError(error.message) from None
            self.confirm_login_allowed(self.user_cache)
        return self.cleaned_data


class JoinForm(forms.Form):
    password = forms.CharField(
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least 8 characters, and not one of the common ones.",
    )
    again = forms.CharField(
        label="Password again", widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )

    def clean_again(self) -> str:
        again: str = self.cleaned_data["again"]
        if again != self.cleaned_data.get("password", again):
            raise forms.ValidationError("The two passwords differ.")
        return again


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=100, label="What is it for?", help_text="For example: nightly run upload."
    )
    scope = forms.ChoiceField(
        choices=ApiToken.Scope, label="What may it do?", initial=ApiToken.Scope.FULL
    )
    days = forms.TypedChoiceField(
        choices=KEY_DAYS_OFFERED, coerce=int, label="How long does it work?", initial=KEY_DAYS
    )


class CampaignForm(ShownForm):
    """A campaign but for its grade scale. What drawn rounds rest on is shown, not changed."""

    name = forms.CharField(max_length=200)
    slug = forms.SlugField(
        max_length=60,
        required=False,
        label="Address",
        help_text="The part after /c/ in links. Made from the name if left empty; stays for ever.",
    )
    guidelines = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 8}),
        help_text="What assessors read before they begin, and can open at any time.",
    )
    depth = forms.IntegerField(
        min_value=1,
        max_value=10_000,
        help_text="How far down each run is looked at. Every measure must fit into it.",
    )
    lease_minutes = forms.IntegerField(
        min_value=1,
        max_value=1440,
        label="Minutes per pair",
        help_text="After this time without an answer, a pair goes to somebody else.",
    )
    hour_cost = forms.FloatField(
        min_value=0,
        max_value=MOST_HOUR_COST,
        required=False,
        label="An hour of judging costs",
        help_text="If you like: plans and reports then tell money beside hours.",
        widget=forms.NumberInput(attrs={"step": "any", "inputmode": "decimal"}),
    )
    currency = forms.CharField(
        required=False,
        max_length=3,
        help_text="Three capital letters, such as EUR.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "characters"}),
    )
    senior_grades = forms.ChoiceField(
        required=False,
        choices=Campaign.Seniors.choices,
        help_text="Where assessors disagree, an organizer may give a senior grade. Where it takes"
        " the place of theirs, estimates are about what pairs end with.",
    )

    def __init__(self, *args: Any, campaign: Campaign | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.campaign = campaign
        cost = self.initial.get("hour_cost", 0.0)
        self.initial["hour_cost"] = int(cost) if cost == int(cost) else cost  # 20, not 20.0
        if campaign is None:
            del self.fields["senior_grades"]
        else:
            del self.fields["slug"]
            self.fields["depth"].disabled = selectors.is_drawn(campaign)

    def clean_hour_cost(self) -> float:
        return self.cleaned_data["hour_cost"] or 0.0

    def clean_senior_grades(self) -> str:
        """A page that does not ask leaves the rule as it is."""
        kept = self.campaign.senior_grades if self.campaign else Campaign.Seniors.BESIDE
        return self.cleaned_data["senior_grades"] or kept

    def plan(self, grades: list[dict[str, str]]) -> CampaignPlan:
        return CampaignPlan(**{**self.cleaned_data, "grades": grades})

    def at_first(self) -> dict[str, Any]:
        return {**super().at_first(), "grades": self.campaign.grades if self.campaign else None}

    def chosen(self, grades: list[dict[str, str]]) -> dict[str, Any]:
        """The settings that were changed since they were shown."""
        touched = {name: self.cleaned_data[name] for name in self.touched()}
        same = (self.before() or {}).get("grades") == grades
        return touched if same else {**touched, "grades": grades}

    def told(self, values: Mapping[str, Any]) -> list[tuple[str, str]]:
        """Settings as a reader takes them: their labels, and what they say."""
        return [(self.label_of(name), _in_words(value)) for name, value in values.items()]

    def label_of(self, name: str) -> str:
        return str(self[name].label) if name in self.fields else "Grade scale"


def _in_words(value: Any) -> str:
    if not isinstance(value, list):
        return str(value)
    return "\n".join(
        f"{number} {grade['name']}: {grade['meaning']}" for number, grade in enumerate(value)
    )


class DuplicateForm(forms.Form):
    name = forms.CharField(max_length=200, label="Name of the new campaign")
    with_files = forms.BooleanField(
        required=False, label="With its topics, documents, runs and grades"
    )


class DeleteForm(forms.Form):
    name = forms.CharField(
        max_length=200,
        label="Its name",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "off"}),
    )


class GradeForm(forms.Form):
    name = forms.CharField(max_length=60, required=False)
    meaning = forms.CharField(max_length=500, required=False)


Rows = formset_factory(GradeForm, extra=SPARE_ROWS, max_num=MAX_GRADE + 1, absolute_max=40)

NOT_WHOLE = {
    "missing_management_form": "The scale did not arrive whole. Load this page anew, and try again."
}


def grade_rows(
    data: Mapping[str, Any] | None, campaign: Campaign | None
) -> "BaseFormSet[GradeForm]":
    """The grade scale as rows, from 0 upwards; read-only once batches rest on it.

    What is sent without any part of a scale leaves the scale as it is.
    """
    fixed = campaign is not None and selectors.is_drawn(campaign)
    initial = campaign.grades if campaign else DEFAULT_GRADES
    sent = None if fixed or not any(name.startswith("grades-") for name in data or ()) else data
    rows = Rows(sent, initial=initial, prefix="grades", error_messages=NOT_WHOLE)
    if fixed:
        rows.extra = 0
        for field in [field for row in rows.forms for field in row.fields.values()]:
            field.disabled = True
    return rows


def scale(rows: "BaseFormSet[GradeForm]") -> list[dict[str, str]] | None:
    """The rows that are not empty, in order; None if they are wrong in themselves."""
    if not rows.is_bound:
        return [dict(row) for row in rows.initial or []]
    if not rows.is_valid():
        return None
    given = [row.cleaned_data for row in rows.forms if row.cleaned_data]
    return [{"name": row["name"], "meaning": row["meaning"]} for row in given if any(row.values())]


class MemberForm(forms.Form):
    username = forms.CharField(
        max_length=150,
        label="User name",
        help_text="An account that is not there yet is made; you then get a link to pass on.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none"}),
    )
    address = forms.CharField(
        required=False,
        max_length=254,
        label="E-mail address (if you like)",
        widget=forms.TextInput(attrs={"autocomplete": "off", "inputmode": "email"}),
        help_text="A new account is invited there, if this site sends e-mail.",
    )
    role = forms.ChoiceField(choices=Membership.Role, initial=Membership.Role.ASSESSOR)


class GradeChoice(forms.TypedChoiceField):
    """One grade of a scale."""

    def __init__(self, scale: list[dict[str, str]], **kwargs: Any) -> None:
        names = [(n, f"{n} {grade['name']}") for n, grade in enumerate(scale)]
        super().__init__(choices=names, coerce=int, empty_value=None, **kwargs)


class DecisionForm(forms.Form):
    """What to do with a stuck pair: give a grade, use its judgments as they are, or ask again."""

    ACTIONS = (("grade", "Give grade"), ("as_is", "Use as is"), ("ask", "Ask again"))
    action = forms.ChoiceField(choices=ACTIONS)
    reason = forms.CharField(max_length=500, required=False)

    def __init__(self, data: Mapping[str, Any], *, pair: Pair) -> None:
        super().__init__(data)
        self.fields["grade"] = GradeChoice(pair.scale, required=False)

    def grade(self) -> int | None:
        """The grade to close the pair with; None: as it is."""
        if self.cleaned_data["action"] == "as_is":
            return None
        grade: int | None = self.cleaned_data["grade"]
        if grade is None:
            raise UserError("grade_missing", "Choose the grade to give.", field="grade")
        return grade


class RestForm(forms.Form):
    """One grade for everything that is drawn and unjudged."""

    reason = forms.CharField(
        max_length=500, help_text="The report states it, for example: outside the judged pool."
    )
    sure = forms.BooleanField(label="I know that this grade is right for all of these pairs")
    field_order = ("grade", "reason", "sure")

    def __init__(self, data: Mapping[str, Any] | None = None, *, campaign: Campaign) -> None:
        super().__init__(data)
        self.fields["grade"] = GradeChoice(campaign.grades, initial=0)
        self.order_fields(self.field_order)


class JudgmentForm(forms.Form):
    """What an assessor sends. Browsers send line ends as two characters; here they are one."""

    grade = forms.IntegerField(min_value=0, max_value=MAX_GRADE)
    key = forms.CharField(max_length=MAX_KEY)
    comment = forms.CharField(required=False, max_length=2 * MAX_COMMENT)
    seconds = forms.FloatField(required=False, min_value=0, max_value=86400)

    def clean_comment(self) -> str:
        comment: str = self.cleaned_data["comment"].replace("\r\n", "\n")
        return comment

    def saying(self) -> Saying:
        """Raises UserError ``judgment_invalid`` if the form is not valid."""
        if not self.is_valid():
            field, problems = next(iter(self.errors.items()))
            message = f"That could not be saved: {field}: {problems[0]}"
            raise UserError("judgment_invalid", message, field=field)
        return Saying(**self.cleaned_data)


class CorrectionForm(JudgmentForm):
    revision = forms.IntegerField(min_value=1)

    def revised(self) -> tuple[Saying, int]:
        """The new saying and the revision that it supersedes."""
        self.full_clean()
        revision = self.cleaned_data.pop("revision", 0)
        return self.saying(), revision


class SkipForm(forms.Form):
    """Why a pair cannot be judged: one of the usual reasons, or own words."""

    USUAL = (
        "The text cannot be read",
        "The topic is unclear",
        "I know too little about this",
    )
    reason = forms.CharField(max_length=500, required=False)
    words = forms.CharField(max_length=500, required=False)

    def why(self) -> str:
        self.is_valid()
        return self.cleaned_data.get("words") or self.cleaned_data.get("reason") or ""
