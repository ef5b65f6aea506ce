"""Plays trials of a method and reports how far its estimates are from the truth."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, check_whole
from estimation.core.goals import Goal
from estimation.core.intervals import Bound, difference_variances, student_intervals
from estimation.core.trials.methods import Outcome, Player, Spread
from estimation.core.trials.settings import Setting, TrialError

CONFIDENCE = 0.95
TIED = 1e-12  # of the largest value: differences below it are rounding


@dataclass(frozen=True)
class Report:
    """How a method did. Errors are of what the goal asks for:

    ============ ===================================================
    goal         compared with the truth
    ============ ===================================================
    single       the value of the run
    absolute     the value of every run
    pair         the first run's value less the second's
    baseline     every run's value less the baseline's
    ranking      every run's value less the mean over the runs
    ============ ===================================================

    Attributes
    ----------
    method, goal, measure : str
    budget, trials : int
    systems : tuple of str
        The goal's runs, the baseline last.
    judged_pairs : float
        Distinct pairs that a trial judged, on average.
    rmse : float
        Root of the mean squared error over all trials and runs.
    bias : float
        Root of the mean over runs of the squared mean error over trials. Has no sign; of it,
        sd / sqrt(trials) is to be expected of a method without bias.
    sd : float or None
        Root of the mean over runs of the variance over trials (divisor trials - 1). None for one
        trial.
    coverage, half_width : float or None
        Share of the 95 % intervals, one per trial and run, that hold the truth, and their mean
        half width. None for methods without intervals.
    kendall_tau : float or None
        Mean over trials of `kendall_tau` between estimated and true values of the systems. None
        if there is one system or all are truly equal.
    seconds_per_trial : float
        Wall-clock time to draw, judge and estimate.
    """

    method: str
    goal: str
    measure: str
    budget: int
    trials: int
    systems: tuple[str, ...]
    judged_pairs: float
    rmse: float
    bias: float
    sd: float | None
    coverage: float | None
    half_width: float | None
    kendall_tau: float | None
    seconds_per_trial: float


@dataclass(frozen=True, eq=False)
class _Trial:
    """What a report needs of one outcome: values, and ends of the goal's intervals if any."""

    value: FloatArray
    judged_pairs: int
    limits: tuple[FloatArray, FloatArray] | None


def play_trials(
    setting: Setting,
    method: str,
    player: Player,
    *,
    trials: int,
    seed: str,
    after_each: Callable[[], None] = lambda: None,
) -> Report:
    """Play trials, the t-th (from 0) with the seed "<seed>/<t>", and report.

    The report, but for its time, is a function of setting, method, trials and seed.

    Parameters
    ----------
    player : callable
        From `prepare`, for the same setting and method.
    trials : int
        At least 1.
    seed : str
    after_each : callable
        Called after every trial.
    """
    check_whole(trials, name="trials", error=TrialError)
    started = time.perf_counter()
    played = []
    for number in range(trials):
        played.append(_reduced(setting, player(f"{seed}/{number}")))
        after_each()
    seconds = (time.perf_counter() - started) / trials
    return _report(setting, method, played, seconds)


def compared(goal: Goal, values: FloatArray) -> FloatArray:
    """Return what a goal asks for from values of `Goal.all_runs`, along the last axis."""
    if goal.kind in ("single", "absolute"):
        return values
    if goal.kind == "ranking":
        return np.asarray(values - values.mean(axis=-1, keepdims=True))
    return np.asarray(values[..., :-1] - values[..., -1:])


def kendall_tau(estimated: FloatArray, true: FloatArray) -> float | None:
    """Return Kendall's tau-b between two vectors of values.

    0 if all estimates are equal, which orders nothing; None if all true values are. Values that
    differ by rounding only are equal.
    """
    signs = [_order(estimated), _order(true)]
    pairs = [np.count_nonzero(each) for each in signs]
    if pairs[1] == 0:
        return None
    return float(np.sum(signs[0] * signs[1]) / np.sqrt(pairs[0] * pairs[1])) if pairs[0] else 0.0


