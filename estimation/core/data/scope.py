"""The runs that are estimated: those of the pool that was sampled, and perhaps later ones.

A sample estimates totals over any runs. Why that is unbiased for runs that came after the draw, and
when it is not, stands in `collection`.

Documents that the sample does not reach
----------------------------------------
Documents that only later runs return were never eligible. The value of such a run is a lower
bound, its support is below 1, and a verdict against it is given only if it would hold even if all
of these documents had the best grade (see `slack`; under a measure of errors the same goes for
verdicts in its favor), for a guaranteed kind of interval as for ``student``. Under ratio measures
documents that only later runs return count for nobody else: the support of each later run is what
it would be if it had come alone. They may raise its value or lower it, so that verdicts allow for
both.

Of preferences the same goes for pairs of documents that no run of the pool returned together. How
much a pair counts for a run follows from its own list alone: from the ranks of the two documents,
and from how many documents it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import BoolArray, BytesArray, FloatArray, Int32Array, IntArray, frozen, index_array
from .labels import LabelError, LabelRows, pair_name
from .preferences import part_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .pool import Pool


@dataclass(frozen=True, eq=False)
class Scope:
    """Runs to estimate, and where the N pairs that were sampled from stand among theirs.

    Attributes
    ----------
    pool : Pool
        Of these runs; of the topics and the depth of the sampled pool, with all of its pairs.
    place : ndarray of int64, shape (N,)
        Where the N pairs stand in it, ascending.
    sampled : Pool or None
        The pool that was sampled, with its own runs; None where only its pairs are known.
    joins : bool
        Whether all runs of the sampled pool are among these; else they may be any other runs.
    """

    pool: Pool
    place: IntArray
    sampled: Pool | None
    joins: bool = True

    @classmethod
    def of(cls, pool: Pool, joined: Pool | None = None) -> Scope:
        """Return the runs of a pool, or of a larger one that they are joined in.

        Raises
        ------
        ValueError
            As `place_of_pairs`.
        """
        if joined is None or joined is pool:
            return cls(pool, np.arange(len(pool)), pool)
        return cls(joined, place_of_pairs(pool, joined), pool)

    @property
    def is_sampled(self) -> bool:
        """Whether these are the runs of the sampled pool."""
        return self.pool is self.sampled

    @property
    def topic(self) -> Int32Array:
        """Of each of the N pairs."""
        return self.pool.topic if self.is_sampled else self.pool.topic[self.place]

    @cached_property
    def added(self) -> BoolArray:
        """Whether each pair of these runs is none of the N, shape (M,)."""
        added = np.ones(len(self.pool), dtype=np.bool_)
        added[self.place] = False
        return frozen(added)

    @cached_property
    def origin(self) -> IntArray:
        """Which of the N pairs each pair of these runs is, shape (M,); -1 of the others."""
        origin = np.full(len(self.pool), -1)
        origin[self.place] = np.arange(len(self.place))
        return frozen(origin)

    def places(self, pairs: IntArray) -> IntArray:
        """Return where some of the N pairs stand."""
        return pairs if self.is_sampled else self.place[pairs]

    def spread(self, numbers: FloatArray, rest: float = 0.0) -> FloatArray:
        """Return N numbers at the places of their pairs, and the rest at the others, shape (M,)."""
        if self.is_sampled:
            return numbers
        every = np.full(len(self.pool), rest)
        every[self.place] = numbers
        return every

    def marked(self, some: BoolArray) -> BoolArray:
        """Return at the places of the N pairs which of them are meant, shape (M,)."""
        marked = np.zeros(len(self.pool), dtype=np.bool_)
        marked[self.place] = some
        return marked

    def labels(self, labels: LabelRows) -> LabelRows:
        """Return judgments of the N pairs as those of pairs of these runs.

        LabelError if a row is of no pair: a number below 0 would count from the end.
        """
        if self.is_sampled:
            return labels
        pair = index_array(labels.pair, below=len(self.place), name="pair", error=LabelError)
        return labels.placed(self.place[pair])

    def positions(self, tags: Sequence[str]) -> IntArray:
        """Return where runs stand among these."""
        if tags == self.pool.runs:
            return np.arange(len(tags))
        return np.array([self.pool.run_index(tag) for tag in tags], dtype=np.int64)


def place_of_pairs(pool: Pool, joined: Pool) -> IntArray:
    """Where the pairs of a pool stand in a larger one; ValueError if that lacks one or a run."""
    if pool.is_of_preferences != joined.is_of_preferences:
        raise ValueError("joined must be of preferences if the pool is, and of documents if not")
    if (pool.topics, pool.depth) != (joined.topics, joined.depth):
        raise ValueError("joined must have the topics and the depth of the pool")
    missing = sorted(set(pool.runs) - set(joined.runs))
    if missing:
        raise ValueError(f"joined lacks the run {missing[0]!r} of the pool")
    place = find_pairs(
        pool.topic,
        part_names(pool),
        among_topic=joined.topic,
        among_docno=part_names(joined),
    )
    if np.any(place < 0):
        lacking = pair_name(int(np.argmax(place < 0)), pool)
        raise ValueError(f"joined lacks {lacking} of the pool")
    return place


def find_pairs(
    topic: Int32Array | IntArray,
    docno: BytesArray,
    *,
    among_topic: Int32Array | IntArray,
    among_docno: BytesArray,
) -> IntArray:
    """Return where n pairs, in any order, stand among N others; -1 for one that is not there.

    The others are sorted by (topic, docno); topics are counted alike in both.
    """
    found = np.full(len(docno), -1, dtype=np.int64)
    order = np.argsort(topic, kind="stable")
    names, starts = np.unique(topic[order], return_index=True)
    for name, start, stop in zip(names.tolist(), starts, [*starts[1:], len(order)], strict=False):
        rows = order[start:stop]
        first, last = np.searchsorted(among_topic, [name, name + 1])
        if first == last:
            continue
        inside = np.searchsorted(among_docno[first:last], docno[rows])
        inside = np.minimum(inside, last - first - 1) + first
        found[rows] = np.where(among_docno[inside] == docno[rows], inside, -1)
    return found
