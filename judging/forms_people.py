"""Forms about people: many at once, and whose work counts."""

from typing import Any

from django import forms

from judging.errors import UserError
from judging.models import Exclusion, Membership
from judging.services.invitations import MOST, MOST_CHARACTERS


class ManyForm(forms.Form):
    """A list of people, pasted or as a file."""

    people = forms.CharField(
        required=False,
        strip=False,
        max_length=MOST_CHARACTERS,
        label="Names or e-mail addresses, one a line",
        widget=forms.Textarea(
            attrs={"rows": 6, "spellcheck": "false", "autocapitalize": "none", "class": "mono"}
        ),
        help_text=(
            f"At most {MOST}. After commas an address and a role may follow: anna,"
            " anna@example.org, organizer. Or a table whose first line says name, address, role."
        ),
    )
    file = forms.FileField(
        required=False,
        label="Or a text or CSV file",
        widget=forms.ClearableFileInput(attrs={"accept": ".txt,.csv,.tsv,text/plain,text/csv"}),
    )
    role = forms.ChoiceField(choices=Membership.Role, initial=Membership.Role.ASSESSOR)
    leave_out_members = forms.BooleanField(
        required=False, label="Pass over those who are members already"
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        beside_the_form_for_one = {"auto_id": "many_%s"}
        super().__init__(*args, **(beside_the_form_for_one | kwargs))

    def clean_file(self) -> str:
        """Its text."""
        file = self.cleaned_data["file"]
        if file is None:
            return ""
        if file.size > 4 * MOST_CHARACTERS:
            raise forms.ValidationError("The file is too large for a list of people.")
        try:
            text: str = file.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise forms.ValidationError("The file is no text in UTF-8.") from None
        return text

    def clean(self) -> dict[str, Any]:
        given = [name for name in ("people", "file") if self.cleaned_data.get(name, "").strip()]
        if len(given) == 2:
            raise forms.ValidationError("Paste a list or choose a file, not both.")
        return self.cleaned_data

    def blame(self, error: UserError) -> None:
        """What is wrong with the list is told where it was given."""
        field = error.field if error.field in self.fields else None
        self.add_error("file" if field == "people" and self._is_file() else field, error.message)

    def _is_file(self) -> bool:
        return "file" in self.files and not self.cleaned_data["people"].strip()

    def asked(self) -> dict[str, Any]:
        """What `invite_many` takes."""
        given = self.cleaned_data
        return {
            "text": given["file" if self._is_file() else "people"],
            "role": given["role"],
            "leave_out_members": given["leave_out_members"],
        }


class ExclusionForm(forms.Form):
    ground = forms.ChoiceField(
        choices=[("", "Choose …"), *Exclusion.Ground.choices],
        label="Why?",
        help_text=(
            "Estimates stay unbiased only if the ground has nothing to do with the grades that were"
            " given. A ground that looks at grades is labeled so wherever it matters."
        ),
    )
    reason = forms.CharField(
        max_length=500, label="In your words", help_text="Recorded, and told to other organizers."
    )


class HoldForm(forms.Form):
    reason = forms.CharField(
        max_length=500, label="Why shall they wait?", help_text="Told to other organizers."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        beside_another_form = {"auto_id": "hold_%s"}
        super().__init__(*args, **(beside_another_form | kwargs))


class TakeBackForm(forms.Form):
    reason = forms.CharField(max_length=500, label="Why does it count again?")
