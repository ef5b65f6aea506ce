"""``collection.json`` of pairs that were drawn, checked field by field."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from estimation.core.arrays import FloatArray
from estimation.core.collections.base import RoundCollection
from estimation.core.rounds.rounds import PairRound
from estimation.core.sampling.designs import MAX_BATCHES, METHODS, RULES
from estimation.core.sampling.methods import draws_again
from estimation.formats.collections import facts as common
from estimation.formats.collections.archive import TooLargeError
from estimation.formats.collections.facts import Field, Fields
from judging.formats.problems import Problems

FORMAT, OF_PREFERENCES = "evalsite-pair-collection-2", "evalsite-preference-collection-1"
MAX_ROUNDS = 1000
MAX_PREFERENCE_DEPTH = 200
"""A list so deep has 19,900 pairs of documents."""
MAX_DRAWS = 10_000_000


def _is_step(value: Any) -> bool:
    return value == "inf" or (common.is_number(value) and value > 0)


_FIELDS: Fields = {
    "format": common.one_of(FORMAT, OF_PREFERENCES),
    **common.COMMON,
    "rounds": common.list_of(
        f"a list of 1 to {MAX_ROUNDS} objects", lambda v: isinstance(v, dict), 1, MAX_ROUNDS
    ),
}
_OF_ROUND: Mapping[str, Field] = {
    "method": common.one_of(*METHODS),
    "steps": common.list_of('a list of positive numbers, or "inf"', _is_step, 1, MAX_BATCHES),
    "numbers": common.whole(1, MAX_ROUNDS),
    "seed": common.SEED,
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
class RoundFacts:
    """What ``collection.json`` says of a round; `design` are arguments of a `Design`."""

    numbers: str
    seed: str | None
    steps: FloatArray
    design: Mapping[str, Any]

    @property
    def with_replacement(self) -> bool:
        """Whether a pair can be drawn more than once."""
        return draws_again(self.design["method"])


@dataclass(frozen=True, eq=False)
class PairFacts(common.Facts):
    """What ``collection.json`` says."""

    of_preferences: bool
    rounds: tuple[RoundFacts, ...]


def facts_bytes(collection: RoundCollection) -> bytes:
    """Return the facts as JSON; infinity, the constant of a census, is the text "inf".

    Raises
    ------
    TooLargeError
        If no reader would take such deep lists or so many runs.
    """
    if collection.is_of_preferences and collection.depth > MAX_PREFERENCE_DEPTH:
        raise TooLargeError(f"pairs of documents down to a depth of at most {MAX_PREFERENCE_DEPTH}")
    rounds = zip(collection.parts, collection.seeds, strict=True)
    facts = common.common_facts(collection) | {
        "format": OF_PREFERENCES if collection.is_of_preferences else FORMAT,
        "rounds": [_of_round(part, seed) for part, seed in rounds],
    }
    return common.fields_bytes(facts, _FIELDS)


def _of_round(part: PairRound, seed: str | None) -> dict[str, Any]:
    design = part.design
    facts = {name: getattr(design, name) for name in _OF_DESIGN} | {
        "steps": [step if math.isfinite(step) else "inf" for step in design.steps.tolist()],
        "numbers": int(part.numbers),
        "seed": seed,
        "goal": common.goal_facts(design.goal),
        "measure": str(design.measure),
        "reported": [str(measure) for measure in design.reported],
    }
    return {name: facts[name] for name in _OF_ROUND}


def read_facts(found: Mapping[str, Any], problems: Problems) -> PairFacts | None:
    """Check the facts, or return None after recording what is wrong with them."""
    common.check_fields(found, _FIELDS, problems)
    if not problems.ok:
        return None
    every = common.read_common(found, problems)
    read = [
        _read_round(each, f"round {number}: ", found["pool"], problems)
        for number, each in enumerate(found["rounds"], start=1)
    ]
    if not problems.ok:
        return None
    rounds = tuple(each for each in read if each is not None)
    of_preferences = found["format"] == OF_PREFERENCES
    _check_kind(every["depth"], rounds, of_preferences, problems)
    return PairFacts(**every, of_preferences=of_preferences, rounds=rounds) if problems.ok else None


def _check_kind(
    depth: int, rounds: Sequence[RoundFacts], of_preferences: bool, problems: Problems
) -> None:
    """Measures are of what the format says, and lists of preferences are not too deep."""
    if of_preferences and not 2 <= depth <= MAX_PREFERENCE_DEPTH:
        wanted = f"a whole number from 2 to {MAX_PREFERENCE_DEPTH} for preferences"
        problems.error(None, "depth", f"expected {wanted}, found {depth}")
    for number, each in enumerate(rounds, start=1):
        for measure in (each.design["measure"], *each.design["reported"]):
            if (measure.family == "preference") != of_preferences:
                wanted = "preferences" if of_preferences else "documents"
                message = f"expected a measure of {wanted}, which the format says, found {measure}"
                problems.error(None, f"round {number}: measure", message)


def _read_round(
    found: Mapping[str, Any], which: str, pool_digest: str, problems: Problems
) -> RoundFacts | None:
    before = problems.error_count
    common.check_fields(found, _OF_ROUND, problems, which)
    if problems.error_count > before:
        return None
    _check_steps(found, which, problems)
    goal = common.read_goal(found["goal"], problems, f"{which}goal")
    measures = [
        common.read_measure(text, f"{which}{name}", problems)
        for name, texts in (("measure", [found["measure"]]), ("reported", found["reported"]))
        for text in texts
    ]
    design = {name: found[name] for name in _OF_DESIGN} | {"pool_digest": pool_digest}
    return RoundFacts(
        numbers=str(found["numbers"]),
        seed=found["seed"],
        steps=np.array([float(step) for step in found["steps"]]),
        design=design | {"goal": goal, "measure": measures[0], "reported": tuple(measures[1:])},
    )


def _check_steps(found: Mapping[str, Any], which: str, problems: Problems) -> None:
    steps, method = [float(step) for step in found["steps"]], found["method"]
    if any(after < before for before, after in pairwise(steps)):
        problems.error(None, f"{which}steps", "expected steps that never fall")
    if draws_again(method) and not all(step.is_integer() and step <= MAX_DRAWS for step in steps):
        wanted = f"expected whole numbers of draws up to {MAX_DRAWS} for {method}"
        problems.error(None, f"{which}steps", wanted)
