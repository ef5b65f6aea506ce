"""How far a round will get: what later batches will bring, from the judgments so far.

What a sample will have missed later follows from the design: the expected variance of
`inference.unseen` at the probabilities of a later batch, for the grades that the judgments so far
let one expect. A variance by the product's rule (`uncertainty`) is taken to fall as that does,

    V(later) = V(now) * E(later) / E(now),

value by value and difference by difference; with draws with replacement it is V(now) n / n'.
Disagreement between assessors falls with the number of judged pairs. Half widths fall as the root.

Differences regress to the mean: `shrinkage` says how large they really may be, and with what chance
they are beyond the critical value later. That is the product's own, of the step-down procedure of
`multiplicity`, for the differences that are expected then. A run is expected to be decided as the
best with the chance that its closest rival is, since rivals further behind are decided before it;
chances are added up over the runs that may turn out to be the best.

A forecast looks at judgments, and changes none: nothing is drawn, weighted or estimated by it. An
organizer who stops because of what is foretold stops at a time that depends on the judgments;
intervals are then those of `Asked.confidence` at one look.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..data.labels import select_rows
from ..estimates.drawn import Drawn
from ..inference.fitting import fit_outlook
from ..inference.intervals import difference_variances
from ..inference.looked_at import looked_at
from ..inference.out_of_reach import OutOfReach
from ..inference.slack import slack
from ..rounds.rounds import PairRound
from ..sampling.probabilities import poisson_probabilities
from .contenders import Contenders
from .critical import adjusted_p_values, critical_value
from .foretold import Forecast, Foretold, crossings
from .nearness import Near, settled_now
from .shrinkage import fit_spread

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..arrays import FloatArray
    from ..data.labels import LabelRows
    from ..data.scope import Scope
    from ..inference.looked_at import Rows
    from ..measures.table import Measure
    from ..rounds.results import MeasureResult
    from ..sampling.designs import Design
    from .shrinkage import Later, TrueSpread

MOST_BATCHES = 4  # later batch ends that are looked at; what lies between is interpolated
BEYOND = 6  # budgets beyond the chosen one, up to everything
SURE = 40.0  # standard errors: as good as certain


def supports(part: object, measure: Measure) -> bool:
    """Return whether there is a forecast for what was drawn and the measure: sums of gains."""
    return isinstance(part, PairRound) and measure.family == "gain"


def forecast(
    scope: Scope,
    part: PairRound,
    *,
    labels: LabelRows,
    batches: int,
    result: MeasureResult,
    max_grade: int,
    confidence: float = 0.95,
) -> Forecast:
    """Foretell half widths and verdicts after later batches, and beyond the budget.

    Parameters
    ----------
    scope : Scope
        The runs that `result` is about.
    part : PairRound
        All of its batches, also those that are not judged.
    labels : LabelRows
        As for `evaluation.evaluate`.
    batches : int
        Those that `result` rests on.
    result : MeasureResult
        Of a measure of the family gain, with Student intervals.
    max_grade : int
        The best grade of the scale.
    confidence : float
        Of `result`.

    Returns
    -------
    Forecast

    Raises
    ------
    ValueError
        If there is no forecast for the measure, or a number is out of range.
    LabelError
        As `evaluate`.
    """
    if not supports(part, result.measure):
        raise ValueError(f"there is no forecast for {result.measure} and {part.method!r}")
    present = _Present.of(scope, part, labels, batches, result, max_grade)
    later = [present.after(*each) for each in _steps(part.design, batches)]
    critical = present.critical_values(later, result.ranking.adjusted_p, 1.0 - confidence)
    near, end = Near.of(result, present.slack, 1.0 - confidence), _end(later)
    told = [
        present.told(after, level, near, near.short(step, end) if near else 0.0)
        for step, (after, level) in enumerate(zip(later, critical, strict=True))
    ]
    number, steps = len(present.z), (_now(present, result, batches), *(each for each, _ in told))
    chances = np.array([np.zeros(number), *(settled for _, settled in told)])
    until = _square(crossings([each.pairs for each in steps], chances), len(result.runs))
    return Forecast(batches, number, steps, until)


def _steps(design: Design, batches: int) -> Iterator[tuple[float, int | None]]:
    """Constants or numbers of draws: of later batch ends, the last among them, and beyond these."""
    number = min(MOST_BATCHES, design.batches - batches)
    ends = np.unique(np.linspace(batches, design.batches, number + 1).astype(int))[1:].tolist()
    for last in ends:
        yield design.step(last), last
    end = design.step()
    if design.with_replacement:
        yield from ((end * 2.0**power, None) for power in range(1, BEYOND + 1))
    elif np.isfinite(end):
        least = float(design.size.min(where=design.size > 0.0, initial=np.inf))
        constants = np.geomspace(end, max(1.0 / least, end), BEYOND + 1)[1:-1].tolist()
        yield from ((constant, None) for constant in [*constants, np.inf])


@dataclass(frozen=True, eq=False)
class _After:
    """What is left after some batch or budget: judged pairs, the covariance."""

    batches: int | None
    pairs: float
    covariance: FloatArray


@dataclass(frozen=True, eq=False)
class _Present:
    """What is known now, and what it falls with.

    Attributes
    ----------
    step : float
        Constant or number of draws.
    judged : float
        Pairs, as the design expects them.
    rows, size, second
        The uncertain pairs, or some that stand for them, the design's size of each, and what is
        expected of the square of its utility.
    expected, noise : ndarray of float64, shape (k, k)
        Covariance that is expected now, of pairs and by disagreement between assessors.
    value, variance, half_width : ndarray of float64, shape (k,)
    z : ndarray of float64, shape (n,)
        Differences of every two runs in standard errors, by row of the upper triangle.
    slack : ndarray of float64, shape (k, k)
        As for `rank_runs`.
    """

    design: Design
    step: float
    judged: float
    rows: Rows
    size: FloatArray
    second: FloatArray
    expected: FloatArray
    noise: FloatArray
    value: FloatArray
    variance: FloatArray
    half_width: FloatArray
    z: FloatArray
    slack: FloatArray

    @classmethod
    def of(
        cls,
        scope: Scope,
        part: PairRound,
        labels: LabelRows,
        batches: int,
        result: MeasureResult,
        max_grade: int,
    ) -> _Present:
        pool, measure, found = scope.sampled or scope.pool, result.measure, result.estimate
        drawn = Drawn.of(part.design, part.sample, batches, topic=pool.topic)
        of_batches = select_rows(
            labels, sampled=part.sample.pair, prefix=drawn.pair, max_grade=max_grade, pool=pool
        )
        over = drawn.over(scope)
        rows = looked_at(scope.pool, over, measure)
        outlook = fit_outlook(pool, drawn, of_batches, max_grade=max_grade).over(scope)
        second = outlook.moments(measure, rows.pair)[1]
        expected = rows.gram(second)
        noise, out = np.zeros_like(expected), _slack(scope, over, result, max_grade)
        if part.design.with_replacement and found.expected is not None:
            expected = found.expected  # all of it falls with the number of draws
        elif result.label_noise_measured and found.expected is not None:
            noise = found.expected - expected
        return cls(
            design=part.design,
            step=part.design.step(batches),
            judged=_expected_pairs(part.design, part.design.step(batches)),
            rows=rows,
            size=scope.spread(part.design.size)[rows.pair],
            second=second,
            expected=expected,
            noise=noise,
            value=found.value,
            variance=found.se**2,
            half_width=(found.high - found.low) / 2.0,
            z=_standardized(result, out),
            slack=out,
        )

    @cached_property
    def spread(self) -> TrueSpread:
        """How large differences really may be."""
        return fit_spread(self.z)

    def after(self, step: float, batches: int | None) -> _After:
        """Work out what is left of the variances with a later constant or number of draws."""
        judged = _expected_pairs(self.design, step)
        then = self._covariance(step) + self.noise * self.judged / judged
        return _After(batches, judged, then)

    def later(self, after: _After) -> Later:
        """Say what differences may be then."""
        left = _share(_above(difference_variances(after.covariance)), of=self._differing)
        return self.spread.later(self.z, left=np.minimum(left, 1.0))

    @cached_property
    def _differing(self) -> FloatArray:
        return _above(difference_variances(self.expected + self.noise))

    def critical_values(
        self, later: Sequence[_After], adjusted: FloatArray, error: float
    ) -> FloatArray:
        """The critical value after each step: between that of now and of the end of the budget.

        It hardly changes, and to work it out takes long.
        """
        number = len(later)
        if not (number and len(self.z)):
            return np.zeros(number)
        end = _end(later)
        then = self.later(later[end]).expected
        adjusted_then = adjusted_p_values(then, later[end].covariance)
        known = [
            critical_value(self.z, _above(adjusted), error),
            critical_value(then, adjusted_then, error),
        ]
        return np.interp(np.arange(number), [-1, end], known)

    def told(
        self, after: _After, critical: float, near: Near | None, short: float
    ) -> tuple[Foretold, FloatArray]:
        """Say what will be known then, with the critical value of then, and with what chance each
        difference will be settled."""
        now, then = self.expected + self.noise, self._scaled(after.covariance)
        left, later = _share(np.diag(after.covariance), of=np.diag(now)), self.later(after)
        verdicts = later.decided(critical)
        settled = near.settled(later, verdicts, critical, short) if near else verdicts
        within = {"near": near.within, "short": short} if near else {}
        found = Foretold(
            batches=after.batches,
            pairs=after.pairs,
            half_width=float(np.median(self.half_width * np.sqrt(left))),
            decided=float(verdicts.sum()),
            best=self.contenders.best(then, critical),
            settled=float(settled.sum()) if near else None,
            enough=self.contenders.best(then, critical, **within) if near else None,
        )
        return found, settled

    @cached_property
    def contenders(self) -> Contenders:
        """The runs that may be the best."""
        return Contenders.of(self.value, self._scaled(self.expected + self.noise))

    def _scaled(self, covariance: FloatArray) -> FloatArray:
        """A covariance as it was expected, with the variances of the product's rule."""
        scale = np.sqrt(_share(self.variance, of=np.diag(self.expected + self.noise)))
        return np.asarray(covariance * np.multiply.outer(scale, scale))

    def _covariance(self, step: float) -> FloatArray:
        if self.design.with_replacement:
            return self.expected * self.step / step
        chance = poisson_probabilities(self.size, constant=step)
        factor = np.divide(1.0 - chance, chance, out=np.zeros_like(chance), where=chance > 0.0)
        return replace(self.rows, factor=factor * self.rows.weight).gram(self.second)


