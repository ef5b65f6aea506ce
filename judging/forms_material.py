"""The form that takes files of a campaign's material."""

from typing import Any, cast

from django import forms
from django.core.files.uploadedfile import UploadedFile

from judging.models import Campaign, Upload
from judging.services.described import MAX_DESCRIPTION, MAX_TEXT

GUESS = "guess"
KINDS = [(GUESS, "Guess the kind"), *Upload.Kind.choices]


class FilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One or more files."""

    widget = FilesInput

    def clean(self, data: Any, initial: Any = None) -> Any:
        given = data if isinstance(data, list | tuple) else [data]
        return [super(FilesField, self).clean(file, initial) for file in given or [None]]


class UploadForm(forms.Form):
    """Files; one kind for all of them, or (``kinds``, in their order) one for each."""

    given = FilesField(
        label="Files",
        max_length=255,
        allow_empty_file=True,
        error_messages={"required": "Choose at least one file."},
    )
    kind = forms.ChoiceField(choices=KINDS, initial=GUESS, required=False, label="What they hold")
    check_only = forms.BooleanField(required=False, label="Check only")

    def chosen(self) -> "list[tuple[UploadedFile[bytes], str | None]]":
        """Every file with its kind; None where it shall be guessed."""
        files = cast("list[UploadedFile[bytes]]", self.cleaned_data["given"])
        each = self.data.getlist("kinds") if hasattr(self.data, "getlist") else []
        kinds = each if len(each) == len(files) else [self.cleaned_data["kind"]] * len(files)
        known = set(Upload.Kind.values)
        return [
            (file, kind if kind in known else None) for file, kind in zip(files, kinds, strict=True)
        ]


class VersionForm(forms.Form):
    """A new version of what a file brought."""

    given = forms.FileField(label="File", max_length=255, allow_empty_file=True)


class AboutForm(forms.Form):
    """What is said of a run: its team, a description, and the campaign's own fields."""

    team = forms.CharField(required=False, max_length=MAX_TEXT)
    description = forms.CharField(
        required=False, max_length=MAX_DESCRIPTION, widget=forms.Textarea(attrs={"rows": 3})
    )

    def __init__(self, campaign: Campaign, about: dict[str, Any], data: Any = None) -> None:
        super().__init__(data, auto_id="about_%s")
        self.initial = {name: about.get(name, "") for name in ("team", "description")}
        self.own = {f"own-{n}": name for n, name in enumerate(campaign.run_fields)}
        for key, name in self.own.items():
            self.fields[key] = forms.CharField(required=False, max_length=MAX_TEXT, label=name)
            self.initial[key] = about.get("fields", {}).get(name, "")

    def chosen(self) -> dict[str, Any]:
        """What is said otherwise than was shown."""
        changed = {name: self.cleaned_data[name] for name in self.changed_data}
        fields = {name: changed.pop(key) for key, name in self.own.items() if key in changed}
        return {**changed, "fields": fields}


class RunFieldsForm(forms.Form):
    """The names of the fields that runs have, one a line."""

    names = forms.CharField(
        required=False,
        label="Fields",
        help_text="One name a line, for example: Year, Index, Submitted by.",
        widget=forms.Textarea(attrs={"rows": 4}),
    )

    def chosen(self) -> list[str]:
        return str(self.cleaned_data["names"]).splitlines()
