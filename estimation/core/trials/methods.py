"""Simulated judging of a judged collection: the methods, each ready to play trials.

A trial draws pairs by a method, looks up their grades as if assessors gave them, and estimates.
`estimation.core.trials.settings` says what is simulated, `estimation.core.trials.reports` what the
estimates are off by. To add a method, add one entry to `METHODS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from estimation.core.active.estimates import estimate as estimate_active
from estimation.core.active.lists import make_frame
from estimation.core.active.sampling import plan_batch, start
from estimation.core.arrays import FloatArray, IntArray, frozen
from estimation.core.baselines.estimates import covariance as selection_covariance
from estimation.core.baselines.estimates import estimate as estimate_selection
from estimation.core.baselines.select import select
from estimation.core.baselines.selections import Selection, contribution, sampling_budgets
from estimation.core.designs import WITH_REPLACEMENT, Design, make_design
from estimation.core.designs import Method as Drawing
from estimation.core.draws import draw
from estimation.core.evaluation import evaluate
from estimation.core.interval_kinds import IntervalKind, check_interval, interval_kinds
from estimation.core.intervals import Bound, student_intervals
from estimation.core.measures import KINDS, Measure
from estimation.core.priors import make_prior
from estimation.core.queries.designs import (
    draw_queries,
    judged_depth,
    labeled_pairs,
    labeling_costs,
    make_query_design,
)
from estimation.core.queries.estimates import evaluate_queries
from estimation.core.queries.grade_models import uniform_grades
from estimation.core.trials.settings import Setting, TrialError

MAX_DRAWS = 1_000_000
UNIFORM_SHARE = 0.1  # of active sampling: its unbiased estimator needs some


@dataclass(frozen=True, eq=False)
class Spread:
    """Estimated errors of k values: covariance and df of differences (k, k), intervals (k,).

    ``differences``: with a guaranteed kind of intervals, the guarantee for the differences.
    """

    covariance: FloatArray
    df: FloatArray
    low: FloatArray
    high: FloatArray
    differences: Bound | None = None

    @classmethod
    def of(cls, value: FloatArray, covariance: FloatArray, *, df: float) -> "Spread | None":
        """Student intervals with one df for all; None if a variance is not finite."""
        if not np.all(np.isfinite(covariance)):
            return None
        every = np.full(covariance.shape, max(1.0, df))
        found = student_intervals(value, variance=np.diag(covariance), df=np.diag(every))
        return cls(covariance, every, np.maximum(found.low, 0.0), found.high)


@dataclass(frozen=True, eq=False)
class Outcome:
    """One trial: values of all runs (k,), distinct judged pairs, errors if the method has them."""

    value: FloatArray
    judged_pairs: int
    spread: Spread | None


Player: TypeAlias = Callable[[str], Outcome]  # plays the trial of a seed


@dataclass(frozen=True)
class Method:
    """A way to choose pairs and estimate from them.

    Attributes
    ----------
    name : str
    prepare : callable
        Does once what does not depend on the trial, and returns what plays trials.
    estimates : callable
        Whether the method has an estimator for a measure.
    """

    name: str
    prepare: Callable[[Setting], Player]
    estimates: Callable[[Measure], bool]


def _designed(name: Drawing, setting: Setting, *, predictions: FloatArray | None = None) -> Player:
    """Draws and Poisson samples, by a design that is optimized for the goal."""
    pool, design = setting.pool, _design(name, setting)

    def play(seed: str) -> Outcome:
        sample = draw(pool, design, seed=seed)
        evaluation = evaluate(
            pool,
            design,
            sample,
            labels=setting.rows(seed, sample.pair),
            measures=[setting.measure],
            max_grade=setting.max_grade,
            interval=setting.interval,
            predictions=predictions,
        )
        found = evaluation.results[0].estimate
        spread = Spread(
            found.covariance, found.difference_df, found.low, found.high, found.difference_bound
        )
        return Outcome(found.value, evaluation.judged_pairs, spread)

    return play


def _helped(setting: Setting) -> Player:
    """The samples of ``poisson``, but estimated with the help of predicted grades."""
    if setting.predicted is None:
        raise TrialError("predicted must hold predicted grades for the method difference")
    return _designed("poisson", setting, predictions=setting.predicted)


def _design(name: Drawing, setting: Setting) -> Design:
    pool, goal, measure = setting.pool, setting.goal, setting.measure
    prior = make_prior(
        pool,
        name=setting.prior,
        goal=goal,
        measure=measure,
        max_grade=setting.max_grade,
        grades=setting.predicted,
    )
    calibrate = name in WITH_REPLACEMENT and setting.unit == "pairs"
    budget = 2 * len(pool.topics) if calibrate else setting.budget
    design = make_design(
        pool,
        goal=goal,
        measure=measure,
        prior=prior,
        budget=budget,
        batch_size=budget,
        method=name,
        rule=setting.rule,
    )
    return _calibrated(design, setting.budget) if calibrate else design


def _calibrated(design: Design, pairs: int) -> Design:
    """The same distribution with as many draws as come closest to so many expected pairs."""

    def expected(step: int) -> float:
        return float(design.inclusion_after(float(step)).sum())

    least, most = (1 if design.strata > 1 else 2), MAX_DRAWS // design.strata
    if expected(most) < pairs:
        reached = f"{expected(most):.0f} pairs in {MAX_DRAWS} draws"
        raise TrialError(f"budget: {design.method} reaches {reached}, not {pairs}; it needs less")
    below, enough = 0, most
    while enough - below > 1:
        middle = (below + enough) // 2
        below, enough = (below, middle) if expected(middle) >= pairs else (middle, enough)
    nearest = min((enough, below), key=lambda step: abs(expected(step) - pairs))
    step = max(nearest, least)
    draws = step * design.strata
    return replace(design, steps=frozen(np.array([float(step)])), budget=draws, batch_size=draws)


def _queried(setting: Setting) -> Player:
    """Whole topics by cost, every grade believed equally likely."""
    pool, measure = setting.pool, setting.measure
    depth = judged_depth(pool, [measure])
    costs = labeling_costs(pool, runs=pool.runs, depth=depth)
    design = make_query_design(
        pool,
        goal=setting.goal,
        measure=measure,
        model=uniform_grades(pool, max_grade=setting.max_grade),
        budget=min(float(setting.budget), float(costs.sum())),
        reported=pool.runs,
    )
    needed = labeled_pairs(pool, runs=design.runs, depth=design.depth)

    def play(seed: str) -> Outcome:
        sample = draw_queries(pool, design, seed=seed)
        pairs = np.flatnonzero(needed & np.isin(pool.topic, sample.topic))
        evaluation = evaluate_queries(
            pool,
            design,
            sample,
            labels=setting.rows(seed, pairs),
            measures=[measure],
            max_grade=setting.max_grade,
        )
        found = evaluation.results[0]
        spread = Spread(found.covariance, found.difference_df, found.low, found.high)
        return Outcome(found.value, evaluation.judged_pairs, spread)

    return play


def _active(setting: Setting) -> Player:
    """Rounds of three documents per topic, until every topic has its share of the budget."""
    pool, measure = setting.pool, setting.measure
    limits = sampling_budgets(pool, contribution(pool, None).sizes, setting.budget)
    frame = make_frame(pool)
    relevant = int(dict(measure.params).get("rel", 1))

    def play(seed: str) -> Outcome:
        state = start(frame, seed=seed, relevant_from=relevant, uniform_share=UNIFORM_SHARE)
        labels = setting.rows(seed, state.pair)
        while (planned := plan_batch(frame, state, labels=labels, limits=limits)) is not state:
            state, labels = planned, setting.rows(seed, planned.pair)
        (found,) = estimate_active(
            frame, state, labels=labels, measures=[str(measure)], form="sequential"
        )
        df = float(len(state.pair) - np.count_nonzero(limits))
        spread = Spread.of(found.value, found.covariance, df=df)
        return Outcome(found.value, len(state.pair), spread)

    return play


def _selected(name: str, setting: Setting) -> Player:
    """A baseline. Several judgments of a pair: the first steers, the mean of all is estimated."""
    pool, measure = setting.pool, setting.measure
    every = np.arange(len(pool))

    def play(seed: str) -> Outcome:
        given = setting.judged(seed, every)
        selection = select(pool, name, grades=given[0], budget=setting.budget, seed=seed)
        estimates = [
            estimate_selection(pool, selection, grades=grades, measure=measure) for grades in given
        ]
        value = np.mean(estimates, axis=0)
        return Outcome(value, len(selection), _selection_spread(setting, selection, given, value))

    # What `select` refuses depends on the budget, not on the seed.
    select(pool, name, grades=setting.grades, budget=setting.budget, seed="")
    return play


def _selection_spread(
    setting: Setting, selection: Selection, given: IntArray, value: FloatArray
) -> Spread | None:
    """None if the method does not sample, or has no variance for the measure or for means."""
    whole = len(selection.topics) < len(setting.pool.topics)
    has_variance = whole or (setting.measure.family == "gain" and not selection.is_certain)
    if not has_variance or (setting.assessors.noise > 0.0 and setting.assessors.labels > 1):
        return None
    covariance = selection_covariance(
        setting.pool, selection, grades=given[0], measure=setting.measure
    )
    freedom = len(selection.topics) - 1 if whole else len(selection) - len(selection.topics)
    return Spread.of(value, covariance, df=float(freedom))


def _by_design(measure: Measure) -> bool:
    return measure.family in ("gain", "ratio")


def _of_gains(measure: Measure) -> bool:
    return measure.family == "gain"


def _by_topic(measure: Measure) -> bool:
    by_rank = measure.family == "gain" and KINDS[measure.name].by_rank
    return by_rank or measure.family in ("query", "ratio")


def _actively(measure: Measure) -> bool:
    ratio = measure.name in ("AP", "Rprec") and measure.cutoff is None
    return measure.family == "gain" or ratio


def _by_sample(measure: Measure) -> bool:
    return measure.family == "gain" or measure.name in ("AP", "Rprec")


def _from_judged(measure: Measure) -> bool:
    """The same, and an ideal ranking of what was judged."""
    return measure.family in ("gain", "ratio")


METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method("poisson", partial(_designed, "poisson"), _by_design),
        Method("difference", _helped, _of_gains),
        Method("priority", partial(_designed, "priority"), _by_design),
        Method("iid", partial(_designed, "iid"), _by_design),
        Method("per-query", partial(_designed, "per-query"), _by_design),
        Method("query", _queried, _by_topic),
        Method("active", _active, _actively),
        Method("uniform", partial(_selected, "uniform"), _by_sample),
        Method("stratified", partial(_selected, "stratified"), _by_sample),
        Method("top", partial(_selected, "top"), _from_judged),
        Method("deep", partial(_selected, "deep"), _from_judged),
        Method("mtf", partial(_selected, "mtf"), _from_judged),
        Method("mab", partial(_selected, "mab"), _from_judged),
    )
}


def methods_for(measure: Measure, *, interval: IntervalKind = "student") -> tuple[str, ...]:
    """Return the names of the methods that have an estimator and intervals for a measure."""
    has_kind = interval == "student" or measure.family == "gain"
    return tuple(
        name
        for name, method in METHODS.items()
        if has_kind and method.estimates(measure) and interval in interval_kinds(name)
    )


def prepare(setting: Setting, method: str) -> Player:
    """Do once what all trials of a method share: `trial_reports.play_trials` takes the result.

    Raises
    ------
    TrialError
        If there is no such method, or it has no estimator for the measure; the message lists
        those that have.
    ValueError
        If the method cannot work with the goal, the budget, the prior or the kind of intervals.
    """
    if method not in METHODS:
        raise TrialError(f"method must be one of {', '.join(METHODS)}, not {method!r}")
    if not METHODS[method].estimates(setting.measure):
        others = methods_for(setting.measure)
        able = f"these do: {', '.join(others)}" if others else "and neither does any other"
        raise TrialError(f"method {method} does not estimate {setting.measure}; {able}")
    check_interval(setting.interval, method=method)
    return METHODS[method].prepare(setting)
