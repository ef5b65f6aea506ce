"""``collection.json`` of pairs that were drawn, in one round or several."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from estimation.core.collections.base import RoundCollection
from estimation.core.sampling.methods import OF_PAIRS, draws_again
from estimation.formats.collections import facts as common
from estimation.formats.collections.archive import go_on
from estimation.formats.collections.facts import Facts, Fields
from judging.formats.problems import Problems

FORMAT, OF_PREFERENCES = "evalsite-pair-collection-2", "evalsite-preference-collection-1"
MAX_ROUNDS = 1000
MAX_PREFERENCE_DEPTH = 200
"""A list so deep has 19,900 pairs of documents."""
MAX_DRAWS = 10_000_000


@dataclass(frozen=True, eq=False)
class RoundFacts:
    """What ``collection.json`` says of a round; `design` are arguments of a `Design`."""

    numbers: str
    seed: str | None
    design: Mapping[str, Any]

    @property
    def with_replacement(self) -> bool:
        """Whether a pair can be drawn more than once."""
        return draws_again(self.design["method"])


@dataclass(frozen=True, eq=False)
class PairFacts(Facts):
    """What ``collection.json`` says."""

    rounds: tuple[RoundFacts, ...]
    of_preferences: bool


_OF_ROUND: Fields = {
    "method": common.one_of(*OF_PAIRS),
    "steps": common.STEPS,
    "numbers": replace(common.whole(1, MAX_ROUNDS), dump=int, load=str),
    "seed": common.SEED,
    **common.DESIGN,
    "eps": common.real("a number of at least 0", 0.0, math.inf),
    "floor": common.FLOOR,
}


def _dump_rounds(collection: RoundCollection) -> list[dict[str, Any]]:
    rounds = (
        SimpleNamespace(**vars(part.design), numbers=part.numbers, seed=seed)
        for part, seed in zip(collection.parts, collection.seeds, strict=True)
    )
    return [common.dumped(each, _OF_ROUND) for each in rounds]


FIELDS: Fields = {
    **common.COMMON,
    "rounds": common.list_of(
        f"a list of 1 to {MAX_ROUNDS} objects", common.is_object, 1, MAX_ROUNDS, dump=_dump_rounds
    ).of(""),
}


def make_facts(found: Mapping[str, Any], problems: Problems) -> PairFacts:
    """Return the facts; RefusedError if there is an error."""
    told = common.loaded(found, FIELDS, problems)
    of_preferences = found["format"] == OF_PREFERENCES
    depth, most = found["depth"], MAX_PREFERENCE_DEPTH
    if of_preferences and not 2 <= depth <= most:
        wanted = f"a whole number from 2 to {most} for preferences"
        problems.error(None, "depth", f"expected {wanted}, found {depth}")
    rounds = [
        _load_round(each, of_preferences, problems, f"round {number}: ")
        for number, each in enumerate(found["rounds"], start=1)
    ]
    go_on(problems)
    facts = [RoundFacts(each.pop("numbers"), each.pop("seed"), each) for each in rounds]
    return PairFacts(**told | {"rounds": tuple(facts)}, of_preferences=of_preferences)


def _load_round(
    found: Mapping[str, Any], of_preferences: bool, problems: Problems, which: str
) -> dict[str, Any]:
    """Return what is said of a round; its measures must be of what the format says."""
    before = problems.error_count
    if common.check_fields(found, _OF_ROUND, problems, which):
        told = common.loaded(found, _OF_ROUND, problems, which)
    if problems.error_count > before:
        return {}
    steps, method = told["steps"], told["method"]
    if draws_again(method) and np.any((steps != np.floor(steps)) | (steps > MAX_DRAWS)):
        wanted = f"whole numbers of draws up to {MAX_DRAWS} for {method}"
        problems.error(None, f"{which}steps", f"expected {wanted}")
    for measure in (told["measure"], *told["reported"]):
        if (measure.family == "preference") != of_preferences:
            wanted = "preferences" if of_preferences else "documents"
            message = f"expected a measure of {wanted}, which the format says, found {measure}"
            problems.error(None, f"{which}measure", message)
    return told
