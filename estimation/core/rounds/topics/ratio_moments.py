"""Moments of a topic's AP, nDCG or Rprec under a grade model, to first order.

A ratio of two sums over random grades has no expectation in closed form. So the measure is taken
where every count and every product of grades has its expectation, as a linear function near there
(`estimation.core.estimates.ratio_lines`):

    E L_j ~ E[numerator] / E[denominator],      Var L_j ~ sum_i Var(a_ij u_i - b_j h_i),

a_ij what a unit of the utility u_i of document i adds to run j's value through the numerator, b_j
h_i what it takes away through the denominator; grades are independent. What is lost is of the
second order in the spread of the denominator, R or the ideal DCG.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ...estimates.ratio_frames import Frame, Gains
from ...estimates.ratio_lines import Tangent
from ...measures.table import document_gains
from .grade_models import GradeModel, check_grade_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...arrays import FloatArray, SparseMatrix
    from ...data.pool import Pool
    from ...measures.table import Measure


@dataclass(frozen=True, eq=False)
class GradeLine:
    """A ratio measure as a linear function of grades, near what a grade model expects."""

    mean: FloatArray  # (T, k): E L, to first order
    slope: SparseMatrix  # (N, k): a_ij
    topic_slope: FloatArray  # (T, k): b_j
    spread: FloatArray  # (3, N): Var u_i, Cov(u_i, h_i), Var h_i
    bounds: list[int]  # where the pairs of each topic begin and end

    @classmethod
    def of(cls, pool: Pool, measure: Measure, model: GradeModel) -> GradeLine:
        """Linearize; raise GradeModelError if the model does not fit the pool."""
        check_grade_model(pool, model)
        utility = document_gains(measure, max_grade=model.max_grade)
        steps = np.diff(utility, prepend=0.0)
        levels = np.flatnonzero(steps > 0.0)
        reached = np.cumsum(model.probability[:, ::-1], axis=1)[:, ::-1].T[levels]
        every = np.arange(len(pool))
        gains = Gains(steps[levels], reached, every, np.ones(len(pool)))
        frame = Frame.of(pool, measure, gains, None)
        line, topics = Tangent.of(frame, measure), len(pool.topics)
        coordinates = frame.place, frame.cell % frame.runs
        slope = sparse.csr_array((line.slope * topics, coordinates), shape=(len(pool), frame.runs))
        falls = np.zeros((topics, len(utility)))
        falls[:, levels] = (steps[levels, None] * line.level_slope).T
        return cls(
            mean=line.by_topic * topics,
            slope=slope,
            topic_slope=line.topic_slope * topics,
            spread=_spread(model, utility, np.cumsum(falls, axis=1)[pool.topic]),
            bounds=np.searchsorted(pool.topic, np.arange(topics + 1)).tolist(),
        )

    def variance(self, compared: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Return the variance of linear combinations of the runs' values, shape (T, c).

        ``compared`` turns values of the runs, (rows, k), into those of the combinations, (rows, c).
        """
        found = []
        for topic, (start, stop) in enumerate(pairwise(self.bounds)):
            alone, mixed, falling = self.spread[:, start:stop, None]
            up = compared(self.slope[start:stop].toarray())
            down = compared(self.topic_slope[[topic]])
            found.append((up**2 * alone - 2.0 * up * down * mixed + down**2 * falling).sum(axis=0))
        return np.maximum(np.array(found, dtype=np.float64), 0.0)


def _spread(model: GradeModel, utility: FloatArray, falls: FloatArray) -> FloatArray:
    """Var u, Cov(u, h) and Var h of every pair, from u (G + 1,) and h (N, G + 1) of each grade."""
    chance = model.probability
    up = utility - (chance * utility).sum(axis=1, keepdims=True)
    down = falls - (chance * falls).sum(axis=1, keepdims=True)
    return np.stack([(chance * each).sum(axis=1) for each in (up**2, up * down, down**2)])
