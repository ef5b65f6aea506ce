"""What the batches of an adaptive round say of every run, measure by measure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrays import pieces, share_of
from ...data.labels import LabelRows, pair_labels, select_rows
from ...data.pool_ranks import total_weights
from ...data.scope import Scope
from ...inference.fitting import fit_outlook
from ...inference.looked_at import LIKELY, belief_in, doubt_of, looked_at, missed_of
from ...inference.of_all_runs import OfAllRuns
from ...inference.ratio_knowledge import knowledge_at
from ...inference.uncertainty import Losses, Unseen
from ...measures.kinds import MeasureError
from ..comparison import Comparison
from ..limits import limits_of_ratios, limits_of_sums
from ..results import Asked, EstimatorResult, Evaluation, MeasureResult
from .by_run import ByRun
from .estimates import estimate_totals, variance_by_topic
from .outlooks import Missing, model_outlook
from .ratios import estimate_ratio
from .slopes import at_outlook
from .state import FAMILIES, AdaptiveState

if TYPE_CHECKING:
    from ...arrays import BoolArray, FloatArray, IntArray
    from ...estimates.drawn import Drawn
    from ...estimates.ratio_labels import RatioEstimate
    from ...inference.outlook import Outlook
    from ...measures.table import Measure
    from .batch_weights import BatchWeights
    from .frame import AdaptiveFrame
    from .grades import LearnedGrades
    from .sampled import Sampled
    from .slopes import SteadySlopes

ESTIMATOR = "ad"


def answer_of_batches(sampled: Sampled, asked: Asked) -> Evaluation:
    """Estimate the runs of a scope from all batches of a state.

    Raises
    ------
    MeasureError
        If a measure is not of one of the families that adaptive rounds serve.
    LabelError
        If a drawn pair has no judgment.
    """
    frame, state = sampled.frame, sampled.state
    for measure in asked.measures:
        if measure.family not in FAMILIES:
            raise MeasureError(f"{measure} is not estimated from adaptive rounds")
        if measure.family == "ratio" and frame.topic_minimum > 1.0:
            raise MeasureError(f"{measure} is not estimated from adaptive rounds by topics")
    rows = _rows(frame, state, asked)
    question = _Question.of(sampled, asked, rows)
    return Evaluation(
        batches=state.batches,
        judged_pairs=len(state.pair),
        judgments=len(rows.pair),
        draws=None,
        confidence=asked.confidence,
        results=tuple(question.answer(at) for at in range(len(asked.measures))),
        look=asked.look,
    )


def variance_of_topics(sampled: Sampled, asked: Asked, measure: Measure) -> FloatArray:
    """Split the sampling variance of values under a sum of gains by topic, shape (T, k).

    See `estimates.variance_by_topic`; `asked` as for `answer_of_batches`.
    """
    state, found = sampled.state, sampled.weighed_before(measure)
    rows = _rows(sampled.frame, state, asked)
    return variance_by_topic(
        sampled.scope,
        found.weights,
        found.measures.index(measure),
        measure=measure,
        pairs=state.pair,
        labels=pair_labels(rows, pairs=len(state.pair), measure=measure),
    )


def _rows(frame: AdaptiveFrame, state: AdaptiveState, asked: Asked) -> LabelRows:
    """Judgments of these batches; of later ones they are not used."""
    known = np.isin(asked.labels.pair, state.pair, kind="table")
    return select_rows(
        asked.labels if known.all() else asked.labels.chosen(known),
        sampled=state.pair,
        prefix=state.pair,
        max_grade=asked.max_grade,
        pool=frame.pool,
    )


@dataclass(frozen=True, eq=False)
class _Question:
    """What is asked of every measure, and what all of them share."""

    sampled: Sampled
    asked: Asked
    rows: LabelRows
    model: LearnedGrades | None
    comparison: Comparison

    @classmethod
    def of(cls, sampled: Sampled, asked: Asked, rows: LabelRows) -> _Question:
        over, model = sampled.over, sampled.state.steps[-1].model
        comparison = Comparison.of(
            sampled.scope, asked, over.inclusion > 0.0, judged=over.pair, rows=rows
        )
        return cls(sampled, asked, rows, model, comparison)

    @property
    def scope(self) -> Scope:
        return self.sampled.scope

    @property
    def frame(self) -> AdaptiveFrame:
        return self.sampled.frame

    @property
    def pairs(self) -> IntArray:
        return self.sampled.pairs

    @property
    def weights(self) -> BatchWeights:
        return self.sampled.weights

    @cached_property
    def outlook(self) -> Outlook:
        """What is expected of the sampled pool's pairs where gains are summed."""
        if self.asked.outlook is not None:
            return self.asked.outlook
        best = self.asked.max_grade
        return corrected_outlook(
            self.frame, self.model, self.sampled.planned, self.rows, max_grade=best
        )

    @property
    def of_ratios(self) -> Outlook:
        """The same as the last batch was planned by."""
        if self.asked.outlook is not None or self.model is None:
            return self.outlook
        return model_outlook(self.frame, self.model)

    def answer(self, at: int) -> MeasureResult:
        measure = self.asked.measures[at]
        if measure.is_by_run:
            return self._by_run(measure)
        return self._ratio(measure) if measure.family == "ratio" else self._linear(measure, at)

    def _linear(self, measure: Measure, at: int) -> MeasureResult:
        scope = self.scope
        labels = pair_labels(self.rows, pairs=len(self.pairs), measure=measure).with_expected()
        found = estimate_totals(
            scope, self.weights, at, measure=measure, pairs=self.pairs, labels=labels
        )
        missing = Missing(self.weights, at, measure)
        missed = unseen_of_batches(scope, missing, outlook=self.outlook, planned=self.sampled.over)
        if self.model is not None and self.asked.outlook is None:
            rows = looked_at(self.frame.pool, self.sampled.planned, measure)
            goal = self.frame.design.goal
            factor = missing.level(rows, self.outlook, self.pairs, labels, goal)
            missed = replace(missed.times(factor), alone=self._alone)
        shown = limits_of_sums(found, missed, self.asked.at_this_look, self._highest(measure))
        told = {"outlook": self.outlook}
        return self._result(measure, shown, found.by_topic, labels.noise_measured, **told)

    def _by_run(self, measure: Measure) -> MeasureResult:
        """Of predictions and preferences: as sums of gains, with what differs from run to run."""
        told = ByRun(self.frame, self.scope, self.weights, measure, self.pairs, self.rows)
        outlook = self.outlook_by_run(measure)
        found, missed = told.estimate(), told.unseen(outlook, self.sampled.over)
        if self.model is not None and self.asked.outlook is None:
            whole, of_round = told, missed
            if not self.scope.is_sampled:
                whole = replace(told, scope=Scope.of(self.frame.pool))
                of_round = whole.unseen(outlook, self.sampled.planned)
            factor = whole.level(of_round.covariance, self._of_goal(whole.scope))
            missed = replace(missed.times(factor), alone=self._alone)
        shown = limits_of_sums(found, missed, self.asked.at_this_look, self._highest(measure))
        noisy = told.terms.noise_measured
        return self._result(measure, shown, found.by_topic, noisy, outlook=outlook)

    def outlook_by_run(self, measure: Measure) -> Outlook:
        """What is expected where the utility depends on the run.

        Raking tells how good documents are. Which of two is better follows from who ranks them, of
        which classes of ranks and runs say nothing: there the model stays as it is.
        """
        return self.of_ratios if measure.family == "preference" else self.outlook

    @property
    def _alone(self) -> tuple[int, int] | None:
        """Where the runs of the goal stand if it is about two: only they tell the level."""
        tags, pool = self.frame.design.goal.all_runs, self.scope.pool
        if len(tags) != 2 or not set(tags) <= set(pool.runs):
            return None
        return pool.run_index(tags[0]), pool.run_index(tags[1])

    def _ratio(self, measure: Measure) -> MeasureResult:
        scope = self.scope
        line, found = self._estimated(scope, measure)
        known = knowledge_at(
            line.at,
            measure,
            found,
            unjudged=scope.marked(self.weights.on_label == 0.0),
            of_all=self._of_all(measure, line, found),
            goal=self._of_goal(scope),
        )
        highest = self._highest(measure)
        shown = limits_of_ratios(found.estimate, known, self.asked.at_this_look, highest)
        more = {"ratio_bias": found.bias, "relevant_found": found.found}
        return self._result(measure, shown, found.by_topic, found.noise_measured, **more)

    def _of_all(self, measure: Measure, line: SteadySlopes, found: RatioEstimate) -> OfAllRuns:
        """What the runs of the round tell together: the same, whoever else is asked for."""
        scope, runs = self.scope, self.frame.pool.runs
        if not set(runs) <= set(scope.pool.runs):
            scope = Scope.of(self.frame.pool)
            line, found = self._estimated(scope, measure)
        sampled, goal = np.isin(scope.pool.runs, runs), self._of_goal(scope)
        return OfAllRuns.of(line.at.covariance, found, sampled=sampled, goal=goal)

    def _estimated(self, scope: Scope, measure: Measure) -> tuple[SteadySlopes, RatioEstimate]:
        asked = scope, self.weights, measure
        pairs, rows, of_round = self.pairs, self.rows, Scope.of(self.frame.pool)
        line = at_outlook(*asked, self.of_ratios, pairs=pairs, rows=rows, of_round=of_round)
        return line, estimate_ratio(self.frame, *asked, line, pairs=pairs, rows=rows)

    def _of_goal(self, scope: Scope) -> BoolArray:
        """Which runs of a scope the goal is about."""
        return np.isin(scope.pool.runs, self.frame.design.goal.all_runs)

    def _highest(self, measure: Measure) -> float:
        depth = self.scope.pool.depth
        return float(measure.largest_value(max_grade=self.asked.max_grade, depth=depth))

    def _result(
        self,
        measure: Measure,
        shown: EstimatorResult,
        by_topic: FloatArray,
        noise_measured: bool,
        **more: Any,
    ) -> MeasureResult:
        return self.comparison.result(
            measure,
            self.scope.pool.runs,
            {ESTIMATOR: shown},
            ESTIMATOR,
            effective_sample_size=self.sampled.reach.effective_sample_size(measure),
            label_noise_measured=noise_measured,
            by_topic=by_topic,
            **more,
        )


