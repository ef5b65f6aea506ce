"""Judgments by topic and docno, as files have them: of everything, or of somebody else's sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING

import numpy as np

from ..arrays import check_whole, index_array, kind_of
from .labels import LabelError, LabelRows
from .ranked_lists import PoolError
from .scope import find_pairs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike

    from ..arrays import BytesArray, FloatArray, IntArray
    from .pool import Pool


@dataclass(frozen=True, eq=False)
class Qrels:
    """Judgments by topic and docno, each a row.

    Attributes
    ----------
    topic, docno : ndarray of bytes, shape (m,)
        UTF-8.
    grade : ndarray of int64, shape (m,)
        >= 0. Several rows of a pair are several judgments.
    """

    topic: BytesArray
    docno: BytesArray
    grade: IntArray

    @classmethod
    def of(cls, grades: Mapping[str, Mapping[str, int]]) -> Qrels:
        """Return the grades of a mapping of topics to docnos, one for each pair.

        Examples
        --------
        >>> len(Qrels.of({"1": {"d1": 2, "d2": 0}}))
        2
        """
        rows = list(_rows(grades))
        topic, docno, grade = zip(*rows, strict=True) if rows else ((), (), ())
        return Qrels(
            np.array(topic, dtype=np.bytes_),
            np.array(docno, dtype=np.bytes_),
            np.array(grade, dtype=np.int64),
        )

    def __len__(self) -> int:
        """Return the number of judgments."""
        return len(self.grade)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that any row is of, sorted."""
        return tuple(name.decode() for name in np.unique(self.topic).tolist())

    def places(self, pool: Pool) -> IntArray:
        """Return which pair of a pool each row is of, shape (m,); -1 for none of it."""
        return find_rows(pool, self.topic, self.docno)

    def labels(
        self, pool: Pool, pairs: ArrayLike | None = None, *, unlisted: int | None = None
    ) -> LabelRows:
        """Return the judgments of pairs of a pool; rows of other pairs are left out.

        Parameters
        ----------
        pool : Pool
        pairs : ndarray of int64, shape (n,), optional
            Only of these pairs, `Served.pair` for one; by default of all.
        unlisted : int, optional
            The grade of pairs without a row. Of a file that lists relevant documents only it is 0;
            without it such pairs stay without a judgment.

        Examples
        --------
        >>> pool = pool_runs({"a": rank_scores({"1": {"d1": 2.0, "d2": 1.0}})}, depth=2)
        >>> qrels = Qrels.of({"1": {"d2": 3}})
        >>> qrels.labels(pool).pair, qrels.labels(pool, unlisted=0).grade
        (array([1]), array([3, 0]))
        """
        place = self.places(pool)
        if unlisted is not None:
            check_whole(unlisted, name="unlisted", least=0, error=LabelError)
        wanted = np.full(len(pool), pairs is None)
        if pairs is not None:
            wanted[index_array(pairs, below=len(pool), name="pairs", error=LabelError)] = True
        kept = (place >= 0) & wanted[place]
        pair, grade = place[kept], self.grade[kept]
        if unlisted is None:
            return LabelRows(pair, grade)
        wanted[pair] = False
        rest = np.flatnonzero(wanted)
        return LabelRows(
            np.concatenate([pair, rest]), np.concatenate([grade, np.full(len(rest), unlisted)])
        )


@dataclass(frozen=True, eq=False)
class SampledQrels(Qrels):
    """Judgments of a sample that somebody else drew, with the probabilities of its pairs.

    Attributes
    ----------
    topic, docno, grade
        As those of `Qrels`: one row for every judged pair.
    probability : ndarray of float64, shape (m,)
        That the pair was judged, in (0, 1].
    others : tuple of ndarray
        Topic, docno and probability of pairs that could have been judged and were not, as far as
        the file lists them.
    lists_all : bool
        Whether the file lists all pairs that could have been judged: strata do, prels do not.
    left_out : int
        Rows of the file that were not sampled; see `read_prels`.
    """

    probability: FloatArray
    others: tuple[BytesArray, BytesArray, FloatArray]
    lists_all: bool
    left_out: int = 0


def _rows(grades: Mapping[str, Mapping[str, int]]) -> Iterator[tuple[bytes, bytes, int]]:
    wanted = "a mapping of topics to docnos to grades"
    if not isinstance(grades, Mapping):
        raise LabelError(f"grades must be {wanted}, not {kind_of(grades)}")
    for topic, docnos in grades.items():
        if not isinstance(topic, str) or not isinstance(docnos, Mapping):
            raise LabelError(f"grades must be {wanted}; {topic!r} has {kind_of(docnos)}")
        for docno, grade in docnos.items():
            whole = isinstance(grade, Integral) and not isinstance(grade, bool)
            if not isinstance(docno, str) or not whole:
                told = f"docno {docno!r} of topic {topic!r} has {grade!r}"
                raise LabelError(f"docnos must be texts and grades whole numbers; {told}")
            yield topic.encode(), docno.encode(), int(grade)


def find_rows(pool: Pool, topic: BytesArray, docno: BytesArray) -> IntArray:
    """Return which pair of a pool of documents each (topic, docno) is; -1 for none of it."""
    if not hasattr(pool, "is_of_preferences"):
        raise PoolError(f"pool must be Pool (see pool_runs), not {kind_of(pool)}")
    if pool.is_of_preferences:
        raise PoolError("judgments of documents have no place in a pool of preferences")
    names = np.array([each.encode() for each in pool.topics], dtype=np.bytes_)
    order = np.argsort(names, kind="stable")
    at = np.minimum(np.searchsorted(names[order], topic), len(names) - 1)
    code = np.where(names[order][at] == topic, order[at], -1)
    return find_pairs(code, docno, among_topic=pool.topic, among_docno=pool.docno)
