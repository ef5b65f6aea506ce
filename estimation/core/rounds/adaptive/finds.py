"""What was judged before a batch of an adaptive round was planned, and what was found."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ...arrays import FloatArray, IntArray, array_digest, frozen

if TYPE_CHECKING:
    from ...data.pool import Pool


def _nothing() -> IntArray:
    return frozen(np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Finds:
    """What was judged before a batch was planned, and what was found.

    Attributes
    ----------
    pair : ndarray of int64, shape (f,)
        Judged pairs that reach a level, ascending.
    reach : ndarray of float64, shape (L, f)
        The shares of their judgments that reach each.
    judged : ndarray of int64, shape (n,)
        All judged pairs, ascending; of a stored batch from those before it (`state.with_judged`).
    """

    pair: IntArray
    reach: FloatArray
    judged: IntArray = field(default_factory=_nothing)

    @classmethod
    def of(cls, judged: IntArray, reached: FloatArray) -> Finds:
        """Return those of judged pairs with shares of judgments that reach levels, (n, L)."""
        useful = reached[:, 0] > 0.0
        return cls(frozen(judged[useful]), frozen(reached[useful].T.copy()), frozen(judged))

    def since(self, before: Finds) -> tuple[IntArray, FloatArray]:
        """Return the pairs whose shares are others than before, and these, (L, c)."""
        pair, (was, now) = _side_by_side(len(self.reach), before, self)
        changed = np.any(was != now, axis=0)
        return pair[changed], now[:, changed]

    def with_changes(self, pair: IntArray, reach: FloatArray) -> Finds:
        """Return the same with other shares of some pairs, as `since` tells them."""
        every, (shares, _) = _side_by_side(len(reach), self, Finds(pair, reach))
        shares[:, np.searchsorted(every, pair)] = reach
        found = shares.any(axis=0)
        if not found.all():
            every, shares = every[found], shares[:, found]
        return Finds(frozen(every), frozen(shares))

    @cached_property
    def share(self) -> FloatArray:
        """The mean share of the judgments of each judged pair that reach a level, (n,)."""
        found = np.zeros(len(self.judged))
        found[np.searchsorted(self.judged, self.pair)] = self.reach.mean(axis=0)
        return found

    @cached_property
    def both(self) -> FloatArray:
        """The same, and one for each judged pair, (n, 2)."""
        return np.stack([self.share, np.ones(len(self.share))], axis=1)

    @cached_property
    def sums(self) -> list[tuple[Pool, FloatArray]]:
        """What their neighbors have of them, once it was worked out (`Features`)."""
        return []

    @cached_property
    def digests(self) -> tuple[bytes, ...]:
        """What they are found by."""
        return tuple(map(array_digest, (self.judged, self.pair, self.reach)))


def _side_by_side(levels: int, *several: Finds) -> tuple[IntArray, list[FloatArray]]:
    """All pairs that are found in any, and their shares in each, 0 where they are not found."""
    pair = np.sort(np.concatenate([each.pair for each in several]))
    pair = pair[np.diff(pair, prepend=-1) > 0]  # `unique` takes ten times as long
    shares = [np.zeros((levels, len(pair))) for _ in several]
    for each, found in zip(several, shares, strict=True):
        if len(each.pair):
            found[:, np.searchsorted(pair, each.pair)] = each.reach
    return pair, shares
