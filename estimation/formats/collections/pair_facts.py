"""``collection.json`` of pairs that were drawn, checked field by field."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from estimation.core.arrays import FloatArray
from estimation.core.collection import JudgedCollection
from estimation.core.designs import MAX_BATCHES, METHODS, RULES, WITH_REPLACEMENT
from estimation.formats.collections import facts as common
from estimation.formats.collections.facts import Field
from judging.formats.problems import Problems

FORMAT = "evalsite-collection-1"
MAX_DRAWS = 10_000_000


def _is_step(value: Any) -> bool:
    return value == "inf" or (common.is_number(value) and value > 0)


_FIELDS: Mapping[str, Field] = {
    "format": common.one_of(FORMAT),
    **common.COMMON,
    "method": common.one_of(*METHODS),
    "steps": common.list_of('a list of positive numbers, or "inf"', _is_step, 1, MAX_BATCHES),
    "goal": common.GOAL,
    "measure": common.MEASURE,
    "reported": common.MEASURES,
    "prior": common.TEXT,
    "rule": common.one_of(*RULES),
    "budget": common.real("a number from 1 to 1e12", 1.0, 1e12),
    "batch_size": common.real("a number from 1 to 1e12", 1.0, 1e12),
    "eps": common.real("a number of at least 0", 0.0, math.inf),
    "floor": common.real("a number from 0 to 1", 0.0, 1.0),
}
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
    return common.fields_bytes(facts, _FIELDS)


def read_facts(found: Mapping[str, Any], problems: Problems) -> Facts | None:
    """Check the facts, or return None after recording what is wrong with them."""
    common.check_fields(found, _FIELDS, problems)
    if problems.ok:
        _check_steps(found, problems)
    if not problems.ok:
        return None
    goal = common.read_goal(found["goal"], problems)
    measures = [
        common.read_measure(text, name, problems)
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


def _check_steps(found: Mapping[str, Any], problems: Problems) -> None:
    steps, method = [float(step) for step in found["steps"]], found["method"]
    if any(after < before for before, after in pairwise(steps)):
        problems.error(None, "steps", "expected steps that never fall")
    if method in WITH_REPLACEMENT and not all(
        step.is_integer() and step <= MAX_DRAWS for step in steps
    ):
        wanted = f"expected whole numbers of draws up to {MAX_DRAWS} for {method}"
        problems.error(None, "steps", wanted)
