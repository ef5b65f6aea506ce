"""Columns in folders: what shards read and write, memory-mapped and never half there.

A result is a folder with one ``.npy`` file a column and ``facts.json``, which names the SHA-256
of each. It is written beside its place and renamed, so that whoever sees it sees all of it: two
workers may write the same result at once, and one that is killed leaves nothing that counts.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import uuid
from typing import TYPE_CHECKING, Any

import numpy as np

from ..archives import ArchiveError
from ..arrays import content_digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

FORM = "evalsite-columns-1"
FACTS = "facts.json"


def key_of(*parts: Any) -> str:
    """Return a name for a result from what it follows from: any JSON, in this order."""
    return content_digest([json.dumps(parts, sort_keys=True).encode()])[:32]


def write_columns(
    place: Path, facts: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays and JSON facts as a folder, whole or not at all.

    Where the folder is there already it stays: results are named by what they follow from.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.parent / f".{place.name}.{uuid.uuid4().hex}"
    draft.mkdir()
    try:
        digests = {name: _write(draft / f"{name}.npy", each) for name, each in columns.items()}
        told = {"form": FORM, "facts": dict(facts), "columns": digests}
        with open(draft / FACTS, "w", encoding="utf-8") as file:
            json.dump(told, file, sort_keys=True)
            file.flush()
            os.fsync(file.fileno())
        _put(draft, place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def is_written(place: Path) -> bool:
    """Whether a result is there: all of it, since it came by its name in one step."""
    return (place / FACTS).is_file()


def read_facts(place: Path) -> dict[str, Any]:
    """Return the facts of a folder. Errors are those of `read_columns`."""
    return dict(_told(place)["facts"])


def seal_of(place: Path) -> str:
    """Return a digest of all that a folder says: of its facts, and through them of its columns."""
    return content_digest([json.dumps(_told(place), sort_keys=True).encode()])


def read_columns(
    place: Path, names: Iterable[str] | None = None, *, check: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return facts and columns, memory-mapped: what is not looked at takes no memory.

    Parameters
    ----------
    place : Path
    names : iterable of str, optional
        By default all columns.
    check : bool
        Hold the columns against their digests first, which reads them once.

    Raises
    ------
    ArchiveError
        If the folder is no such result, lacks a column, or a column is damaged.
    """
    told = _told(place)
    digests: dict[str, str] = told["columns"]
    columns = {}
    for name in digests if names is None else names:
        path = place / f"{name}.npy"
        if name not in digests or not path.is_file():
            raise ArchiveError(f"{place}: there is no column {name!r}")
        if check and _digest(path) != digests[name]:
            raise ArchiveError(f"{place}: the column {name!r} is damaged: its digest does not fit")
        columns[name] = _mapped(path)
    return dict(told["facts"]), columns


def _told(place: Path) -> dict[str, Any]:
    try:
        told = json.loads((place / FACTS).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ArchiveError(f"{place} is no folder of columns, or damaged") from error
    if not isinstance(told, dict) or told.get("form") != FORM:
        raise ArchiveError(f"{place} is no folder of the form {FORM}")
    return told


def _mapped(path: Path) -> NDArray[Any]:
    try:
        column: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:  # an empty file cannot be mapped
        column = np.load(path, allow_pickle=False)
        column.flags.writeable = False
    return column.view(np.ndarray)


def _write(path: Path, column: NDArray[Any]) -> str:
    with open(path, "wb") as file:
        np.save(file, np.ascontiguousarray(column), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    return _digest(path)


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _put(draft: Path, place: Path) -> None:
    try:
        draft.rename(place)
    except OSError:
        if not is_written(place):
            raise
