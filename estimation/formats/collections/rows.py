"""Rows of the tables that collections of every kind have."""

from collections.abc import Iterator

from estimation.core.arrays import IntArray
from estimation.core.collections.base import RoundCollection
from estimation.core.data.preferences import BETWEEN


def keys(collection: RoundCollection, pairs: IntArray) -> Iterator[tuple[str, ...]]:
    """Yield topic and docno of pairs; of preferences both docnos."""
    topics, docnos = collection.topic[pairs].tolist(), collection.docno[pairs].tolist()
    for topic, docno in zip(topics, docnos, strict=True):
        yield collection.topics[topic], *docno.decode().split(BETWEEN.decode())


def judgment_rows(collection: RoundCollection) -> Iterator[tuple[str | int, ...]]:
    """Yield the rows of the judgments by (topic, docno, grade)."""
    labels = collection.labels
    for key, grade in zip(keys(collection, labels.pair), labels.grade.tolist(), strict=True):
        yield *key, grade
