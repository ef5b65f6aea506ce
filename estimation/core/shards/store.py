"""Columns in folders: what shards read and write, memory-mapped and never half there.

A result is a folder with one ``.npy`` file a column and ``facts.json``, which names the SHA-256
of each. It is written beside its place and renamed, or, at an address without renames, with its
facts last, so that whoever sees it sees all of it: two workers may write the same result at once,
and one that is killed leaves nothing that counts.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ..archives import ArchiveError
from ..arrays import content_digest
from .places import Place, Remote, copy_of, draft_of_copy, put_copy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

FORM = "evalsite-columns-1"
FACTS = "facts.json"
DIGEST = re.compile(r"[0-9a-f]{64}")  # it becomes a file's name
MOST_HEAD = 512  # bytes of a column's file before its numbers, at most


def key_of(*parts: Any) -> str:
    """Return a name for a result from what it follows from: any JSON, in this order."""
    return content_digest([json.dumps(parts, sort_keys=True).encode()])[:32]


def write_columns(
    place: Place, facts: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays and JSON facts as a result, whole or not at all.

    Where a folder is there already it stays: results are named by what they follow from. At an
    address the facts are written last, and make the result count; columns that are there without
    them are written again.
    """
    if isinstance(place, Remote):
        _send(place, facts, columns)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = place.parent / f".{place.name}.{uuid.uuid4().hex}"
    draft.mkdir()
    try:
        digests = {name: _write(draft / f"{name}.npy", each) for name, each in columns.items()}
        with open(draft / FACTS, "wb") as file:
            file.write(_told_as(facts, digests))
            file.flush()
            os.fsync(file.fileno())
        _put(draft, place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _send(place: Remote, facts: Mapping[str, Any], columns: Mapping[str, NDArray[Any]]) -> None:
    """Columns first, which are kept as copies: whoever writes a result often reads it next."""
    digests = {}
    for name, column in columns.items():
        draft = draft_of_copy()
        try:
            digests[name] = _write(draft, column)
            (place / f"{name}.npy").send(draft)
            put_copy(digests[name], draft)
        finally:
            draft.unlink(missing_ok=True)
    (place / FACTS).write(_told_as(facts, digests))


def _told_as(facts: Mapping[str, Any], digests: Mapping[str, str]) -> bytes:
    told = {"form": FORM, "facts": dict(facts), "columns": dict(digests)}
    return json.dumps(told, sort_keys=True).encode()


def remove_all(root: Place) -> None:
    """Remove a folder of results with all that is in it, or an address; nothing if it is gone.

    Copies of columns stay on the machines that made them.
    """
    if isinstance(root, Remote):
        root.remove()
    else:
        shutil.rmtree(root, ignore_errors=True)


def is_written(place: Place) -> bool:
    """Whether a result is there: all of it, since its name or its facts came last."""
    if isinstance(place, Path):
        return (place / FACTS).is_file()
    try:
        return bool((place / FACTS).read())
    except FileNotFoundError:
        return False


def read_facts(place: Place) -> dict[str, Any]:
    """Return the facts of a folder. Errors are those of `read_columns`."""
    return dict(_told(place)["facts"])


def seal_of(place: Place) -> str:
    """Return a digest of all that a folder says: of its facts, and through them of its columns."""
    return content_digest([json.dumps(_told(place), sort_keys=True).encode()])


def column_names(place: Place) -> tuple[str, ...]:
    """Return the names of all columns. Errors are those of `read_columns`."""
    return tuple(_told(place)["columns"])


def read_columns(
    place: Place, names: Iterable[str] | None = None, *, check: bool = True
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return facts and columns, memory-mapped: what is not looked at takes no memory.

    Of an address the columns are copied to this machine first, unless a copy is there.

    Parameters
    ----------
    place : Path or Remote
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
        path = _file_of(place, name, digests)
        if check and _digest(path) != digests[name]:
            copy = f" of the copy {path}" if isinstance(place, Remote) else ""
            damaged = f"the column {name!r} is damaged: its digest does not fit"
            raise ArchiveError(f"{place}: {damaged}{copy}")
        columns[name] = _mapped(path)
    return dict(told["facts"]), columns


@dataclass(frozen=True)
class StoredColumn:
    """A column in a file of this machine, of which rows are read and nothing is mapped.

    Attributes
    ----------
    path : Path
    start : int
        Bytes before the first row.
    dtype : numpy.dtype
    """

    path: Path
    start: int
    dtype: np.dtype[Any]

    def rows(self, first: int, stop: int) -> NDArray[Any]:
        """Return a copy of some rows; ArchiveError if they are not there any more."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.start + first * self.dtype.itemsize)
                found: NDArray[Any] = np.fromfile(file, self.dtype, stop - first)
        except FileNotFoundError as error:
            raise ArchiveError(f"{self.path} is gone") from error
        if len(found) != stop - first:
            raise ArchiveError(f"{self.path} ends before row {stop}")
        return found


def stored_columns(place: Place) -> dict[str, StoredColumn]:
    """Return all columns, each held against its digest; of an address they are copied first.

    Errors are those of `read_columns`.
    """
    read_columns(place)
    digests: dict[str, str] = _told(place)["columns"]
    return {name: _stored(_file_of(place, name, digests)) for name in digests}


def _stored(path: Path) -> StoredColumn:
    with open(path, "rb") as file:
        return StoredColumn(path, *_head(file))


def _head(file: IO[bytes]) -> tuple[int, np.dtype[Any]]:
    """Return how many bytes there are before the first row, and what the rows are."""
    np.lib.format.read_magic(file)
    _, _, kind = np.lib.format.read_array_header_1_0(file)
    return file.tell(), kind


def read_rows(place: Place, names: Iterable[str], start: int, stop: int) -> dict[str, NDArray[Any]]:
    """Return some rows of columns, memory-mapped; of an address no more than these is fetched.

    They are not held against their digests, which are of whole columns. Errors are those of
    `read_columns`.
    """
    digests: dict[str, str] = _told(place)["columns"]
    columns = {}
    for name in names:
        if isinstance(place, Remote) and name in digests and not copy_of(digests[name]).is_file():
            columns[name] = _fetched_rows(place, name, start, stop)
        else:
            columns[name] = _mapped(_file_of(place, name, digests))[start:stop]
    return columns


def _fetched_rows(place: Remote, name: str, start: int, stop: int) -> NDArray[Any]:
    file = place / f"{name}.npy"
    try:
        begin, kind = _head(io.BytesIO(file.read(0, MOST_HEAD)))
        first, size = begin + start * kind.itemsize, (stop - start) * kind.itemsize
        found = file.read(first, first + size) if size else b""
    except FileNotFoundError as error:
        raise ArchiveError(f"{place}: there is no column {name!r}") from error
    except ValueError as error:
        raise ArchiveError(f"{place}: the column {name!r} is damaged: {error}") from error
    if len(found) != size:
        raise ArchiveError(f"{place}: the column {name!r} ends before row {stop}")
    return np.frombuffer(found, dtype=kind)


def _told(place: Place) -> dict[str, Any]:
    file = place / FACTS
    try:
        told = json.loads(file.read_bytes() if isinstance(file, Path) else file.read())
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise ArchiveError(f"{place} is no folder of columns, or damaged") from error
    if not isinstance(told, dict) or told.get("form") != FORM:
        raise ArchiveError(f"{place} is no folder of the form {FORM}")
    if not all(
        name.isidentifier() and DIGEST.fullmatch(of) for name, of in told["columns"].items()
    ):
        raise ArchiveError(f"{place} names columns or digests that are none")
    return told


def _file_of(place: Place, name: str, digests: Mapping[str, str]) -> Path:
    """The file of a column on this machine; of an address it is fetched unless a copy is there."""
    if name not in digests:
        raise ArchiveError(f"{place}: there is no column {name!r}")
    if isinstance(place, Path):
        path = place / f"{name}.npy"
        if not path.is_file():
            raise ArchiveError(f"{place}: there is no column {name!r}")
        return path
    path = copy_of(digests[name])
    if not path.is_file():
        _fetch(place, name, digests[name])
    return path


def _fetch(place: Remote, name: str, digest: str) -> None:
    draft = draft_of_copy()
    try:
        (place / f"{name}.npy").fetch(draft)
        if _digest(draft) != digest:
            raise ArchiveError(f"{place}: the column {name!r} is damaged: its digest does not fit")
        put_copy(digest, draft)
    except FileNotFoundError as error:
        raise ArchiveError(f"{place}: there is no column {name!r}") from error
    finally:
        draft.unlink(missing_ok=True)


def _mapped(path: Path) -> NDArray[Any]:
    try:
        column: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:  # an empty file cannot be mapped
        column = np.load(path, allow_pickle=False)
        column.flags.writeable = False
    return column.view(np.ndarray)


def _write(path: Path, column: NDArray[Any]) -> str:
    with open(path, "wb") as file:
        # Of a file NumPy would say how much it wrote, but not why that was not all.
        plain = SimpleNamespace(write=file.write)
        np.lib.format.write_array(plain, np.ascontiguousarray(column), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())
    return _digest(path)


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _put(draft: Path, place: Path) -> None:
    try:
        draft.rename(place)
    except OSError as error:
        if is_written(place):
            return
        if place.exists():
            raise ArchiveError(f"{place} is no folder of columns, or damaged") from error
        raise
