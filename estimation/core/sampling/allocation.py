"""Designs that serve a goal best: sizes of pairs from weights and beliefs, batches of a budget."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import (
    BoolArray,
    FloatArray,
    check_fraction,
    check_number,
    check_whole,
    column_sums,
    divided,
    frozen,
    nearest,
    refuse,
    sealed,
)
from ..data.blocks import by_block
from ..measures.table import Measure, check_is_measure, check_measures
from .designs import (
    MAX_BATCHES,
    METHODS,
    RULES,
    Design,
    DesignError,
    Method,
    Rule,
    cumulative,
)
from .goals import Goal, absolute, beside, check_goal, check_serves, effective_weights
from .methods import SAMPLING_METHODS, draws_again, with_option
from .priors import Prior
from .probabilities import ROUNDING, poisson_thresholds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..data.pool import Pool

LEAST_COST, MOST_COST = 1e-15, 1e15
LEAST_SIZE = 1e-30  # of the largest: far below what is ever drawn, and can be divided by
FOR_NDCG = 0.5  # of the floor


def make_design(
    pool: Pool,
    *,
    goal: Goal,
    measure: Measure,
    prior: Prior,
    budget: float,
    batch_size: float,
    method: Method = "poisson",
    rule: Rule | None = None,
    reported: Sequence[Measure] = (),
    eps: float = 0.0,
    floor: float = 0.1,
    costs: FloatArray | None = None,
    max_grade: int | None = None,
) -> Design:
    """Compute the sampling probabilities that serve a goal best.

    With the goal's weight a_i (`effective_weights`) and the prior's expected utility p_i and
    second moment s2_i, a pair's size is proportional to a_i * p_i (rule "first"; Schnabel et al.
    2016, eq. 4, 9, 11 and 13) or to a_i * sqrt(s2_i) (rule "second", which minimizes the
    expected variance when the utility is not certain), over the square root of its cost. The rule
    "uniform", a baseline, gives every eligible pair the same size.

    Ratio measures are not weighted sums: their `Measure.weights` stand in for a_i, and every pair
    of the pool is eligible, because each may be relevant and so counts in R or the ideal DCG.

    Parameters
    ----------
    pool : Pool
    goal, measure : Goal, Measure
        What the sample is optimized for.
    prior : Prior
        From `make_prior`, for the same pool.
    budget : int or float
        ``iid``, ``per-query``: number of draws, at least 2, which may be more than there are
        pairs; ``per-query`` makes equally many in every topic and leaves out the rest.
        ``priority``: number of pairs. ``poisson``: expected number of pairs. Without replacement
        it is at most the number of pairs of the pool, and from the number of eligible pairs on
        the design is a census (`Design.is_census`): every one with probability exactly 1.
        A whole number; only with costs any number from 1 on, in their unit: what is spent, as
        expected, without replacement at most the cost of the whole pool.
    batch_size : int or float
        What one batch may take of the budget; ``iid``: at least 2 draws. The last batch takes
        what is left. Whole or not as the budget is.
    method : {"poisson", "priority", "iid", "per-query"}
    rule : {"first", "second", "uniform"}, optional
        By default "first", the papers' rule, for draws with replacement, else "second".
    reported : sequence of Measure
        Further measures that will be estimated: pairs with a weight under any of them, for any
        run of the pool, are eligible.
    eps : float
        With replacement only, on the scale of p * lambda: added to every eligible pair.
    floor : float
        Without replacement only: share of the sizes that is spread evenly over the eligible
        pairs, so that no pair with a weight is out of reach. 0 restricts the sample to the
        goal's pairs. ``adaptive``: where the goal leaves runs out, most of it serves the values of
        all runs, as the goal "absolute" would (`SamplingMethod.for_all_runs`), and half of it for
        nDCG with a cutoff that the pool goes below.
    costs : ndarray of float64, shape (N,), optional
        Cost > 0 of judging each pair, in the unit of the budget; not for ``priority`` and
        ``per-query``, whose sizes are fixed numbers of pairs and draws.
    max_grade : int, optional
        The best grade of the scale; needed for measures of predictions.

    Raises
    ------
    DesignError
        If a number is out of range, a name is unknown, or the goal leaves nothing to sample.
    MeasureError
        If `measure`, or one of `reported`, is no `Measure`, or the pool lacks what it is about.
    PoolError
        If the goal names a run that the pool does not have.
    """
    again = draws_again(method)
    if rule is None:
        rule = "first" if again else "second"
    _check_names(pool, goal, prior, method, rule)
    check_is_measure(measure)
    check_measures(reported, name="reported")
    _check_costs(costs, len(pool), method)
    check_budget(budget, batch_size, costs, pairs=len(pool), again=again)
    check_number(eps, name="eps", least=0.0, error=DesignError)
    check_fraction(floor, name="floor", error=DesignError)
    measures = (measure, *reported)
    size, touched = _wanted(pool, goal, measures, prior, rule, costs, max_grade)
    every, share = None, 0.0
    others, part = _served_by_the_floor(pool, goal, measure, method)
    if others is not None:
        every, _ = _wanted(pool, others, measures, prior, rule, costs, max_grade)
        share = part * floor
    strata = 1
    if again:
        size = _normalized(size + touched * (eps / len(pool.topics)))
        if SAMPLING_METHODS[method].by_topic:
            size, strata = _per_topic(pool, size)
        steps = _draw_steps(size, costs, strata, budget, batch_size)
    else:
        size = _floored(size, touched, floor, every, share)
        steps = _constants(size, costs, budget, batch_size)
    refuse(~np.isfinite(size), size, name="size", rule="be finite", error=DesignError)
    return Design(
        method=method,
        size=sealed(size),
        steps=frozen(steps),
        goal=goal,
        measure=measure,
        reported=tuple(reported),
        prior=prior.name,
        rule=rule,
        budget=budget,
        batch_size=batch_size,
        eps=eps if again else 0.0,
        floor=0.0 if again else floor,
        pool_digest=pool.digest,
        strata=strata,
        for_all_runs=share,
        belief=sealed(prior.expected**2 / prior.second_moment),
    )


def _wanted(
    pool: Pool,
    goal: Goal,
    measures: Sequence[Measure],
    prior: Prior,
    rule: Rule,
    costs: FloatArray | None,
    max_grade: int | None,
) -> tuple[FloatArray, BoolArray]:
    """Sizes for a goal under the first of some measures, up to a factor, and which pairs have a
    weight under any of them, (N,) each."""
    weights = effective_weights(pool, goal, measures[0], max_grade=max_grade)
    if not weights.any():
        raise DesignError(nothing_to_sample(goal, measures[0]))
    touched = touched_pairs(pool, measures)
    size = relative_sizes(weights, prior, rule, touched)
    return size if costs is None else size / np.sqrt(costs), touched


def _check_names(pool: Pool, goal: Goal, prior: Prior, method: str, rule: str) -> None:
    if method not in METHODS:
        meant = nearest(method, METHODS)
        raise DesignError(f"The method is one of {', '.join(METHODS)}, not {method!r}{meant}.")
    if rule not in RULES:
        meant = nearest(rule, RULES)
        raise DesignError(f"The rule is one of {', '.join(RULES)}, not {rule!r}{meant}.")
    check_goal(goal, pool.runs)
    check_serves(goal, method)
    if not isinstance(prior, Prior):
        raise DesignError(f"prior must be a Prior (see make_prior), not {prior!r}.")
    if len(prior.expected) != len(pool):
        described = f"it describes {len(prior.expected)} pairs, the pool has {len(pool)}"
        raise DesignError(f"The prior belongs to another pool: {described}.")


def check_budget(
    budget: float, batch_size: float, costs: FloatArray | None, *, pairs: int, again: bool
) -> None:
    """Raise DesignError unless a budget can be cut into batches, and the pool has so much."""
    for name, number in (("budget", budget), ("batch_size", batch_size)):
        if costs is None:
            check_whole(number, name=name, error=DesignError)
        else:
            check_number(number, name=name, least=1.0, error=DesignError)
        if costs is None and again and number < 2:
            draws = "Draws with replacement need at least 2 draws in the first batch"
            raise DesignError(f"{draws}; {name} is {number!r}.")
    whole, unit = (pairs, "pairs") if costs is None else (float(costs.sum()), "cost")
    if not again and budget > whole * (1.0 + ROUNDING):
        raise DesignError(
            f"budget must be at most {whole:.12g}, the {unit} of the whole pool, not {budget!r}."
        )
    if budget > MAX_BATCHES * batch_size:
        cut = f"a budget of {budget!r} by a batch_size of {batch_size!r}"
        raise DesignError(f"A budget can be cut into at most {MAX_BATCHES} batches, not {cut}.")


def _check_costs(costs: FloatArray | None, pairs: int, method: str) -> None:
    if costs is None:
        return
    if method not in (able := with_option("costs")):
        listed = ", ".join(able)
        raise DesignError(f"The method {method!r} takes no costs; methods that do: {listed}.")
    if costs.shape != (pairs,):
        raise DesignError(f"costs must hold one number per pair, {pairs}, not {costs.shape}.")
    refuse_costs(costs, error=DesignError)


def refuse_costs(costs: FloatArray, *, error: type[ValueError]) -> None:
    """Raise an error unless these can be costs: neither they nor sums of many come to nothing."""
    usable = (costs >= LEAST_COST) & (costs <= MOST_COST)
    rule = f"be positive, from {LEAST_COST:g} to {MOST_COST:g}"
    refuse(~usable, costs, name="costs", rule=rule, error=error)


def nothing_to_sample(goal: Goal, measure: Measure) -> str:
    """Return the sentence for a goal that gives no pair a weight."""
    runs = ", ".join(goal.all_runs)
    why = f"{runs} do not differ under {measure}."
    if goal.kind in ("single", "absolute"):
        why = f"no document of {runs} has a weight under {measure}."
    if measure.name == "Accuracy":
        why += " A score counts as right only if it is a grade itself; for others use MAE or MSE."
    return f"There is nothing to sample: {why}"


def touched_pairs(pool: Pool, measures: Sequence[Measure]) -> BoolArray:
    """Return which pairs have a weight in some run under some measure, shape (N,)."""
    for measure in measures:
        if measure.family == "ratio":
            return np.ones(len(pool), dtype=bool)
        pool.check_measure(measure)
    return by_block(pool, lambda some: _touched(some, measures))


def _touched(pool: Pool, measures: Sequence[Measure]) -> BoolArray:
    touched = np.zeros(len(pool), dtype=bool)
    for measure in measures:
        touched |= pool.by_pair(pool.entry_weights(measure)) @ np.ones(len(pool.runs)) > 0.0
    return touched


def relative_sizes(weights: FloatArray, prior: Prior, rule: Rule, touched: BoolArray) -> FloatArray:
    """Return sizes of pairs, up to a factor, from the goal's weights, (N,), and a prior."""
    if rule == "uniform":
        return touched.astype(np.float64)
    belief = prior.expected if rule == "first" else np.sqrt(prior.second_moment)
    return np.asarray(weights * belief, dtype=np.float64)


