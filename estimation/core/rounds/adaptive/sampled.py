"""What the batches of an adaptive round say before anything is judged: no judgment is in it.

It is settled when a batch is planned, so that a worker may work it out while people judge the
batch (`Sampled.work_ahead`). Whoever comes to the estimates without it finds the same bits then.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...estimates.by_topic import judged_by_topic
from ...estimates.drawn import Drawn
from ...estimates.topic_sums import judged_sums
from ...inference.looked_at import looked_at
from ...inference.reach import Reach
from .batch_weights import BatchWeights, Weighed
from .state import AdaptiveState, walk

if TYPE_CHECKING:
    from ...arrays import IntArray
    from ...data.scope import Scope
    from ...measures.table import Measure
    from .frame import AdaptiveFrame

CERTAIN = 0.999  # no pair is looked at as if it had been certain from the beginning


@dataclass(frozen=True, eq=False)
class Sampled:
    """The pairs of all batches of a state, and what is asked about with them."""

    frame: AdaptiveFrame
    state: AdaptiveState
    scope: Scope
    measures: tuple[Measure, ...]

    @property
    def pairs(self) -> IntArray:
        """Those that were drawn."""
        return self.state.pair

    @cached_property
    def weights(self) -> BatchWeights:
        """What the batches count every pair for."""
        return weighed(self.frame, self.state, self.measures).weights

    def weighed_before(self, measure: Measure) -> Weighed:
        """The same of one measure, perhaps as it was found with others."""
        return weighed_before(self.frame, self.state, measure)

    @property
    def planned(self) -> Drawn:
        """What the design alone would have drawn."""
        return planned_alone(self.frame, self.state)

    @cached_property
    def over(self) -> Drawn:
        """The same of the scope's pairs."""
        return self.planned.over(self.scope)

    @cached_property
    def reach(self) -> Reach:
        """What was reached of the scope's pool."""
        counted = np.zeros(len(self.frame.pool))
        counted[self.pairs] = 1.0 / np.maximum(self.weights.of_judged(self.pairs).on_label, 1.0)
        return Reach(self.scope.pool, self.over.pair, self.scope.spread(counted))

    def work_ahead(self) -> None:
        """Work out and keep what estimates of sums of gains take of it."""
        pool, place = self.scope.pool, self.scope.places(self.pairs)
        judged_by_topic(pool, self.measures, place)
        for at, measure in enumerate(self.measures):
            if measure.family != "gain":
                continue
            self.weights.predicted_totals(self.scope, at, measure)
            judged_sums(pool, measure, place).work_ahead()
            looked_at(pool, self.over, measure)
            self.reach.effective_sample_size(measure)


def weighed(frame: AdaptiveFrame, state: AdaptiveState, measures: tuple[Measure, ...]) -> Weighed:
    """Go through the batches of a state; what is found stays with it.

    It hangs on the batches alone, as they are stored, and on no label: corrected grades find the
    same, so that nothing is kept which could disagree with them.
    """
    for pool, design, before in state.weighed:
        if pool is frame.pool and design is frame.design and before.measures == measures:
            return before
    going = walk(frame, state)
    weights = BatchWeights.of(frame, going, measures, state.batches)
    found = Weighed(measures, weights, going.standing)
    state.weighed[:] = [(frame.pool, frame.design, found)]
    return found


def weighed_before(frame: AdaptiveFrame, state: AdaptiveState, measure: Measure) -> Weighed:
    """Return the same for a measure, as it was found for the estimates if it was."""
    for pool, design, found in state.weighed:
        if pool is frame.pool and design is frame.design and measure in found.measures:
            return found
    return weighed(frame, state, (measure,))


def planned_alone(frame: AdaptiveFrame, state: AdaptiveState) -> Drawn:
    """What the design alone would have drawn by now, of which no pair is certain; found once."""
    for design, found in state.planned:
        if design is frame.design:
            return found
    state.planned[:] = [(frame.design, _planned_alone(frame, state))]
    return state.planned[0][1]


def _planned_alone(frame: AdaptiveFrame, state: AdaptiveState) -> Drawn:
    design, past = frame.design, frame.past
    inclusion, rate = design.inclusion(state.batches), design.size
    if past is not None:
        can_be = design.eligible.astype(np.float64)
        can_be[past.judged] = 1.0
        inclusion = can_be * (1.0 - (1.0 - past.planned) * (1.0 - inclusion))
        rate = inclusion
    inclusion = np.minimum(inclusion, CERTAIN)
    return Drawn(
        state.pair,
        inclusion,
        expected=inclusion,
        probability=inclusion[state.pair],
        belief=design.belief,
        rate=rate,
        digests=design.digests,
    )
