"""What the batches of an adaptive round say of every run, measure by measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...data.labels import LabelRows, pair_labels, select_rows
from ...estimates.drawn import Drawn
from ...inference.fitting import fit_outlook
from ...inference.outlook import KnownOutlook
from ...inference.reach import Reach
from ...measures.kinds import MeasureError
from ..comparison import Comparison
from ..limits import with_intervals
from ..results import Asked, Evaluation, MeasureResult
from .estimates import Weights, estimate_totals, unseen_of_batches
from .state import AdaptiveState, walk

if TYPE_CHECKING:
    from ...arrays import IntArray
    from ...data.scope import Scope
    from ...inference.outlook import Outlook
    from .sampling import AdaptiveFrame

ESTIMATOR = "ad"
CERTAIN = 0.999  # no pair is looked at as if it had been certain from the beginning


def answer_of_batches(
    frame: AdaptiveFrame, state: AdaptiveState, scope: Scope, asked: Asked
) -> Evaluation:
    """Estimate the runs of a scope from all batches of a state.

    Raises
    ------
    MeasureError
        If a measure is no sum of gains.
    LabelError
        If a drawn pair has no judgment.
    """
    for measure in asked.measures:
        if measure.family != "gain":
            raise MeasureError(f"{measure} is not estimated from adaptive rounds")
    rows = _rows(frame, state, asked)
    question = _Question.of(frame, state, scope, asked, rows)
    return Evaluation(
        batches=state.batches,
        judged_pairs=len(state.pair),
        judgments=len(rows.pair),
        draws=None,
        confidence=asked.confidence,
        results=tuple(question.answer(at) for at in range(len(asked.measures))),
    )


def _rows(frame: AdaptiveFrame, state: AdaptiveState, asked: Asked) -> LabelRows:
    """Judgments of these batches; of later ones they are not used."""
    known = np.isin(asked.labels.pair, state.pair)
    return select_rows(
        LabelRows(asked.labels.pair[known], asked.labels.grade[known]),
        sampled=state.pair,
        prefix=state.pair,
        max_grade=asked.max_grade,
        pool=frame.pool,
    )


@dataclass(frozen=True, eq=False)
class _Question:
    """What is asked of every measure; `planned` is over the scope's pairs, `outlook` is not."""

    scope: Scope
    asked: Asked
    rows: LabelRows
    pairs: IntArray
    weights: Weights
    outlook: Outlook
    planned: Drawn
    reach: Reach
    comparison: Comparison

    @classmethod
    def of(
        cls,
        frame: AdaptiveFrame,
        state: AdaptiveState,
        scope: Scope,
        asked: Asked,
        rows: LabelRows,
    ) -> _Question:
        weights = Weights.of(frame, walk(frame, state), asked.measures, state.batches)
        planned = _planned(frame, state)
        counted = np.zeros(len(frame.pool))
        counted[state.pair] = 1.0 / np.maximum(weights.on_label[state.pair], 1.0)
        over = planned.over(scope)
        return cls(
            scope,
            asked,
            rows,
            state.pair,
            weights,
            asked.outlook or _outlook(frame, state, planned, rows, asked),
            over,
            Reach(scope.pool, over.pair, scope.spread(counted)),
            Comparison.of(scope, asked, over.inclusion > 0.0),
        )

    def answer(self, at: int) -> MeasureResult:
        scope, asked, measure = self.scope, self.asked, self.asked.measures[at]
        labels = pair_labels(self.rows, pairs=len(self.pairs), measure=measure)
        found = estimate_totals(
            scope, self.weights, at, measure=measure, pairs=self.pairs, labels=labels
        )
        missed = unseen_of_batches(
            scope, self.weights, at, measure=measure, outlook=self.outlook, planned=self.planned
        )
        depth = scope.pool.depth
        highest = measure.largest_value(max_grade=asked.max_grade, depth=depth)
        return self.comparison.result(
            measure,
            scope.pool.runs,
            {ESTIMATOR: with_intervals(found, missed, asked.confidence, highest)},
            ESTIMATOR,
            effective_sample_size=self.reach.effective_sample_size(measure),
            label_noise_measured=labels.noise_measured,
            by_topic=found.by_topic,
        )


def _planned(frame: AdaptiveFrame, state: AdaptiveState) -> Drawn:
    """What the design alone would have drawn by now, of which no pair is certain."""
    design = frame.design
    inclusion = np.minimum(design.inclusion(state.batches), CERTAIN)
    chance = inclusion[state.pair]
    return Drawn(state.pair, inclusion, inclusion, chance, belief=design.belief, rate=design.size)


def _outlook(
    frame: AdaptiveFrame, state: AdaptiveState, planned: Drawn, rows: LabelRows, asked: Asked
) -> Outlook:
    """What the last batch was planned by; by judgments alone where nothing was learned then."""
    model = state.steps[-1].model
    if model is None:
        return fit_outlook(frame.pool, planned, rows, max_grade=asked.max_grade)
    return KnownOutlook(model.levels, model.reach(frame.features))
