"""Judged collections as one zip file of plain tables, for anybody to score runs with.

``collection.json`` says what kind it is; the module of the kind says which tables stand beside it.
Everything is in canonical order, and equal collections give equal bytes.
"""

from typing import IO

from estimation.core.collection import JudgedCollection
from estimation.formats.collections import pair_facts
from estimation.formats.collections.archive import BROKEN, FACTS, inside, open_archive
from estimation.formats.collections.facts import read_object
from estimation.formats.collections.pairs import read_pairs, write_pairs
from judging.formats.problems import Problems, show

_READERS = {pair_facts.FORMAT: read_pairs}


def write_collection(file: IO[bytes], collection: JudgedCollection) -> None:
    """Write a collection; ValueError for an id that no reader would take."""
    write_pairs(file, collection)


def read_collection(file: IO[bytes], problems: Problems) -> JudgedCollection | None:
    """Read a collection, or return None when it has an error.

    Nothing in the file is trusted. Raises `UnreadableError`, its problem recorded, when reading
    cannot go on.
    """
    archive = open_archive(file, problems)
    try:
        with archive:
            with inside(problems, FACTS) as member:
                found = read_object(archive.read(FACTS), member)
            if found is None:
                return None
            form = found.get("format")
            if not isinstance(form, str) or form not in _READERS:
                known = ", ".join(_READERS)
                with inside(problems, FACTS) as member:
                    member.error(None, "format", f"expected one of {known}, found {show(form)}")
                return None
            return _READERS[form](archive, found, problems)
    except BROKEN as error:
        problems.fatal(None, "", f"expected a sound zip file: {str(error)[:200]}")
