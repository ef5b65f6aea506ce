"""The pool of a campaign from those of its shards, column by column and topic by topic.

Nobody holds it whole: what is in memory is the pairs of a topic, and where those of each topic are.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import Pieces
from ..data.pool_files import NAMES, digest_of, write_pool
from ..data.ranked_lists import PoolError
from .store import read_columns, stored_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..archives import ArchiveFile
    from ..arrays import IntArray
    from .frames import ShardFrame
    from .places import Place
    from .store import StoredColumn

OF_PAIRS = ("topic", "docno", "other")  # columns with a row for each pair; others, for each entry


@dataclass(frozen=True, eq=False)
class JoinedPool:
    """The pool of a campaign, to be written: the very bytes that `build_pool` and `save` make.

    Make one with `join_shards`.

    Attributes
    ----------
    frame : ShardFrame
    shards : tuple of mapping of str to StoredColumn
        The columns of the pools of the shards (`pools.ShardPool`), in their order.
    kinds : mapping of str to numpy.dtype
        Of the columns; docnos are as wide as in the widest shard.
    pairs, entries : ndarray of int64, shape (T, 2)
        Of each topic, where in its shard they begin and end.
    """

    frame: ShardFrame
    shards: tuple[Mapping[str, StoredColumn], ...]
    kinds: Mapping[str, np.dtype[Any]]
    pairs: IntArray
    entries: IntArray

    def __len__(self) -> int:
        """Return the number of pairs."""
        return _total(self.pairs)

    @property
    def topics(self) -> tuple[str, ...]:
        """All topics of the campaign, as of a `Pool`."""
        return self.frame.topics

    @property
    def runs(self) -> tuple[str, ...]:
        """The run tags, as of a `Pool`."""
        return self.frame.runs

    @property
    def depth(self) -> int:
        """Documents per topic and run that were pooled."""
        return self.frame.depth

    @cached_property
    def digest(self) -> str:
        """That of the pool (`Pool.digest`)."""
        return digest_of(self.topics, self.runs, self.depth, self._columns())

    def save(self, file: ArchiveFile) -> None:
        """Write what `Pool.save` writes, to a path or a binary file.

        ArchiveError if a shard is not there any more.
        """
        columns = self._columns()
        write_pool(file, self.topics, self.runs, self.depth, columns, digest=self.digest)

    def _columns(self) -> dict[str, Pieces]:
        return {name: self._column(name) for name in NAMES if name in self.kinds}

    def _column(self, name: str) -> Pieces:
        if name == "indptr":
            return Pieces(self.kinds[name], len(self) + 1, self._bounds)
        spans = self.pairs if name in OF_PAIRS else self.entries
        return Pieces(self.kinds[name], _total(spans), partial(self._rows, name, spans))

    def _rows(self, name: str, spans: IntArray) -> Iterator[NDArray[Any]]:
        for shard, span in self._of_topics(spans):
            yield shard[name].rows(*span).astype(self.kinds[name], copy=False)

    def _bounds(self) -> Iterator[NDArray[Any]]:
        yield np.zeros(1, dtype=self.kinds["indptr"])
        before = 0
        for shard, (start, stop) in self._of_topics(self.pairs):
            bounds = shard["indptr"].rows(start, stop + 1)
            yield bounds[1:] - bounds[0] + before
            before += int(bounds[-1] - bounds[0])

    def _of_topics(
        self, spans: IntArray
    ) -> Iterator[tuple[Mapping[str, StoredColumn], tuple[int, int]]]:
        """The shard of each topic in turn, and its rows there; but of topics without any."""
        for topic in np.flatnonzero(spans[:, 0] < spans[:, 1]):
            start, stop = spans[topic].tolist()
            yield self.shards[self.frame.shard[topic]], (start, stop)


def join_shards(frame: ShardFrame, places: Sequence[Place]) -> JoinedPool:
    """Look at the pools of all shards, each of which is held against its digests.

    Raises
    ------
    PoolError
        If one is of another campaign.
    ArchiveError
        If one is damaged.
    """
    kinds: dict[str, np.dtype[Any]] = {}
    shards = []
    pairs, entries = (np.zeros((len(frame.topics), 2), dtype=np.int64) for _ in range(2))
    for shard, place in enumerate(places):
        facts, bounds = read_columns(place, ("topic", "indptr"), check=False)
        if facts["frame"] != frame.key or facts["shard"] != shard:
            raise PoolError(f"{place} is no pool of shard {shard} of this campaign")
        shards.append(stored_columns(place))
        local = frame.topics_of(shard)
        codes = local.astype(np.int32)
        pairs[local, 0] = np.searchsorted(bounds["topic"], codes, side="left")
        pairs[local, 1] = np.searchsorted(bounds["topic"], codes, side="right")
        entries[local] = bounds["indptr"][pairs[local]]
        for name, column in shards[-1].items():
            kinds[name] = max(kinds.get(name, column.dtype), column.dtype, key=_width)
    return JoinedPool(frame, tuple(shards), kinds, pairs, entries)


def _width(kind: np.dtype[Any]) -> int:
    return kind.itemsize


def _total(spans: IntArray) -> int:
    return int(np.sum(spans[:, 1] - spans[:, 0]))
