"""What all shards of a campaign have in common: its topics, and who has which."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import check_whole
from ..data.ranked_lists import PoolError
from .store import key_of

if TYPE_CHECKING:
    from ..arrays import Int32Array, IntArray

MOST_SHARDS = 100_000


@dataclass(frozen=True)
class ShardFrame:
    """What all shards have in common.

    Attributes
    ----------
    topics, runs : tuple of str
        Of the campaign, sorted as UTF-8.
    depth : int
        Documents per topic and run that are pooled.
    shards : int
        From 1 to `MOST_SHARDS`.

    Raises
    ------
    PoolError
        If a number is out of range, or there is no topic or no run.
    """

    topics: tuple[str, ...]
    runs: tuple[str, ...]
    depth: int
    shards: int

    def __post_init__(self) -> None:
        check_whole(self.depth, name="depth", error=PoolError)
        check_whole(self.shards, name="shards", most=MOST_SHARDS, error=PoolError)
        if not self.topics or not self.runs:
            given = f"not {len(self.topics)} topics and {len(self.runs)} runs"
            raise PoolError(f"a pool needs at least one topic and one run, {given}")

    @cached_property
    def key(self) -> str:
        """A digest of all of it."""
        return key_of(self.topics, self.runs, self.depth, self.shards)

    @cached_property
    def partition(self) -> str:
        """A digest of what decides which shard a topic is in."""
        return key_of(self.topics, self.shards)

    @cached_property
    def shard(self) -> Int32Array:
        """The shard of each topic, shape (T,): they are dealt out in the order of a hash.

        So names that are alike do not come together, and no shard has more than one topic more
        than another: what a worker holds does not grow with the number of shards.
        """
        hashes = [hashlib.sha256(b"shard " + topic.encode()).digest() for topic in self.topics]
        order = sorted(range(len(hashes)), key=hashes.__getitem__)
        dealt = np.empty(len(order), dtype=np.int32)
        dealt[order] = np.arange(len(order)) * self.shards // len(order)
        return dealt

    def __reduce__(self) -> tuple[Any, ...]:
        """Every step carries the frame: whoever is sent many steps holds one of it."""
        names = json.dumps([self.topics, self.runs]).encode()
        return _frame_of, (names, self.depth, self.shards)

    def topics_of(self, shard: int) -> IntArray:
        """Return the topics of a shard, as positions among all, ascending."""
        return np.flatnonzero(self.shard == shard)


@lru_cache(maxsize=4)
def _frame_of(names: bytes, depth: int, shards: int) -> ShardFrame:
    topics, runs = json.loads(names)
    return ShardFrame(tuple(topics), tuple(runs), depth, shards)
