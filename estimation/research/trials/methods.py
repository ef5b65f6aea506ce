"""Simulated judging of a judged collection: the methods, each ready to play trials.

A trial draws pairs by a method, looks up their grades as if assessors gave them, and estimates.
`trials.settings` says what is simulated, `trials.reports` what the estimates are off by. Ways of
sampling pairs come from their own table; to add another method, add one entry to `METHODS`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TypeAlias, TypeVar

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, frozen, nearest
from estimation.core.data.pool import Pool
from estimation.core.inference.intervals import Bound, student_intervals
from estimation.core.inference.looks import Look
from estimation.core.measures.kinds import KINDS
from estimation.core.measures.table import Measure
from estimation.core.rounds.active.lists import make_frame
from estimation.core.rounds.active.rounds import UNIFORM_SHARE, ActivePlan, ActiveRound
from estimation.core.rounds.active.sampling import plan_batch, start
from estimation.core.rounds.adaptive.rounds import AdaptiveRound
from estimation.core.rounds.adaptive.state import AdaptivePlan
from estimation.core.rounds.evaluation import evaluate
from estimation.core.rounds.results import Evaluation
from estimation.core.rounds.rounds import PairRound, TopicRound
from estimation.core.rounds.topics.allocation import make_query_design
from estimation.core.rounds.topics.designs import QueryDesign, judged_depth, labeling_costs
from estimation.core.rounds.topics.draws import draw_queries
from estimation.core.rounds.topics.grade_models import uniform_grades
from estimation.core.sampling.allocation import make_design
from estimation.core.sampling.designs import Design
from estimation.core.sampling.draws import draw
from estimation.core.sampling.interval_kinds import IntervalKind
from estimation.core.sampling.methods import OF_PAIRS, check_interval, draws_again, interval_kinds
from estimation.core.sampling.priors import make_prior
from estimation.core.sampling.random_numbers import permanent_random_numbers
from estimation.research.baselines.estimates import covariance as selection_covariance
from estimation.research.baselines.estimates import estimate as estimate_selection
from estimation.research.baselines.select import select
from estimation.research.baselines.selections import Selection, contribution, sampling_budgets
from estimation.research.trials.honesty import Claims
from estimation.research.trials.settings import Setting, TrialError
from estimation.research.trials.stops import Ends

MAX_DRAWS = 1_000_000
BATCHES = 10  # of a simulated adaptive round
PER_TOPIC = 3  # documents of a topic in a round of active sampling, as published


@dataclass(frozen=True, eq=False)
class Spread:
    """Estimated errors of k values: covariance and df of differences (k, k), intervals (k,).

    ``differences``: with a guaranteed kind of intervals, the guarantee for the differences.
    ``expected``, ``finds``, ``freedom``: the covariance that is expected, where there is a model of
    it, from how many finds values and differences come, or how free the covariance is.
    """

    covariance: FloatArray
    df: FloatArray
    low: FloatArray
    high: FloatArray
    differences: Bound | None = None
    expected: FloatArray | None = None
    finds: FloatArray | None = None
    freedom: float | None = None

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
    """One trial: values of all runs (k,), distinct judged pairs, errors if the method has them.

    ``looks``: what is told at each look, the last of which is at these values; nothing if the
    method has no intervals. ``anytime``: what is told there so that it holds at all of them.
    ``ends``: where a rule stopped it.
    """

    value: FloatArray
    judged_pairs: int
    spread: Spread | None
    looks: tuple[Claims, ...] = ()
    anytime: tuple[Claims, ...] = ()
    ends: Ends | None = None

    @classmethod
    def of(cls, looks: Sequence[Evaluation], anytime: Sequence[Evaluation] = ()) -> "Outcome":
        """Return what a method tells whose rounds the application has."""
        results = [each.results[0] for each in looks]
        found = results[-1].estimate
        spread = Spread(
            covariance=found.covariance,
            df=found.difference_df,
            low=found.low,
            high=found.high,
            differences=found.difference_bound,
            expected=found.expected,
            finds=found.finds,
            freedom=found.freedom,
        )
        told = tuple(map(Claims.of, results))
        always = tuple(Claims.of(each.results[0]) for each in anytime)
        return cls(found.value, looks[-1].judged_pairs, spread, told, always)


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
    has_batches : bool
        Whether it can be looked at before the budget is spent.
    """

    name: str
    prepare: Callable[[Setting], Player]
    estimates: Callable[[Measure], bool]
    has_batches: bool = True