def corrected_outlook(
    frame: AdaptiveFrame,
    model: LearnedGrades | None,
    planned: Drawn,
    rows: LabelRows,
    *,
    max_grade: int,
) -> Outlook:
    """Return what a model says, corrected by raking (`outlooks`); without one, judgments alone.

    Parameters
    ----------
    frame, model : AdaptiveFrame, LearnedGrades or None
        The model is that of the last batch.
    planned : Drawn
        What the design alone would have drawn: classes of probability are by it.
    rows : LabelRows
        Of the judged pairs, positions among them.
    max_grade : int
    """
    if model is not None:
        planned = replace(planned, belief=frame.reached_by_all(model)[0])
    return fit_outlook(frame.pool, planned, rows, max_grade=max_grade)


def unseen_of_batches(
    scope: Scope, missing: Missing, *, outlook: Outlook, planned: Drawn
) -> Unseen:
    """Work out what is expected of the pairs that could have been missed.

    Parameters
    ----------
    scope : Scope
    missing : Missing
        Of its measure.
    outlook : Outlook
        Of the pairs of the sampled pool.
    planned : Drawn
        What the design alone would have drawn of the scope's pairs: it says which pairs stand for
        all, and which values are not known; neither depends on judgments.
    """
    measure = missing.measure
    rows = looked_at(scope.pool, planned, measure)
    belief = belief_in(rows, planned)
    doubt = doubt_of(rows, planned, belief=belief, total=total_weights(scope.pool, measure))
    origin = scope.origin[rows.pair]
    known = origin >= 0
    expected = _Expected.of(missing, outlook, np.where(known, origin, 0))
    rows = replace(rows, factor=rows.weight * known)
    gains, losses = (rows.sums(rows.factor * each.squares, power=2) for each in expected.sides)
    find, loss = (
        np.sqrt(share_of(rows.cubes(each.cubes), of=rows.sums(rows.factor * each.mean)))
        for each in expected.sides
    )
    lost = Losses(loss, share_of(losses, of=gains + losses))
    moments = outlook.moments(measure, np.where(known, origin, 0))
    usual = rows.total(np.where(known, moments[0], 0.0))
    open_pairs = known & (missing.weights.on_label[np.where(known, origin, 0)] == 0.0)
    if not np.any(known) or np.mean(open_pairs[known]) > 1.0 - LIKELY:
        return Unseen(rows.gram(expected.squares), find, doubt, lost, usual=usual)
    left, beyond = replace(rows, factor=rows.weight * open_pairs), expected.beyond
    covariance, of_left = rows.grams([rows.factor * expected.squares, left.factor * beyond[1]])
    worse = share_of(left.sums(left.factor * expected.worse, power=2), of=np.diag(of_left))
    missed = missed_of([(left, beyond)], of_left, np.minimum(worse, 1.0))
    return Unseen(covariance, find, doubt, lost, missed, usual)


