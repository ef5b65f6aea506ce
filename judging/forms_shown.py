"""Forms that say what they showed, so that only what was changed in them is saved.

Two people may have the same form open, or one in two tabs. What somebody has not touched is not
what he wants, but what was there when he opened the page.
"""

import json
from typing import Any

from django import forms

SHOWN = "shown"


class ShownForm(forms.Form):
    """Templates put ``shown`` into a hidden field of this name."""

    @property
    def shown(self) -> str:
        """What the page showed before anything was typed."""
        if self.is_bound:
            return str(self.data.get(SHOWN, ""))
        return json.dumps(self.at_first())

    @property
    def saved(self) -> str:
        """What a page shows from now on that stays as it is while its form is saved."""
        return json.dumps(self.cleaned_data)

    def at_first(self) -> dict[str, Any]:
        fields = self.fields.items()
        return {name: self.get_initial_for_field(field, name) for name, field in fields}

    def touched(self) -> set[str]:
        """The fields that are not as they were shown; all of them, if nobody says what was."""
        before = self.before()
        if before is None:
            return set(self.fields)
        return {
            name
            for name, field in self.fields.items()
            if not field.disabled
            and _typed(field, before.get(name)) != _typed(field, self[name].data)
        }

    def others(self) -> set[str]:
        """The fields that somebody else has changed since they were shown."""
        before, now = self.before(), self.at_first()
        return {name for name in now if before and name in before and before[name] != now[name]}

    def before(self) -> dict[str, Any] | None:
        """What the page showed, as it says itself."""
        try:
            before = json.loads(self.data.get(SHOWN, ""))
        except (ValueError, RecursionError):
            return None
        return before if isinstance(before, dict) else None


def _typed(field: forms.Field, value: Any) -> Any:
    """The value as the field understands it, however browsers write the ends of lines."""
    try:
        value = field.to_python(value)
    except forms.ValidationError:
        return value
    return "\n".join(value.splitlines()) if isinstance(value, str) else value