def _designed(name: str, setting: Setting, *, predictions: FloatArray | None = None) -> Player:
    """Draws and Poisson samples, by a design that is optimized for the goal."""
    pool, design = setting.pool, _design(name, setting)

    def play(seed: str) -> Outcome:
        numbers = None if design.with_replacement else _numbers(pool, seed)
        sample = draw(pool, design, seed=seed, numbers=numbers)
        seen = partial(
            evaluate,
            pool,
            PairRound(design, sample),
            labels=setting.rows(seed, sample.pair),
            measures=[setting.measure],
            max_grade=setting.max_grade,
            interval=setting.interval,
            predictions=predictions,
        )
        return _told(setting, seen, _looks(setting))

    return play


@lru_cache(maxsize=1)
def _numbers(pool: Pool, seed: str) -> FloatArray:
    """Of the latest trial. Hashing takes longer than all else, and its contests have them alike."""
    return frozen(permanent_random_numbers(pool, seed=seed))


def _helped(setting: Setting) -> Player:
    """The samples of ``poisson``, but estimated with the help of predicted grades."""
    if setting.predicted is None or setting.predicted.ndim != 1:
        message = "predicted must hold predicted grades for the method difference, of one alone"
        raise TrialError(message)
    return _designed("poisson", setting, predictions=setting.predicted)


def _design(name: str, setting: Setting) -> Design:
    return _cut(setting, _uncut(name, setting))


