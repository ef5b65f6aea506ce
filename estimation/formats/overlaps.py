"""How much of what a run returns others return as well, from their stored files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from estimation.core.archives import read_archive
from estimation.formats.run_columns import FORMAT

SHALLOW, DEEP = 10, 100


@dataclass(frozen=True)
class Overlap:
    """``shallow`` and ``deep``: of the documents of one run among its first 10 and 100 of every
    topic, the share that the other one has there too. ``same``: these are the same, in one order.
    """

    file: str
    shallow: float
    deep: float
    same: bool


def top_of(path: str, depth: int) -> dict[str, list[bytes]]:
    """The first documents of every topic, best first. Other pages of the file are not touched."""
    facts, columns = read_archive(path, FORMAT, ("indptr", "docnos"))
    starts = columns["indptr"].tolist()
    docnos = columns["docnos"]
    return {
        topic: docnos[start : min(end, start + depth)].tolist()
        for topic, start, end in zip(facts["topics"], starts, starts[1:], strict=False)
    }


def top_of_topic(path: str, topic: str, depth: int) -> list[bytes]:
    """The first documents of one topic, best first; none where the run does not know it."""
    facts, columns = read_archive(path, FORMAT, ("indptr", "docnos"))
    if topic not in facts["topics"]:
        return []
    start, end = columns["indptr"][facts["topics"].index(topic) :][:2].tolist()
    found: list[bytes] = columns["docnos"][start : min(end, start + depth)].tolist()
    return found


@lru_cache(maxsize=32)
def overlaps(path: str, others: tuple[str, ...]) -> tuple[Overlap, ...]:
    """What a run has in common with others, in their order. Files never change: it is kept."""
    mine = top_of(path, DEEP)
    shallow = {topic: frozenset(docnos[:SHALLOW]) for topic, docnos in mine.items()}
    deep = {topic: frozenset(docnos) for topic, docnos in mine.items()}
    return tuple(_overlap(mine, shallow, deep, other) for other in others)


def _overlap(
    mine: Mapping[str, Sequence[bytes]],
    shallow: Mapping[str, frozenset[bytes]],
    deep: Mapping[str, frozenset[bytes]],
    other: str,
) -> Overlap:
    theirs = top_of(other, DEEP)
    return Overlap(
        other,
        _share(shallow, {topic: docnos[:SHALLOW] for topic, docnos in theirs.items()}),
        _share(deep, theirs),
        mine == theirs,
    )


def _share(mine: Mapping[str, frozenset[bytes]], theirs: Mapping[str, Sequence[bytes]]) -> float:
    every = sum(map(len, mine.values()))
    common = sum(len(docnos.intersection(theirs.get(t, ()))) for t, docnos in mine.items())
    return common / every if every else 0.0
