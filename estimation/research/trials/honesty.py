"""Whether what organizers are told about the runs of a pool is true, and how much they are told.

Everything here is about *all* runs and about what is shown: the intervals of values, the verdicts
on pairs of runs, the possible ranks. The unit of a promise decides how it is counted: an interval
is promised for a run, so that the run for which it holds least often is what counts; verdicts and
ranks are promised all at once, so that one false one makes the trial false.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from estimation.core.arrays import BoolArray, FloatArray, IntArray
from estimation.core.inference.orders import TIED, signs
from estimation.core.inference.unknown import Reason
from estimation.core.rounds.results import MeasureResult

Signs = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Standings:
    """Verdicts (k, k), 1 where the row's run is surely better; best and worst possible ranks (k,).

    As in `ranks.Ranking`. ``equivalent``: which pairs differ by at most ``within``, where told.
    """

    verdicts: Signs
    rank_low: IntArray
    rank_high: IntArray
    equivalent: BoolArray | None = None
    within: float = 0.0


@dataclass(frozen=True, eq=False)
class Apart:
    """Differences of k runs, row less column, and half their intervals; NaN where not shown."""

    difference: FloatArray
    margin: FloatArray


@dataclass(frozen=True, eq=False)
class Claims:
    """What is told about k runs at one look.

    Attributes
    ----------
    low, high : ndarray of float64, shape (k,)
        Ends of the intervals of the values.
    shown : ndarray of bool, shape (k,)
        Whether the value is shown. It is withheld where it is unknown.
    standings : Standings or None
        None for methods without verdicts.
    apart : Apart or None
        The same of the intervals of differences, each taken alone.
    """

    low: FloatArray
    high: FloatArray
    shown: BoolArray
    standings: Standings | None = None
    apart: Apart | None = None

    @classmethod
    def of(cls, result: MeasureResult) -> "Claims":
        """Return what a result tells, by the estimator that is shown."""
        found, ranking = result.estimate, result.ranking
        standings = Standings(ranking.verdicts, ranking.rank_low, ranking.rank_high)
        if alike := result.equivalence:
            equal = alike.pairs(ranking.unknown)
            standings = replace(standings, equivalent=equal, within=alike.within)
        margin = np.where(ranking.unknown == Reason.KNOWN, ranking.margin, np.nan)
        apart = Apart(ranking.difference, margin)
        return cls(found.low, found.high, found.unknown == Reason.KNOWN, standings, apart)


@dataclass(frozen=True, eq=False)
class Truth:
    """True values of k runs, and which of each two is truly better.

    Attributes
    ----------
    value : ndarray of float64, shape (k,)
    order : ndarray of int8, shape (k, k)
        1 where the row's run is truly better, -1 where it is worse, 0 where they are tied.
    """

    value: FloatArray
    order: Signs

    @classmethod
    def of(cls, value: FloatArray, *, lower_is_better: bool = False) -> "Truth":
        """Order true values. Differences of the size of rounding are ties."""
        ahead = -signs(value) if lower_is_better else signs(value)
        return cls(value, ahead.astype(np.int8))


def within(wanted: FloatArray, low: FloatArray, high: FloatArray) -> BoolArray:
    """Return which intervals hold what was wanted; a census has some of width 0, up to rounding."""
    slack = TIED * np.abs(wanted).max()
    return np.asarray((low - slack <= wanted) & (wanted <= high + slack))


# ---------------------------------------------------------------------------------- one trial


@dataclass(frozen=True)
class Order:
    """What became of the verdicts and ranks of a trial: `Honesty` says what is counted."""

    any_false: bool
    any_reversed: bool
    ranks_hold: bool
    true_verdicts: int


@dataclass(frozen=True, eq=False)
class Checked:
    """What became of the claims of a trial.

    Attributes
    ----------
    told : ndarray of bool, shape (k,)
        Whether the value was shown at any look.
    held : ndarray of bool, shape (k,)
        Whether the interval held the truth at every look at which it was shown.
    half_width : ndarray of float64, shape (k,)
        At the last look; NaN where the value was withheld then.
    order : Order or None
    differences : (int, int)
        Differences, each once, that were shown at any look, and of how many of them the interval
        held the truth at every look at which it was shown.
    """

    told: BoolArray
    held: BoolArray
    half_width: FloatArray
    order: Order | None
    differences: tuple[int, int]


def check(looks: Sequence[Claims], truth: Truth) -> Checked:
    """Hold the claims of a trial, look by look, against the truth.

    Who looks several times may believe any of the looks, so that an interval, a verdict or a
    range of ranks counts as false if it was false at *any* look. How much is told, verdicts and
    widths, is counted at the last one.
    """
    shown = np.stack([each.shown for each in looks])
    inside = np.stack([within(truth.value, each.low, each.high) for each in looks])
    last = looks[-1]
    return Checked(
        told=np.asarray(shown.any(axis=0)),
        held=np.asarray((inside | ~shown).all(axis=0)),
        half_width=np.where(last.shown, (last.high - last.low) / 2.0, np.nan),
        order=_order([each.standings for each in looks], truth),
        differences=_differences([each.apart for each in looks if each.apart is not None], truth),
    )


def _differences(looks: Sequence[Apart], truth: Truth) -> tuple[int, int]:
    if not looks:
        return 0, 0
    once = np.triu_indices(len(truth.value), k=1)
    true = np.subtract.outer(truth.value, truth.value)
    slack = TIED * np.abs(truth.value).max()
    margin = np.stack([each.margin for each in looks])
    off = np.stack([np.abs(each.difference - true) for each in looks]) - slack
    shown = ~np.isnan(margin)
    held = (off <= margin) | ~shown
    told, right = (np.asarray(each)[once] for each in (shown.any(axis=0), held.all(axis=0)))
    return int(told.sum()), int((told & right).sum())


def _order(looks: Sequence[Standings | None], truth: Truth) -> Order | None:
    known = [each for each in looks if each is not None]
    if len(known) < len(looks):
        return None
    said, so = np.stack([each.verdicts for each in known]), truth.order
    return Order(
        any_false=bool(np.any((said != 0) & (said != so)))
        or any(_falsely_equal(each, truth) for each in known),
        any_reversed=bool(np.any(said * so == -1)),
        ranks_hold=all(ranks_hold(each, truth) for each in known),
        true_verdicts=int(np.count_nonzero((said[-1] != 0) & (said[-1] == so))) // 2,
    )


def _falsely_equal(found: Standings, truth: Truth) -> bool:
    """Whether runs were called equivalent that differ by more than what is negligible."""
    if found.equivalent is None:
        return False
    apart = np.abs(np.subtract.outer(truth.value, truth.value)) > found.within
    return bool(np.any(found.equivalent & apart & (truth.order != 0)))


def ranks_hold(found: Standings, truth: Truth) -> bool:
    """Return whether all true ranks lie within the possible ones.

    Runs that are truly tied share all the places that they take together: the true ranks of a run
    are 1 + #(truly better) to k - #(truly worse), the first of which is its rank in Mogstad,
    Romano, Shaikh and Wilhelm. All of them must be possible. That is the strictest reading, and
    it asks no more than the verdicts promise: without a false verdict, a verdict on a tie among
    them, those surely better are some of the truly better, and those surely worse some of the
    truly worse. So ranks hold at least as often as all verdicts do.
    """
    best = 1 + np.count_nonzero(truth.order == -1, axis=1)
    worst = len(best) - np.count_nonzero(truth.order == 1, axis=1)
    return bool(np.all((found.rank_low <= best) & (worst <= found.rank_high)))


# --------------------------------------------------------------------------------- all trials


@dataclass(frozen=True)
class Honesty:
    """How often what was told about all runs of the pool was true, and how much was told.

    None, all of it, for methods without intervals; None from `familywise_error` on for those
    without verdicts. With several looks at a trial, what was false at any of them is false.

    Attributes
    ----------
    worst_run_coverage : float or None
        The least, over runs, of the share of trials in which the run's interval held the truth,
        of those in which its value was shown. Runs whose value never was have no part.
    value_coverage : float or None
        The same share over all runs together.
    coverage_error : float or None
        Standard error of `value_coverage`. Runs of a trial share its draws and err together, so
        that trials are counted and not intervals. None of one trial.
    difference_coverage : float or None
        The share of `value_coverage`, of the differences of all runs: those that were shown, each
        by its interval taken alone.
    withheld : float or None
        Share of the values, one per trial and run, that were not shown at the last look.
    worst_run : str or None
        The run of `worst_run_coverage`, the first in the pool if there are several.
    median_half_width : float or None
        Median of half the length of the intervals that were shown at the last look.
    familywise_error : float or None
        Share of trials with any false verdict: for the run that is truly worse, or on two that
        are truly tied.
    reversed_verdicts : float or None
        Share of trials with any verdict for the run that is truly worse.
    rank_coverage : float or None
        Share of trials in which all true ranks lay within the possible ranks; see `ranks_hold`.
    true_verdicts : float or None
        Verdicts, each pair of runs once, that were true, per trial, at the last look.
    """

    worst_run_coverage: float | None = None
    value_coverage: float | None = None
    coverage_error: float | None = None
    difference_coverage: float | None = None
    withheld: float | None = None
    worst_run: str | None = None
    median_half_width: float | None = None
    familywise_error: float | None = None
    reversed_verdicts: float | None = None
    rank_coverage: float | None = None
    true_verdicts: float | None = None


def honesty(trials: Sequence[Checked | None], runs: Sequence[str]) -> Honesty:
    """Sum up the trials of a method; one without intervals leaves nothing to say.

    Parameters
    ----------
    trials : sequence of Checked or None
        At least one.
    runs : sequence of str
        Tags of the k runs.
    """
    known = [each for each in trials if each is not None]
    if len(known) < len(trials):
        return Honesty()
    told, held = (np.stack([getattr(each, name) for each in known]) for name in ("told", "held"))
    widths = np.stack([each.half_width for each in known])
    values = _of_values(told, held, widths, runs)
    orders = [each.order for each in known if each.order is not None]
    told_of, right = map(sum, zip(*(each.differences for each in known), strict=True))
    values = replace(values, difference_coverage=right / told_of if told_of else None)
    return _with_verdicts(values, orders) if len(orders) == len(known) else values


def _of_values(
    told: BoolArray, held: BoolArray, widths: FloatArray, runs: Sequence[str]
) -> Honesty:
    hidden, times, right = np.isnan(widths), told.sum(axis=0), (held & told).sum(axis=0)
    withheld = float(hidden.mean())
    if not times.any():
        return Honesty(withheld=withheld)
    share = np.where(times > 0, right / np.maximum(times, 1), np.inf)
    worst = int(np.argmin(share))
    return Honesty(
        worst_run_coverage=float(share[worst]),
        value_coverage=float(right.sum() / times.sum()),
        coverage_error=_error_of_share((held & told).sum(axis=1), told.sum(axis=1)),
        withheld=withheld,
        worst_run=runs[worst],
        median_half_width=None if hidden.all() else float(np.median(widths[~hidden])),
    )


def _error_of_share(right: IntArray, times: IntArray) -> float | None:
    """Standard error of sum(right) / sum(times), where trials are independent and runs are not."""
    trials = len(times)
    if trials < 2:
        return None
    beyond = right - times * (right.sum() / times.sum())
    return float(np.sqrt(trials / (trials - 1) * np.sum(beyond**2)) / times.sum())


def _with_verdicts(values: Honesty, orders: Sequence[Order]) -> Honesty:
    return replace(
        values,
        familywise_error=float(np.mean([each.any_false for each in orders])),
        reversed_verdicts=float(np.mean([each.any_reversed for each in orders])),
        rank_coverage=float(np.mean([each.ranks_hold for each in orders])),
        true_verdicts=float(np.mean([each.true_verdicts for each in orders])),
    )
