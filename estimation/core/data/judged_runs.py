"""Runs and complete judgments of their documents as graded lists, without a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .graded_lists import GradedLists, sorted_lists
from .judged_tops import ListedTops
from .known_documents import KnownDocuments
from .labels import LabelError
from .ranked_lists import PoolError, RankedLists

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..arrays import BoolArray, BytesArray, IntArray
    from .pool import Pool
    from .qrels import Qrels


@dataclass(frozen=True, eq=False)
class JudgedDocuments:
    """The m judged documents of T topics: the topic's number, docno and grade of each, (m,)."""

    topics: Sequence[str]
    topic: IntArray
    docno: BytesArray
    grade: IntArray
    known: KnownDocuments

    @classmethod
    def of(cls, qrels: Qrels, topics: Sequence[str]) -> JudgedDocuments:
        """Take the judgments of some topics; rows with a grade below 0 say that there is none.

        Raises
        ------
        LabelError
            If a document of a topic has two rows: the mean of grades is no grade.
        """
        codes = {name.encode(): at for at, name in enumerate(topics)}
        names, which = np.unique(qrels.topic, return_inverse=True)
        code = np.array([codes.get(name, -1) for name in names.tolist()], dtype=np.int64)[which]
        kept = np.flatnonzero((code >= 0) & (qrels.grade >= 0))
        topic, docno, grade = code[kept], qrels.docno[kept], qrels.grade[kept].astype(np.int64)
        known = KnownDocuments.of(topic, docno, topics=len(topics))
        twice = known.first_twice(topic, docno)
        if twice is not None:
            name = f"document {docno[twice].decode()!r} of topic {topics[topic[twice]]!r}"
            raise LabelError(f"{name} has several judgments; complete evaluation takes one")
        return cls(topics, topic, docno, grade, known)


def judged_in_pool(pool: Pool, qrels: Qrels) -> tuple[IntArray, JudgedDocuments]:
    """Return the grade of each pair, -1 for none, and all judged documents, in the pool or not.

    LabelError if a document of a topic has two judgments.
    """
    documents = JudgedDocuments.of(qrels, pool.topics)
    grades = np.full(len(pool), -1, dtype=np.int64)
    place = qrels.places(pool)
    inside = (place >= 0) & (qrels.grade >= 0)
    grades[place[inside]] = qrels.grade[inside]
    return grades, documents


def lists_of_runs(
    runs: Mapping[str, RankedLists], judged: JudgedDocuments, *, last: int | None
) -> tuple[GradedLists, ListedTops]:
    """Return where runs have graded documents down to a rank, and which of all are judged.

    Lists of topics that are not among those of the judgments are left out.

    Raises
    ------
    PoolError
        If a run returns a judged document twice for a topic.
    """
    shape = len(judged.topics), len(runs)
    flags, cells, lengths, found = [], [], [], []
    for place, (tag, lists) in enumerate(runs.items()):
        run = _Heads.of(lists, judged.topics, last)
        row = judged.known.find(run.topic, run.docno)
        flags.append(row >= 0)
        cells.append(run.topics * shape[1] + place)
        lengths.append(run.lengths)
        at = np.flatnonzero(flags[-1])
        _refuse_twice(row[at], judged, tag)
        at = at[judged.grade[row[at]] > 0]
        found.append((run.topic[at] * shape[1] + place, run.rank[at], judged.grade[row[at]]))
    cell, rank, grade = (np.concatenate(each) for each in zip(*found, strict=True))
    graded = judged.grade > 0
    topic, best = judged.topic[graded], judged.grade[graded]
    length = np.concatenate(lengths)
    stop = np.cumsum(length)
    tops = ListedTops(shape, np.concatenate(cells), stop - length, stop, np.concatenate(flags))
    return sorted_lists(shape, cell, rank, grade, topic=topic, best=best), tops


@dataclass(frozen=True, eq=False)
class _Heads:
    """The lists of a run for known topics, down to a rank."""

    topics: IntArray  # of each list
    lengths: IntArray
    topic: IntArray  # of each document
    rank: IntArray
    docno: BytesArray

    @classmethod
    def of(cls, lists: RankedLists, topics: Sequence[str], last: int | None) -> _Heads:
        codes = {name: at for at, name in enumerate(topics)}
        code = np.array([codes.get(name, -1) for name in lists.topics], dtype=np.int64)
        lengths = np.diff(lists.indptr)
        rank = np.arange(1, len(lists.docnos) + 1) - np.repeat(lists.indptr[:-1], lengths)
        topic, docno = np.repeat(code, lengths), lists.docnos
        kept: BoolArray = topic >= 0
        if last is not None:
            kept &= rank <= last
            lengths = np.minimum(lengths, last)
        if not kept.all():
            topic, rank, docno = topic[kept], rank[kept], docno[kept]
        return cls(code[code >= 0], lengths[code >= 0], topic, rank, docno)


def _refuse_twice(row: IntArray, judged: JudgedDocuments, tag: str) -> None:
    number = np.bincount(row, minlength=1)
    if number.max() > 1:
        at = int(np.argmax(number > 1))
        docno, topic = judged.docno[at].decode(), judged.topics[judged.topic[at]]
        raise PoolError(f"run {tag!r} returns {docno!r} twice in topic {topic!r}")