def _order(values: FloatArray) -> FloatArray:
    difference = np.subtract.outer(values, values)
    difference[np.abs(difference) <= TIED * np.abs(values).max()] = 0.0
    return np.sign(difference)


def _reduced(setting: Setting, outcome: Outcome) -> _Trial:
    limits = None if outcome.spread is None else _limits(setting, outcome.value, outcome.spread)
    return _Trial(outcome.value[setting.runs], outcome.judged_pairs, limits)


def _limits(setting: Setting, value: FloatArray, spread: Spread) -> tuple[FloatArray, FloatArray]:
    """Intervals of what the goal asks for.

    The difference from the mean is the mean of the differences from the runs, and gets the median
    of their degrees of freedom.
    """
    goal, runs = setting.goal, setting.runs
    if goal.kind in ("single", "absolute"):
        return spread.low[runs], spread.high[runs]
    if spread.differences is not None:
        return _guaranteed_limits(goal, compared(goal, value[runs]), spread.differences, runs)
    covariance, df = spread.covariance[np.ix_(runs, runs)], spread.df[np.ix_(runs, runs)]
    if goal.kind == "ranking":
        contrasts = compared(goal, np.eye(len(runs)))
        variance = np.einsum("jc,jl,lc->c", contrasts, covariance, contrasts, optimize=True)
        others = df[~np.eye(len(runs), dtype=bool)].reshape(len(runs), -1)
        freedom = np.median(others, axis=1)
    else:
        variance, freedom = difference_variances(covariance)[:-1, -1], df[:-1, -1]
    found = student_intervals(compared(goal, value[runs]), variance=variance, df=freedom)
    return found.low, found.high


def _guaranteed_limits(
    goal: Goal, wanted: FloatArray, bound: Bound, runs: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The same by a guarantee for differences.

    The difference from the mean of k runs is off by at most the sum of what its k - 1 differences
    are off by, over k, each at 1 / (k - 1) of the error.
    """
    if goal.kind != "ranking":
        below, above = (
            each(CONFIDENCE)[runs[:-1], runs[-1]] for each in (bound.below, bound.above)
        )
        return wanted - below, wanted + above
    number = len(runs)
    each_alone = 1.0 - (1.0 - CONFIDENCE) / max(1, number - 1)
    below, above = (
        each(each_alone)[np.ix_(runs, runs)].sum(axis=1) / number
        for each in (bound.below, bound.above)
    )
    return wanted - below, wanted + above


def _report(setting: Setting, method: str, played: list[_Trial], seconds: float) -> Report:
    goal, true = setting.goal, setting.truth()[setting.runs]
    wanted = compared(goal, true)
    estimates = compared(goal, np.stack([each.value for each in played]))
    errors = estimates - wanted
    several = len(played) > 1
    coverage, half_width = _coverage(wanted, [each.limits for each in played])
    taus = [kendall_tau(each.value, true) for each in played]
    orders = [tau for tau in taus if tau is not None]
    return Report(
        method=method,
        goal=goal.kind,
        measure=str(setting.measure),
        budget=setting.budget,
        trials=len(played),
        systems=goal.all_runs,
        judged_pairs=float(np.mean([each.judged_pairs for each in played])),
        rmse=float(np.sqrt(np.mean(errors**2))),
        bias=float(np.sqrt(np.mean(errors.mean(axis=0) ** 2))),
        sd=float(np.sqrt(np.mean(errors.var(axis=0, ddof=1)))) if several else None,
        coverage=coverage,
        half_width=half_width,
        kendall_tau=float(np.mean(orders)) if orders else None,
        seconds_per_trial=seconds,
    )


def _coverage(
    wanted: FloatArray, limits: list[tuple[FloatArray, FloatArray] | None]
) -> tuple[float | None, float | None]:
    """Share of intervals that hold what was wanted, and their mean half width."""
    known = [each for each in limits if each is not None]
    if len(known) < len(limits):
        return None, None
    low, high = (np.stack(ends) for ends in zip(*known, strict=True))
    slack = TIED * np.abs(wanted).max()  # a census has intervals of width 0, met up to rounding
    inside = (low - slack <= wanted) & (wanted <= high + slack)
    return float(inside.mean()), float((high - low).mean() / 2.0)
