"""Plays trials of a method and reports how far its estimates are from the truth."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from estimation.core.arrays import FloatArray, IntArray, check_whole
from estimation.core.inference.intervals import Bound, student_intervals
from estimation.core.inference.orders import kendall_tau
from estimation.core.inference.uncertainty import variances_of_contrasts
from estimation.core.sampling.goals import Goal
from estimation.research.trials.honesty import (
    Checked,
    Honesty,
    Truth,
    check,
    honesty,
    within,
)
from estimation.research.trials.methods import Player, Spread
from estimation.research.trials.processes import in_processes
from estimation.research.trials.settings import Setting, TrialError
from estimation.research.trials.stops import Ends, Stops, checked, stops

CONFIDENCE = 0.95
AMONG_ALL = ("ranking", "winner")  # goals that ask for the differences between all of their runs


@dataclass(frozen=True)
class TrialReport:
    """How a method did. Errors are of what the goal asks for, after the last look:

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
    budget, trials, looks : int
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
    honesty : Honesty
        Of what is told about all runs of the pool, whatever the goal, at all looks.
    anytime : Honesty or None
        Of what is told so that it holds at all looks at once. None if that was not asked for.
    stops : Stops or None
        What a rule did. None if there was none.
    seconds_per_trial : float
        Wall-clock time to draw, judge and estimate, in the process that did it. Of methods that
        share their random numbers the first has their time.
    """

    method: str
    goal: str
    measure: str
    budget: int
    trials: int
    looks: int
    systems: tuple[str, ...]
    judged_pairs: float
    rmse: float
    bias: float
    sd: float | None
    coverage: float | None
    half_width: float | None
    kendall_tau: float | None
    honesty: Honesty
    anytime: Honesty | None
    stops: Stops | None
    seconds_per_trial: float


@dataclass(frozen=True, eq=False)
class _Trial:
    """What a report needs of one outcome: ends of the goal's intervals and claims, if any."""

    value: FloatArray
    judged_pairs: int
    limits: tuple[FloatArray, FloatArray] | None
    checked: Checked | None
    anytime: Checked | None
    ends: tuple[Ends, Checked, Checked] | None
    seconds: float


@dataclass(frozen=True, eq=False)
class Contest:
    """A setting and a method, whose `player` is from `prepare`, for just these."""

    setting: Setting
    method: str
    player: Player


def play_contests(
    contests: Sequence[Contest],
    *,
    trials: int,
    seed: str,
    jobs: int = 1,
    after_each: Callable[[], None] = lambda: None,
) -> list[TrialReport]:
    """Play trials of every contest, the t-th (from 0) with the seed "<seed>/<t>", and report.

    A report, but for its time, is a function of setting, method, trials and seed. All contests of
    a trial are played before the next trial, because they share their random numbers.

    Parameters
    ----------
    contests : sequence of Contest
    trials : int
        At least 1.
    seed : str
    jobs : int
        Number of processes to play trials in, at least 1.
    after_each : callable
        Called after every trial.

    Raises
    ------
    TrialError
        If there is no trial to play.
    ValueError
        If jobs is out of range.
    """
    check_whole(trials, name="trials", error=TrialError)
    referees = [_Referee.of(each) for each in contests]

    def play(number: int) -> list[_Trial]:
        return [each.play(f"{seed}/{number}") for each in referees]

    played = []
    for trial in in_processes(play, trials, jobs=jobs):
        played.append(trial)
        after_each()
    return [
        _report(referee, list(column))
        for referee, column in zip(referees, zip(*played, strict=True), strict=True)
    ]


def play_trials(
    setting: Setting,
    method: str,
    player: Player,
    *,
    trials: int,
    seed: str,
    jobs: int = 1,
    after_each: Callable[[], None] = lambda: None,
) -> TrialReport:
    """Play a single contest; see `play_contests`."""
    contests = [Contest(setting, method, player)]
    return play_contests(contests, trials=trials, seed=seed, jobs=jobs, after_each=after_each)[0]


@dataclass(frozen=True, eq=False)
class _Referee:
    """Holds trials of a contest against what is worked out once: goal's runs, truth of all runs."""

    contest: Contest
    runs: IntArray
    truth: Truth

    @classmethod
    def of(cls, contest: Contest) -> "_Referee":
        setting = contest.setting
        lower = setting.measure.lower_is_better
        return cls(contest, setting.runs, Truth.of(setting.truth(), lower_is_better=lower))

    def play(self, seed: str) -> _Trial:
        started = time.perf_counter()
        outcome = self.contest.player(seed)
        value, spread = outcome.value, outcome.spread
        goal = self.contest.setting.goal
        return _Trial(
            value=value[self.runs],
            judged_pairs=outcome.judged_pairs,
            limits=None if spread is None else _limits(goal, self.runs, value, spread),
            checked=check(outcome.looks, self.truth) if outcome.looks else None,
            anytime=check(outcome.anytime, self.truth) if outcome.anytime else None,
            ends=checked(outcome.ends, self.truth) if outcome.ends else None,
            seconds=time.perf_counter() - started,
        )


