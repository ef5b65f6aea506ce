"""Judged collections as one zip file of plain tables, for anybody to score runs with.

``collection.json`` says what kind it is; the module of the kind says which tables stand beside it.
Everything is in canonical order, and equal collections give equal bytes.
"""

import zipfile
from collections.abc import Mapping
from typing import IO

from estimation.core.collections.base import CollectionError, RoundCollection
from estimation.core.rounds.active.rounds import ActiveRound
from estimation.core.rounds.combining import CombiningError
from estimation.core.rounds.rounds import TopicRound
from estimation.formats.collections import active, adaptive, pair_facts, pairs, topics
from estimation.formats.collections.archive import (
    BROKEN,
    FACTS,
    RefusedError,
    check_members,
    go_on,
    inside,
    open_archive,
    write_members,
)
from estimation.formats.collections.facts import (
    Facts,
    check_fields,
    dumped,
    object_bytes,
    one_of,
    read_object,
)
from estimation.formats.collections.reading import CollectionReading, Kind
from judging.formats.problems import Problems, show

OUTDATED = ("evalsite-collection-1",)

_KINDS: Mapping[str, Kind] = {
    pair_facts.FORMAT: pairs.KIND,
    pair_facts.OF_PREFERENCES: pairs.KIND,
    topics.FORMAT: topics.KIND,
    active.FORMAT: active.KIND,
    adaptive.FORMAT: adaptive.KIND,
    adaptive.OF_PREFERENCES: adaptive.KIND,
    adaptive.OF_PREDICTIONS: adaptive.KIND,
}


def write_collection(file: IO[bytes], collection: RoundCollection) -> None:
    """Write a collection; TooLargeError, or another ValueError, for what no reader would take."""
    form = _format_of(collection)
    kind, problems = _KINDS[form], Problems(FACTS)
    kind.refuse(collection)
    members = {FACTS: object_bytes({"format": form} | dumped(collection, kind.fields))}
    try:
        _, facts = _facts(members[FACTS], problems)
    except RefusedError:
        first = problems.errors[0]
        raise ValueError(f"{first.file}: {first.field}: {first.message}") from None
    forms = {each.name: each for each in kind.forms(facts)}
    for name, about, numbers in kind.rows(collection):
        members[name] = forms[name].written(collection, about, numbers)
    write_members(file, members)


def _format_of(collection: RoundCollection) -> str:
    if collection.parts:
        return pair_facts.OF_PREFERENCES if collection.is_of_preferences else pair_facts.FORMAT
    if isinstance(collection.drawn, TopicRound):
        return topics.FORMAT
    if isinstance(collection.drawn, ActiveRound):
        return active.FORMAT
    return adaptive.format_of(collection)


def read_collection(file: IO[bytes], problems: Problems) -> RoundCollection | None:
    """Read a collection, or return None when it has an error.

    Nothing in the file is trusted. Raises `UnreadableError`, its problem recorded, when reading
    cannot go on.
    """
    archive = open_archive(file, problems)
    try:
        with archive:
            return _read(archive, problems)
    except RefusedError:
        return None
    except (CollectionError, CombiningError) as error:
        problems.error(None, "", str(error))
        return None
    except BROKEN as error:
        problems.fatal(None, "", f"expected a sound zip file: {str(error)[:200]}")


def _read(archive: zipfile.ZipFile, problems: Problems) -> RoundCollection:
    with inside(problems, FACTS) as member:
        kind, facts = _facts(archive.read(FACTS), member)
    forms = {form.name: form for form in kind.forms(facts)}
    optional = [name for name, form in forms.items() if form.optional]
    needed = [FACTS, *(name for name in forms if name not in optional)]
    check_members(archive, needed, problems, optional=optional)
    return kind.read(CollectionReading(archive, facts, forms, problems))


def _facts(content: bytes, problems: Problems) -> tuple[Kind, Facts]:
    """What ``collection.json`` says, of which kind; RefusedError if anything is wrong with it."""
    found = read_object(content, problems)
    form = found.get("format")
    kind = _KINDS.get(form) if isinstance(form, str) else None
    if kind is None:
        told = f"expected one of {', '.join(_KINDS)}, found {show(form)}"
        if form in OUTDATED:
            told += ", of an earlier evalsite: export the report again"
        problems.error(None, "format", told)
        raise RefusedError
    check_fields(found, {"format": one_of(*_KINDS), **kind.fields}, problems)
    go_on(problems)
    facts = kind.facts(found, problems)
    go_on(problems)
    return kind, facts
