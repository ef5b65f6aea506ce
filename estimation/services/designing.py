"""From a round's row to the core's design, and to the pool that it is about."""

import math
from typing import cast

import numpy as np

from estimation.core.arrays import FloatArray, column_sums
from estimation.core.data.pool import Pool
from estimation.core.data.ranked_lists import PoolError
from estimation.core.measures.kinds import PREFERENCE_MAX_GRADE, MeasureError
from estimation.core.measures.table import Measure, parse_measure
from estimation.core.rounds.active.lists import ActiveError
from estimation.core.rounds.active.rounds import make_plan
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.rounds import AnyDesign
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.designs import (
    QueryError,
    affordable,
    judged_depth,
    labeled_pairs,
)
from estimation.core.rounds.topics.grade_models import GradeModel, GradeModelError, uniform_grades
from estimation.core.sampling import goals
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design, DesignError, Method, Rule
from estimation.core.sampling.goals import Goal, GoalError
from estimation.core.sampling.priors import Prior, PriorError, make_prior
from estimation.core.sampling.top_up import Union
from estimation.models import Round, StoredPool
from estimation.services import pools, predictions, topping
from estimation.services.costs import costs_of
from judging.errors import UserError
from judging.services import jobs

PREFERENCE_DEPTH = 10
"""Ranks that are compared by default: a list of L documents has L (L - 1) / 2 pairs."""


def measures_of(row: Round) -> list[Measure]:
    """The round's measures, the goal's first."""
    return [parse_measure(text) for text in (row.measure, *row.reported)]


def pool_for(row: Round, job: jobs.Running | None = None) -> tuple[StoredPool, Pool]:
    """The pool that the round's measures are about, for a job or for who looks at it meanwhile.

    Raises UserError ``nothing_to_pool`` (409) without topics or runs.
    """
    families = {measure.family for measure in measures_of(row)}
    depth = row.depth or row.campaign.depth
    if "preference" in families:
        depth = row.depth or min(PREFERENCE_DEPTH, row.campaign.depth)
        return pools.ensure(row.campaign, depth=depth, kind=pools.PoolKind.PREFERENCES, job=job)
    kind = pools.PoolKind.SCORED if "prediction" in families else pools.PoolKind.DOCUMENTS
    return pools.ensure(row.campaign, depth=depth, kind=kind, job=job)


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
    made = {Round.Goal.RANKING: goals.ranking, Round.Goal.WINNER: goals.winner}
    return made.get(Round.Goal(row.goal), goals.absolute)(*pool.runs)


def prior_of(row: Round, pool: Pool) -> Prior:
    return make_prior(
        pool,
        name=row.prior,
        goal=goal_of(row, pool),
        measure=parse_measure(row.measure),
        max_grade=row.campaign.max_grade,
        grades=predicted_of(row, pool),
    )


def predicted_of(row: Round, pool: Pool) -> FloatArray | None:
    """All grades that were predicted for the round, shape (N, S), NaN where nothing was; None
    without any. Raises UserError as `predictions.grades_for`."""
    if not row.predictions:
        return None
    named = {each.name: each for each in row.campaign.predictions.all()}
    given = (predictions.grades_for(named[name], pool) for name in row.predicted_by)
    return np.stack(list(given), axis=1)


def grade_model_of(row: Round, pool: Pool) -> GradeModel:
    """What is believed about grades: the uploaded predictions, else all grades alike."""
    if row.predictions:
        return predictions.model_for(row.predictions, pool, row.campaign.max_grade)
    return uniform_grades(pool, max_grade=row.campaign.max_grade)


def design_of(row: Round, pool: Pool) -> AnyDesign:
    """The design of the round over a pool, as it is drawn.

    Raises UserError ``design_impossible`` (409) with the core's sentence.
    """
    costs = costs_of(row, pool)
    design = design_at(row, pool, costs)
    if isinstance(design, Union):
        return design.own(alone=not row.with_earlier, costs=costs)
    return design


