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
that of now, for fewer differences. A run is expected to be decided as the
best with the chance that its closest rival is, since rivals further behind are decided before it;
chances are added up over the runs that may turn out to be the best.

A forecast looks at judgments, and changes none: nothing is drawn, weighted or estimated by it. An
organizer who stops because of what is foretold stops at a time that depends on the judgments;
intervals are then those of `Asked.confidence` at one look.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from ..data.kept import kept
from ..estimates.drawn import Drawn
from ..inference.intervals import difference_variances
from ..inference.looked_at import looked_at
from ..inference.out_of_reach import OutOfReach
from ..inference.slack import slack
from ..rounds.rounds import PairRound
from .contenders import Contenders
from .critical import (
    adjusted_p_values,
    critical_value,
    critical_value_of,
    independent_number,
)
from .fading import fading_covariances
from .foretold import Forecast, Foretold, crossings
from .nearness import Near, settled_now
from .shrinkage import fit_spread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ..arrays import FloatArray
    from ..data.pool import Pool
    from ..data.scope import Scope
    from ..measures.table import Measure
    from ..rounds.results import MeasureResult
    from ..sampling.designs import Design
    from .shrinkage import Later, Observed, TrueSpread

MOST_BATCHES = 4  # later batch ends that are looked at; what lies between is interpolated
MOST_DIFFERENCES = 2000  # for whose later critical value all are looked at
BEYOND = 6  # budgets beyond the chosen one, up to everything
SURE = 40.0  # standard errors: as good as certain
MOST_NUMBERS = 256  # expected numbers of pairs that are kept with a pool


def supports(part: object, measure: Measure) -> bool:
    """Return whether there is a forecast for what was drawn and the measure: sums of gains."""
    return isinstance(part, PairRound) and measure.family == "gain"


def forecast(
    scope: Scope,
    part: PairRound,
    *,
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
    batches : int
        Those that `result` rests on.
    result : MeasureResult
        Of a measure of the family gain, with Student intervals, from `evaluation.evaluate`.
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
    """
    if not supports(part, result.measure):
        raise ValueError(f"there is no forecast for {result.measure} and {part.method!r}")
    present = _Present.of(scope, part, batches, result, max_grade)
    later = present.after(list(_steps(part.design, batches)))
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
    pairs : callable
        How many pairs a constant or a number of draws is expected to take.
    judged : float
        Pairs, as the design expects them.
    fading : callable
        From constants or numbers of draws to what is left of `expected`.
    expected, noise : ndarray of float64, shape (k, k)
        Covariance that is expected now, of pairs and by disagreement between assessors.
    value, variance, half_width : ndarray of float64, shape (k,)
    z : ndarray of float64, shape (n,)
        Differences of every two runs in standard errors, by row of the upper triangle.
    slack : ndarray of float64, shape (k, k)
        As for `rank_runs`.
    """

    pairs: Callable[[float], float]
    judged: float
    fading: Callable[[FloatArray], Iterable[FloatArray]]
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
        batches: int,
        result: MeasureResult,
        max_grade: int,
    ) -> _Present:
        pool, found, step = scope.sampled or scope.pool, result.estimate, part.design.step(batches)
        over = Drawn.of(part.design, part.sample, batches, topic=pool.topic).over(scope)
        fading, expected = _fading(scope, part.design, over, result, step)
        pairs = partial(_expected_pairs, pool, part.design, over.key)
        out = _slack(scope, over, result, max_grade)
        return cls(
            pairs=pairs,
            judged=pairs(step),
            fading=fading,
            expected=expected,
            noise=_expected(result) - expected,
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

    def after(self, steps: Sequence[tuple[float, int | None]]) -> list[_After]:
        """Work out what is left of the variances with later constants or numbers of draws."""
        judged = [self.pairs(step) for step, _ in steps]
        covariances = self.fading(np.array([step for step, _ in steps]))
        return [
            _After(batches, pairs, then + self.noise * self.judged / pairs)
            for (_, batches), pairs, then in zip(steps, judged, covariances, strict=True)
        ]

    def later(self, after: _After) -> Later:
        """Say what differences may be then."""
        return self._observed.later(self._left(after))

    @cached_property
    def _observed(self) -> Observed:
        return self.spread.of(self.z)

    def _left(self, after: _After) -> FloatArray:
        """What is left of the variances of differences then."""
        then = _above(difference_variances(after.covariance))
        return np.minimum(_share(then, of=self._differing), 1.0)

    @cached_property
    def _differing(self) -> FloatArray:
        return _above(difference_variances(self.expected + self.noise))

    def critical_values(
        self, later: Sequence[_After], adjusted: FloatArray, error: float
    ) -> FloatArray:
        """The critical value after each step: between that of now and of the end of the budget.

        It hardly changes, and to work it out takes long: where differences are many, as many
        independent ones are taken to be compared then as now, for each one that is still open.
        """
        number = len(later)
        if not (number and len(self.z)):
            return np.zeros(number)
        end = _end(later)
        then = self._observed.expected(self._left(later[end]))
        among = independent_number(self.z, _above(adjusted), error)
        now = critical_value_of(among, error)
        if len(self.z) <= MOST_DIFFERENCES:
            adjusted_then = adjusted_p_values(then, later[end].covariance)
            at_end = critical_value(then, adjusted_then, error)
        else:
            still, were = (int(np.sum(np.abs(each) < now)) for each in (then, self.z))
            at_end = critical_value_of(max(among * still / max(were, 1), 1.0), error)
        return np.interp(np.arange(number), [-1, end], [now, at_end])

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


def _expected(result: MeasureResult) -> FloatArray:
    """The covariance that is expected, of pairs and by disagreement between assessors."""
    if (expected := result.estimate.expected) is None:
        raise ValueError(f"there is no forecast for {result.measure} without what is expected")
    return expected


def _fading(
    scope: Scope, design: Design, over: Drawn, result: MeasureResult, step: float
) -> tuple[Callable[[FloatArray], Iterable[FloatArray]], FloatArray]:
    """What falls with later steps, all of it with replacement, and what it is now."""
    expected = _expected(result)
    if design.with_replacement:
        return lambda steps: (expected * step / each for each in steps.tolist()), expected
    if result.outlook is None:
        raise ValueError(f"there is no forecast for {result.measure} without an outlook")
    rows = looked_at(scope.pool, over, result.measure).coupled()
    second = result.outlook.moments(result.measure, rows.pair)[1]
    size = scope.spread(design.size)[rows.pair]
    now = rows.gram(second) if result.label_noise_measured else expected
    return partial(fading_covariances, rows, second, size), now


def _expected_pairs(pool: Pool, design: Design, key: int, step: float) -> float:
    """How many distinct pairs a constant or a number of draws is expected to take."""
    return kept(
        pool.kept,
        "expected pairs",
        (key, design.method, step),
        lambda: _number_expected(design, step),
        most=MOST_NUMBERS,
    )


def _number_expected(design: Design, step: float) -> float:
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
