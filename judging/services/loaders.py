"""Loaders of topics, documents and qrels (see judging.services.uploads)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

import numpy as np
from django.db import IntegrityError, transaction
from django.db.models import Q

from judging.formats.cells import IntArray
from judging.formats.columns import Lines
from judging.formats.documents import DocumentRecord, read_documents
from judging.formats.lines import MEBIBYTE
from judging.formats.problems import Problems
from judging.formats.qrels import read_qrels
from judging.formats.topics import TopicRecord, read_topics
from judging.models import Document, KnownGrade, Topic, Upload
from judging.services import bulk, jobs
from judging.services.uploads import Load, Reading, loads

CHUNK = 1000
AT_ONCE = 10_000  # judgments in a statement
CHUNK_CHARACTERS = 4 * MEBIBYTE
MAX_TOPICS_BYTES = 256 * MEBIBYTE
"""Topics are taken in by one transaction, which keeps other writers of SQLite waiting."""

T = TypeVar("T")


def topic_ids(reading: Reading) -> dict[str, int]:
    """Topic id to row id of the campaign; waits for topics that are still being read.

    A file that is only checked is held against topics that were only checked as well, which have
    no rows yet (0): they would have come with it. Raises jobs.NotYet while a topics file is on its
    way, or an archive that came at once with it and may hold topics.
    """
    only = reading.upload.check_only
    files = reading.campaign.uploads.filter(kind=Upload.Kind.TOPICS)
    beside = Q(kind=Upload.Kind.ARCHIVE, drop=reading.upload.drop) & ~Q(drop="")
    waited_for = reading.campaign.uploads.filter(Q(kind=Upload.Kind.TOPICS) | beside)
    on_the_way = waited_for.filter(state__in=[Upload.State.STORED, Upload.State.READING])
    if (on_the_way if only else on_the_way.filter(check_only=False)).exists():
        raise jobs.NotYet(1.0, "waits for the topics")
    found = dict(reading.campaign.topics.values_list("topic_id", "pk"))
    for other in files.filter(state=Upload.State.CHECKED) if only else ():
        read = replace(reading, upload=other, problems=Problems(other.name))
        found = {record.topic_id: 0 for record in _topic_records(read)} | found
    return found


@loads(Upload.Kind.TOPICS)
def load_topics(reading: Reading) -> Load:
    """The file is read twice, once to check it and once to take it in: no topic stays in memory."""
    known = set(reading.campaign.topics.values_list("topic_id", flat=True))
    count = 0
    for record in _topic_records(reading):
        count += 1
        if record.topic_id in known:
            message = "This topic is in the campaign already."
            reading.problems.error(record.line, "topic", message)
    reading.summary = {"topics": count}
    return lambda: _create_topics(reading.quietly())


def _topic_records(reading: Reading) -> Iterator[TopicRecord]:
    most = min(reading.limits.max_bytes, MAX_TOPICS_BYTES)
    with reading.open() as file:
        limits = replace(reading.limits, max_bytes=most)
        yield from read_topics(file, reading.problems, limits=limits)


def _topics(reading: Reading) -> Iterator[Topic]:
    for record in _topic_records(reading):
        yield Topic(
            campaign=reading.campaign,
            upload=reading.upload,
            topic_id=record.topic_id,
            title=record.title,
            description=record.description,
            narrative=record.narrative,
        )


def _create_topics(reading: Reading) -> None:
    for chunk in _chunks(_topics(reading), _topic_size):
        Topic.objects.bulk_create(chunk)


def _topic_size(row: Topic) -> int:
    return len(row.title) + len(row.description) + len(row.narrative)


@loads(Upload.Kind.DOCUMENTS)
def load_documents(reading: Reading) -> Load:
    """Documents may be many: they are staged in transactions of a thousand rows.

    Selectors show documents of accepted uploads only, so that a half-loaded file is not seen.
    """
    Document.objects.filter(upload=reading.upload).delete()
    known = set(reading.campaign.documents.values_list("docno", flat=True))
    count = 0
    for record in _documents(reading, share=0.5, start=0.0):
        count += 1
        if record.docno in known:
            message = "This document is in the campaign already."
            reading.problems.error(record.line, "docno", message)
    reading.summary = {"documents": count}
    if reading.problems.ok and not reading.upload.check_only:
        _stage(reading)
    return lambda: None


def _stage(reading: Reading) -> None:
    silent, fixed = (
        reading.quietly(),
        {"campaign": reading.campaign.pk, "upload": reading.upload.pk},
    )
    try:
        records = _documents(silent, share=0.5, start=0.5)
        for chunk in _chunks(records, lambda record: len(record.title) + len(record.text)):
            columns = {
                name: [getattr(record, name) for record in chunk]
                for name in ("docno", "title", "text")
            }
            with transaction.atomic():
                reading.job.fence()
                bulk.insert(Document, fixed | columns)
    except IntegrityError:
        Document.objects.filter(upload=reading.upload).delete()
        message = "Another upload has brought the same docnos meanwhile."
        reading.problems.error(None, "docno", message)


def _documents(reading: Reading, *, share: float, start: float) -> Iterator[DocumentRecord]:
    with reading.open() as file:
        records = read_documents(file, reading.problems, limits=reading.limits)
        for count, record in enumerate(records, start=1):
            yield record
            if count % CHUNK == 0:
                done = file.tell() / max(1, reading.upload.size)
                reading.job.report(start + share * done, f"{count:,} documents")


def _chunks(rows: Iterable[T], size: Callable[[T], int]) -> Iterator[list[T]]:
    """At most `CHUNK` rows, and not many more than `CHUNK_CHARACTERS` of text, at once."""
    chunk: list[T] = []
    characters = 0
    for row in rows:
        chunk.append(row)
        characters += size(row)
        if len(chunk) == CHUNK or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


@loads(Upload.Kind.QRELS)
def load_qrels(reading: Reading) -> Load:
    """Judgments are columns from the file to the database, and text only some at a time.

    They may be many, so that they are staged: all of them are there at once when the upload is
    accepted, and other writers of SQLite wait for some of them at most.
    """
    topics = topic_ids(reading)
    grades = range(reading.campaign.max_grade + 1)
    with reading.open() as file:
        lines = read_qrels(file, reading.problems, grades=grades, limits=reading.limits)
    row = np.array([topics.get(name, 0) for name in lines.names], dtype=np.int64)
    known = lines.some(row[lines.topic] > 0)
    _refuse_known(reading, row, known)
    _warn_unknown(reading, {name for name in lines.names if name not in topics})
    reading.summary = {"qrels": len(known)}
    if reading.problems.ok and not reading.upload.check_only:
        _stage_grades(reading, row, known)
    return lambda: None


def _refuse_known(reading: Reading, row: IntArray, lines: Lines) -> None:
    """Topic by topic: no more than the known grades of one are held."""
    known = reading.campaign.known_grades
    there = set(known.order_by().values_list("topic_id", flat=True).distinct())
    by_topic = np.argsort(lines.topic, kind="stable")
    ends = np.cumsum(np.bincount(lines.topic, minlength=len(row)))
    again: list[int] = []
    for code in [code for code, pk in enumerate(row.tolist()) if pk in there]:
        docnos = set(known.filter(topic=int(row[code])).values_list("docno", flat=True))
        own = by_topic[ends[code - 1] if code else 0 : ends[code]]
        named = zip(lines.number[own].tolist(), lines.docno[own].tolist(), strict=True)
        again += [number for number, docno in named if docno.decode() in docnos]
    for number in sorted(again):
        message = "The campaign has a known grade of this pair already."
        reading.problems.error(number, "docno", message)


def _stage_grades(reading: Reading, row: IntArray, lines: Lines) -> None:
    fixed = {"campaign": reading.campaign.pk, "upload": reading.upload.pk}
    _drop_left(reading)
    by_topic = np.argsort(row[lines.topic], kind="stable")  # the index has them together
    try:
        for start in range(0, len(lines), AT_ONCE):
            some = lines.some(by_topic[start : start + AT_ONCE])
            columns = {
                "topic": row[some.topic].tolist(),
                "docno": [docno.decode() for docno in some.docno.tolist()],
                "grade": some.values[:, 0].astype(np.int64).tolist(),
            }
            with transaction.atomic():
                reading.job.fence()
                bulk.insert(KnownGrade, fixed | columns)
            reading.job.report(start / len(lines), f"{start + len(some):,} judgments")
    except IntegrityError:
        message = "Another upload has brought the same pairs meanwhile."
        reading.problems.error(None, "docno", message)


def _drop_left(reading: Reading) -> None:
    """Rows that this file, and files that were not accepted, have left; some at a time."""
    away = Q(state__in=[Upload.State.REJECTED, Upload.State.CHECKED]) | Q(pk=reading.upload.pk)
    left = reading.campaign.uploads.filter(away, kind=Upload.Kind.QRELS)
    rows = KnownGrade.every.filter(upload__in=list(left))
    while some := list(rows.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]):
        with transaction.atomic():
            reading.job.fence()
            rows.filter(pk__lte=some[-1]).delete()


def _warn_unknown(reading: Reading, unknown: set[str]) -> None:
    if unknown:
        some = ", ".join(sorted(unknown)[:5])
        which = "1 topic is" if len(unknown) == 1 else f"{len(unknown)} topics are"
        was = "was" if len(unknown) == 1 else "were"
        message = f"{which} not in the campaign and {was} left out: {some}."
        reading.problems.warning(None, "topic", message)
