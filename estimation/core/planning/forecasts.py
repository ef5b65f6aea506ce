"""How far a round will get: what later batches will bring, from the judgments so far.

What a sample will have missed later follows from the design: the expected variance of
`inference.unseen` at the probabilities of a later batch, for the grades that the judgments so far
let one expect. A variance by the product's rule (`uncertainty`) is taken to fall as that does,

    V(later) = V(now) * E(later) / E(now),

value by value and difference by difference; with draws with replacement it is V(now) n / n'.
Disagreement between assessors falls with the number of judged pairs. Half widths fall as the root.

Differences regress to the mean: `shrinkage` says how large they really may be, and with what chance
they are beyond the critical value later. That is the product's own, of the step-down procedure of
`multiplicity`, for the differences that are expected then; of more than `MOST_DIFFERENCES` it is
that of now, for fewer differences. When one run is known to be the best is told by futures that
`contenders` plays: the chance that it was so at some look by then.

A forecast looks at judgments, and changes none: nothing is drawn, weighted or estimated by it. An
organizer who stops because of what is foretold stops at a time that depends on the judgments;
intervals are then those of `Asked.confidence` at one look.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..inference.intervals import difference_variances
from ..inference.out_of_reach import OutOfReach
from ..inference.slack import slack
from ..rounds.adaptive.rounds import AdaptiveRound
from ..rounds.rounds import PairRound
from ..upper import above, mirrored
from .adaptive_ahead import ahead_of_batches
from .ahead import ahead_of_pairs
from .contenders import Contenders, Horizon
from .critical import (
    adjusted_p_values,
    critical_value,
    critical_value_of,
    independent_number,
)
from .foretold import Forecast, Foretold, crossings
from .nearness import Near, settled_now
from .ratio_ahead import ratio_exactness
from .shrinkage import SURE, fit_spread
from .tabulated import Tabulated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..arrays import BoolArray, FloatArray
    from ..data.labels import LabelRows
    from ..data.scope import Scope
    from ..measures.table import Measure
    from ..rounds.results import MeasureResult
    from .ahead import After, Ahead
    from .shrinkage import Observed, TrueSpread

MOST_DIFFERENCES = 2000  # for whose later critical value all are looked at
MANY = 1000  # differences from which on what is told of them is read off a table


def supports(part: object, measure: Measure) -> bool:
    """Return whether there is a forecast for what was drawn and the measure: sums, and ratios."""
    return isinstance(part, PairRound | AdaptiveRound) and measure.family in ("gain", "ratio")


def forecast(
    scope: Scope,
    part: PairRound | AdaptiveRound,
    *,
    batches: int,
    result: MeasureResult,
    max_grade: int,
    confidence: float = 0.95,
    labels: LabelRows | None = None,
) -> Forecast:
    """Foretell half widths and verdicts after later batches, and beyond the budget.

    Parameters
    ----------
    scope : Scope
        The runs that `result` is about.
    part : PairRound or AdaptiveRound
        All of its batches, also those that are not judged.
    batches : int
        Those that `result` rests on.
    result : MeasureResult
        Of a sum of gains or a ratio, with Student intervals, from `evaluation.evaluate`.
    max_grade : int
        The best grade of the scale.
    confidence : float
        Of `result`.
    labels : LabelRows, optional
        Of the pairs of these batches, which adaptive rounds learn from; others do not need them.

    Returns
    -------
    Forecast

    Raises
    ------
    ValueError
        If there is no forecast for the measure, or a number is out of range.
    """
    if not supports(part, result.measure):
        raise ValueError(f"there is no forecast for {result.measure} and {part.method!r}")
    ahead = _ahead(scope, part, batches, result, labels)
    present, later = _Present.of(scope, ahead, result, max_grade), ahead.later
    critical = present.critical_values(later, result.ranking.adjusted_p, 1.0 - confidence)
    critical, end = critical / present.exact, _end(later)
    near = Near.of(result, present.slack, 1.0 - confidence, exact=present.exact)
    short = [near.short(step, end) if near else 0.0 for step in range(len(later))]
    now = _now(present, result, batches)
    best = present.best(later, critical, short, by_now=now.best)
    enough: list[float | None] = [None] * len(later)
    if near:
        enough = [*present.best(later, critical, short, near, by_now=now.enough or 0.0)]
    widths = present.half_widths(later)
    told = [
        present.told(after, level, near, short[step], best[step], enough[step], widths[step])
        for step, (after, level) in enumerate(zip(later, critical, strict=True))
    ]
    number, steps = len(present.z), (now, *(each for each, _ in told))
    chances = np.array([np.zeros(number), *(settled for _, settled in told)])
    until = crossings([each.pairs for each in steps], chances)
    until = mirrored(until, len(result.runs), diagonal=0.0)
    return Forecast(batches, number, steps, until)


def _ahead(
    scope: Scope,
    part: PairRound | AdaptiveRound,
    batches: int,
    result: MeasureResult,
    labels: LabelRows | None,
) -> Ahead:
    if isinstance(part, PairRound):
        return ahead_of_pairs(scope, part, batches, result)
    if labels is None:
        raise ValueError("the forecast of an adaptive round needs its labels")
    return ahead_of_batches(scope, part, batches, result, labels)


@dataclass(frozen=True, eq=False)
class _Present:
    """What is known now.

    Attributes
    ----------
    judged : float
        Pairs.
    covariance : ndarray of float64, shape (k, k)
        That is expected now.
    value, variance, half_width : ndarray of float64, shape (k,)
    lopsided : ndarray of float64, shape (k,)
        What the longer side of an interval has more than half of its length, as a share of this.
    z : ndarray of float64, shape (n,)
        Differences of every two runs in standard errors, by row of the upper triangle.
    exact : float
        What differences really err by, in these standard errors, at most 1 (`ratio_exactness`).
        What they may truly be is told in units of that.
    slack : ndarray of float64, shape (k, k)
        As for `rank_runs`.
    """

    judged: float
    covariance: FloatArray
    value: FloatArray
    variance: FloatArray
    half_width: FloatArray
    lopsided: FloatArray
    z: FloatArray
    exact: float
    slack: FloatArray

    @classmethod
    def of(cls, scope: Scope, ahead: Ahead, result: MeasureResult, max_grade: int) -> _Present:
        found, out = result.estimate, _slack(scope, ahead.eligible, result, max_grade)
        return cls(
            judged=ahead.judged,
            covariance=ahead.covariance,
            value=found.value,
            variance=found.se**2,
            half_width=found.half_width,
            lopsided=np.maximum(_share(found.half_width * 2.0, of=found.high - found.low), 1.0)
            - 1.0,
            z=_standardized(result, out),
            exact=ratio_exactness(result) if result.measure.family == "ratio" else 1.0,
            slack=out,
        )

    @cached_property
    def spread(self) -> TrueSpread:
        """How large differences really may be."""
        return fit_spread(self._seen)

    @cached_property
    def _seen(self) -> FloatArray:
        """Differences in units of what they really err by."""
        return np.asarray(np.clip(self.z / self.exact, -SURE, SURE), dtype=np.float64)

    @cached_property
    def _observed(self) -> Observed:
        return self.spread.of(self._seen)

    @cached_property
    def _expected(self) -> Observed | Tabulated:
        return Tabulated(self._seen, self.spread) if len(self.z) > MANY else self._observed

    def _left(self, after: After) -> FloatArray:
        """What is left of the variances of differences then."""
        then = above(difference_variances(after.covariance))
        return np.minimum(_share(then, of=self._differing), 1.0)

    @cached_property
    def _differing(self) -> FloatArray:
        return above(difference_variances(self.covariance))

    def critical_values(
        self, later: Sequence[After], adjusted: FloatArray, error: float
    ) -> FloatArray:
        """The critical value after each step: between that of now and of the end of the budget.

        It hardly changes, and to work it out takes long: where differences are many, as many
        independent ones are taken to be compared then as now, for each one that is still open.
        """
        number = len(later)
        if not (number and len(self.z)):
            return np.zeros(number)
        end = _end(later)
        then = self.exact * self._expected.expected(self._left(later[end]))
        among = independent_number(self.z, above(adjusted), error)
        now = critical_value_of(among, error)
        if len(self.z) <= MOST_DIFFERENCES:
            adjusted_then = adjusted_p_values(then, later[end].covariance)
            at_end = critical_value(then, adjusted_then, error)
        else:
            still, were = (int(np.sum(np.abs(each) < now)) for each in (then, self.z))
            at_end = critical_value_of(max(among * still / max(were, 1), 1.0), error)
        return np.interp(np.arange(number), [-1, end], [now, at_end])

    def best(
        self,
        later: Sequence[After],
        critical: FloatArray,
        short: Sequence[float],
        near: Near | None = None,
        *,
        by_now: float,
    ) -> list[float]:
        """With which chance the best run has been known by each step: at once if it is by now."""
        if by_now >= 1.0:
            return [1.0] * len(later)
        steps = [
            Horizon(after.covariance, level, reach)
            for after, level, reach in zip(later, critical.tolist(), short, strict=True)
        ]
        found = self.contenders.decided(steps, near=near.within if near else 0.0)
        chances: list[float] = found.tolist()
        return chances

    def told(
        self,
        after: After,
        critical: float,
        near: Near | None,
        short: float,
        best: float,
        enough: float | None,
        half_width: float,
    ) -> tuple[Foretold, FloatArray]:
        """Say what will be known then, with the critical value of then, and with what chance each
        difference will be settled."""
        if near is None:
            settled = verdicts = self._expected.decided(self._left(after), critical)
        else:
            later = self._observed.later(self._left(after))
            verdicts = later.decided(critical)
            settled = near.settled(later, verdicts, critical, short)
        found = Foretold(
            batches=after.batches,
            pairs=after.pairs,
            half_width=half_width,
            decided=float(verdicts.sum()),
            best=best,
            settled=float(settled.sum()) if near else None,
            enough=enough,
        )
        return found, settled

    @cached_property
    def contenders(self) -> Contenders:
        """The runs that may be the best, of whose expected errors variances are those of the
        product's rule, but exact."""
        share = _share(self.variance, of=np.diag(self.covariance))
        return Contenders.of(self.value, self.covariance, scale=self.exact * np.sqrt(share))

    def half_widths(self, later: Sequence[After]) -> list[float]:
        """That of the middle run after each step.

        So many times as large as standard errors are is also what the longer side has more than
        half of the length: gamma limits and those that are cut lean the less the shorter they are.
        """
        if not later:
            return []
        then, now = (np.diag(each.covariance) for each in later), np.diag(self.covariance)
        left = np.sqrt([np.minimum(_share(each, of=now), 1.0) for each in then])
        widths = self.half_width * left * (1.0 + self.lopsided * left) / (1.0 + self.lopsided)
        middle: list[float] = np.median(widths, axis=1).tolist()
        return middle


