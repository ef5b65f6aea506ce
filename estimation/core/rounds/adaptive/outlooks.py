"""What to expect of the pairs of an adaptive round: its model, corrected by all of its judgments.

The model that planned the last batch was made to choose pairs, and is believed too much where it
chose few: what it calls useless is hardly looked at, and where it is wrong about a run, it goes on
being wrong. What intervals rest on is therefore corrected twice, by judgments that count the same
whatever was planned.

By raking
    What is expected of a pair is what the model says times factors of its topic, of how likely and
    how good the model says it is, of its ranks, and of the runs that return it, with a second
    factor of those for pairs that few runs return (`raking`, whose belief is the model): what one
    run alone returns is unlike what others do. This tells runs from one another.
By the squares of all runs together
    The squares of what was found are unbiased, whatever the model says, and those of all runs
    together come from many finds, where those of one run come from few. If they are larger than
    what is expected of all runs, all of it is too small, by their ratio (`uncertainty.level`): of
    values, or of what each value differs from the mean of all. They are those of the runs of the
    goal, whichever runs are asked for.

No estimated value depends on either. Ratios, whose small bias is estimated with an outlook, keep
the model as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import array_digest
from ...data.kept import Last, kept
from ...estimates.topic_sums import judged_sums
from ...inference.outlook import KnownOutlook
from ...inference.uncertainty import level

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...arrays import FloatArray, IntArray, SparseMatrix
    from ...data.labels import PairLabels
    from ...data.pool import Pool
    from ...inference.looked_at import Rows
    from ...inference.outlook import Outlook
    from ...measures.table import Measure
    from ...sampling.goals import Goal
    from .batch_weights import BatchWeights
    from .frame import AdaptiveFrame
    from .grades import LearnedGrades

MOST_KEPT = 8  # sums over runs of squared weights: of what is looked at, and of what is judged


def model_outlook(frame: AdaptiveFrame, model: LearnedGrades) -> Outlook:
    """Return what the model says as it is."""
    return KnownOutlook(model.levels, frame.reached_by_all(model))


@dataclass(frozen=True, eq=False)
class Missing:
    """What estimates miss of pairs: E[(u - m)^2], each batch counted (`estimates`), of n pairs."""

    weights: BatchWeights
    at: int
    measure: Measure

    def expected(self, outlook: Outlook, pairs: IntArray) -> FloatArray:
        """Return sum_b A_b^2 (1 - p_b) / p_b E[(u - m_b)^2] over batches that met them open.

        What was asked for last is told again: intervals and the level ask for the same pairs.
        """
        return self._last.of(pairs, lambda: self._expected_now(outlook, pairs), by=outlook)

    @cached_property
    def _last(self) -> Last[FloatArray]:
        return Last()

    def _expected_now(self, outlook: Outlook, pairs: IntArray) -> FloatArray:
        shares, utility = outlook.shares(pairs), self.measure.utilities(outlook.grades)
        _, _, summed, squared = self.weights.by_mean[self.at][:, pairs]
        missed = self.weights.spread[pairs] * (utility**2 @ shares)
        missed += squared - 2.0 * summed * (utility @ shares)
        return np.asarray(np.maximum(missed, 0.0), dtype=np.float64)

    def found(self, pairs: IntArray, labels: PairLabels) -> FloatArray:
        """Return A^2 (1 - p) / p^2 (v - m)^2 of judged pairs, whose sums expect the same."""
        judged = self.weights.of_judged(pairs)
        find, chance = judged.on_find, judged.chance
        left = labels.mean - self.weights.by_mean[self.at][1][pairs]
        return np.asarray((find * left) ** 2 * (1.0 - chance))

    def level(
        self, rows: Rows, outlook: Outlook, pairs: IntArray, labels: PairLabels, goal: Goal
    ) -> float:
        """Return by how much all that is expected is to be multiplied, by the runs of a goal.

        Parameters
        ----------
        rows : Rows
            Of the pool that was sampled, whose pairs stand for all of it.
        outlook : Outlook
            Of its pairs.
        pairs, labels : ndarray of int64, PairLabels
            What was judged.
        goal : Goal
            Of the round: what its runs return was looked at, and other runs' finds are few.
        """
        expected = rows.weight * self.expected(outlook, rows.pair)
        found = self.found(pairs, labels)
        runs = [rows.pool.run_index(tag) for tag in goal.all_runs]
        pool, measure = rows.pool, self.measure
        every = zip(
            self._sums(pool, pairs, runs, lambda: judged_sums(pool, measure, pairs).weights),
            self._sums(pool, rows.pair, runs, lambda: rows.matrix),
            strict=True,
        )
        return max(
            level(found * of_judged, float((expected * of_all).sum()))
            for of_judged, of_all in every
        )

    def _sums(
        self, pool: Pool, pairs: IntArray, runs: list[int], weights: Callable[[], SparseMatrix]
    ) -> tuple[FloatArray, FloatArray]:
        """`_of_all` of the weights of pairs, in which no judgment is."""

        def work() -> tuple[FloatArray, FloatArray]:
            found = weights()
            every = runs == list(range(len(pool.runs)))
            return _of_all(found if every else found[:, runs])

        key = self.measure, array_digest(pairs), tuple(runs)
        return kept(pool.kept, "squares of all", key, work, most=MOST_KEPT)


def _of_all(weights: SparseMatrix) -> tuple[FloatArray, FloatArray]:
    """Sums over k runs of w_ij^2, and of the squares of w_ij less their mean, (n,) each."""
    ones = np.ones(weights.shape[1])
    squares = weights.copy()
    squares.data = squares.data**2
    values, total = squares @ ones, weights @ ones
    return values, np.maximum(values - total**2 / len(ones), 0.0)
