"""A pool in shards, from inputs of any number: what one process need never hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .frames import ShardFrame
from .lines import CutLines, Dealt
from .pools import PoolLines
from .running import do_steps
from .store import read_columns, read_facts, seal_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from concurrent.futures import Executor

    from .places import Place


@dataclass(frozen=True, eq=False)
class ShardedPool:
    """The pool of a campaign, cut by topic.

    Build one with `build_shards`.

    Attributes
    ----------
    root : Place
        The folder of all results, which all workers see.
    frame : ShardFrame
    places : tuple of Place
        Of the pools of the shards (`pools.read_pool`), in their order.
    pairs, entries : int
        In all shards together.
    """

    root: Place
    frame: ShardFrame
    places: tuple[Place, ...]
    pairs: int
    entries: int


def build_shards(
    executor: Executor,
    root: Place,
    inputs: Sequence[Place],
    *,
    shards: int,
    depth: int,
    topics: Iterable[str] | None = None,
) -> ShardedPool:
    """Pool the lines of inputs, shard by shard.

    Parameters
    ----------
    executor : Executor
        Its workers see `root` and `inputs` under the same names.
    root : Place
        The folder of all results.
    inputs : sequence of Place
        `lines.run_lines`, written by `store.write_columns`. Each is held by one worker whole; the
        lines of a topic and a run may be spread over several.
    shards : int
        From 1 on; there are no more than topics. A shard is held by one worker whole. No number
        depends on how many there are.
    depth : int
        Documents per topic and run that are pooled.
    topics : iterable of str, optional
        All topics of the campaign; lines of others are left out. By default those of the inputs.

    Raises
    ------
    PoolError
        If there is no topic or no run, depth < 1, or a run returns a document twice for a topic.
    ArchiveError
        If an input is damaged.
    """
    named: set[bytes] = set()
    tags: set[bytes] = set()
    for place in inputs:
        _, names = read_columns(place, ("topics", "runs"))
        named.update(names["topics"].tolist())
        tags.update(names["runs"].tolist())
    wanted = named if topics is None else {topic.encode() for topic in topics}
    shards = min(shards, max(1, len(wanted)))  # each is a step of its own, also with nothing in it
    frame = ShardFrame(_sorted(wanted), _sorted(tags), depth, shards)
    cuts = do_steps(executor, [CutLines(root, place, seal_of(place), frame) for place in inputs])
    dealt = Dealt.of(cuts, shards)
    steps = [PoolLines(root, frame, n, each, dealt.width) for n, each in enumerate(dealt.cuts)]
    places = tuple(do_steps(executor, steps))
    facts = [read_facts(place) for place in places]
    pairs, entries = (sum(each[name] for each in facts) for name in ("pairs", "entries"))
    return ShardedPool(root, frame, places, pairs, entries)


def _sorted(names: Iterable[bytes]) -> tuple[str, ...]:
    return tuple(name.decode() for name in sorted(names))
