"""What is left of the expected covariance of an adaptive round after later batches.

Later batches are planned from judgments that are not there yet. They are foretold as if the model
that all judgments so far give stayed as it is: it says with which chance q_i every pair that is
open now is judged by the end of a later batch, `Chances.by`, and what is expected of its grade.

Let P_i be the chance with which pair i was to be judged by now, and P'_i = P_i + (1 - P_i) q_i that
with which it is by then. The shares of batches are, nearly, such that those up to now hold

    rho_i = (P_i / (1 - P_i)) / (P'_i / (1 - P'_i)) = P_i (1 - q_i) / P'_i

of the estimate then (`sampling`), and what is to come is weighted as one sample of chance q_i with
the rest, q_i / P'_i. So where S_i is what is expected of the squares that batches up to now missed,
sum_b A_bi^2 (1 - p_bi) / p_bi E[(u_i - m_bi)^2], it is then

    rho_i^2 S_i + [i open] q_i (1 - q_i) / P'_i^2 Var(u_i):

S_i for q_i = 0, and 0 for what is judged for certain. Of a pair that was judged S_i falls as well:
the later its batch would have come, the less of its estimate rests on the prediction. Nothing is
divided by a q_i, which may be next to 0.

Within the budget q_i follows from the constants of the plan. Beyond it chances are in proportion to
the sizes alone, with the constants that judge so many pairs, up to all.

The model will know more later than it knows now, so that rounds come out better than is foretold.

Why this biases nothing: no batch is planned by it, and what is planned later is planned again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING

import numpy as np

from ..data.labels import LabelRows, pair_labels, select_rows
from ..estimates.products import cross_products
from ..inference.looked_at import looked_at
from ..rounds.adaptive.answers import corrected_outlook
from ..rounds.adaptive.outlooks import Missing, model_outlook
from ..rounds.adaptive.race import race_of
from ..rounds.adaptive.sampled import planned_alone, weighed_before
from ..rounds.adaptive.sampling import plan_chances, sizes_before
from ..rounds.adaptive.slopes import at_outlook, moments_about, reach_expected
from ..sampling.probabilities import poisson_thresholds
from .adaptive_missed import SquaresMissed, of_past, parts_then, squares_missed
from .ahead import BEYOND, After, Ahead, expected_now, later_ends
from .ratio_ahead import RatiosMissed, covariances_then, ratio_noise

if TYPE_CHECKING:
    from ..arrays import BoolArray, FloatArray, IntArray
    from ..data.scope import Scope
    from ..estimates.drawn import Drawn
    from ..inference.looked_at import Rows
    from ..inference.outlook import Outlook
    from ..rounds.adaptive.batch_weights import Weighed
    from ..rounds.adaptive.frame import AdaptiveFrame
    from ..rounds.adaptive.grades import LearnedGrades
    from ..rounds.adaptive.rounds import AdaptiveRound
    from ..rounds.adaptive.sampling import Openness
    from ..rounds.results import MeasureResult
    from ..sampling.goals import Race

LEAST_SORTED = 10_000  # open pairs whose sizes say what constants judge so many, if there are more


def ahead_of_batches(
    scope: Scope, part: AdaptiveRound, batches: int, result: MeasureResult, labels: LabelRows
) -> Ahead:
    """Work it out for an adaptive round, from its first batches and their judgments.

    Parameters
    ----------
    scope : Scope
    part : AdaptiveRound
    batches : int
        Whose judgments there are; what was planned after them is not looked at.
    result : MeasureResult
        From these batches.
    labels : LabelRows
        Of the sampled pool; those of pairs of later batches are not used.

    Raises
    ------
    ValueError
        If these batches are empty, so that nothing is known to foretell from.
    """
    later = _Later.of(scope, part, batches, result, labels)
    covariances, noise = _of_ratios(later) if later.is_ratio else _of_sums(later)
    return later.ahead(covariances, noise)


@dataclass(frozen=True, eq=False)
class _Later:
    """A round at the end of its first batches, and how its later ones are foretold.

    Attributes
    ----------
    scope, part, result : Scope, AdaptiveRound, MeasureResult
        The round has these batches alone.
    frame : AdaptiveFrame
    labels : LabelRows
        Of its pairs.
    before : Weighed
        What its batches weigh.
    model : LearnedGrades or None
        By all of its judgments.
    ends : list of int
        Later batches.
    chances : list of ndarray of float64, shape (n,) each
        See `_chances`.
    """

    scope: Scope
    part: AdaptiveRound
    result: MeasureResult
    frame: AdaptiveFrame
    labels: LabelRows
    before: Weighed
    model: LearnedGrades | None
    ends: list[int]
    chances: list[FloatArray]

    @classmethod
    def of(
        cls,
        scope: Scope,
        part: AdaptiveRound,
        batches: int,
        result: MeasureResult,
        labels: LabelRows,
    ) -> _Later:
        pool = scope.sampled or scope.pool
        part = part if batches == part.planned else part.prefix(pool, batches)
        if not len(part.sample.pair):
            raise ValueError("there is no forecast of an adaptive round without a judged pair")
        labels = labels.chosen(np.isin(labels.pair, part.sample.pair))
        frame = part.design.frame(pool)
        before = weighed_before(frame, part.sample, result.measure)
        model, ends = part.learned(frame, labels), later_ends(batches, part.batches)
        race = _race(scope, part, result)
        chances = _chances(frame, part, model, race, before.standing, ends)
        return cls(scope, part, result, frame, labels, before, model, ends, chances)

    @property
    def is_ratio(self) -> bool:
        return self.result.measure.family == "ratio"

    @cached_property
    def over(self) -> Drawn:
        """What the design alone would have drawn of the scope's pairs."""
        return planned_alone(self.frame, self.part.sample).over(self.scope)

    def outlook(self) -> Outlook:
        """What the model says, or judgments alone if nothing was learned."""
        if self.model is not None:
            return model_outlook(self.frame, self.model)
        rows = _rows(self.frame, self.part, self.labels)
        planned, best = planned_alone(self.frame, self.part.sample), self.part.design.max_grade
        return corrected_outlook(self.frame, None, planned, rows, max_grade=best)

    def in_scope(self, kept: FloatArray, to_come: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return parts of the pairs of the frame, (n,), as those of the scope's pairs, (M,).

        Of a pair that is never drawn nothing comes.
        """
        every_kept, every_to_come = np.ones(len(self.frame.pool)), np.zeros(len(self.frame.pool))
        every_kept[self.frame.at], every_to_come[self.frame.at] = kept, to_come
        return self.scope.spread(every_kept, 1.0), self.scope.spread(every_to_come)

    def ahead(self, covariances: list[FloatArray], noise: FloatArray) -> Ahead:
        """Put together what is expected now and after every step, (k, k) each."""
        (now, *later), judged = covariances, float(len(self.part.sample.pair))
        open_ = self.before.standing.open
        pairs = [judged + float(chance.sum(where=open_)) for chance in self.chances]
        steps = (
            After(end, number, then + noise * judged / number)
            for end, number, then in zip(chain(self.ends, repeat(None)), pairs, later, strict=False)
        )
        return Ahead(judged, now + noise, tuple(steps), self.over.eligible)


def _of_sums(later: _Later) -> tuple[list[FloatArray], FloatArray]:
    """What is expected of sums of gains, and disagreement between assessors.

    Of the pairs alone that it is summed over.
    """
    frame, measure = later.frame, later.result.measure
    rows = looked_at(later.scope.pool, later.over, measure).coupled()
    place, known = _places(later.scope, frame, rows.pair)
    missed = SquaresMissed.of(frame, later.before, measure, _moments(later, place), place)
    every = [missed.squares, *(missed.after(chance[place]) for chance in later.chances)]
    if frame.past is not None:
        origin = later.scope.origin[rows.pair]
        settled = np.isin(origin, frame.past.judged)
        first, second, _ = later.outlook().moments(measure, origin[settled])
        squares = squares_missed(later.before, measure, origin[settled], first, second)
        known |= settled
        for each in every:
            each[settled] = squares
    if noisy := later.result.label_noise_measured:
        every.append(_told(later, frame.at[place]))
    now, *then = _grams(rows, np.where(known, rows.weight, 0.0), every)
    noise = expected_now(later.result) - then.pop() if noisy else np.zeros_like(now)
    return [now, *then], noise


def _places(scope: Scope, frame: AdaptiveFrame, pairs: IntArray) -> tuple[IntArray, BoolArray]:
    """Where pairs of a scope stand in a frame, 0 if they do not, and whether they do."""
    place = np.full(len(frame.pool), -1)
    place[frame.at] = np.arange(len(frame.at))
    origin = scope.origin[pairs]
    at = np.where(origin >= 0, place[origin], -1)
    return np.maximum(at, 0), at >= 0


def _of_ratios(later: _Later) -> tuple[list[FloatArray], FloatArray]:
    """The same of ratios."""
    scope, part, measure = later.scope, later.part, later.result.measure
    pairs, rows = part.sample.pair, _rows(later.frame, part, later.labels)
    outlook, weights = later.outlook(), later.before.weights
    at = at_outlook(scope, weights, measure, outlook, pairs=pairs, rows=rows).at
    _, _, expected = reach_expected(scope, measure, outlook)
    missed = RatiosMissed(at, moments_about(at.tangent, expected, expected))
    standing = later.before.standing
    past = of_past(later.frame, later.before)
    parts = (parts_then(standing.passed, standing.open, each, *past) for each in later.chances)
    steps = (missed.after(*later.in_scope(*each)) for each in parts)
    return [at.covariance, *covariances_then(steps)], ratio_noise(later.result)


def _moments(later: _Later, place: IntArray) -> tuple[FloatArray, FloatArray]:
    """What is expected of utilities and their squares, (m,) each: by judgments alone, if nothing
    was learned."""
    frame, measure = later.frame, later.result.measure
    if later.model is not None:
        first, second = frame.moments(measure, frame.reached(later.model))
        return first[place], second[place]  # products of BLAS hang on how many there are
    first, second, _ = later.outlook().moments(measure, frame.at[place])
    return first, second


def _rows(frame: AdaptiveFrame, part: AdaptiveRound, labels: LabelRows) -> LabelRows:
    pairs, best = part.sample.pair, part.design.max_grade
    return select_rows(labels, sampled=pairs, prefix=pairs, max_grade=best, pool=frame.pool)


def _told(later: _Later, pairs: IntArray) -> FloatArray:
    """What the estimates expect of the squares that they miss, (m,), without disagreement."""
    frame, part, before, result = later.frame, later.part, later.before, later.result
    judged, planned = _rows(frame, part, later.labels), planned_alone(frame, part.sample)
    model, sampled, measure = part.sample.steps[-1].model, part.sample.pair, result.measure
    outlook = result.outlook or corrected_outlook(
        frame, model, planned, judged, max_grade=part.design.max_grade
    )
    missing = Missing(before.weights, before.measures.index(measure), measure)
    squares = missing.expected(outlook, pairs)
    if model is None:
        return squares
    given = pair_labels(judged, pairs=len(sampled), measure=measure)
    rows, goal = looked_at(frame.pool, planned, measure), part.design.goal
    return squares * missing.level(rows, outlook, sampled, given, goal)


def _race(scope: Scope, part: AdaptiveRound, result: MeasureResult) -> Race | None:
    """Who is in the race, for the goal that asks for it; with later runs, who was."""
    if part.design.goal.kind != "winner":
        return None
    if not scope.is_sampled or result.measure != part.design.measure:
        return part.sample.steps[-1].race
    negligible = result.equivalence.within if result.equivalence else 0.0
    return race_of(result, part.design.goal, negligible=negligible)


def _chances(
    frame: AdaptiveFrame,
    part: AdaptiveRound,
    model: LearnedGrades | None,
    race: Race | None,
    standing: Openness,
    ends: list[int],
) -> list[FloatArray]:
    """Return with which chance pairs are judged by later ends, and beyond the budget, (n,) each.

    Of judged pairs, with which they would be if they were open.
    """
    size, number = sizes_before(frame, model, race, standing), part.planned + 1
    found: list[FloatArray] = []
    if ends:
        plan = plan_chances(
            frame,
            model,
            standing,
            number=number,
            spent=part.spent,
            race=race,
            budget=part.sample.steps[-1].budget,
        )
        constants = [plan.constants[end - number] for end in ends]
        found = [_times(size * standing.left, each) for each in constants]
    by_end = found[-1] if found else np.zeros_like(size)
    open_ = standing.open & (size > 0.0)
    now = float(len(part.sample.pair))
    first, most = now + float(by_end.sum(where=open_)), now + float(np.count_nonzero(open_))
    if most > first * (1.0 + 1e-9):
        targets = np.geomspace(first, most, BEYOND + 1)[1:] - now
        some = size[open_][:: max(1, int(np.count_nonzero(open_)) // LEAST_SORTED)]
        share = len(some) / float(np.count_nonzero(open_))
        beyond = poisson_thresholds(some, targets=targets * share)
        found += [np.maximum(_times(size, each), by_end) for each in beyond.tolist()]
    return found


def _times(size: FloatArray, constant: float) -> FloatArray:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(size > 0.0, np.minimum(1.0, constant * size), 0.0)


def _grams(rows: Rows, weight: FloatArray, squares: list[FloatArray]) -> list[FloatArray]:
    """Return sum_i weight_i squares_i y_ij y_il of each of some squares of m pairs, (k, k).

    All but the first have half the digits: they say what share of the first is left.
    """
    if (couples := rows.couples) is None:
        raise ValueError("rows must be coupled")
    weights = np.stack([weight * each for each in squares])
    first = couples.first
    matrix, many = couples.head, weights[:, :first]
    head = np.concatenate(
        [cross_products(matrix, many[:1]), cross_products(matrix, many[1:], roughly=True)]
    )
    return list(head + couples.grams(np.ascontiguousarray(weights[:, first:].T)))
