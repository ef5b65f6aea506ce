"""What can be declared of an option of a round, and what follows from it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import Field, dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

from django.db.models import QuerySet, TextChoices

from estimation.core.sampling import methods
from estimation.core.sampling.methods import SAMPLING_METHODS, SamplingMethod
from estimation.models import Round
from judging.models import Campaign

REQUIRED: Any = object()
"""The default of an option that has none."""
Kind: TypeAlias = Literal[
    "choice", "named", "several", "flag", "whole", "number", "measures", "text"
]
PLAIN: Mapping[Any, Kind] = {
    bool: "flag", int: "whole", int | None: "whole", float: "number", list[str]: "measures",
    str: "text",
}  # fmt: skip


class NamedRows(NamedTuple):
    """Rows of a campaign that can be chosen by what stands in their column ``key``."""

    key: str
    rows: Callable[[Campaign], QuerySet[Any]]


@dataclass(frozen=True)
class Option:
    """One option of a round: its words, what is allowed, and where it stands on the page.

    Its `kind` follows from the type of its field, and it may be left out if it has a ``default``. A
    new option needs no more than that, ``label`` and ``help``.

    ``label``, ``help``: over and under the field of the form; ``initial``: with what it starts, if
    not with the default; ``attrs``: of its HTML; ``required``: it cannot be left empty there;
    ``wide``: it takes a whole line; ``only``: shown only where `static/css/charts.css` says so of
    this name, by default if the method has what it ``needs``.

    ``asked``, ``answered``: what the REST interface says of it in bodies and in answers.

    ``choices``, and which of them a method has (``of_method``); ``empty``: what no choice means.
    ``named``: the rows of the campaign that can be chosen; a list of them is a column of names.
    ``least``, ``most``, ``longest``: bounds; ``expected``: what they are, in a sentence, without
    which the service finds them itself.

    ``needs``: what a method must have for it, in the words of the table of methods; ``refusal``:
    what is said if it has not, or has not this choice, with {method} and {methods}. Without, a
    choice that needs something has no effect.

    ``fact``: whether the facts of a design have a line of it, where it is not the default.
    """

    label: str = ""
    help: str = ""
    default: Any = REQUIRED
    initial: Any = None
    attrs: Mapping[str, str] = field(default_factory=dict)
    required: bool = False
    wide: bool = True
    only: str = ""
    asked: str = ""
    answered: str = ""
    choices: type[TextChoices] | None = None
    of_method: Callable[[SamplingMethod], Sequence[str]] | None = None
    empty: str = ""
    named: NamedRows | None = None
    least: int | None = None
    most: int | None = None
    longest: int | None = None
    expected: str = ""
    needs: methods.Option | None = None
    refusal: str = ""
    fact: bool = False
    name: str = ""
    kind: Kind = "text"

    @property
    def labels(self) -> list[tuple[str, str]]:
        """What can be chosen, with its words."""
        return list(self.choices.choices) if self.choices is not None else []

    @property
    def key(self) -> str:
        """By which of their columns rows are named."""
        return self.named.key if self.named is not None else ""

    @property
    def classes(self) -> str:
        """Of the element around its field."""
        only = self.only or self.needs
        return " ".join(filter(None, (f"only-{only} field" if only else "", "wide" * self.wide)))

    def fault(self, value: Any, *, method: str) -> str:
        """What is wrong with a value, whatever the other options say, the method apart."""
        none = [""] if self.empty else []
        if self.choices is not None and value not in [*none, *self.values(method)]:
            able = tuple(name for name in SAMPLING_METHODS if value in self.values(name))
            return self._refused(method, able) if able else self._expected_choice(method)
        if self.expected and value is not None and not self._in_bounds(value):
            return self.expected
        if self.refusal and value != self.default and self.needs:
            able = methods.with_option(self.needs)
            if method not in able:
                return self._refused(method, able)
        return ""

    def _refused(self, method: str, able: Iterable[str]) -> str:
        """What is said of a value that other methods have."""
        if not self.refusal:
            return self._expected_choice(method)
        return self.refusal.format(method=label_of(method), methods=labels_of(able))

    def values(self, method: str) -> Sequence[str]:
        """What can be chosen with a method."""
        if self.of_method is not None:
            return self.of_method(SAMPLING_METHODS[method])
        return [value for value, _ in self.labels]

    def _expected_choice(self, method: str) -> str:
        ending = f", with the method {label_of(method)}." if self.of_method else "."
        ending = ", or nothing for the method's own." if self.empty else ending
        return one_of(self.values(method))[:-1] + ending

    def _in_bounds(self, value: Any) -> bool:
        if isinstance(value, str):
            return len(value) <= (self.longest or 0) and (not value or value.isprintable())
        above = self.least is None or value >= self.least
        return above and math.isfinite(value) and (self.most is None or value <= self.most)


def label_of(method: str) -> str:
    return f"“{Round.Method(method).label}”"


def labels_of(chosen: Iterable[str]) -> str:
    return ", ".join(map(label_of, chosen))


def having(needs: methods.Option, *, last: str = "and") -> str:
    """The names of the methods that have an option, as a sentence lists them."""
    *names, end = methods.with_option(needs)
    return f"{', '.join(names)} {last} {end}" if names else end


def one_of(values: Sequence[str]) -> str:
    return f"Expected {'one of ' if len(values) > 1 else ''}{', '.join(values)}."


def option(label: str = "", **declared: Any) -> Any:
    """The field of a dataclass that an `Option` stands for."""
    made = Option(label, **declared)
    if made.default is REQUIRED:
        return field(metadata={"option": made})
    return field(default_factory=partial(copy, made.default), metadata={"option": made})


def declared(found: Field[Any]) -> Option:
    """The option of a field, with what follows from its name and its type."""
    given: Option = found.metadata["option"]
    of_rows: Kind = "several" if found.type == list[str] else "named"
    kind: Kind = "choice" if given.choices else of_rows if given.named else PLAIN[found.type]
    bounded = kind == "whole" and given.most is not None
    return replace(
        given,
        name=found.name,
        label=given.label or found.name.replace("_", " ").capitalize(),
        kind=kind,
        expected=f"Expected {given.least} to {given.most:,}." if bounded else given.expected,
    )
