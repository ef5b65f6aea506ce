"""What is left of the expected covariance after later batches, and beyond the budget.

Of rounds of pairs whose chances were fixed before the draw; `adaptive_ahead` has the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..data.kept import kept
from ..inference.looked_at import looked_at
from ..inference.ratio_outlook import AtOutlook
from .fading import fading_covariances
from .ratio_ahead import covariances_then, ratio_noise, with_inclusion

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from ..arrays import BoolArray, FloatArray
    from ..data.pool import Pool
    from ..data.scope import Scope
    from ..estimates.drawn import Drawn
    from ..measures.table import Measure
    from ..rounds.results import MeasureResult
    from ..rounds.rounds import PairRound
    from ..sampling.designs import Design

MOST_BATCHES = 4  # later batch ends that are looked at; what lies between is interpolated
BEYOND = 6  # budgets beyond the chosen one, up to everything
MOST_NUMBERS = 256  # expected numbers of pairs that are kept with a pool


@dataclass(frozen=True, eq=False)
class After:
    """What is left after some batch or budget: judged pairs, the covariance.

    ``batches`` is None beyond the budget.
    """

    batches: int | None
    pairs: float
    covariance: FloatArray


@dataclass(frozen=True, eq=False)
class Ahead:
    """What is expected now, and after later steps.

    Attributes
    ----------
    judged : float
        Pairs, now.
    covariance : ndarray of float64, shape (k, k)
        That is expected now, of pairs and by disagreement between assessors.
    later : tuple of After
        Ends of later batches, then what lies beyond the budget.
    eligible : ndarray of bool
        Which pairs of the scope can be drawn.
    """

    judged: float
    covariance: FloatArray
    later: tuple[After, ...]
    eligible: BoolArray


def later_ends(batches: int, last: int) -> list[int]:
    """Return the ends of later batches that are looked at, ascending, the last one among them."""
    number = min(MOST_BATCHES, last - batches)
    ends: list[int] = np.unique(np.linspace(batches, last, number + 1).astype(int))[1:].tolist()
    return ends


def expected_now(result: MeasureResult) -> FloatArray:
    """The covariance that is expected, of pairs and by disagreement between assessors."""
    if (expected := result.estimate.expected) is None:
        raise ValueError(f"there is no forecast for {result.measure} without what is expected")
    return expected


def ahead_of_pairs(scope: Scope, part: PairRound, batches: int, result: MeasureResult) -> Ahead:
    """Work it out for a round of pairs, all of whose batches were drawn at once."""
    pool, step = scope.sampled or scope.pool, part.design.step(batches)
    part = part if batches == part.used else part.prefix(pool, batches)
    over = part.drawn(pool.topic).over(scope)
    fading, now, noise = _fading(scope, part.design, over, result, step)
    judged = _expected_pairs(pool, part.design, over.key, step)
    steps = list(_steps(part.design, batches))
    pairs = [_expected_pairs(pool, part.design, over.key, each) for each, _ in steps]
    covariances = fading(np.array([each for each, _ in steps]))
    later = tuple(
        After(end, number, then + noise * judged / number)
        for (_, end), number, then in zip(steps, pairs, covariances, strict=True)
    )
    return Ahead(judged, now + noise, later, over.eligible)


def _steps(design: Design, batches: int) -> Iterator[tuple[float, int | None]]:
    """Constants or numbers of draws: of later batch ends, the last among them, and beyond these."""
    for last in later_ends(batches, design.batches):
        yield design.step(last), last
    end = design.step()
    if design.with_replacement:
        yield from ((end * 2.0**power, None) for power in range(1, BEYOND + 1))
    elif np.isfinite(end):
        least = float(design.size.min(where=design.size > 0.0, initial=np.inf))
        constants = np.geomspace(end, max(1.0 / least, end), BEYOND + 1)[1:-1].tolist()
        yield from ((constant, None) for constant in [*constants, np.inf])


def _fading(
    scope: Scope, design: Design, over: Drawn, result: MeasureResult, step: float
) -> tuple[Callable[[FloatArray], Iterable[FloatArray]], FloatArray, FloatArray]:
    """What falls with later steps, what it is now, and disagreement between assessors.

    Of sums of gains with replacement all of it falls.
    """
    expected, measure = expected_now(result), result.measure
    if measure.family == "gain" and design.with_replacement:
        scaled = lambda steps: (expected * step / each for each in steps.tolist())  # noqa: E731
        return scaled, expected, np.zeros_like(expected)
    if result.outlook is None:
        raise ValueError(f"there is no forecast for {measure} without an outlook")
    if measure.family == "ratio":
        at = AtOutlook.of(scope.pool, measure, over, result.outlook)
        fading = _fading_ratios(scope, design, at, measure)
        return fading, at.covariance, ratio_noise(result)
    rows = looked_at(scope.pool, over, measure).coupled()
    second = result.outlook.moments(measure, rows.pair)[1]
    size = scope.spread(design.size)[rows.pair]
    if (now := result.estimate.expected_of_sample) is None:
        raise ValueError(f"there is no forecast for {measure} without what may have been missed")
    return partial(fading_covariances, rows, second, size), now, expected - now


def _fading_ratios(
    scope: Scope, design: Design, at: AtOutlook, measure: Measure
) -> Callable[[FloatArray], Iterable[FloatArray]]:
    def fading(steps: FloatArray) -> list[FloatArray]:
        chances = (scope.spread(design.inclusion_after(each)) for each in steps.tolist())
        return covariances_then(with_inclusion(at, each) for each in chances)

    return fading


def _expected_pairs(pool: Pool, design: Design, key: Hashable, step: float) -> float:
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
