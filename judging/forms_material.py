"""The form that takes files of a campaign's material."""

from typing import Any, cast

from django import forms
from django.core.files.uploadedfile import UploadedFile

from judging.models import Upload

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
    check_only = forms.BooleanField(
        required=False,
        label="Check only",
        help_text="Reads the files and says what is wrong, without taking them in.",
    )

    def chosen(self) -> "list[tuple[UploadedFile[bytes], str | None]]":
        """Every file with its kind; None where it shall be guessed."""
        files = cast("list[UploadedFile[bytes]]", self.cleaned_data["given"])
        each = self.data.getlist("kinds") if hasattr(self.data, "getlist") else []
        kinds = each if len(each) == len(files) else [self.cleaned_data["kind"]] * len(files)
        known = set(Upload.Kind.values)
        return [
            (file, kind if kind in known else None) for file, kind in zip(files, kinds, strict=True)
        ]
