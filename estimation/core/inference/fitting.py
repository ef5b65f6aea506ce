"""What judgments let one expect: the grade of every pair, and what predictions leave over.

For each grade g the share of judgments that reach it is modeled as a product of factors of where
the pair stands (`raking`), beginning with what the prior believed of it: all there is as long as
little was found. A prior that is right about the order of pairs is far better than none, and one
that is wrong is corrected by the factors of its classes.

The difference estimator errs by what it predicts wrongly, v_i - b m_i, of pairs that were not
sampled. Residuals above 0, of documents that are more relevant than was predicted, are few and
large; those below 0 are many and small. The mean, the mean square and the mean cube of either are
each modeled as grades are, with the bin of the pair's prediction in the place of the prior's
belief: a prediction tells more of its own residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray, frozen
from ..data.labels import LabelRows, select_rows
from ..sampling.calibration import order_bins
from .outlook import KnownOutlook, Outlook
from .raking import Model, PairClasses, fitted_places

if TYPE_CHECKING:
    from ..data.pool import Pool
    from ..estimates.drawn import Drawn

PIECE = 1 << 17  # pairs that are worked out at once
KEPT = 2 * PIECE  # pairs whose runs are kept, if they are asked for together
POWERS = 3  # of residuals that are expected


@dataclass(frozen=True, eq=False)
class FittedOutlook(Outlook):
    """The model: a base and factors of every kind, each with a column for every level."""

    levels: IntArray
    classes: PairClasses
    model: Model

    def reach(self, pairs: IntArray) -> FloatArray:
        """Return what the model says of some pairs; of each it is worked out once.

        Measures ask for pairs that are mostly the same. What is said of a pair does not depend on
        which others are asked for with it.
        """
        known, reached = self._known
        asked = np.zeros(len(known), dtype=np.bool_)
        asked[pairs] = True
        asked &= ~known
        if asked.any():
            new = np.flatnonzero(asked)
            reached[:, new] = self._reach(new)
            known |= asked
        return np.take(reached, pairs, axis=1)

    def _reach(self, pairs: IntArray) -> FloatArray:
        """In pieces, because the runs of many pairs take room; they are kept if there is one."""
        reached = np.empty((len(self.levels), len(pairs)))
        for start in range(0, len(pairs), PIECE):
            piece = slice(start, start + PIECE)
            traits, often = self.classes.of_pairs(pairs[piece]), len(pairs) <= KEPT
            reached[:, piece] = self.model.shares(traits, often=often)
        for lower, higher in pairwise(reached):
            np.minimum(lower, higher, out=higher)  # `accumulate` takes ten times as long
        return reached

    def everywhere(self) -> KnownOutlook:
        """Work it out for every pair."""
        return KnownOutlook(self.levels, frozen(self.reach(np.arange(len(self.classes.pool)))))

    @cached_property
    def _known(self) -> tuple[BoolArray, FloatArray]:
        """Of which pairs it is worked out what the model says, shape (N,), and that, (L, N)."""
        pairs = len(self.classes.pool)
        return np.zeros(pairs, dtype=np.bool_), np.zeros((len(self.levels), pairs))


def fit_outlook(pool: Pool, drawn: Drawn, rows: LabelRows, *, max_grade: int) -> FittedOutlook:
    """Fit the model to the judgments of a sample from a pool with the runs of the round.

    Rows are from `select_rows`: sorted, `pair` counting positions in `drawn.pair`.
    """
    levels = np.unique([1, max_grade, *np.unique(rows.grade[rows.grade > 0]).tolist()])
    some = fitted_places(drawn)
    number = np.bincount(rows.pair, minlength=len(drawn.pair))[some]
    reached = [
        np.bincount(rows.pair[rows.grade >= level], minlength=len(drawn.pair))[some] / number
        for level in levels.tolist()
    ]
    classes = PairClasses(pool, drawn, drawn.pair[some])
    model = Model.of(pool, classes.of_pairs(drawn.pair[some]), np.stack(reached, axis=1))
    return FittedOutlook(levels, classes, model)


def outlook_of(
    pool: Pool, drawn: Drawn, labels: LabelRows, *, sampled: IntArray, max_grade: int
) -> KnownOutlook:
    """Fit the model to judgments of sampled pairs, those of `drawn`, and work it out for all."""
    rows = select_rows(labels, sampled=sampled, prefix=drawn.pair, max_grade=max_grade, pool=pool)
    return fit_outlook(pool, drawn, rows, max_grade=max_grade).everywhere()


@dataclass(frozen=True, eq=False)
class Residuals:
    """What is expected of the residuals of the N pairs of a pool.

    Classes and model are of residuals as shares of the largest label, and of their powers.
    """

    classes: PairClasses
    model: Model
    largest: float

    def moments(self, pairs: IntArray) -> FloatArray:
        """Return expected residuals of pairs, their squares and their cubes, shape (2, 3, n).

        First of those above 0, then of those below, without their sign.
        """
        traits = self.classes.of_pairs(pairs)
        shares = self.model.shares(traits, often=True).reshape(2, POWERS, len(pairs))
        scale = self.largest ** np.arange(1, POWERS + 1)
        return np.asarray(shares * scale[:, None], dtype=np.float64)


def fit_residuals(
    pool: Pool, drawn: Drawn, left: FloatArray, *, predictions: FloatArray, largest: float
) -> Residuals:
    """Fit the model to what predictions leave over of the labels of a sample, shape (n,).

    Predictions are of all N pairs, NaN where nothing is predicted; only their order counts. What
    they leave over can be as large as labels can, `largest`: that it is next to nothing of a few
    judged pairs, which are all alike, does not say as much of the others.
    """
    some = fitted_places(drawn)
    sides = (np.maximum(sign * left[some] / largest, 0.0) for sign in (1.0, -1.0))
    found = np.stack([side**power for side in sides for power in range(1, POWERS + 1)], axis=1)
    classes = PairClasses(pool, drawn, drawn.pair[some], order_bins(predictions))
    return Residuals(classes, Model.of(pool, classes.of_pairs(drawn.pair[some]), found), largest)
