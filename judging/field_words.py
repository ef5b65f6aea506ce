"""What fields of forms say of a wrong value: what was expected, in the words of the product.

Every form is made of Django's fields, whose own wordings speak of values and of limits. These
stand in their place, once for all forms; a field that says it better has `error_messages`.
"""

from collections.abc import Mapping

from django import forms

CHOICE = "Expected one of the choices, found “%(value)s”."
WORDS: Mapping[type[forms.Field], Mapping[str, str]] = {
    forms.Field: {
        "required": "This is needed.",
        "min_value": "Expected %(limit_value)s or more.",
        "max_value": "Expected %(limit_value)s or less.",
        "min_length": "Expected at least %(limit_value)s characters, found %(show_value)s.",
        "max_length": "Expected at most %(limit_value)s characters, found %(show_value)s.",
        "null_characters_not_allowed": "Expected text without NUL characters.",
    },
    forms.IntegerField: {"invalid": "Expected a whole number."},
    forms.FloatField: {"invalid": "Expected a number."},
    forms.DecimalField: {
        "invalid": "Expected a number.",
        "max_digits": "Expected at most %(max)s digits.",
        "max_decimal_places": "Expected at most %(max)s digits after the point.",
        "max_whole_digits": "Expected at most %(max)s digits before the point.",
    },
    forms.DateField: {"invalid": "Expected a date, such as 2026-05-01."},
    forms.DateTimeField: {"invalid": "Expected a date and a time, such as 2026-05-01 14:30."},
    forms.SlugField: {"invalid": "Expected letters, digits, hyphens and underscores only."},
    forms.ChoiceField: {"invalid_choice": CHOICE},
    forms.MultipleChoiceField: {"invalid_choice": CHOICE, "invalid_list": "Expected a list."},
    forms.ModelMultipleChoiceField: {
        "invalid_choice": CHOICE,
        "invalid_list": "Expected a list.",
        "invalid_pk_value": "Expected one of the choices, found “%(pk)s”.",
    },
    forms.FileField: {
        "required": "Choose a file.",
        "missing": "Choose a file.",
        "invalid": "Choose a file.",
        "empty": "The file is empty.",
        "max_length": "Expected a file name of at most %(max)d characters, found %(length)d.",
    },
}


def put_in_place() -> None:
    """Makes them what Django's fields say by default."""
    for kind, words in WORDS.items():
        kind.default_error_messages = {**vars(kind).get("default_error_messages", {}), **words}
