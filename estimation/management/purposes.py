"""What a judged collection was drawn for, and so what it can be expected to tell."""

import numpy as np

from estimation.core.collections.base import RoundCollection
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.results import MeasureResult
from estimation.core.rounds.rounds import TopicRound
from estimation.core.sampling.goals import Goal, absolute
from estimation.unknown import Purpose, enough_relevant


def purpose_of(collection: RoundCollection, result: MeasureResult) -> Purpose:
    """The purpose, with regard to a measure; runs that the goal did not know joined later."""
    goal, found = _goal(collection), result.relevant_found
    named = goal.kind in ("single", "pair")
    baseline = goal.runs[1] if goal.kind == "pair" else goal.against
    return Purpose(
        goal=goal.kind,
        measure=result.measure,
        run=goal.runs[0] if named else "",
        baseline=baseline or "",
        late=() if named else frozenset(result.runs) - set(goal.all_runs),
        relevant_found=None if found is None else float(np.median(found)),
        enough=enough_relevant(result.measure, method=collection.drawn.method),
    )


def _goal(collection: RoundCollection) -> Goal:
    if collection.parts:
        return collection.parts[-1].design.goal
    if isinstance(collection.drawn, TopicRound | AdaptiveRound):
        return collection.drawn.design.goal
    return absolute(*collection.pool.runs)  # an active round has no goal but the values of its runs
