"""The pool: every (topic, document) pair that a run returns.

The pool is columnar and sparse. Pair i has a topic, a docno, and one entry per run that returns it
(run, rank, perhaps the run's score). Pairs stand in canonical order: by topic, then by docno, both
as UTF-8 bytes. A pool may also be of preferences, each part being two documents of a topic, to be
judged side by side; see `estimation.core.data.preferences`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..archives import ArchiveFile, read_archive
from ..arrays import (
    BoolArray,
    BytesArray,
    FloatArray,
    Int32Array,
    IntArray,
    SparseMatrix,
    check_whole,
    frozen,
    no_run,
    order_of,
    spread_rows,
)
from .blocks import blocks
from .kept import kept
from .pool_files import COLUMNS, FORMAT, NAMES, OPTIONAL, digest_of, write_pool
from .ranked_lists import PoolError, RankedLists, distinct_docnos
from .scores import first_unusable, refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from ..measures.table import Measure

MEASURES = 64  # of which weights by rank are kept
MOST_KEPT = 2_000_000  # entries of which numbers are kept that follow from them


@dataclass(frozen=True, eq=False)
class Pool:
    """All (topic, document) pairs that runs return down to a depth.

    Build one with `build_pool`. N pairs, k runs, E entries (pair, run).

    Attributes
    ----------
    topics : tuple of str
        All topics of the campaign, sorted, also those without any pair: |X| of them.
    runs : tuple of str
        The k run tags, sorted.
    depth : int
        Documents per topic and run that were pooled.
    topic : ndarray of int32, shape (N,)
        Topic of each pair, as a position in `topics`.
    docno : ndarray of bytes, shape (N,)
        UTF-8 docno of each pair; pairs are sorted by (topic, docno).
    indptr : ndarray of int64, shape (N + 1,)
        Entries ``indptr[i]:indptr[i + 1]`` belong to pair i.
    run, rank : ndarray of int32, shape (E,)
        Run (position in `runs`, ascending within a pair) and 1-based rank of each entry.
    score : ndarray of float64, shape (E,), optional
        The run's score of the document, where the pool was built with scores. PoolError, with run,
        topic and docno, for one that measures of predictions cannot take.
    other : ndarray of bytes, shape (N,), optional
        In a pool of preferences: the docno of the second document of each part, after the first
        in byte order.
    other_rank : ndarray of int32, shape (E,), optional
        In a pool of preferences: its rank; `rank` is that of the first.
    """

    topics: tuple[str, ...]
    runs: tuple[str, ...]
    depth: int
    topic: Int32Array
    docno: BytesArray
    indptr: IntArray
    run: Int32Array
    rank: Int32Array
    score: FloatArray | None = None
    other: BytesArray | None = None
    other_rank: Int32Array | None = None

    def __post_init__(self) -> None:
        if self.score is not None and (at := first_unusable(self.score)) is not None:
            pair, run = self.entry_pair[at], self.runs[self.run[at]]
            topic, docno = self.topics[self.topic[pair]], self.docno[pair].decode()
            raise PoolError(refusal(run, topic=topic, docno=docno, score=float(self.score[at])))

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.docno)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of the content: equal for equal pools on every machine."""
        return digest_of(self.topics, self.runs, self.depth, self.columns)

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The arrays that there are, by name, in the order of `pool_files.NAMES`."""
        found = {name: getattr(self, name) for name in NAMES}
        return {name: column for name, column in found.items() if column is not None}

    @cached_property
    def kept(self) -> dict[str, Any]:
        """For what is worked out from the pool alone (`kept.kept`); it ends with the pool."""
        return {}

    @property
    def entry_pair(self) -> IntArray:
        """The pair of each entry, shape (E,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    @property
    def entry_cell(self) -> IntArray:
        """The topic and the run of each entry as one number, t k + j, shape (E,)."""
        if len(self.rank) > MOST_KEPT:
            return self._entry_cell()
        return kept(self.kept, "cells", None, lambda: frozen(self._entry_cell()))

    def _entry_cell(self) -> IntArray:
        return self.topic[self.entry_pair].astype(np.int64) * len(self.runs) + self.run

    def entries_of(self, pairs: IntArray) -> tuple[IntArray, IntArray]:
        """Return the entries of some pairs, pair by pair, (e,), and how many each has."""
        number = self.indptr[pairs + 1] - self.indptr[pairs]
        shift = self.indptr[pairs] - (np.cumsum(number) - number)
        entries = np.repeat(shift, number)
        entries += np.arange(len(entries))
        return entries, number

    @property
    def is_of_preferences(self) -> bool:
        """Whether a part of the pool is two documents of a topic."""
        return self.other is not None

    @property
    def list_lengths(self) -> IntArray:
        """Number of parts in the list of each topic and run, shape (T, k)."""
        shape = len(self.topics), len(self.runs)
        found = np.zeros(shape[0] * shape[1], dtype=np.int64)
        for block in blocks(self):
            found += np.bincount(block.pool.entry_cell, minlength=len(found))
        return found.reshape(shape)

    @property
    def predictions(self) -> FloatArray:
        """What each entry's run predicts about the part, shape (E,).

        The run's score; in a pool of preferences 1 where the run ranks the first document above
        the second, else -1. NaN in a pool without scores.
        """
        if self.other_rank is not None:
            return np.where(self.rank < self.other_rank, 1.0, -1.0)
        return np.full(len(self.rank), np.nan) if self.score is None else self.score

    def check_measure(self, measure: Measure) -> None:
        """Raise MeasureError if the pool lacks what the measure is about."""
        measure.check_pooled(preferences=self.is_of_preferences, scores=self.score is not None)

    def run_index(self, tag: str) -> int:
        """Return the position of a run; raise PoolError if the pool has no such run."""
        if (place := self._places.get(tag)) is None:
            raise PoolError(no_run(tag, self.runs))
        return place

    @cached_property
    def _places(self) -> dict[str, int]:
        return {tag: place for place, tag in enumerate(self.runs)}

    def entry_weights(self, measure: Measure) -> FloatArray:
        """Return w = lambda / |X| of each entry, shape (E,); MeasureError as `check_measure`."""
        self.check_measure(measure)
        table = self.rank_weights(measure)
        if table is not None:
            return np.asarray(table[self.rank], dtype=np.float64)
        if len(self.rank) > MOST_KEPT:
            return self._weighed(measure)
        work = lambda: frozen(self._weighed(measure))  # noqa: E731
        return kept(self.kept, "entry weights", measure, work, most=2)

    def _weighed(self, measure: Measure) -> FloatArray:
        """Weights that depend on more than rank."""
        lengths = self.list_lengths[self.topic[self.entry_pair], self.run]
        other = 1 if self.other_rank is None else self.other_rank
        weights = measure.weights(self.rank, lengths=lengths, other_ranks=other)
        return np.asarray(weights / len(self.topics), dtype=np.float64)

    def entry_utilities(self, measure: Measure, grade: int) -> FloatArray:
        """Return the utility of each entry if its part had this grade, shape (E,)."""
        self.check_measure(measure)
        return measure.entry_utilities(np.full(len(self.rank), grade), self.predictions)

    def rank_weights(self, measure: Measure) -> FloatArray | None:
        """Return w by rank, from rank 0 (no weight) on; None if it depends on more than rank."""
        if not measure.is_by_rank:
            return None
        ranks, topics = np.arange(1, self.depth + 1), len(self.topics)
        work = lambda: frozen(np.append(0.0, measure.weights(ranks) / topics))  # noqa: E731
        return kept(self.kept, "by rank", measure, work, most=MEASURES)

    def by_pair(self, values: NDArray[Any]) -> SparseMatrix:
        """Arrange E values of entries as an array of pairs by runs, without copying them."""
        return sparse.csr_array((values, *self._place), shape=(len(self), len(self.runs)))

    @cached_property
    def _place(self) -> tuple[Int32Array, NDArray[Any]]:  # of one width, or SciPy copies `run`
        return self.run, frozen(self.indptr.astype(sparse.get_index_dtype(maxval=len(self.run))))

    def weights(
        self, measure: Measure, pairs: IntArray | None = None, *, wanted: BoolArray | None = None
    ) -> SparseMatrix:
        """Return the weights w_ij with which pairs enter the value of the runs.

        The value of run j is U_j = sum over pairs i of w_ij v_i: the mean over the campaign's
        topics of the measure, cut at the pool's depth.

        Parameters
        ----------
        measure : Measure
        pairs : ndarray of int64, shape (n,), optional
            Only the rows of these pairs; by default all N.
        wanted : ndarray of bool, shape (n,), optional
            Which of these rows to fill; the others are left empty.

        Returns
        -------
        scipy.sparse.csr_array, shape (n, k)
            Entries of weight 0 are not stored.
        """
        self.check_measure(measure)
        table = self.rank_weights(measure)
        matrix = self.by_pair(self.entry_weights(measure) if table is None else self.rank)
        if pairs is not None:
            matrix = matrix[pairs] if wanted is None else spread_rows(matrix[pairs[wanted]], wanted)
        data = matrix.data.copy() if table is None else table[matrix.data]
        place = matrix.indices.copy(), matrix.indptr.copy()
        result = sparse.csr_array((data, *place), shape=matrix.shape)
        result.eliminate_zeros()
        return result

    def save(self, file: ArchiveFile) -> None:
        """Write the pool to a path or a binary file (npz without pickles)."""
        write_pool(file, self.topics, self.runs, self.depth, self.columns, digest=self.digest)

    @classmethod
    def load(cls, file: ArchiveFile, *, check: bool = True) -> Pool:
        """Read what `save` wrote; raise ValueError if it is damaged or something else.

        The columns of a path are mapped: processes share them, and they take memory only where
        they are looked at. Without `check` they are not read to be held against the digest that
        the file tells of them, for files whose content is known.
        """
        facts, columns = read_archive(file, FORMAT, COLUMNS, optional=OPTIONAL)
        topics, runs = tuple(facts["topics"]), tuple(facts["runs"])
        pool = cls(topics, runs, facts["depth"], **{k: frozen(v) for k, v in columns.items()})
        if not check:
            vars(pool)["digest"] = facts["digest"]  # as it would be kept once it was asked for
        elif pool.digest != facts["digest"]:
            raise PoolError("the pool file is damaged: its digest does not fit its content")
        return pool


def build_pool(
    topics: Iterable[str],
    runs: Mapping[str, RankedLists],
    *,
    depth: int,
    scores: bool = False,
    extra: Mapping[str, Iterable[str]] | None = None,
) -> Pool:
    """Pool the top `depth` documents of every run and topic.

    Works topic by topic; memory is proportional to the number of entries.

    Parameters
    ----------
    topics : iterable of str
        All topics of the campaign. Topics of a run that are not among them are ignored.
    runs : mapping of str to RankedLists
        Run tag to ranked lists; the order of the mapping has no influence.
    depth : int
        At least 1.
    scores : bool
        Keep the runs' scores, for measures of predictions.
    extra : mapping of str to iterable of str, optional
        Docnos per topic that belong to the pool although no run returns them down to the depth,
        for example documents known to be relevant: ratio measures count them (R, ideal DCG).

    Raises
    ------
    PoolError
        If there is no topic or no run, depth < 1, a topic is named twice, a run returns a
        document twice for a topic, or scores are wanted of a run without them, or with a wild one.
    """
    names, tags = sorted(topics, key=str.encode), tuple(sorted(runs, key=str.encode))
    _check_pool_input(names, tags, depth)
    lists = [runs[tag] for tag in tags]
    if scores and (bare := [tag for tag in tags if runs[tag].scores is None]):
        raise PoolError(f"run {bare[0]!r} has no scores")
    places = [{topic: place for place, topic in enumerate(each.topics)} for each in lists]
    slices = []
    for topic in names:
        found = [
            _top(each, place.get(topic), depth) for each, place in zip(lists, places, strict=True)
        ]
        added = sorted({docno.encode() for docno in (extra or {}).get(topic, ())})
        slices.append(_pool_topic(topic, tags, found, added, scores=scores))
    return _joined(tuple(names), tags, depth, slices)


def _check_pool_input(topics: Sequence[str], runs: Sequence[str], depth: int) -> None:
    if not topics or not runs:
        given = f"not {len(topics)} topics and {len(runs)} runs"
        raise PoolError(f"a pool needs at least one topic and one run, {given}")
    check_whole(depth, name="depth", error=PoolError)
    for first, second in pairwise(topics):
        if first == second:
            raise PoolError(f"topic {first!r} is named twice")


@dataclass(frozen=True, eq=False)
class _Top:
    """The head of one list: docnos in rank order, and their scores if the run has any."""

    docno: BytesArray
    score: FloatArray


def _top(lists: RankedLists, place: int | None, depth: int) -> _Top:
    if place is None:
        return _Top(np.array([], dtype="S1"), np.array([]))
    start, stop = lists.indptr[place], lists.indptr[place + 1]
    head = slice(start, min(stop, start + depth))
    scores = np.array([]) if lists.scores is None else lists.scores[head]
    return _Top(lists.docnos[head], scores)


@dataclass(frozen=True, eq=False)
class _TopicSlice:
    docno: BytesArray
    entries: IntArray  # entries per pair
    run: Int32Array
    rank: Int32Array
    score: FloatArray | None


def _pool_topic(
    topic: str, tags: Sequence[str], lists: Sequence[_Top], extra: Sequence[bytes], *, scores: bool
) -> _TopicSlice:
    lengths = np.array([len(each.docno) for each in lists])
    run = np.repeat(np.arange(len(lists), dtype=np.int32), lengths)
    rank = np.concatenate([np.arange(1, length + 1, dtype=np.int32) for length in lengths])
    returned = [each.docno for each in lists]
    docno, pair = distinct_docnos(np.concatenate([*returned, np.array(extra, dtype=np.bytes_)]))
    pair = pair[: len(run)]
    order = order_of(pair)  # entries arrive by run, so runs ascend in a pair
    pair, run, rank = pair[order], run[order], rank[order]
    twice = (pair[1:] == pair[:-1]) & (run[1:] == run[:-1])
    if twice.any():
        at = int(np.argmax(twice))
        name = docno[pair[at]].decode()
        raise PoolError(f"run {tags[run[at]]!r} returns {name!r} twice in topic {topic!r}")
    score = np.concatenate([each.score for each in lists])[order] if scores else None
    return _TopicSlice(docno, np.bincount(pair, minlength=len(docno)), run, rank, score)


def _joined(
    topics: tuple[str, ...], runs: tuple[str, ...], depth: int, slices: Sequence[_TopicSlice]
) -> Pool:
    sizes = [len(each.docno) for each in slices]
    docno = np.concatenate([each.docno for each in slices])
    entries = np.concatenate([each.entries for each in slices])
    width = max(1, int(np.char.str_len(docno).max(initial=1)))
    scores = [each.score for each in slices if each.score is not None]
    columns: dict[str, NDArray[Any]] = {
        "topic": np.repeat(np.arange(len(topics), dtype=np.int32), sizes),
        "docno": docno.astype(f"S{width}", copy=False),
        "indptr": np.concatenate([[0], np.cumsum(entries)]),
        "run": np.concatenate([each.run for each in slices]),
        "rank": np.concatenate([each.rank for each in slices]),
    }
    if scores:
        columns["score"] = np.concatenate(scores)
    for column in columns.values():  # which nobody else has: they are not copied to be frozen
        column.flags.writeable = False
    return Pool(topics=topics, runs=runs, depth=depth, **columns)