def _normalized(size: FloatArray) -> FloatArray:
    """Sizes that sum to 1; those next to 0 are raised to `LEAST_SIZE`, so that 1/size is finite.

    That is another design, and no less exact: sizes may be anything above 0 that is fixed before
    the draw, and every pair counts with one over the probability that it then has.
    """
    largest, least = size.max(), size.min(where=size > 0.0, initial=np.inf)
    with np.errstate(over="ignore"):
        total = size.sum()
    if not (np.isfinite(total) and least > LEAST_SIZE * largest):
        size = raised_sizes(size, largest)
    return np.asarray(size / size.sum(), dtype=np.float64)


def raised_sizes(size: FloatArray, largest: float) -> FloatArray:
    """Return sizes as shares of the largest, positive ones of at least `LEAST_SIZE`."""
    return np.where(size > 0.0, np.maximum(size / largest, LEAST_SIZE), 0.0)


def _served_by_the_floor(
    pool: Pool, goal: Goal, measure: Measure, method: Method
) -> tuple[Goal | None, float]:
    """Return what a share of the floor serves, and that share; None and 0 if all of it is even.

    Documents below the cutoff of nDCG count through the ideal list alone, and for nothing once that
    is full. Where a pool goes deeper they are most of it: nine tenths of TREC-8 and DL 2019, which
    took a third of the budget (docs/decisions/0104).
    """
    part = SAMPLING_METHODS[method].for_all_runs
    deeper = measure.cutoff is not None and measure.cutoff < pool.depth
    others = beside(goal, pool.runs)
    if others is None and measure.name == "nDCG" and deeper:
        others, part = absolute(*pool.runs), min(part, FOR_NDCG)
    return (others, part) if part > 0.0 else (None, 0.0)


