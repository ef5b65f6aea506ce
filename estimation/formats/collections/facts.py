"""Fields of ``collection.json``: what each must hold, in words and as a check."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypedDict

from estimation.core.collections.base import Collection
from estimation.core.measures.kinds import MAX_GRADE, MeasureError
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.sampling.goals import Goal, GoalError
from estimation.formats.collections.archive import TooLargeError
from estimation.formats.columns import MAX_TOPICS
from judging.formats.problems import Problems, id_problem, show, text_problem

MAX_DEPTH = 1_000_000
MAX_RUNS = 1000
_MAX_TEXT = 1000
_OF_GOAL = ("kind", "runs", "against")
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class Field:
    """What a field must hold, in words and as a check."""

    expected: str
    check: Callable[[Any], bool]


Fields = Mapping[str, Field]


def is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT and text_problem(value) is None


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def whole(least: int, most: int) -> Field:
    def check(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return Field(f"a whole number from {least} to {most}", check)


def one_of(*known: str) -> Field:
    return Field(f"one of {', '.join(known)}", lambda value: value in known)


def real(expected: str, least: float, most: float) -> Field:
    return Field(expected, lambda value: is_number(value) and least <= value <= most)


def list_of(expected: str, check: Callable[[Any], bool], least: int, most: int) -> Field:
    def is_good(value: Any) -> bool:
        return isinstance(value, list) and least <= len(value) <= most and all(map(check, value))

    return Field(expected, is_good)


def _is_topic(value: Any) -> bool:
    return isinstance(value, str) and id_problem(value, "topic") is None


TEXT = Field("a short text", is_text)
MEASURE = Field("the name of a measure", is_text)
MEASURES = list_of("a list of names of measures", is_text, 0, 100)
GOAL = Field("an object with kind, runs and against", lambda value: isinstance(value, dict))

SEED = Field("null or a short text", lambda value: value is None or is_text(value))

COMMON: Fields = {
    "evalsite": TEXT,
    "pool": Field(
        "64 hexadecimal digits", lambda v: isinstance(v, str) and bool(_DIGEST.fullmatch(v))
    ),
    "topics": list_of(f"a list of 1 to {MAX_TOPICS} topics", _is_topic, 1, MAX_TOPICS),
    "depth": whole(1, MAX_DEPTH),
    "max_grade": whole(1, MAX_GRADE),
}
"""What every kind of collection says."""


@dataclass(frozen=True, eq=False)
class Facts:
    """What ``collection.json`` of every kind says."""

    version: str
    pool: str
    topics: tuple[str, ...]
    depth: int
    max_grade: int


class Common(TypedDict):
    """The fields of `Facts`."""

    version: str
    pool: str
    topics: tuple[str, ...]
    depth: int
    max_grade: int


def common_facts(collection: Collection) -> dict[str, Any]:
    """Return the fields that every kind has."""
    return {
        "evalsite": collection.version,
        "pool": collection.pool_digest,
        "topics": collection.topics,
        "depth": collection.depth,
        "max_grade": collection.max_grade,
    }


def read_common(found: Mapping[str, Any], problems: Problems) -> Common:
    """Return the fields that every kind has, which are as `COMMON` says."""
    check_ascending(found["topics"], "topics", problems)
    return {
        "version": found["evalsite"],
        "pool": found["pool"],
        "topics": tuple(found["topics"]),
        "depth": found["depth"],
        "max_grade": found["max_grade"],
    }


def check_ascending(names: Sequence[str], field: str, problems: Problems) -> None:
    """Record the first name that is not above the one before it."""
    for first, second in pairwise(names):
        if first.encode() >= second.encode():
            message = f"expected them to ascend, each once, found {show(second)} after"
            problems.error(None, field, f"{message} {show(first)}")
            return


def fields_bytes(facts: Mapping[str, Any], fields: Fields) -> bytes:
    """Return the fields as JSON, in their order."""
    ordered = {name: facts[name] for name in fields}
    text = json.dumps(ordered, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def read_object(content: bytes, problems: Problems) -> dict[str, Any] | None:
    """Read a JSON object, or return None after recording what is wrong."""
    try:
        found = json.loads(
            content.decode(), object_pairs_hook=_without_repeats, parse_constant=_refused
        )
    except json.JSONDecodeError as error:
        problems.error(error.lineno, "", f"expected JSON: {error.msg}")
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        problems.error(None, "", f"expected JSON in UTF-8: {reason[:200]}")
    else:
        if isinstance(found, dict):
            return found
        problems.error(None, "", "expected a JSON object")
    return None


def check_fields(
    found: Mapping[str, Any], fields: Fields, problems: Problems, which: str = ""
) -> None:
    """Record every field that is missing, unknown, or holds something else.

    `which` comes before the names of the fields in messages.
    """
    for name in sorted(found.keys() - fields.keys()):
        problems.error(None, f"{which}{show(name)}", "expected no such field")
    for name, field in fields.items():
        if name not in found:
            problems.error(None, f"{which}{name}", f"expected {field.expected}, found nothing")
        elif not field.check(found[name]):
            message = f"expected {field.expected}, found {_shown(found[name])}"
            problems.error(None, f"{which}{name}", message)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field is there twice")
    return found


def _refused(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def _shown(value: Any) -> str:
    return str(value)[:40] if isinstance(value, int | float) else show(value)


def goal_facts(goal: Goal) -> dict[str, Any]:
    """Return the fields of a goal; TooLargeError for more runs than a reader would take."""
    if len(goal.all_runs) > MAX_RUNS:
        raise TooLargeError(f"a goal of at most {MAX_RUNS} runs")
    return vars(goal)


def read_goal(found: Mapping[str, Any], problems: Problems, field: str = "goal") -> Goal | None:
    """Read a goal, or return None after recording what is wrong."""
    for name in sorted(found.keys() - _OF_GOAL):
        problems.error(None, f"{field}: {show(name)}", "expected no such field")
    kind, runs, against = (found.get(name) for name in _OF_GOAL)
    tags = [*(runs if isinstance(runs, list) else [None]), *([] if against is None else [against])]
    if not isinstance(kind, str) or not all(map(is_text, tags)) or len(tags) > MAX_RUNS:
        told = f"expected a kind, a list of runs, at most {MAX_RUNS}, and perhaps one against"
        problems.error(None, field, told)
        return None
    try:
        return Goal(kind, tuple(runs or ()), against)
    except GoalError as error:
        problems.error(None, field, str(error)[:200])
        return None


def read_measure(text: str, field: str, problems: Problems) -> Measure | None:
    """Read the name of a measure, or return None after recording what is wrong."""
    try:
        return parse_measure(text)
    except MeasureError as error:
        problems.error(None, field, str(error)[:200])
        return None
