"""Judged collections as one zip file of plain tables, for anybody to score runs with.

``collection.json`` says what kind it is; the module of the kind says which tables stand beside it.
Everything is in canonical order, and equal collections give equal bytes.
"""

import zipfile
from collections.abc import Callable, Mapping
from typing import IO, Any

from estimation.core.collections.base import RoundCollection
from estimation.core.rounds.rounds import TopicRound
from estimation.formats.collections import active, pair_facts, topics
from estimation.formats.collections.archive import BROKEN, FACTS, inside, open_archive
from estimation.formats.collections.facts import read_object
from estimation.formats.collections.pairs import read_pairs, write_pairs
from judging.formats.problems import Problems, show

OUTDATED = ("evalsite-collection-1",)

Reader = Callable[[zipfile.ZipFile, Mapping[str, Any], Problems], RoundCollection | None]
_READERS: Mapping[str, Reader] = {
    pair_facts.FORMAT: read_pairs,
    pair_facts.OF_PREFERENCES: read_pairs,
    topics.FORMAT: topics.read_topics,
    active.FORMAT: active.read_active,
}


def write_collection(file: IO[bytes], collection: RoundCollection) -> None:
    """Write a collection; TooLargeError, or another ValueError, for what no reader would take."""
    if collection.parts:
        write_pairs(file, collection)
    elif isinstance(collection.drawn, TopicRound):
        topics.write_topics(file, collection)
    else:
        active.write_active(file, collection)


def read_collection(file: IO[bytes], problems: Problems) -> RoundCollection | None:
    """Read a collection, or return None when it has an error.

    Nothing in the file is trusted. Raises `UnreadableError`, its problem recorded, when reading
    cannot go on.
    """
    archive = open_archive(file, problems)
    try:
        with archive:
            with inside(problems, FACTS) as member:
                found = read_object(archive.read(FACTS), member)
                reader = _reader_of(found, member) if found is not None else None
            if found is None or reader is None:
                return None
            return reader(archive, found, problems)
    except BROKEN as error:
        problems.fatal(None, "", f"expected a sound zip file: {str(error)[:200]}")


def _reader_of(found: Mapping[str, Any], problems: Problems) -> Reader | None:
    form = found.get("format")
    if isinstance(form, str) and form in _READERS:
        return _READERS[form]
    told = f"expected one of {', '.join(_READERS)}, found {show(form)}"
    if form in OUTDATED:
        told += ", of an earlier evalsite: export the report again"
    problems.error(None, "format", told)
    return None
