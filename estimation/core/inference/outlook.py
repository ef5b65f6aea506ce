"""What is expected of the grade of every pair: an outlook.

How uncertain a value is depends on pairs that were not judged. No estimated value depends on an
outlook, so that it biases none, however wrong it is; an interval or a verdict is as good as the
outlook and the sample together say (`uncertainty`). `fitting` has the one of judgments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import frozen
from ..data.kept import Last

if TYPE_CHECKING:
    from ..arrays import FloatArray, IntArray
    from ..data.scope import Scope
    from ..measures.table import Measure


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

    def over(self, scope: Scope) -> Outlook:
        """Return the same of the pairs of a scope: nothing is expected of those added."""
        return self if scope.is_sampled else OutlookOver(self.levels, self, scope)

    @property
    def grades(self) -> IntArray:
        """The L + 1 grades that have a share: 0, and the levels."""
        return np.append(0, self.levels)

    def shares(self, pairs: IntArray) -> FloatArray:
        """Return the expected share of each of `grades` among judgments, shape (L + 1, n).

        What was asked for last is told again: all that is expected of a measure asks for the same.
        """
        return self._shared_last.of(pairs, lambda: frozen(self._shares(pairs)))

    def _reach_again(self, pairs: IntArray) -> FloatArray:
        """`reach`; what was asked for last is told again, as by `shares`."""
        return self._reached_last.of(pairs, lambda: self.reach(pairs))

    @cached_property
    def _reached_last(self) -> Last[FloatArray]:
        return Last()

    @cached_property
    def _shared_last(self) -> Last[FloatArray]:
        return Last()

    def _shares(self, pairs: IntArray) -> FloatArray:
        reached = self._reach_again(pairs)
        shares = np.empty((len(reached) + 1, len(pairs)))
        np.subtract(reached[0], 1.0, out=shares[0])
        np.subtract(reached[1:], reached[:-1], out=shares[1:-1])
        np.subtract(0.0, reached[-1], out=shares[-1])
        return np.asarray(np.negative(shares, out=shares), dtype=np.float64)

    def moments(self, measure: Measure, pairs: IntArray) -> FloatArray:
        """Return what is expected of the utility of pairs, its square and its cube, shape (3, n).

        The measure is of the family gain: its utilities do not depend on runs, are 0 for grade 0
        and nowhere fall. Each level adds what it raises them by.
        """
        reached = self._reach_again(pairs)
        rises = np.diff(measure.utilities(self.grades) ** np.arange(1, 4)[:, None])
        some = np.flatnonzero(rises[0])
        if len(some) == 1 and np.all(rises[:, some] == 1.0):  # all powers are the same
            return np.broadcast_to(reached[some[0]], (3, len(pairs)))
        found = np.zeros((3, len(pairs)))
        for level in some.tolist():
            found += np.multiply.outer(rises[:, level], reached[level])
        return found


@dataclass(frozen=True, eq=False)
class KnownOutlook(Outlook):
    """An outlook that was worked out for every pair: `reached` is `reach` of all, shape (L, N)."""

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
