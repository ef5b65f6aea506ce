"""Lines of runs and of judgments as columns, cut into shards by topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.ranked_lists import PoolError
from .running import ShardStep, StepResult
from .store import column_names, read_columns, read_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..arrays import BytesArray, FloatArray, Indices, IntArray
    from .frames import ShardFrame
    from .places import Place

NAMES = ("topics", "runs")  # columns that are no rows: what codes stand for


def run_lines(
    *,
    topics: BytesArray,
    runs: BytesArray,
    topic: Indices,
    run: Indices,
    docno: BytesArray,
    score: FloatArray,
) -> StepResult:
    """Return facts and columns of lines of runs, in any order: of an input, one of any number.

    Parameters
    ----------
    topics, runs : ndarray of bytes
        UTF-8 names.
    topic, run : ndarray of int, shape (L,)
        Of each line, as positions in these.
    docno : ndarray of bytes, shape (L,)
    score : ndarray of float64, shape (L,)
        Finite. The order of lists is trec_eval's.

    Raises
    ------
    PoolError
        If the columns are not of one length, or a score is not finite.
    """
    _check_length(topic, run, docno, score)
    if not np.all(np.isfinite(score)):
        at = int(np.argmin(np.isfinite(score)))
        raise PoolError(f"scores must be finite numbers; line {at} has {score[at]}")
    names, codes = {"topics": topics, "runs": runs}, {"topic": topic, "run": run}
    return {}, {**names, **_narrow(names, codes), "docno": docno, "score": score}


def judgment_lines(
    *, topics: BytesArray, topic: Indices, docno: BytesArray, grade: IntArray
) -> StepResult:
    """Return the same of judgments: topic as a position in names, docno and grade, (L,) each.

    Several rows of a pair are several judgments. Where everything is judged, the names are those
    of the topics that values are means over. PoolError as `run_lines`.
    """
    _check_length(topic, docno, grade)
    names = {"topics": topics}
    return {}, {**names, **_narrow(names, {"topic": topic}), "docno": docno, "grade": grade}


@dataclass(frozen=True)
class CutLines(ShardStep):
    """The lines of an input, shard by shard.

    Attributes
    ----------
    source : Place
        An input: `run_lines` or `judgment_lines`, written by `store.write_columns`.
    seal : str
        `seal_of` the source.
    frame : ShardFrame
        Lines of topics that it does not have are left out.
    """

    source: Place
    seal: str
    frame: ShardFrame

    @property
    def inputs(self) -> tuple[Any, ...]:
        return self.seal, self.frame.partition

    def work(self) -> StepResult:
        """Order the lines by shard; those of a shard stay in their order."""
        _, columns = read_columns(self.source)
        names = {name: columns.pop(name) for name in NAMES if name in columns}
        known = {topic.encode(): place for place, topic in enumerate(self.frame.topics)}
        place = np.array([known.get(name, -1) for name in names["topics"].tolist()], dtype=np.int64)
        of_topics = np.where(place >= 0, self.frame.shard[place], -1)
        shard = of_topics[columns["topic"]].astype(np.int32)
        order = np.argsort(shard, kind="stable")
        ends = np.searchsorted(shard, np.arange(self.frame.shards + 1), sorter=order)
        rows = {name: column[order] for name, column in columns.items()}
        return {}, {**names, **rows, "ends": ends}


@dataclass(frozen=True)
class Dealt:
    """Who has lines of what: each shard looks at the cuts that have any for it, and at no other.

    Attributes
    ----------
    cuts : tuple of tuple of Place
        For each shard, in the order of the inputs.
    width : int
        Of all docnos, in bytes.
    """

    cuts: tuple[tuple[Place, ...], ...]
    width: int

    @classmethod
    def of(cls, cuts: Sequence[Place], shards: int) -> Dealt:
        """Look at all cuts once."""
        found: list[list[Place]] = [[] for _ in range(shards)]
        width = 1
        for cut in cuts:
            _, columns = read_columns(cut, ("ends",))
            width = max(width, read_rows(cut, ["docno"], 0, 0)["docno"].dtype.itemsize)
            for shard in np.flatnonzero(np.diff(columns["ends"])).tolist():
                found[shard].append(cut)
        return cls(tuple(map(tuple, found)), width)


def number_of_lines(cut: Place, shard: int) -> int:
    """Return how many lines of an input a shard has."""
    _, columns = read_columns(cut, ("ends",), check=False)
    return int(np.diff(columns["ends"][shard : shard + 2])[0])


def lines_of(cut: Place, shard: int) -> dict[str, NDArray[Any]]:
    """Return the names of an input, and the lines of one shard, memory-mapped."""
    there = column_names(cut)
    _, whole = read_columns(cut, ["ends", *(n for n in NAMES if n in there)], check=False)
    start, stop = whole.pop("ends")[shard : shard + 2].tolist()
    rows = [name for name in there if name not in (*NAMES, "ends")]
    return whole | read_rows(cut, rows, start, stop)


def _check_length(*columns: NDArray[Any]) -> None:
    if len({each.shape for each in columns}) != 1 or columns[0].ndim != 1:
        shapes = ", ".join(str(each.shape) for each in columns)
        raise PoolError(f"columns of lines must be of one length, not {shapes}")


def _narrow(
    names: dict[str, BytesArray], codes: dict[str, Indices]
) -> dict[str, NDArray[np.int32]]:
    for (name, known), (code, values) in zip(names.items(), codes.items(), strict=True):
        if values.size and not 0 <= values.min() <= values.max() < len(known):
            raise PoolError(f"{code} must be a position among {len(known)} {name}")
    return {name: values.astype(np.int32) for name, values in codes.items()}