def _now(present: _Present, result: MeasureResult, batches: int) -> Foretold:
    verdicts = result.ranking.verdicts
    best = np.any(np.count_nonzero(verdicts == 1, axis=1) == len(verdicts) - 1)
    settled, enough = settled_now(result)
    return Foretold(
        settled=settled,
        enough=enough,
        batches=batches,
        pairs=present.judged,
        half_width=float(np.median(present.half_width)),
        decided=float(np.count_nonzero(verdicts == 1)),
        best=float(best),
    )


def _slack(scope: Scope, eligible: BoolArray, result: MeasureResult, max_grade: int) -> FloatArray:
    out, at = OutOfReach.of(scope.pool, eligible), scope.positions(result.runs)
    added = None if scope.is_sampled else scope.added
    return slack(out, result.measure, max_grade=max_grade, added=added)[np.ix_(at, at)]


def _standardized(result: MeasureResult, most: FloatArray) -> FloatArray:
    """Differences beyond what is out of reach, in standard errors; `SURE` without an error."""
    difference, se = result.ranking.difference, result.ranking.difference_se
    ahead = np.where(difference > 0.0, np.maximum(difference - most, 0.0), 0.0)
    beyond, error = above(ahead - ahead.T), above(se)
    z = np.divide(beyond, error, out=np.sign(beyond) * SURE, where=error > 0.0)
    return np.asarray(np.clip(z, -SURE, SURE), dtype=np.float64)


def _share(part: FloatArray, *, of: FloatArray) -> FloatArray:
    share = np.divide(np.maximum(part, 0.0), of, out=np.zeros_like(of), where=of > 0.0)
    return np.asarray(share, dtype=np.float64)


def _end(later: Sequence[After]) -> int:
    """Which of the later steps is the end of the budget."""
    return max((at for at, each in enumerate(later) if each.batches is not None), default=0)
