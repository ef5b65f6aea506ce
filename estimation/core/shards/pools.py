"""The pool of a shard: that of the campaign, without the pairs of other shards' topics.

Topics count as in the campaign, so that weights, which are shares of all topics, have the bits that
they have in the whole pool.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import frozen
from ..data.pool import Pool, build_pool
from ..data.pool_files import COLUMNS
from ..data.ranked_lists import PoolError, RankedLists, trec_eval_order
from .lines import lines_of, number_of_lines
from .running import ShardStep, StepResult
from .store import read_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..arrays import BytesArray, FloatArray, Int32Array, IntArray
    from .frames import ShardFrame
    from .places import Place


@dataclass(frozen=True)
class ShardPool(ShardStep):
    """The pool of a shard, whatever its lists are read from.

    Attributes
    ----------
    frame : ShardFrame
    shard : int
        From 0.
    """

    frame: ShardFrame
    shard: int

    @abstractmethod
    def pooled(self, topics: Sequence[str]) -> Pool:
        """Return the pool of the shard's topics alone."""

    def work(self) -> StepResult:
        """Pool the lists of the shard."""
        local = self.frame.topics_of(self.shard)
        pool = self.pooled([self.frame.topics[topic] for topic in local.tolist()])
        topic = frozen(local.astype(np.int32)[pool.topic])
        pool = replace(pool, topics=self.frame.topics, topic=topic)
        facts = {"frame": self.frame.key, "shard": self.shard}
        facts |= {"digest": pool.digest, "pairs": len(pool), "entries": len(pool.run)}
        return facts, pool.columns


@dataclass(frozen=True)
class PoolLines(ShardPool):
    """The pool of a shard, from the cut lines of all inputs.

    Attributes
    ----------
    cuts : tuple of Place
        Places of `lines.CutLines`, of all that have lines for the shard.
    width : int
        Of all docnos, in bytes.
    """

    cuts: tuple[Place, ...]
    width: int

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.frame.key, self.shard, [cut.name for cut in self.cuts], self.width

    def pooled(self, topics: Sequence[str]) -> Pool:
        """Pool the lines of the shard."""
        lists = _ranked(self._lines(topics), topics, self.frame)
        return build_pool(topics, lists, depth=self.frame.depth)

    def _lines(self, names: Sequence[str]) -> _Lines:
        """All lines of the shard: of one input at a time more is in memory than these.

        An input is mapped for as long as it is copied. The system maps pages around those that are
        read, so that many inputs at once would take more room than few with as many lines.
        """
        topics = {name.encode(): place for place, name in enumerate(names)}
        runs = {name.encode(): place for place, name in enumerate(self.frame.runs)}
        number, start = sum(number_of_lines(cut, self.shard) for cut in self.cuts), 0
        lines = _Lines.empty(number, self.width)
        for cut in self.cuts:
            found = lines_of(cut, self.shard)
            rows = slice(start, start + len(found["docno"]))
            lines.topic[rows] = _places(found["topics"], topics)[found["topic"]]
            lines.run[rows] = _places(found["runs"], runs)[found["run"]]
            lines.docno[rows], lines.score[rows] = found["docno"], found["score"]
            start = rows.stop
        return lines


def read_own_topics(frame: ShardFrame, shard: int, place: Place) -> Pool:
    """Return the pool of a shard as one of its own topics alone, `ShardFrame.topics_of`.

    What is worked out by topic then takes no room for those of other shards. Weights of runs are
    shares of these few topics.
    """
    pool, local = read_pool(frame, place), frame.topics_of(shard)
    topic = frozen(np.searchsorted(local, pool.topic).astype(np.int32))
    topics = tuple(frame.topics[each] for each in local.tolist())
    return replace(pool, topics=topics, topic=topic)


def read_pool(frame: ShardFrame, place: Place) -> Pool:
    """Return the pool of a shard, its columns memory-mapped; ArchiveError if they are damaged."""
    facts, columns = read_columns(place, COLUMNS)
    if facts["frame"] != frame.key:
        raise PoolError(f"{place} is the pool of another campaign")
    pool = Pool(frame.topics, frame.runs, frame.depth, **{n: frozen(c) for n, c in columns.items()})
    pool.__dict__["digest"] = facts["digest"]  # of columns that were held against theirs above
    return pool


@dataclass(frozen=True, eq=False)
class _Lines:
    topic: Int32Array
    run: Int32Array
    docno: BytesArray
    score: FloatArray

    @classmethod
    def empty(cls, number: int, width: int) -> _Lines:
        """Room for so many lines, with docnos of so many bytes."""
        topic, run = np.empty((2, number), dtype=np.int32)
        return cls(topic, run, np.empty(number, dtype=f"S{width}"), np.empty(number))


def _places(names: BytesArray, known: dict[bytes, int]) -> IntArray:
    return np.array([known.get(name, -1) for name in names.tolist()], dtype=np.int64)


def _ranked(lines: _Lines, names: Sequence[str], frame: ShardFrame) -> dict[str, RankedLists]:
    """The lists of every run, in trec_eval's order: all lists are sorted at once."""
    topics, runs = len(names), len(frame.runs)
    cell = lines.run.astype(np.int64) * topics + lines.topic
    order = trec_eval_order(lines.score, lines.docno, topics=cell)
    docno = lines.docno[order]
    ends = np.append(0, np.cumsum(np.bincount(cell, minlength=runs * topics)))
    lists = {}
    for place, tag in enumerate(frame.runs):
        bounds = ends[place * topics : (place + 1) * topics + 1]
        lists[tag] = RankedLists(tuple(names), bounds - bounds[0], docno[bounds[0] : bounds[-1]])
    return lists