def compared(goal: Goal, values: FloatArray) -> FloatArray:
    """Return what a goal asks for from values of `Goal.all_runs`, along the last axis."""
    if goal.kind in ("single", "absolute"):
        return values
    if goal.kind in AMONG_ALL:
        return np.asarray(values - values.mean(axis=-1, keepdims=True))
    return np.asarray(values[..., :-1] - values[..., -1:])


def _limits(
    goal: Goal, runs: IntArray, value: FloatArray, spread: Spread
) -> tuple[FloatArray, FloatArray]:
    """Intervals of what the goal asks for.

    The difference from the mean is the mean of the differences from the runs, and gets the median
    of their degrees of freedom, and of their numbers of finds.
    """
    if goal.kind in ("single", "absolute"):
        return spread.low[runs], spread.high[runs]
    if spread.differences is not None:
        return _guaranteed_limits(goal, compared(goal, value[runs]), spread.differences, runs)
    among = np.ix_(runs, runs)
    contrasts = compared(goal, np.eye(len(runs))).T

    def of_differences(numbers: FloatArray) -> FloatArray:
        """Numbers of all differences, for those that the goal asks for."""
        if goal.kind not in AMONG_ALL:
            return numbers[among][:-1, -1]
        others = numbers[among][~np.eye(len(runs), dtype=bool)].reshape(len(runs), -1)
        return np.asarray(np.median(others, axis=1), dtype=np.float64)

    variance = variances_of_contrasts(
        contrasts,
        spread.covariance[among],
        None if spread.expected is None else spread.expected[among],
        None if spread.finds is None else of_differences(spread.finds),
        spread.freedom,
    )
    freedom = of_differences(spread.df)
    found = student_intervals(compared(goal, value[runs]), variance=variance, df=freedom)
    return found.low, found.high


def _guaranteed_limits(
    goal: Goal, wanted: FloatArray, bound: Bound, runs: IntArray
) -> tuple[FloatArray, FloatArray]:
    """The same by a guarantee for differences.

    The difference from the mean of k runs is off by at most the sum of what its k - 1 differences
    are off by, over k, each at 1 / (k - 1) of the error.
    """
    if goal.kind not in AMONG_ALL:
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


def _report(referee: _Referee, played: list[_Trial]) -> TrialReport:
    setting, true = referee.contest.setting, referee.truth.value[referee.runs]
    goal = setting.goal
    wanted = compared(goal, true)
    estimates = compared(goal, np.stack([each.value for each in played]))
    errors = estimates - wanted
    several = len(played) > 1
    coverage, half_width = _coverage(wanted, [each.limits for each in played])
    taus = [kendall_tau(each.value, true) for each in played]
    orders = [tau for tau in taus if tau is not None]
    runs, ends = setting.pool.runs, [each.ends for each in played if each.ends]
    return TrialReport(
        method=referee.contest.method,
        goal=goal.kind,
        measure=str(setting.measure),
        budget=setting.budget,
        trials=len(played),
        looks=setting.looks,
        systems=goal.all_runs,
        judged_pairs=float(np.mean([each.judged_pairs for each in played])),
        rmse=float(np.sqrt(np.mean(errors**2))),
        bias=float(np.sqrt(np.mean(errors.mean(axis=0) ** 2))),
        sd=float(np.sqrt(np.mean(errors.var(axis=0, ddof=1)))) if several else None,
        coverage=coverage,
        half_width=half_width,
        kendall_tau=float(np.mean(orders)) if orders else None,
        honesty=honesty([each.checked for each in played], runs),
        anytime=honesty([each.anytime for each in played], runs) if setting.anytime else None,
        stops=stops(ends, runs) if len(ends) == len(played) else None,
        seconds_per_trial=float(np.mean([each.seconds for each in played])),
    )


def _coverage(
    wanted: FloatArray, limits: list[tuple[FloatArray, FloatArray] | None]
) -> tuple[float | None, float | None]:
    """Share of intervals that hold what was wanted, and their mean half width."""
    known = [each for each in limits if each is not None]
    if len(known) < len(limits):
        return None, None
    low, high = (np.stack(ends) for ends in zip(*known, strict=True))
    return float(within(wanted, low, high).mean()), float((high - low).mean() / 2.0)
