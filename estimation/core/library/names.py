"""What texts stand for: measures, goals and priors; and which rounds go together."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..arrays import kind_of, nearest
from ..measures.kinds import MAX_GRADE, MeasureError
from ..measures.table import Measure, parse_measure
from ..rounds.combining import CombiningError
from ..rounds.rounds import PairRound
from ..sampling.goals import KINDS as GOALS
from ..sampling.goals import Goal, GoalError
from ..sampling.methods import SAMPLING_METHODS, estimating, of_pairs_with
from ..sampling.priors import Prior, make_prior

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..data.pool import Pool
    from ..rounds.results import DrawnRound
    from ..sampling.methods import Option


def named_measure(measure: Measure | str) -> Measure:
    """Return the measure that a text names."""
    return measure if isinstance(measure, Measure) else parse_measure(measure)


def named_measures(measures: Iterable[Measure | str] | Measure | str) -> tuple[Measure, ...]:
    """Return the measures that one text names, or several."""
    if isinstance(measures, Measure | str):
        return (named_measure(measures),)
    if not isinstance(measures, Iterable):
        raise MeasureError(f"measures must be a measure or a list of them, not {measures!r}")
    return tuple(map(named_measure, measures))


def check_estimated(measures: Iterable[Measure], method: str) -> None:
    """Raise MeasureError unless a method estimates these: else people would judge for nothing."""
    for each in measures:
        if not SAMPLING_METHODS[method].estimates(each.name):
            able = " or ".join(estimating(each.name))
            raise MeasureError(f"{each} is estimated from rounds by {able}, not by {method}")


def named_goal(pool: Pool, goal: Goal | str) -> Goal:
    """Return the goal of all runs of a pool that a text names."""
    if not isinstance(goal, str):
        return goal
    if goal in ("ranking", "absolute", "winner"):
        return Goal(goal, pool.runs)
    if goal in GOALS:
        raise GoalError(f"the goal {goal!r} names runs: {goal}(...) instead of a text")
    raise GoalError(f"the goal is one of {', '.join(GOALS)}, not {goal!r}{nearest(goal, GOALS)}")


def named_prior(
    pool: Pool, prior: Prior | str, goal: Goal, measure: Measure, max_grade: int | None
) -> Prior:
    """Return the prior that a text names."""
    if isinstance(prior, Prior):
        return prior
    of_runs = measure.family in ("prediction", "preference")
    name = "constant" if of_runs and prior == "rank" else prior
    best = _counting_grade(measure) if max_grade is None else max_grade
    return make_prior(pool, name=name, goal=goal, measure=measure, max_grade=best)


def check_of_pairs(rounds: Sequence[DrawnRound], *, having: Option) -> None:
    """Raise CombiningError unless all are rounds of pairs, by methods that have an option."""
    if not isinstance(rounds, Iterable):
        raise CombiningError(f"rounds must be a list of rounds, not {kind_of(rounds)}")
    for number, each in enumerate(rounds):
        if not hasattr(each, "served"):
            told = f"rounds[{number}] must be what draw_round returned"
            raise CombiningError(f"{told}, not {kind_of(each)}")
        if not isinstance(each, PairRound) or each.method not in of_pairs_with(having):
            listed = " or ".join(of_pairs_with(having))
            raise CombiningError(f"rounds[{number}] is by {each.method}, and not by {listed}")


def _counting_grade(measure: Measure) -> int:
    """The lowest grade with any utility: how large it is makes no difference to a design."""
    if measure.family in ("prediction", "preference"):
        return 1
    return next(grade for grade in range(1, MAX_GRADE + 1) if measure.utilities([grade])[0] > 0.0)
