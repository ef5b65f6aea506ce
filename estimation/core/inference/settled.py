"""Differences that what was judged settles, whatever the grades of all other pairs are.

Where most of a pool is judged a sample knows more than its errors say. What counted with a small
chance in an early batch stays in an estimate as it was, though by now every document in which two
runs differ may be judged. With K_j what judged pairs add to run j, and utilities in [0, M],

    D_ij >= K_i - K_j - M * sum over pairs that are not judged of max(0, w_j - w_i),

and where that is above 0 run i is better: for certain, with no share of the error of the verdicts.
It holds whatever the sample, the moment and the reason to stop are, as it is a sum over facts. So
does what a difference is at most. An estimate beyond either is brought to there before it is tested
(`ranks.rank_runs`): two runs of which all that differs is judged, and to no side's favor, have no
verdict, however sure their estimates are.

What it asks for is that the utility of a judged pair is known. Where pairs have several labels,
assessors may disagree, and what counts is the mean over all of them: there nothing is settled.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import array_digest, column_sums, pieces
from ..data.entries import counted_entries, weights_of
from ..data.kept import kept
from ..data.pool_ranks import total_weights
from .in_common import in_common
from .intervals import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from ..arrays import FloatArray, IntArray, SparseMatrix
    from ..data.labels import PairLabels
    from ..data.pool import Pool
    from ..measures.table import Measure

MOST_ENTRIES = 400_000  # of pairs that are not judged: where they have more, nobody looks
AT_ONCE = 20_000  # entries that are compared pair by pair before it is seen whether to go on
MOST_KEPT = 4  # measures of which weights by topic are kept with a pool
MOST_IN_COMMON = 1_000_000  # numbers of every two runs that are kept with it, 8 MB


def least_differences(
    pool: Pool,
    measure: Measure,
    *,
    pairs: IntArray,
    labels: PairLabels,
    max_grade: int,
    than: FloatArray,
) -> FloatArray | None:
    """Return by how much runs are better than others at least, whatever is not judged.

    Parameters
    ----------
    pool : Pool
        Of N pairs and k runs.
    measure : Measure
    pairs : ndarray of int64, shape (n,)
        The judged pairs, ascending.
    labels : PairLabels
        Of these, under the measure.
    max_grade : int
        The best grade of the scale.
    than : ndarray of float64, shape (k, k)
        What differences, row less column, are to be more than for anybody to care; infinity where
        nobody does.

    Returns
    -------
    ndarray of float64, shape (k, k), or None
        What the true difference is at least; 0 where that is rounding. None if none is more than is
        asked for, if it would take long to see, or if the utility of judged pairs is not known:
        under measures that are no sums of gains, and where pairs have several labels.
    """
    if not (can_tell(measure, labels) and np.isfinite(than).any()):
        return None
    judged = np.zeros(len(pool), dtype=np.bool_)
    judged[pairs] = True
    left = np.flatnonzero(~judged)
    if counted_entries(pool, measure).number(left).sum() > MOST_ENTRIES:
        return None
    found, best = labels.mean > 0.0, measure.max_utility(max_grade)
    known = _weights(pool, measure, pairs[found]).T @ labels.mean[found]
    ahead = np.subtract.outer(known, known) / best
    gained = _Left.of(pool, measure, pairs, left).gained(ahead - than / best)
    if gained is None:
        return None
    least, size = (ahead - gained) * best, known + total_weights(pool, measure) * best
    rounding = ROUNDING * np.add.outer(size, size)
    least[np.abs(least) <= rounding] = 0.0
    return least if np.any(least - than > rounding) else None


def can_tell(measure: Measure, labels: PairLabels) -> bool:
    """Whether the utility of judged pairs is known: no measure but sums of gains, and no pair with
    several labels says so."""
    return measure.family == "gain" and not labels.noise_measured


def as_far_as_certain(margin: FloatArray, difference: FloatArray, surely: FloatArray) -> FloatArray:
    """Return half widths about estimates that reach no further than true differences can lie.

    Estimates that are beyond have a half width that takes all in. `surely` as from
    `least_differences`. All are of shape (k, k), half widths symmetric.
    """
    farthest = np.maximum(difference - surely, -surely.T - difference)
    beyond = (difference < surely) | (difference > -surely.T)
    return np.where(beyond, farthest, np.minimum(margin, farthest))


@dataclass(frozen=True, eq=False)
class _Left:
    """The pairs that are not judged, and the weight of each run on those of each topic, (T, k).

    No judgment is in what is worked out of them, so that it is kept with the pool: `key` is by
    which pairs.
    """

    pool: Pool
    measure: Measure
    pairs: IntArray
    weight: FloatArray
    key: Hashable

    @classmethod
    def of(cls, pool: Pool, measure: Measure, judged: IntArray, left: IntArray) -> _Left:
        """Weights are added up over those of the two that are fewer."""
        key = measure, array_digest(judged)
        work = partial(_left_by_topic, pool, measure, judged, left)
        return cls(pool, measure, left, kept(pool.kept, "left", key, work, most=MOST_KEPT), key)

    def gained(self, ahead: FloatArray) -> FloatArray | None:
        """Return the sum of max(0, w_j - w_i) over the pairs; None if nothing ahead outruns it.

        It is at least the same of what runs have in each topic, which says enough of most
        differences. Of others a few topics do, pair by pair; so these are looked at part by part.
        """
        one, other = np.nonzero(ahead > 0.0)
        every = slice(0, len(self.weight))
        whole = [self._at_least(every, one[at], other[at]) for at in pieces(len(one), 1 << 10)]
        least, common = np.concatenate([*whole, np.zeros(0)]), np.zeros_like(ahead)
        for topics, pairs in self._parts():
            open_ = ahead[one, other] > least
            one, other, least = one[open_], other[open_], least[open_]
            if not len(one):
                return None
            part = self._in_common(topics, pairs)
            exact = self.weight[topics].sum(axis=0)[other] - part[one, other]
            least += exact - self._at_least(topics, one, other)
            common += part
        missing = self.weight.sum(axis=0)
        np.fill_diagonal(common, missing)
        return np.asarray(np.maximum(missing - common, 0.0), dtype=np.float64)

    def _in_common(self, topics: slice, pairs: IntArray) -> FloatArray:
        work = lambda: in_common(_weights(self.pool, self.measure, pairs))  # noqa: E731
        key = self.key, topics.start
        return kept(self.pool.kept, "in common", key, work, most=MOST_IN_COMMON, size=np.size)

    def _at_least(self, topics: slice, one: IntArray, other: IntArray) -> FloatArray:
        weight = self.weight[topics]
        return np.asarray(np.maximum(weight[:, other] - weight[:, one], 0.0).sum(axis=0))

    def _parts(self) -> Iterator[tuple[slice, IntArray]]:
        """Topics with about so many entries, and their pairs, which stand topic by topic."""
        ends = np.searchsorted(self.pool.topic[self.pairs], np.arange(len(self.weight)), "right")
        number = counted_entries(self.pool, self.measure).number(self.pairs)
        part = np.append(0, np.cumsum(number))[ends] // AT_ONCE
        starts = np.flatnonzero(np.diff(part, prepend=-1))
        for first, stop in zip(starts, [*starts[1:], len(part)], strict=True):
            begin = ends[first - 1] if first else 0
            yield slice(first, stop), self.pairs[begin : ends[stop - 1]]


def _left_by_topic(pool: Pool, measure: Measure, judged: IntArray, left: IntArray) -> FloatArray:
    by_topic = partial(_by_topic, pool, measure)
    if len(left) < len(judged):
        return by_topic(left)
    work = lambda: by_topic(np.arange(len(pool)))  # noqa: E731
    every = kept(pool.kept, "weights by topic", measure, work, most=MOST_KEPT)
    return np.maximum(every - by_topic(judged), 0.0)


def _by_topic(pool: Pool, measure: Measure, pairs: IntArray) -> FloatArray:
    rows, runs = _weights(pool, measure, pairs), len(pool.runs)
    cells = np.repeat(pool.topic[pairs].astype(np.int64) * runs, np.diff(rows.indptr))
    sums = column_sums(cells + rows.indices, rows.data, number=len(pool.topics) * runs)
    return sums.reshape(-1, runs)


def _weights(pool: Pool, measure: Measure, pairs: IntArray) -> SparseMatrix:
    return weights_of(pool, measure, pairs, wanted=np.ones(len(pairs), dtype=np.bool_))
