"""How far a model of grades is trusted with errors of scores, by judgments it has not seen.

Where runs are nearly right, a model that is sure of a grade in 99 of 100 cases predicts errors that
are not there: a whole grade in one of a hundred is many times what they are off. So estimates take
off only a part c of what it predicts, and its sizes have only a part k in chances:

    m_ij = c sum_g x_ig u_j(g),      size_i = (1 - k) design's size + k model's size, each of sum 1.

Both are told by judged pairs of earlier batches. They are dealt to `FOLDS` folds; a model of the
other folds predicts the pairs of each. With Q the goal's quadratic form over runs, y_i what
judgments of a pair add to runs and z_i what is predicted of it, the next batch is off by about

    sum_i v_i Q(y_i - c z_i) / size_i,      v_i = n_b / p_bi

of the n_b pairs that batch b drew, each with p_bi: every batch stands for all pairs that it may
have drawn. c makes this least with the sizes of the design, less `DOUBT` standard errors and from 0
to 1; k is 0, or the one of `PARTS` by which it is less than with k = 0 by most beyond `DOUBT`
standard errors, sizes being made to spend as much by the same pairs.

So a model that tells nothing has no part, and a batch is as one by the design alone. Nothing is
biased: c and k follow from labels of earlier batches alone, so that what is taken off a pair, and
its chance, are settled before it is drawn (`sampling`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import share_of
from ...estimates.terms import linear_terms
from ...sampling.goals import goal_weights
from .grades import fit_grades
from .run_utilities import added_by_grade, expected_entries, possible_shares
from .scoring import DECIMALS

if TYPE_CHECKING:
    from ...arrays import BoolArray, FloatArray, IntArray
    from ...data.labels import LabelRows
    from .frame import AdaptiveFrame
    from .grades import LearnedGrades
    from .scoring import Scoring
    from .state import AdaptiveState

FOLDS = 4
DOUBT = 1.0
PARTS = 0.25, 0.5, 0.75, 1.0
OF_DESIGN = 0.1  # of the model's sizes, where it has all


def trusted(
    model: LearnedGrades,
    scoring: Scoring,
    frame: AdaptiveFrame,
    state: AdaptiveState,
    reached: FloatArray,
    rows: LabelRows,
) -> LearnedGrades:
    """Return a model that is trusted as far as it was right.

    Parameters
    ----------
    model, scoring : LearnedGrades, Scoring
        Of all judged pairs, and what it has of scores.
    frame, state : AdaptiveFrame, AdaptiveState
    reached : ndarray of float64, shape (n, L)
        Share of the judgments of each judged pair that reach each level.
    rows : LabelRows
        Of the judged pairs, positions among them.
    """
    judged = _Judged.of(model, frame, state, reached, rows)
    part = float(np.round(judged.part(), DECIMALS))
    return replace(model, scoring=replace(scoring, part=part, of_sizes=judged.of_sizes(part)))


@dataclass(frozen=True, eq=False)
class _Judged:
    """Judged pairs, and what others of them predict.

    Attributes
    ----------
    frame : AdaptiveFrame
    pairs : ndarray of int64, shape (n,)
        Of which others predict something.
    counted : ndarray of float64, shape (n,)
        v of the module's text.
    shares : ndarray of float64, shape (L + 1, N)
        Of grades, as others predict them; of all other pairs anything.
    found : ndarray of float64, shape (E,)
        What judgments add to runs.
    """

    frame: AdaptiveFrame
    pairs: IntArray
    counted: FloatArray
    shares: FloatArray
    found: FloatArray

    @classmethod
    def of(
        cls,
        model: LearnedGrades,
        frame: AdaptiveFrame,
        state: AdaptiveState,
        reached: FloatArray,
        rows: LabelRows,
    ) -> _Judged:
        pool, pairs = frame.pool, state.pair
        known, expected = _by_others(model, frame, pairs, reached)
        terms = linear_terms(pool, frame.design.measure, pairs=pairs, rows=rows)
        found = np.zeros(len(pool.run))
        found[pool.entries_of(pairs)[0]] = terms.weights.data
        counted = np.bincount(state.batch)[state.batch] / state.chance
        known &= frame.design.size[pairs] > 0.0
        return cls(frame, pairs[known], counted[known], possible_shares(expected), found)

    @property
    def size(self) -> FloatArray:
        """Sizes of the design, (n,)."""
        return self.frame.design.size[self.pairs]

    @property
    def cost(self) -> FloatArray:
        """Of judging them, (n,)."""
        costs = self.frame.costs
        return np.ones(len(self.pairs)) if costs is None else costs[self.pairs]

    @property
    def predicted(self) -> FloatArray:
        """z of the module's text, of each entry, (E,)."""
        added = added_by_grade(self.frame.pool, self.frame.design.measure, self.frame.levels)
        return expected_entries(self.frame.pool, added, self.shares)

    def squares(self, entries: FloatArray) -> FloatArray:
        """The goal's quadratic form of what pairs add to runs, (n,)."""
        goal = self.frame.design.goal
        return np.asarray(goal_weights(self.frame.pool, goal, entries)[self.pairs] ** 2)

    def part(self) -> float:
        """c of the module's text."""
        predicted = self.predicted
        squares = self.squares(predicted)
        both = (self.squares(self.found) + squares - self.squares(self.found - predicted)) / 2.0
        weight = self.counted / self.size
        total = float((weight * squares).sum())
        if not total > 0.0:
            return 0.0
        best = float((weight * both).sum()) / total
        error = float(np.sqrt((weight**2 * (both - best * squares) ** 2).sum())) / total
        return min(max(best - DOUBT * error, 0.0), 1.0)

    def of_sizes(self, part: float) -> float:
        """k of the module's text."""
        missed = self.counted * self.squares(self.found - part * self.predicted)
        goal = self.frame.design.goal
        own = self.frame.spread_by_run(self.shares, goal, None, part)[self.pairs]
        of_design, of_model = self._of_all(self.size), self._of_all(own / np.sqrt(self.cost))
        of_model = (1.0 - OF_DESIGN) * of_model + OF_DESIGN * of_design
        off, best, least = share_of(missed, of=of_design), 0.0, 0.0
        for each in PARTS:
            more = share_of(missed, of=(1.0 - each) * of_design + each * of_model) - off
            expected = float(more.sum()) + DOUBT * float(np.sqrt((more**2).sum()))
            if expected < least:
                best, least = each, expected
        return best

    def _of_all(self, size: FloatArray) -> FloatArray:
        """Sizes that spend 1 on the pairs that these stand for."""
        total = float((self.counted * self.cost * size).sum())
        return size / total if total > 0.0 else size


def _by_others(
    model: LearnedGrades, frame: AdaptiveFrame, pairs: IntArray, reached: FloatArray
) -> tuple[BoolArray, FloatArray]:
    """Which judged pairs others predict, (n,), and that: what reaches each level, (L, N)."""
    known = np.zeros(len(pairs), dtype=np.bool_)
    expected = np.zeros((len(model.levels), len(frame.pool)))
    fold, features = np.arange(len(pairs)) % FOLDS, frame.features
    for number in range(min(FOLDS, len(pairs))):
        out = fold == number
        others = fit_grades(
            features, pairs[~out], reached[~out], levels=model.levels, before=model, as_before=True
        )
        if others is not None:
            expected[:, pairs[out]] = others.reach_of(features.of_pairs(pairs[out]), features)
            known |= out
    return known, expected
