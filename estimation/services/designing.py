"""From a round's row to the core's design."""

from estimation.core import goals
from estimation.core.designs import Design, DesignError, make_design
from estimation.core.goals import Goal, GoalError
from estimation.core.measures import Measure, MeasureError, parse_measure
from estimation.core.pool import Pool, PoolError
from estimation.core.priors import Prior, PriorError, make_prior
from estimation.models import Round
from judging.errors import UserError


def measures_of(row: Round) -> list[Measure]:
    """The round's measures, the goal's first."""
    return [parse_measure(text) for text in (row.measure, *row.reported)]


def goal_of(row: Round, pool: Pool) -> Goal:
    run = row.run.tag if row.run else ""
    against = row.baseline.tag if row.baseline else ""
    if row.goal == Round.Goal.SINGLE:
        return goals.single(run)
    if row.goal == Round.Goal.PAIR:
        return goals.pair(run, against)
    if row.goal == Round.Goal.BASELINE:
        others = [tag for tag in pool.runs if tag != against]
        return goals.baseline(*others, against=against)
    make = goals.ranking if row.goal == Round.Goal.RANKING else goals.absolute
    return make(*pool.runs)


def prior_of(row: Round, pool: Pool) -> Prior:
    return make_prior(
        pool,
        name=row.prior,
        goal=goal_of(row, pool),
        measure=parse_measure(row.measure),
        max_grade=row.campaign.max_grade,
    )


def design_of(row: Round, pool: Pool, *, budget: int | None = None) -> Design:
    """The design of the round over a pool.

    Raises UserError ``design_impossible`` (409) with the core's sentence.
    """
    budget = budget or row.budget
    try:
        return make_design(
            pool,
            goal=goal_of(row, pool),
            measure=parse_measure(row.measure),
            reported=measures_of(row)[1:],
            prior=prior_of(row, pool),
            method="iid" if row.method == Round.Method.IID else "poisson",
            budget=budget,
            batch_size=min(row.batch_size, budget),
            eps=row.eps,
        )
    except (DesignError, GoalError, MeasureError, PoolError, PriorError) as error:
        raise UserError("design_impossible", str(error), status=409) from None
