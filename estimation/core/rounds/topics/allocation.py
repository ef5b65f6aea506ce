"""The probabilities of whole topics that serve a goal best, and what the batches may cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...arrays import check_fraction, check_number, check_whole, frozen
from ...measures.table import check_is_measure, check_measures
from ...sampling.goals import check_goal, check_serves
from .designs import (
    ESTIMATORS,
    ROUNDING,
    RULES,
    QueryDesign,
    QueryError,
    affordable,
    judged_depth,
    labeling_costs,
)
from .distributions import least_error
from .grade_models import check_grade_model
from .moments import goal_moments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from ...arrays import BoolArray, FloatArray
    from ...data.pool import Pool
    from ...measures.table import Measure
    from ...sampling.goals import Goal
    from .designs import Estimator, Rule
    from .grade_models import GradeModel


def make_query_design(
    pool: Pool,
    *,
    goal: Goal,
    measure: Measure,
    model: GradeModel,
    budget: float,
    batch_budget: float | None = None,
    costs: ArrayLike | None = None,
    rule: Rule = "active",
    reported: Sequence[str] = (),
    measures: Sequence[Measure] = (),
    depth: int | None = None,
    floor: float = 0.1,
    estimator: Estimator = "ratio",
) -> QueryDesign:
    """Compute the probabilities of topics that serve a goal best.

    Rule "active": for the estimator "ratio" q proportional to p sqrt(`GoalMoments.squares` / cost),
    which is Theorem 1 for the goals "single" and "absolute" and Theorem 2 for "pair", with an
    expectation under the grade model instead of the truth (Corollary 1); for "unbiased" as
    `topics.distributions` says. Several runs or differences count by the sum of their variances,
    our generalization. Rule "uniC": costs are not considered in q (but still paid). Rule "uniform":
    q = p, the passive sample. Then q is mixed with p.

    Parameters
    ----------
    pool : Pool
    goal, measure, model
        What the sample is optimized for.
    budget : float
        What all batches may cost together, in the unit of the costs. At most the cost of all
        topics, which makes the design a census.
    batch_budget : float, optional
        What one batch may cost, at least the two most expensive topics. By default there is one
        batch; the last batch takes what is left.
    costs : array_like of float, shape (T,), optional
        Cost of each topic, above 0; by default the number of documents to judge.
    rule : {"active", "uniC", "uniform"}
    reported : sequence of str
        Further runs whose documents are judged, so that they can be evaluated as well.
    measures : sequence of Measure
        Further measures that shall be estimated.
    depth : int, optional
        Ranks to judge; by default what the measures need, `judged_depth`. Ratio measures need
        every pair of the pool and leave no choice.
    floor : float
        Share of q that is spread evenly over the topics: p/q is at most 1/floor.
    estimator : {"ratio", "unbiased"}
        The estimator that q is optimized for.

    Raises
    ------
    QueryError
        If a number is out of range, a name is unknown, a topic could never be drawn, or the
        batches cannot pay for the two most expensive topics.
    ValueError
        As `GainMoments.of` and `Pool.run_index`.
    """
    _check_choices(rule, estimator, floor)
    check_is_measure(measure)
    check_measures(measures, name="measures")
    check_goal(goal, pool.runs)
    check_serves(goal, "query")
    ranks = _checked_depth(pool, (measure, *measures), depth)
    tags = {*goal.all_runs, *reported}
    runs = tuple(tag for tag in pool.runs if tag in tags)
    needed = labeling_costs(pool, runs=(*goal.all_runs, *reported), depth=ranks)
    cost = _checked_costs(pool, needed, costs)
    check_grade_model(pool, model)
    eligible = cost > 0.0
    probability = eligible / np.count_nonzero(eligible)
    if rule != "uniform":
        told = goal_moments(pool, goal=goal, measure=measure, model=model)
        squares = np.where(eligible, told.squares(estimator, eligible), 0.0)
        if not squares.any():
            raise QueryError("under the grade model no topic tells anything about the goal")
        paid = cost if rule == "active" else eligible.astype(np.float64)
        level = told.level(eligible) if estimator == "unbiased" and rule == "active" else 0.0
        probability = least_error(squares, paid, level=level, eligible=eligible, floor=floor)
        _check_drawable(pool, eligible & (probability <= 0.0))
    return QueryDesign(
        probability=frozen(probability),
        cost=frozen(cost),
        steps=frozen(_steps(pool, cost, budget, batch_budget)),
        goal=goal,
        measure=measure,
        runs=runs,
        depth=ranks,
        rule=rule,
        model=model.name,
        estimator=estimator,
        floor=floor,
        pool_digest=pool.digest,
    )


def _check_choices(rule: str, estimator: str, floor: float) -> None:
    if rule not in RULES:
        raise QueryError(f"the rule is one of {', '.join(RULES)}, not {rule!r}")
    if estimator not in ESTIMATORS:
        raise QueryError(f"the estimator is one of {', '.join(ESTIMATORS)}, not {estimator!r}")
    check_fraction(floor, name="floor", error=QueryError)


def _checked_depth(pool: Pool, measures: Sequence[Measure], depth: int | None) -> int | None:
    deepest = judged_depth(pool, measures)
    if depth is None:
        return deepest
    if deepest is None:
        ratio = next(measure for measure in measures if measure.family == "ratio")
        raise QueryError(f"depth must be left out: {ratio} needs every document judged")
    check_whole(depth, name="depth", least=deepest, error=QueryError)
    return depth


def _checked_costs(pool: Pool, needed: FloatArray, costs: ArrayLike | None) -> FloatArray:
    """Costs of the topics that have documents to judge, 0 for the others."""
    if not needed.any():
        raise QueryError("no topic has a document to judge")
    if costs is None:
        return needed
    given = np.asarray(costs, dtype=np.float64)
    if given.shape != needed.shape:
        shape = f"not of the shape {given.shape}"
        raise QueryError(f"costs must be a vector of {len(needed)} numbers, one per topic, {shape}")
    wrong = (needed > 0.0) & ~(np.isfinite(given) & (given > 0.0))
    if wrong.any():
        at = int(np.argmax(wrong))
        raise QueryError(f"the cost of topic {pool.topics[at]!r} must be above 0, not {given[at]}")
    return np.where(needed > 0.0, given, 0.0)


def _check_drawable(pool: Pool, never: BoolArray) -> None:
    if never.any():
        name = pool.topics[int(np.argmax(never))]
        raise QueryError(f"topic {name!r} would never be drawn; floor must be above 0")


def _steps(pool: Pool, cost: FloatArray, budget: float, batch_budget: float | None) -> FloatArray:
    check_number(budget, name="budget", least=1.0, error=QueryError)
    size = budget if batch_budget is None else batch_budget
    check_number(size, name="batch_budget", error=QueryError)
    if size > budget:
        raise QueryError(f"batch_budget must be at most the budget, {budget!r}, not {size!r}")
    total = float(cost.sum())
    if not affordable(budget, total):
        raise QueryError(
            f"budget must be at most {total:.12g}, what all topics cost together, not {budget!r}"
        )
    dearest = np.argsort(-cost, kind="stable")[:2]
    if not affordable(float(cost[dearest].sum()), size):
        names = " and ".join(repr(pool.topics[topic]) for topic in dearest.tolist())
        raise QueryError(
            f"batch size (batch_budget) must be at least {cost[dearest].sum():g}, to pay for the"
            f" two most expensive topics, {names}, not {size:g}"
        )
    needed = int(np.ceil(min(budget, float(cost.sum())) / size * (1.0 - ROUNDING)))
    return np.asarray(np.minimum(size * np.arange(1, needed + 1), budget))