def _expected_pairs(design: Design, step: float) -> float:
    """How many distinct pairs a constant or a number of draws is expected to take."""
    if design.with_replacement:
        return float(design.inclusion_after(step).sum())
    if np.isinf(step):
        return float(design.reachable_pairs)
    return float(np.minimum(step * design.size, 1.0).sum())


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


def _slack(scope: Scope, over: Drawn, result: MeasureResult, max_grade: int) -> FloatArray:
    out, at = OutOfReach.of(scope.pool, over.eligible), scope.positions(result.runs)
    return slack(out, result.measure, max_grade=max_grade, added=scope.added)[np.ix_(at, at)]


def _standardized(result: MeasureResult, most: FloatArray) -> FloatArray:
    """Differences beyond what is out of reach, in standard errors; `SURE` without an error."""
    difference, se = result.ranking.difference, result.ranking.difference_se
    ahead = np.where(difference > 0.0, np.maximum(difference - most, 0.0), 0.0)
    pairs = np.triu_indices(len(se), 1)
    beyond, error = (ahead - ahead.T)[pairs], se[pairs]
    z = np.divide(beyond, error, out=np.sign(beyond) * SURE, where=error > 0.0)
    return np.asarray(np.clip(z, -SURE, SURE), dtype=np.float64)


def _share(part: FloatArray, *, of: FloatArray) -> FloatArray:
    share = np.divide(np.maximum(part, 0.0), of, out=np.zeros_like(of), where=of > 0.0)
    return np.asarray(share, dtype=np.float64)


def _end(later: Sequence[_After]) -> int:
    """Which of the later steps is the end of the budget."""
    return max((at for at, each in enumerate(later) if each.batches is not None), default=0)


def _square(above: FloatArray, runs: int) -> FloatArray:
    """The symmetric matrix, (k, k), of what stands above its diagonal; 0 on it."""
    matrix = np.zeros((runs, runs))
    matrix[np.triu_indices(runs, 1)] = above
    return matrix + matrix.T


def _above(matrix: FloatArray) -> FloatArray:
    """What stands above the diagonal, row by row."""
    return np.asarray(matrix[np.triu_indices(len(matrix), 1)], dtype=np.float64)
