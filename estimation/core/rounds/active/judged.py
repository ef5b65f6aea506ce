"""The judgments of an active sample, topic by topic and measure by measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...data.labels import LabelRows, PairLabels, pair_labels, select_rows
from ...measures.kinds import MAX_GRADE
from ...measures.table import Measure, parse_measure
from .steps import grouped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...arrays import FloatArray, IntArray
    from .lists import ActiveFrame
    from .sampling import ActiveState


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """The n sampled pairs, ascending, and their labels: relevance, then each measure."""

    pairs: IntArray
    spans: list[slice]  # of each topic
    labels: list[PairLabels]

    @classmethod
    def of(
        cls,
        frame: ActiveFrame,
        state: ActiveState,
        labels: LabelRows,
        measures: Sequence[Measure],
    ) -> JudgedPairs:
        pool, pairs = frame.pool, np.sort(state.pair)
        rows = select_rows(labels, sampled=pairs, prefix=pairs, max_grade=MAX_GRADE, pool=pool)
        wanted = [parse_measure(f"P(rel={state.relevant_from})@1"), *measures]
        found = [
            pair_labels(rows, pairs=len(pairs), measure=each).with_expected() for each in wanted
        ]
        return cls(pairs, grouped(pool.topic[pairs], len(pool.topics))[1], found)

    def of_column(
        self, column: int, rows: IntArray, span: slice
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The mean utility of some pairs, and its variance by disagreement of all of a span.

        A pair with one judgment that found nothing has what this lets one expect; last, what the
        grades of all judgments let one expect.
        """
        labels, likely = self.labels[column], self.labels[column].likely_noise
        noise = labels.noise[span]
        return labels.mean[rows], noise, noise if likely is None else likely[span]

    def useful(self, span: slice) -> IntArray:
        """The pairs of a span with any utility."""
        positive = [each.mean[span] > 0.0 for each in self.labels]
        return np.asarray(span.start + np.flatnonzero(np.any(positive, axis=0)))
