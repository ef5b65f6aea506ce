"""Ranked lists, best first, in the order in which trec_eval ranks documents."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..arrays import float_ranks, order_of
from .known_documents import document_hashes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from ..arrays import BytesArray, FloatArray, IntArray


class PoolError(ValueError):
    """Ranked lists that cannot be pooled; the message names run, topic and docno."""


@dataclass(frozen=True, eq=False)
class RankedLists:
    """One run: for each topic the docnos it returns, best first.

    Build one from scored lines with `rank_lines`.

    Attributes
    ----------
    topics : tuple of str
        The T topics of the run, each once.
    indptr : ndarray of int64, shape (T + 1,)
        ``docnos[indptr[t]:indptr[t + 1]]`` is the list of topic t.
    docnos : ndarray of bytes, shape (L,)
        UTF-8 docnos in rank order.
    scores : ndarray of float64, shape (L,), optional
        The run's scores in the same order, for measures of predictions (MAE, MSE, Accuracy).
    """

    topics: tuple[str, ...]
    indptr: IntArray
    docnos: BytesArray
    scores: FloatArray | None = None

    def __post_init__(self) -> None:
        if self.scores is not None and self.scores.shape != self.docnos.shape:
            lengths = f"scores has the shape {self.scores.shape}, docnos {self.docnos.shape}"
            raise PoolError(f"a run has as many scores as docnos; {lengths}")
        for first, second in pairwise(sorted(self.topics)):
            if first == second:
                raise PoolError(f"topic {first!r} occurs twice among the ranked lists of a run")
        bounds = self.indptr
        if len(bounds) != len(self.topics) + 1 or bounds[0] != 0 or bounds[-1] != len(self.docnos):
            raise PoolError("indptr does not fit the topics and docnos of the run")
        if np.any(np.diff(bounds) < 0):
            topic = self.topics[int(np.argmax(np.diff(bounds) < 0))]
            raise PoolError(f"indptr must not decrease, as it does at topic {topic!r}")


def trec_eval_order(
    scores: ArrayLike, docnos: ArrayLike, *, topics: ArrayLike | None = None
) -> IntArray:
    """Return the order in which trec_eval ranks documents: positions of the lines, best first.

    Score descending, equal scores by docno descending (as bytes). trec_eval keeps scores in
    single precision, so scores that differ only beyond it are equal; this does the same. With
    topics, sortable values, lines are ordered by topic first. PoolError if the shapes differ or a
    score is not finite.
    """
    score = np.asarray(scores, dtype=np.float64)
    docno = np.asarray(docnos, dtype=np.bytes_)
    if score.ndim != 1 or docno.shape != score.shape:
        raise PoolError(f"scores and docnos must be of one length, not {score.size}, {docno.size}")
    if not np.all(np.isfinite(score)):
        line = int(np.argmin(np.isfinite(score)))
        given = f"docno {docno[line].decode(errors='replace')!r} has {score[line]} (item {line})"
        raise PoolError(f"scores must be finite numbers; {given}")
    with np.errstate(over="ignore", under="ignore"):
        single = score.astype(np.float32)
    keys = [float_ranks(-single)] if topics is None else [float_ranks(-single), np.asarray(topics)]
    order = np.arange(len(score)) if _in_order(keys) else _order(keys)
    _order_ties(order, docno, [key[order] for key in keys])
    return np.asarray(order, dtype=np.int64)


def _order(keys: Sequence[NDArray[Any]]) -> IntArray:
    topics = keys[-1]
    if np.issubdtype(topics.dtype, np.signedinteger) and topics.min() >= 0:
        return order_of(*keys)
    return np.lexsort(keys)


def _in_order(keys: Sequence[NDArray[Any]]) -> bool:
    """Whether rows are sorted by keys, the last of which counts most."""
    fine = np.ones(max(0, len(keys[0]) - 1), dtype=np.bool_)
    for key in keys:
        fine = (key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & fine)
    return bool(fine.all())


def _order_ties(order: IntArray, docno: BytesArray, keys: Sequence[NDArray[Any]]) -> None:
    """Sort what is equal in all (ordered) keys by docno, descending; equal ones, the last first."""
    equal = np.all([key[1:] == key[:-1] for key in keys], axis=0)
    if not equal.any():
        return
    tied = np.flatnonzero(np.append(False, equal) | np.append(equal, False))
    group = np.append(0, np.cumsum(~equal))[tied]
    by_docno = np.argsort(docno[order[tied]], kind="stable")[::-1]
    order[tied] = order[tied][by_docno[np.argsort(group[by_docno], kind="stable")]]


def rank_lines(
    topics: ArrayLike, docnos: ArrayLike, scores: ArrayLike, *, depth: int | None = None
) -> RankedLists:
    """Turn the lines of one run into ranked lists, in trec_eval's order.

    Parameters
    ----------
    topics, docnos : array_like of bytes, shape (L,)
        UTF-8 topic ids and docnos, in any order.
    scores : array_like of float, shape (L,)
        Finite scores; the rank column of a run file plays no part.
    depth : int, optional
        Keep at most this many documents per topic.

    Raises
    ------
    PoolError
        If shapes differ, a score is not finite, or a docno occurs twice in a topic.
    """
    topic = np.asarray(topics, dtype=np.bytes_)
    docno = np.asarray(docnos, dtype=np.bytes_)
    if topic.shape != docno.shape:
        raise PoolError(f"topics and docnos must be of one length, not {topic.size}, {docno.size}")
    names, code = _numbered(topic)
    _refuse_duplicates(names, code, docno)
    order = trec_eval_order(scores, docno, topics=code)
    starts = np.searchsorted(code[order], np.arange(len(names) + 1))
    if depth is not None:
        position = np.arange(len(order)) - starts[code[order]]
        order = order[position < depth]
        starts = np.searchsorted(code[order], np.arange(len(names) + 1))
    decoded = tuple(name.decode() for name in names.tolist())
    score = np.asarray(scores, dtype=np.float64)[order]
    return RankedLists(decoded, starts.astype(np.int64), docno[order], score)


def _numbered(names: BytesArray) -> tuple[BytesArray, IntArray]:
    """The different names, sorted, and the number of each; only those that change are sorted."""
    fresh = np.append(True, names[1:] != names[:-1])[: len(names)]
    starts = np.flatnonzero(fresh)
    different, number = np.unique(names[starts], return_inverse=True)
    return different, np.repeat(number, np.diff(starts, append=len(names)))


def _refuse_duplicates(names: BytesArray, code: NDArray[Any], docno: BytesArray) -> None:
    mixed = np.sort(document_hashes(code, docno))
    if not np.any(mixed[1:] == mixed[:-1]):
        return
    order = np.lexsort((docno, code))
    same = (docno[order][1:] == docno[order][:-1]) & (code[order][1:] == code[order][:-1])
    if same.any():
        line = order[int(np.argmax(same))]
        raise PoolError(
            f"docno {docno[line].decode()!r} occurs twice in topic {names[code[line]].decode()!r}"
        )


def distinct_docnos(docno: BytesArray) -> tuple[BytesArray, IntArray]:
    """Return the different docnos, sorted, and the number of each: `np.unique` with its inverse.

    Equal ones are brought together by their hashes, so that only different ones are sorted.
    """
    own = len(docno).bit_length()
    hashes = document_hashes(np.zeros(len(docno), dtype=np.int64), docno)
    key = (hashes >> np.uint64(own + 1)).view(np.int64)  # leaves room for places beside it
    order = order_of(key)
    key, ordered = key[order], docno[order]
    other = np.append(True, key[1:] != key[:-1])[: len(docno)]
    if np.any(other[1:] < (ordered[1:] != ordered[:-1])):  # two have the same hash
        different, number = np.unique(docno, return_inverse=True)
        return different, number
    different = ordered[other]
    sorting = np.argsort(different)
    place = np.empty(len(different), dtype=np.int64)
    place[sorting] = np.arange(len(different))
    number = np.empty(len(docno), dtype=np.int64)
    number[order] = place[np.cumsum(other) - 1]
    return different[sorting], number