def _uncut(name: str, setting: Setting) -> Design:
    """A design for a budget in as many batches as there are looks, if it can be cut so."""
    pool, goal, measure = setting.pool, setting.goal, setting.measure
    prior = make_prior(
        pool,
        name=setting.prior,
        goal=goal,
        measure=measure,
        max_grade=setting.max_grade,
        grades=setting.predicted,
    )
    calibrate = draws_again(name) and setting.unit == "pairs"
    budget = 2 * len(pool.topics) if calibrate else setting.budget
    design = make_design(
        pool,
        goal=goal,
        measure=measure,
        prior=prior,
        budget=budget,
        batch_size=budget if calibrate else -(-budget // setting.looks),
        method=name,  # type: ignore[arg-type]  # one that draws pairs
        rule=setting.rule,
        max_grade=setting.max_grade,
    )
    if calibrate:
        design = _calibrated(design, setting.budget, looks=setting.looks)
    return design


def _adaptive(setting: Setting) -> Player:
    """About `BATCHES` batches or more, of which the estimates are looked at after some."""
    pool, looks = setting.pool, setting.looks
    finer = replace(setting, looks=looks * -(-BATCHES // looks))
    design = _uncut("adaptive", finer)
    if design.batches % looks:
        design = _design("adaptive", setting)
    each = design.batches // looks
    given = setting.predicted
    predicted = None if given is None else given.reshape(len(pool), -1)
    plan = AdaptivePlan(design, setting.max_grade, predicted=predicted)

    def play(seed: str) -> Outcome:
        drawn = AdaptiveRound.begin(pool, plan, seed=seed)
        labels = setting.rows(seed, drawn.sample.pair)
        while drawn.planned < drawn.batches:
            drawn = drawn.extended(pool, labels=labels, negligible=setting.negligible)
            labels = setting.rows(seed, drawn.sample.pair)
        seen = partial(
            evaluate,
            pool,
            drawn,
            labels=labels,
            measures=[setting.measure],
            max_grade=setting.max_grade,
        )
        return _told(setting, seen, [look * each for look in _looks(setting)])

    return play


def _looks(setting: Setting) -> range:
    return range(1, setting.looks + 1)


def _told(setting: Setting, seen: Callable[..., Evaluation], batches: Sequence[int]) -> Outcome:
    """What is told at looks after so many batches each, by what evaluates them."""
    seen = partial(seen, negligible=setting.within)
    at_once = [
        seen(batches=batch, look=Look(number, setting.looks))
        for number, batch in enumerate(batches, start=1)
        if setting.anytime or setting.stop
    ]
    at_each = [seen(batches=batch) for batch in batches]
    found = Outcome.of(at_each, at_once if setting.anytime else ())
    return replace(found, ends=Ends.of(setting.stop, at_once, at_each)) if setting.stop else found


AnyDesign = TypeVar("AnyDesign", Design, QueryDesign)


def _cut(setting: Setting, design: AnyDesign) -> AnyDesign:
    """The design itself, if it has a batch for each look."""
    if design.batches != setting.looks:
        found = f"a budget of {setting.budget} cannot be cut into so many equal batches"
        raise TrialError(f"looks must be fewer than {setting.looks}: {found}")
    return design


def _calibrated(design: Design, pairs: int, *, looks: int = 1) -> Design:
    """The same distribution with as many draws as come closest to so many expected pairs.

    After each look they come closest to as large a part of the pairs.
    """
    wanted = np.arange(1, looks + 1) * pairs / looks
    steps = np.unique([_nearest_step(design, each) for each in wanted.tolist()])
    draws = int(steps[-1]) * design.strata
    return replace(design, steps=frozen(steps.astype(np.float64)), budget=draws, batch_size=draws)


def _nearest_step(design: Design, pairs: float) -> int:
    def expected(step: int) -> float:
        return float(design.inclusion_after(float(step)).sum())

    least, most = (1 if design.strata > 1 else 2), MAX_DRAWS // design.strata
    if expected(most) < pairs:
        reached = f"{expected(most):.0f} pairs in {MAX_DRAWS} draws"
        raise TrialError(
            f"budget: {design.method} reaches {reached}, not {pairs:.12g}; it needs less"
        )
    below, enough = 0, most
    while enough - below > 1:
        middle = (below + enough) // 2
        below, enough = (below, middle) if expected(middle) >= pairs else (middle, enough)
    nearest = min((enough, below), key=lambda step: abs(expected(step) - pairs))
    return max(nearest, least)


def _queried(setting: Setting) -> Player:
    """Whole topics by cost, every grade believed equally likely."""
    pool, measure = setting.pool, setting.measure
    depth = judged_depth(pool, [measure])
    costs = labeling_costs(pool, runs=pool.runs, depth=depth)
    budget = min(float(setting.budget), float(costs.sum()))
    design = make_query_design(
        pool,
        goal=setting.goal,
        measure=measure,
        model=uniform_grades(pool, max_grade=setting.max_grade),
        budget=budget,
        batch_budget=budget / setting.looks,
        reported=pool.runs,
    )
    design = _cut(setting, design)

    def play(seed: str) -> Outcome:
        drawn = TopicRound(design, draw_queries(pool, design, seed=seed))
        seen = partial(
            evaluate,
            pool,
            drawn,
            labels=setting.rows(seed, drawn.served(pool).pair),
            measures=[measure],
            max_grade=setting.max_grade,
        )
        return _told(setting, seen, _looks(setting))

    return play


def _active(setting: Setting) -> Player:
    """Rounds of three documents per topic, until every topic has its share of the budget."""
    pool, measure = setting.pool, setting.measure
    limits = sampling_budgets(pool, contribution(pool, None).sizes, setting.budget)
    frame = make_frame(pool)
    relevant = int(dict(measure.params).get("rel", 1))
    plan = ActivePlan(limits, PER_TOPIC, relevant, pool.digest)
    batches = _active_looks(setting, plan)

    def play(seed: str) -> Outcome:
        state = start(
            frame,
            seed=seed,
            batch_size=PER_TOPIC,
            relevant_from=relevant,
            uniform_share=UNIFORM_SHARE,
        )
        labels = setting.rows(seed, state.pair)
        while (planned := plan_batch(frame, state, labels=labels, limits=limits)) is not state:
            state, labels = planned, setting.rows(seed, planned.pair)
        seen = partial(
            evaluate,
            pool,
            ActiveRound(plan, state),
            labels=labels,
            measures=[measure],
            max_grade=setting.max_grade,
        )
        return _told(setting, seen, batches)

    return play


def _active_looks(setting: Setting, plan: ActivePlan) -> list[int]:
    """The first batch at which each share of the budget is spent."""
    every = range(1, plan.batches + 1)
    spent = [int(np.minimum(plan.limits, batch * PER_TOPIC).sum()) for batch in every]
    shares = [-(-plan.budget * look // setting.looks) for look in _looks(setting)]
    looks = [int(batch) + 1 for batch in np.searchsorted(spent, shares)]
    if len(set(looks)) < setting.looks:
        found = f"a budget of {setting.budget} has {plan.batches} batches"
        raise TrialError(f"looks must be fewer than {setting.looks}: {found}")
    return looks


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
        spread = _selection_spread(setting, selection, given, value)
        return Outcome(value, len(selection), spread, _without_verdicts(spread))

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


def _without_verdicts(spread: Spread | None) -> tuple[Claims, ...]:
    if spread is None:
        return ()
    return (Claims(spread.low, spread.high, np.ones(len(spread.low), dtype=np.bool_)),)


def _by_design(measure: Measure) -> bool:
    return measure.family in ("gain", "ratio", "prediction", "preference")


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
        *(Method(name, partial(_designed, name), _by_design) for name in OF_PAIRS),
        Method("adaptive", _adaptive, _by_design),
        Method("difference", _helped, _of_gains),
        Method("query", _queried, _by_topic),
        Method("active", _active, _actively),
        Method("uniform", partial(_selected, "uniform"), _by_sample, has_batches=False),
        Method("stratified", partial(_selected, "stratified"), _by_sample, has_batches=False),
        Method("top", partial(_selected, "top"), _from_judged, has_batches=False),
        Method("deep", partial(_selected, "deep"), _from_judged, has_batches=False),
        Method("mtf", partial(_selected, "mtf"), _from_judged, has_batches=False),
        Method("mab", partial(_selected, "mab"), _from_judged, has_batches=False),
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

    With several looks a design is cut into as many batches, of which every prefix is an exact
    sample of the same design with a smaller budget. Looking changes nothing about the sample.

    Raises
    ------
    TrialError
        If there is no such method, or it has no estimator for the measure, or no batches to look
        at; the message lists those that have.
    ValueError
        If the method cannot work with the goal, the budget, the prior or the kind of intervals.
    """
    if method not in METHODS:
        meant = nearest(method, METHODS)
        raise TrialError(f"method must be one of {', '.join(METHODS)}, not {method!r}{meant}")
    if not METHODS[method].estimates(setting.measure):
        others = methods_for(setting.measure)
        able = f"these do: {', '.join(others)}" if others else "and neither does any other"
        raise TrialError(f"method {method} does not estimate {setting.measure}; {able}")
    check_interval(setting.interval, method=method)
    if setting.looks > 1 and not METHODS[method].has_batches:
        able = ", ".join(name for name in methods_for(setting.measure) if METHODS[name].has_batches)
        why = f"the method {method}, which has no batches, not {setting.looks}; these have: {able}"
        raise TrialError(f"looks must be 1 for {why}")
    return METHODS[method].prepare(setting)