def design_at(row: Round, pool: Pool, costs: FloatArray | None) -> AnyDesign:
    """What the round buys over a pool, given its costs (`costs_of`): of Poisson rounds together,
    and of a top-up, the union. Raises as `design_of`."""
    try:
        if row.method == Round.Method.QUERY:
            return _of_topics(row, pool, costs)
        if row.method == Round.Method.ACTIVE:
            return _of_next_batches(row, pool)
        if row.method == Round.Method.ADAPTIVE:
            return _of_learned_batches(row, pool, costs)
        design = _of_pairs(row, pool, costs)
        return topping.plan_of(row, pool, design, costs)
    except (
        ActiveError, DesignError, GoalError, GradeModelError, MeasureError, PoolError, PriorError,
        QueryError,
    ) as error:  # fmt: skip
        raise UserError("design_impossible", str(error), status=409) from None


def _of_pairs(row: Round, pool: Pool, costs: FloatArray | None) -> Design:
    """Without replacement, a budget above the pool buys the pool: everything is judged."""
    whole = len(pool) if costs is None else float(costs.sum())
    budget = row.budget if row.draws_again else min(row.budget, whole)
    return make_design(
        pool,
        goal=goal_of(row, pool),
        measure=parse_measure(row.measure),
        reported=measures_of(row)[1:],
        prior=prior_of(row, pool),
        method=cast(Method, row.method),
        rule=cast(Rule, row.rule) if row.rule else None,
        budget=budget,
        batch_size=min(row.batch_size, budget),
        eps=row.eps,
        floor=row.floor,
        costs=costs,
        max_grade=row.campaign.max_grade,
    )


def _of_next_batches(row: Round, pool: Pool) -> AnyDesign:
    """A budget above the pool buys the pool."""
    budget = min(row.budget, len(pool))
    batch_size = min(row.batch_size, budget)
    return make_plan(pool, measures=measures_of(row), budget=budget, batch_size=batch_size)


def _of_learned_batches(row: Round, pool: Pool, costs: FloatArray | None) -> AnyDesign:
    """Predicted grades are features of the model and never labels: they can bias nothing."""
    predicted = predicted_of(row, pool)
    design, together = _of_pairs(row, pool, costs), float(row.topic_minimum)
    plan = AdaptivePlan(
        design,
        PREFERENCE_MAX_GRADE if pool.is_of_preferences else row.campaign.max_grade,
        costs,
        predicted,
        topic_minimum=together if together > 1.0 else 0.0,
        even_topics=together > 1.0,
    )
    return topping.learning_plan_of(row, pool, plan)


def _of_topics(row: Round, pool: Pool, costs: FloatArray | None) -> AnyDesign:
    """Documents of all runs are judged, as deep as the measures look, so that all have values.

    Ratio measures look at the whole pool. A topic costs what its documents cost. A budget above
    what all topics cost buys all topics.
    """
    depth = judged_depth(pool, measures_of(row))
    needed = labeled_pairs(pool, runs=pool.runs, depth=depth)
    paid = np.where(needed, 1.0 if costs is None else costs, 0.0)
    by_topic = column_sums(pool.topic, paid, number=len(pool.topics))
    budget = min(row.budget, float(by_topic.sum()))
    _check_pays_for_two(row, pool, by_topic, size=min(row.batch_size, budget))
    return make_query_design(
        pool,
        goal=goal_of(row, pool),
        measure=parse_measure(row.measure),
        model=grade_model_of(row, pool),
        budget=budget,
        batch_budget=min(row.batch_size, budget),
        costs=by_topic,
        reported=pool.runs,
        measures=measures_of(row)[1:],
        estimator="unbiased",
    )


def _check_pays_for_two(row: Round, pool: Pool, costs: FloatArray, *, size: float) -> None:
    """The core says the same of what its function is given; this is in the words of the form."""
    dearest = np.argsort(-costs, kind="stable")[:2]
    needed = float(costs[dearest].sum())
    if affordable(needed, size):
        return
    names = " and ".join(f"“{pool.topics[topic]}”" for topic in dearest.tolist())
    field = "budget" if row.budget < needed else "batch_size"
    label = "budget, and a batch size," if field == "budget" else "batch size"
    message = (
        f"Expected a {label} of {math.ceil(needed):,} at least: of whole topics every batch must "
        f"pay for the two that cost most, {names}."
    )
    raise UserError("design_impossible", message, status=409, field=field)