def _floored(
    size: FloatArray,
    eligible: BoolArray,
    floor: float,
    every: FloatArray | None,
    share: float,
) -> FloatArray:
    floored = _normalized(size)
    floored *= 1.0 - floor
    floored[eligible] += (floor - share) * (1.0 / np.count_nonzero(eligible))
    if every is not None:
        floored += share * _normalized(every)
    return floored


def _per_topic(pool: Pool, size: FloatArray) -> tuple[FloatArray, int]:
    """Sizes that sum to the same in every topic that has any, and the number of these."""
    totals = column_sums(pool.topic, size, number=len(pool.topics))
    strata = int(np.count_nonzero(totals))
    return divided(size, totals[pool.topic] * strata, size > 0.0), strata


def _draw_steps(
    size: FloatArray, costs: FloatArray | None, strata: int, budget: float, batch_size: float
) -> FloatArray:
    """Numbers of draws, per stratum, that the batches' budgets pay for."""
    one_round = strata if costs is None else float(np.sum(size * costs))
    draws = np.floor(cumulative(budget, batch_size) / one_round + 1e-9)
    steps = np.unique(draws[draws >= 1.0])
    least = 1.0 if strata > 1 else 2.0
    if not len(steps) or steps[-1] < least:
        needed = math.ceil(least * one_round)
        why = f"one draw in every topic, or two; it is {budget!r}"
        raise DesignError(f"The budget must be at least {needed}: {why}.")
    return steps[steps >= least]


def _constants(
    size: FloatArray, costs: FloatArray | None, budget: float, batch_size: float
) -> FloatArray:
    eligible = size > 0.0
    whole = float(np.count_nonzero(eligible)) if costs is None else float(costs[eligible].sum())
    return poisson_thresholds(size, targets=cumulative(min(budget, whole), batch_size), costs=costs)
