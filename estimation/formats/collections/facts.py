"""Fields of ``collection.json``, each declared once: what it must hold, where it comes from, and
what is made of it. That is what it is written by, and what it is read by.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any

import numpy as np

from estimation.core.arrays import FloatArray, frozen, nearest
from estimation.core.inference.looks import Look
from estimation.core.measures.kinds import MAX_GRADE
from estimation.core.measures.table import parse_measure
from estimation.core.sampling.designs import MAX_BATCHES, RULES
from estimation.core.sampling.goals import Goal
from estimation.formats.collections.archive import RefusedError, TooLargeError
from judging.formats.columns import MAX_TOPICS
from judging.formats.jsonl import parse_record
from judging.formats.problems import Problems, id_problem, show, text_problem

MAX_DEPTH = 1_000_000
MAX_RUNS = 1000
_MAX_TEXT = 1000
_OF_GOAL = ("kind", "runs", "against")
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)

Check = Callable[[Any], bool]
Make = Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Field:
    """A field of ``collection.json``.

    Attributes
    ----------
    expected, check : str, function
        What it must hold, in words and as a check.
    dump : function
        Makes JSON of the attribute that the field tells.
    load : function
        Makes the attribute again of JSON that passed the check; ValueError says what is wrong.
    source : str, optional
        The attribute of the collection, with dots if it is one of a part of it, by default of the
        field's name; empty: the collection itself.
    may_be_missing : bool
        Whether the field is left out where the attribute is None, as it is in older files.
    known : tuple of str
        Names that it may hold, if it holds one of several.
    """

    expected: str
    check: Check
    dump: Make = _same
    load: Make = _same
    source: str | None = None
    may_be_missing: bool = False
    known: tuple[str, ...] = ()

    def of(self, source: str) -> "Field":
        """The field of another attribute."""
        return replace(self, source=source)


Fields = Mapping[str, Field]


def within(part: str, fields: Fields) -> Fields:
    """The fields of a part of a collection."""
    return {name: field.of(f"{part}.{field.source or name}") for name, field in fields.items()}


def dumped(told: object, fields: Fields) -> dict[str, Any]:
    """Return what the fields tell of a collection, or of a part of it."""
    found = {}
    for name, field in fields.items():
        source = name if field.source is None else field.source
        value = attrgetter(source)(told) if source else told
        if value is not None or not field.may_be_missing:
            found[name] = field.dump(value)
    return found


def check_fields(
    found: Mapping[str, Any], fields: Fields, problems: Problems, which: str = ""
) -> bool:
    """Record every field that is missing, unknown, or holds something else; tell if all are good.

    `which` comes before the names of the fields in messages.
    """
    before = problems.error_count
    for name in sorted(found.keys() - fields.keys()):
        message = f"expected no such field{nearest(name, fields)}"
        problems.error(None, f"{which}{show(name)}", message)
    for name, field in fields.items():
        if name not in found and field.may_be_missing:
            continue
        if name not in found:
            problems.error(None, f"{which}{name}", f"expected {field.expected}, found nothing")
        elif not field.check(found[name]):
            meant = nearest(found[name], field.known)
            message = f"expected {field.expected}, found {_shown(found[name])}{meant}"
            problems.error(None, f"{which}{name}", message)
    return problems.error_count == before


def loaded(
    found: Mapping[str, Any], fields: Fields, problems: Problems, which: str = ""
) -> dict[str, Any]:
    """Return the attributes that fields tell, by their names; the fields passed `check_fields`.

    What is wrong is recorded, and left out.
    """
    told: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in found:
            told[(field.source or name).rpartition(".")[2]] = None
            continue
        try:
            told[(field.source or name).rpartition(".")[2]] = field.load(found[name])
        except ValueError as error:
            problems.error(None, f"{which}{name}", str(error)[:200])
    return told


def _shown(value: Any) -> str:
    return str(value)[:40] if isinstance(value, int | float) else show(value)


# ------------------------------------------------------------------------------------- json


def object_bytes(found: Mapping[str, Any]) -> bytes:
    """Return fields as JSON, in their order."""
    return f"{json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode()


def read_object(content: bytes, problems: Problems) -> dict[str, Any]:
    """Read a JSON object; RefusedError after recording what is wrong."""
    try:
        record = parse_record(content.decode(), 1, problems)
    except UnicodeDecodeError as error:
        problems.error(None, "", f"expected JSON in UTF-8: {error}")
    else:
        if record is not None:
            return record.values
    raise RefusedError


# ------------------------------------------------------------------------ kinds of fields


def is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT and text_problem(value) is None


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def is_above_zero(value: Any) -> bool:
    return is_number(value) and value > 0


def is_id(value: Any) -> bool:
    return isinstance(value, str) and id_problem(value) is None


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def whole(least: int, most: int) -> Field:
    def check(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return Field(f"a whole number from {least} to {most}", check)


def one_of(*known: str) -> Field:
    return Field(f"one of {', '.join(known)}", lambda value: value in known, known=known)


def real(expected: str, least: float, most: float) -> Field:
    return Field(expected, lambda value: is_number(value) and least <= value <= most)


def optional(field: Field) -> Field:
    return Field(f"null or {field.expected}", lambda value: value is None or field.check(value))


def list_of(
    expected: str, check: Check, least: int, most: int, *, dump: Make = list, load: Make = tuple
) -> Field:
    def is_good(value: Any) -> bool:
        return isinstance(value, list) and least <= len(value) <= most and all(map(check, value))

    return Field(expected, is_good, dump, load)


def steps(expected: str, check: Check) -> Field:
    """What batches add up to; infinity, the constant of a census, is the text "inf"."""
    return list_of(expected, check, 1, MAX_BATCHES, dump=_dump_steps, load=_load_steps)


def _dump_steps(steps: FloatArray) -> list[float | str]:
    return [step if math.isfinite(step) else "inf" for step in steps.tolist()]


def _load_steps(found: list[Any]) -> FloatArray:
    values = np.array([float(step) for step in found])
    if np.any(values[1:] < values[:-1]):
        raise ValueError("expected steps that never fall")
    return frozen(values)


def ascending(names: list[str]) -> tuple[str, ...]:
    """Return names; ValueError for the first that is not above the one before it."""
    for first, second in pairwise(names):
        if first.encode() >= second.encode():
            message = f"expected them to ascend, each once, found {show(second)} after"
            raise ValueError(f"{message} {show(first)}")
    return tuple(names)


def measures(expected: str, least: int) -> Field:
    return list_of(
        expected,
        is_text,
        least,
        100,
        dump=lambda measures: [str(measure) for measure in measures],
        load=lambda texts: tuple(map(parse_measure, texts)),
    )


def _dump_goal(goal: Goal) -> dict[str, Any]:
    if len(goal.all_runs) > MAX_RUNS:
        raise TooLargeError(f"a goal of at most {MAX_RUNS} runs")
    return vars(goal)


def _load_goal(found: Mapping[str, Any]) -> Goal:
    others = sorted(found.keys() - _OF_GOAL)
    if others:
        raise ValueError(f"expected no such field as {show(others[0])}")
    kind, runs, against = (found.get(name) for name in _OF_GOAL)
    tags = [*(runs if isinstance(runs, list) else [None]), *([] if against is None else [against])]
    if not isinstance(kind, str) or not all(map(is_text, tags)) or len(tags) > MAX_RUNS:
        told = f"expected a kind, a list of runs, at most {MAX_RUNS}, and perhaps one against"
        raise ValueError(told)
    return Goal(kind, tuple(runs or ()), against)


def _load_look(found: Mapping[str, Any]) -> Look:
    others = sorted(found.keys() - vars(Look(1, 1)).keys())
    if others:
        raise ValueError(f"expected no such field as {show(others[0])}")
    return Look(found.get("number", 0), found.get("planned", 0))


TEXT = Field("a short text", is_text)
SEED = optional(TEXT)
MEASURE = Field("the name of a measure", is_text, str, parse_measure)
GOAL = Field("an object with kind, runs and against", is_object, _dump_goal, _load_goal)
LOOK = Field("an object with number and planned", is_object, vars, _load_look, may_be_missing=True)
NEGLIGIBLE = Field("a number above 0", is_above_zero, may_be_missing=True)


def _is_step(value: Any) -> bool:
    is_finite = isinstance(value, int | float) and not isinstance(value, bool) and value < math.inf
    return value == "inf" or (is_finite and value > 0)


DESIGN: Fields = {
    "goal": GOAL,
    "measure": MEASURE,
    "reported": measures("a list of names of measures", 0),
    "prior": TEXT,
    "rule": one_of(*RULES),
    "budget": real("a number from 1 to 1e12", 1.0, 1e12),
    "batch_size": real("a number from 1 to 1e12", 1.0, 1e12),
}
"""What a `Design` of pairs was asked for."""
FLOOR = real("a number from 0 to 1", 0.0, 1.0)
STEPS = steps('a list of positive numbers, or "inf"', _is_step)

# -------------------------------------------------------------------- what every kind says


@dataclass(frozen=True, eq=False)
class Facts:
    """What ``collection.json`` of every kind says."""

    version: str
    pool_digest: str
    topics: tuple[str, ...]
    depth: int
    max_grade: int
    look: Look | None
    negligible: float | None


COMMON: Fields = {
    "evalsite": TEXT.of("version"),
    "pool": Field(
        "64 hexadecimal digits", lambda v: isinstance(v, str) and bool(_DIGEST.fullmatch(v))
    ).of("pool_digest"),
    "topics": list_of(f"a list of 1 to {MAX_TOPICS} topics", is_id, 1, MAX_TOPICS, load=ascending),
    "depth": whole(1, MAX_DEPTH),
    "max_grade": whole(1, MAX_GRADE),
    "look": LOOK,
    "negligible": NEGLIGIBLE,
}
"""The fields of `Facts`."""
