"""What the judgments let one expect of the grade of every pair.

How uncertain a value is depends on pairs that were not judged. For each grade g the share of
judgments that reach it is modeled as a product of factors of where the pair stands (`raking`),
beginning with what the prior believed of it: all there is as long as little was found. A prior that
is right about the order of pairs is far better than none, and one that is wrong is corrected by the
factors of its classes.

The model is for uncertainty alone. No estimated value depends on it, so that it biases none,
however wrong it is; an interval or a verdict is as good as the model and the sample together say
(`uncertainty`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from ..arrays import FloatArray, IntArray, array_hash, frozen
from ..data.labels import LabelRows, select_rows
from ..data.pool import Pool
from ..data.scope import Scope
from ..estimates.drawn import Drawn
from ..measures.table import Measure
from .raking import Kinds, Model, fitted_places

PIECE = 1 << 17  # pairs that are worked out at once; their runs are kept if these are all


class Outlook(ABC):
    """The grades that are expected of the N pairs of a pool.

    Attributes
    ----------
    levels : ndarray of int64, shape (L,)
        Grades above 0, ascending.
    """

    levels: IntArray

    @abstractmethod
    def reach(self, pairs: IntArray) -> FloatArray:
        """Return the expected share of the judgments of pairs with at least each level, (L, n).

        In [0, 1]; never rising from one level to the next.
        """

    def over(self, scope: Scope) -> "Outlook":
        """Return the same of the pairs of a scope: nothing is expected of those added."""
        return self if scope.is_sampled else OutlookOver(self.levels, self, scope)

    @property
    def grades(self) -> IntArray:
        """The L + 1 grades that have a share: 0, and the levels."""
        return np.append(0, self.levels)

    def shares(self, pairs: IntArray) -> FloatArray:
        """Return the expected share of each of `grades` among judgments, shape (L + 1, n)."""
        return -np.diff(self.reach(pairs), axis=0, prepend=1.0, append=0.0)

    def moments(self, measure: Measure, pairs: IntArray) -> FloatArray:
        """Return what is expected of the utility of pairs, its square and its cube, shape (3, n).

        The measure is of the family gain: its utilities do not depend on runs.
        """
        utility, shares = measure.utilities(self.grades), self.shares(pairs)
        powers = utility[:, None, None] ** np.arange(1, 4)[:, None]
        return np.asarray(np.add.reduce(powers * shares[:, None, :], axis=0))


@dataclass(frozen=True, eq=False)
class KnownOutlook(Outlook):
    """An outlook that was worked out for every pair.

    Attributes
    ----------
    levels : ndarray of int64, shape (L,)
    reached : ndarray of float64, shape (L, N)
        `reach` of all pairs.
    """

    levels: IntArray
    reached: FloatArray

    def reach(self, pairs: IntArray) -> FloatArray:
        """Return what is known of some pairs."""
        return self.reached[:, pairs]


@dataclass(frozen=True, eq=False)
class OutlookOver(Outlook):
    """An outlook of the N sampled pairs, said of the pairs of a scope."""

    levels: IntArray
    sampled: Outlook
    scope: Scope

    def reach(self, pairs: IntArray) -> FloatArray:
        """Return what is expected of some pairs; 0 of those that no sample reaches."""
        origin = self.scope.origin[pairs]
        reached = np.zeros((len(self.levels), len(pairs)))
        reached[:, origin >= 0] = self.sampled.reach(origin[origin >= 0])
        return reached


@dataclass(frozen=True, eq=False)
class FittedOutlook(Outlook):
    """The model: a base and factors of every kind, each with a column for every level."""

    levels: IntArray
    kinds: Kinds
    model: Model

    def reach(self, pairs: IntArray) -> FloatArray:
        """Return what the model says of some pairs, worked out when they are asked for first."""
        name = array_hash(pairs)
        if name not in self._reached:
            self._reached[name] = frozen(self._reach(pairs))
        return self._reached[name]

    def _reach(self, pairs: IntArray) -> FloatArray:
        """In pieces, because the runs of many pairs take room; they are kept if there is one."""
        reached = np.empty((len(self.levels), len(pairs)))
        for start in range(0, len(pairs), PIECE):
            piece = slice(start, start + PIECE)
            known, often = self.kinds.of_pairs(pairs[piece]), len(pairs) <= PIECE
            reached[:, piece] = self.model.shares(known, often=often)
        for lower, higher in pairwise(reached):
            np.minimum(lower, higher, out=higher)  # `accumulate` takes ten times as long
        return reached

    def everywhere(self) -> KnownOutlook:
        """Work it out for every pair."""
        return KnownOutlook(self.levels, self.reach(np.arange(len(self.kinds.pool))))

    @cached_property
    def _reached(self) -> dict[int, FloatArray]:
        return {}


def fit_outlook(pool: Pool, drawn: Drawn, rows: LabelRows, *, max_grade: int) -> FittedOutlook:
    """Fit the model to the judgments of a sample.

    Parameters
    ----------
    pool : Pool
        With the runs of the round.
    drawn : Drawn
    rows : LabelRows
        From `select_rows`: sorted, `pair` counting positions in `drawn.pair`.
    max_grade : int
        The best grade of the scale.
    """
    levels = np.unique([1, max_grade, *np.unique(rows.grade[rows.grade > 0]).tolist()])
    some = fitted_places(drawn)
    number = np.bincount(rows.pair, minlength=len(drawn.pair))[some]
    reached = [
        np.bincount(rows.pair[rows.grade >= level], minlength=len(drawn.pair))[some] / number
        for level in levels.tolist()
    ]
    kinds = Kinds(pool, drawn, drawn.pair[some])
    model = Model.of(pool, kinds.of_pairs(drawn.pair[some]), np.stack(reached, axis=1))
    return FittedOutlook(levels, kinds, model)


def outlook_of(
    pool: Pool, drawn: Drawn, labels: LabelRows, *, sampled: IntArray, max_grade: int
) -> KnownOutlook:
    """Fit the model to judgments of sampled pairs, those of `drawn`, and work it out for all."""
    rows = select_rows(labels, sampled=sampled, prefix=drawn.pair, max_grade=max_grade, pool=pool)
    return fit_outlook(pool, drawn, rows, max_grade=max_grade).everywhere()