@dataclass(frozen=True, eq=False)
class _Side:
    """What is expected of gains or of losses of n pairs, as they are counted."""

    mean: FloatArray
    squares: FloatArray
    cubes: FloatArray


@dataclass(frozen=True, eq=False)
class _Expected:
    """What is expected of n pairs: the squares of what estimates miss, and gains and losses."""

    squares: FloatArray
    sides: tuple[_Side, _Side]
    beyond: (
        FloatArray  # by how much a pair is better, if it is; its square, if it is worse too; cube
    )
    worse: FloatArray  # the square of by how much it is worse, if it is

    @classmethod
    def of(cls, missing: Missing, outlook: Outlook, pairs: IntArray) -> _Expected:
        """Gains and losses are counted from the mean of what batches predicted of the pair."""
        shares, utility = outlook.shares(pairs), missing.measure.utilities(outlook.grades)
        weights = missing.weights
        summed = weights.by_mean[missing.at][2, pairs]
        once, spread, cubes = weights.once[pairs], weights.spread[pairs], weights.cubes[pairs]
        predicted = share_of(summed, of=spread)
        gains, losses = np.empty((2, 3, len(pairs)))
        for piece in pieces(len(pairs)):
            above = utility[:, None] - predicted[piece]
            none = np.zeros(above.shape[1])  # compared with an array in a third of the time
            for side, left in (gains, np.maximum(above, none)), (losses, np.maximum(-above, none)):
                moved = shares[:, piece]
                for power in range(3):
                    moved = moved * left
                    np.add.reduce(moved, out=side[power, piece])
        counted = np.stack([once, spread, cubes])
        sides = _Side(*counted * gains), _Side(*counted * losses)
        beyond = np.stack([gains[0], gains[1] + losses[1], gains[2]])
        return cls(missing.expected(outlook, pairs), sides, beyond, losses[1])
