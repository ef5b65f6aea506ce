"""From the text of a reply to a grade, or to the reason why there is none.

A document may have told the model what to say. Whatever it said, what comes of it here is one grade
of the scale or none: nothing else of a reply is ever looked at.
"""

import json
import re
from typing import Any

MAX_TEXT = 20_000
THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
FENCED = re.compile(r"\A```(?:json)?\s*(.*?)\s*```\Z", re.DOTALL)
OPEN_THOUGHTS = "<think>"
RANGE = r"(?!\s*(?:[-\u2013\u2014]|or\b|to\b)\s*\d)"
NAMED = re.compile(
    r"""["']?\bgrade\b["']?\s*[:=]\s*["']?(-?\d{1,6}(?:\.\d{1,6})?)(?!\.?\d)""" + RANGE,
    re.IGNORECASE,
)
NUMBER = re.compile(r"-?\d{1,6}(?:\.\d{1,6})?")


def grade_in(text: str, *, max_grade: int) -> tuple[int | None, str]:
    """The grade that a reply gives, and the outcome: ``graded``, ``unparsable``, ``off_scale``.

    A JSON object with a grade, as it is asked for; or the one grade that is named in prose; or a
    number alone. Two different ones are none, nor is what was thought and never said: thoughts that
    do not end were cut off.
    """
    said = THOUGHTS.sub("", text).strip()
    thinking = said.startswith(OPEN_THOUGHTS)
    values = set() if thinking else set(_values(said[:MAX_TEXT]))
    if len(values) != 1:
        return None, "unparsable"
    (value,) = values
    if value != int(value) or not 0 <= value <= max_grade:
        return None, "off_scale"
    return int(value), "graded"


def _values(text: str) -> list[float]:
    fenced = FENCED.match(text)
    body = fenced.group(1) if fenced else text
    if (found := _of_object(body)) is not None:
        return found
    if named := NAMED.findall(body):
        return [float(value) for value in named]
    return [float(body)] if NUMBER.fullmatch(body) else []


def _of_object(text: str) -> list[float] | None:
    """The grades of a JSON object, all that are given for it; None if it is no object."""
    given: list[Any] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        given[:] = [value for name, value in items if name == "grade"]  # of the outermost, the last
        return dict(items)

    try:
        found = json.loads(text, object_pairs_hook=pairs)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    numbers = [_number(value) for value in given]
    return [] if None in numbers else [number for number in numbers if number is not None]


def _number(value: Any) -> float | None:
    """A number, in quotes as well; a number that no float holds is none."""
    if isinstance(value, str) and NUMBER.fullmatch(value.strip()):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e6 else None
