"""``collection.json``: the facts of a judged collection, checked field by field."""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from estimation.core.arrays import FloatArray
from estimation.core.collection import JudgedCollection
from estimation.core.designs import MAX_BATCHES, METHODS, RULES, WITH_REPLACEMENT
from estimation.core.goals import Goal, GoalError
from estimation.core.measures import MAX_GRADE, Measure, MeasureError, parse_measure
from estimation.formats.columns import MAX_TOPICS
from judging.formats.problems import Problems, id_problem, show, text_problem

FORMAT = "evalsite-collection-1"
MAX_DEPTH = 1_000_000
MAX_DRAWS = 10_000_000
_MAX_TEXT = 1000
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True)
class _Field:
    """What a field must hold, in words and as a check."""

    expected: str
    check: Callable[[Any], bool]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _MAX_TEXT and text_problem(value) is None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e15


def _whole(least: int, most: int) -> _Field:
    def check(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

    return _Field(f"a whole number from {least} to {most}", check)


def _one_of(*known: str) -> _Field:
    return _Field(f"one of {', '.join(known)}", lambda value: value in known)


def _real(expected: str, least: float, most: float) -> _Field:
    return _Field(expected, lambda value: _is_number(value) and least <= value <= most)


def _list_of(expected: str, check: Callable[[Any], bool], least: int, most: int) -> _Field:
    def is_good(value: Any) -> bool:
        return isinstance(value, list) and least <= len(value) <= most and all(map(check, value))

    return _Field(expected, is_good)


def _is_topic(value: Any) -> bool:
    return isinstance(value, str) and id_problem(value, "topic") is None


def _is_step(value: Any) -> bool:
    return value == "inf" or (_is_number(value) and value > 0)


_FIELDS: Mapping[str, _Field] = {
    "format": _one_of(FORMAT),
    "evalsite": _Field("a short text", _is_text),
    "pool": _Field(
        "64 hexadecimal digits", lambda v: isinstance(v, str) and bool(_DIGEST.fullmatch(v))
    ),
    "seed": _Field("null or a short text", lambda v: v is None or _is_text(v)),
    "topics": _list_of(f"a list of 1 to {MAX_TOPICS} topics", _is_topic, 1, MAX_TOPICS),
    "depth": _whole(1, MAX_DEPTH),
    "max_grade": _whole(1, MAX_GRADE),
    "method": _one_of(*METHODS),
    "steps": _list_of('a list of positive numbers, or "inf"', _is_step, 1, MAX_BATCHES),
    "goal": _Field("an object with kind, runs and against", lambda v: isinstance(v, dict)),
    "measure": _Field("the name of a measure", _is_text),
    "reported": _list_of("a list of names of measures", _is_text, 0, 100),
    "prior": _Field("a short text", _is_text),
    "rule": _one_of(*RULES),
    "budget": _real("a number from 1 to 1e12", 1.0, 1e12),
    "batch_size": _real("a number from 1 to 1e12", 1.0, 1e12),
    "eps": _real("a number of at least 0", 0.0, math.inf),
    "floor": _real("a number from 0 to 1", 0.0, 1.0),
}  # fmt: skip
_OF_DESIGN = ("method", "prior", "rule", "budget", "batch_size", "eps", "floor")


@dataclass(frozen=True, eq=False)
class Facts:
    """What ``collection.json`` says; `design` are arguments of a `Design`."""

    version: str
    seed: str | None
    topics: tuple[str, ...]
    depth: int
    max_grade: int
    steps: FloatArray
    design: Mapping[str, Any]


def facts_bytes(collection: JudgedCollection) -> bytes:
    """Return the facts as JSON; infinity, the constant of a census, is the text "inf"."""
    design = collection.design
    steps = design.steps.tolist()
    facts = {
        "format": FORMAT,
        "evalsite": collection.version,
        "pool": design.pool_digest,
        "seed": collection.seed,
        "max_grade": collection.max_grade,
        "depth": collection.depth,
        "steps": [step if math.isfinite(step) else "inf" for step in steps],
        "goal": vars(design.goal),
        "measure": str(design.measure),
        "reported": [str(measure) for measure in design.reported],
        "topics": collection.topics,
    }
    facts |= {name: getattr(design, name) for name in _OF_DESIGN}
    ordered = {name: facts[name] for name in _FIELDS}
    text = json.dumps(ordered, indent=1, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def read_facts(content: bytes, problems: Problems) -> Facts | None:
    """Read the facts, or return None after recording what is wrong with them."""
    found = _object(content, problems)
    if found is None:
        return None
    for name in sorted(found.keys() - _FIELDS.keys()):
        problems.error(None, show(name), "expected no such field")
    for name, field in _FIELDS.items():
        if name not in found:
            problems.error(None, name, f"expected {field.expected}, found nothing")
        elif not field.check(found[name]):
            problems.error(None, name, f"expected {field.expected}, found {_shown(found[name])}")
    if problems.ok:
        _check_steps(found, problems)
    if not problems.ok:
        return None
    goal = _goal(found["goal"], problems)
    measures = [
        _measure(text, name, problems)
        for name, texts in (("measure", [found["measure"]]), ("reported", found["reported"]))
        for text in texts
    ]
    if not problems.ok:
        return None
    design = {name: found[name] for name in _OF_DESIGN}
    design |= {"goal": goal, "measure": measures[0], "reported": tuple(measures[1:])}
    return Facts(
        version=found["evalsite"],
        seed=found["seed"],
        topics=tuple(found["topics"]),
        depth=found["depth"],
        max_grade=found["max_grade"],
        steps=np.array([float(step) for step in found["steps"]]),
        design=design | {"pool_digest": found["pool"]},
    )


def _object(content: bytes, problems: Problems) -> dict[str, Any] | None:
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


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a field is there twice")
    return found


def _refused(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


def _shown(value: Any) -> str:
    return str(value)[:40] if isinstance(value, int | float) else show(value)


def _check_steps(found: Mapping[str, Any], problems: Problems) -> None:
    steps, method = [float(step) for step in found["steps"]], found["method"]
    if any(after < before for before, after in pairwise(steps)):
        problems.error(None, "steps", "expected steps that never fall")
    if method in WITH_REPLACEMENT and not all(
        step.is_integer() and step <= MAX_DRAWS for step in steps
    ):
        wanted = f"expected whole numbers of draws up to {MAX_DRAWS} for {method}"
        problems.error(None, "steps", wanted)


def _goal(found: Mapping[str, Any], problems: Problems) -> Goal | None:
    kind, runs, against = (found.get(name) for name in ("kind", "runs", "against"))
    tags = [*(runs if isinstance(runs, list) else [None]), *([] if against is None else [against])]
    if not isinstance(kind, str) or not all(map(_is_text, tags)) or len(tags) > MAX_TOPICS:
        problems.error(None, "goal", "expected a kind, a list of runs and perhaps one against")
        return None
    try:
        return Goal(kind, tuple(runs or ()), against)
    except GoalError as error:
        problems.error(None, "goal", str(error)[:200])
        return None


def _measure(text: str, field: str, problems: Problems) -> Measure | None:
    try:
        return parse_measure(text)
    except MeasureError as error:
        problems.error(None, field, str(error)[:200])
        return None
