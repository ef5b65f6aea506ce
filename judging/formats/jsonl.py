"""JSON lines: one object on each line, read strictly."""

import json
from collections import Counter
from typing import Any, NoReturn

from judging.formats.problems import Problems, show

_MAX_DIGITS = 30


class JsonRecord:
    """One line's object; values are taken by the first of several names that is there."""

    def __init__(self, values: dict[str, Any], line: int, problems: Problems) -> None:
        self.values, self.line, self.problems = values, line, problems

    def identifier(self, names: tuple[str, ...], field: str) -> str | None:
        """Return an id given as text or whole number, or None after reporting its absence."""
        value = self._first(names)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if isinstance(value, str):
            return value
        wanted = f"expected text or a whole number under {_listed(names)}"
        found = "nothing" if value is None else show(value)
        self.problems.error(self.line, field, f"{wanted}, found {found}")
        return None

    def string(self, names: tuple[str, ...], field: str) -> str | None:
        """Return a text, empty when absent, or None after reporting that it is no text."""
        value = self._first(names)
        if value is None or isinstance(value, str):
            return value or ""
        self.problems.error(self.line, field, f"expected text, found {show(value)}")
        return None

    def _first(self, names: tuple[str, ...]) -> Any:
        return next(
            (self.values[name] for name in names if self.values.get(name) is not None), None
        )


def parse_record(text: str, line: int, problems: Problems) -> JsonRecord | None:
    """Return the object of a line, or of the lines from one on; None after reporting why not."""
    try:
        values = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        at = line + error.lineno - 1
        problems.error(at, "", f"expected a JSON object: {error.msg} at column {error.colno}")
    except ValueError as error:
        problems.error(line, "", f"expected a JSON object: {error}")
    except RecursionError:
        problems.error(line, "", "expected a JSON object, found one nested too deeply")
    else:
        if isinstance(values, dict):
            return JsonRecord(values, line, problems)
        problems.error(line, "", "expected a JSON object, found another JSON value")
    return None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise ValueError(f"the key {show(twice)} is there twice")
    return values


def _whole(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique, parse_int=_whole, parse_constant=_no_constant
)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f'"{name}"' for name in names)
