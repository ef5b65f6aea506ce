"""Arrays with a JSON header in one npz file: how pools, designs and samples are stored.

Arrays stand in the file as they do in memory, each where a processor may read it, so that they are
mapped and not copied: all processes of a machine share what they look at, and nothing is loaded.
"""

from __future__ import annotations

import io
import json
import math
import mmap
import os
import struct
import uuid
import zipfile
import zlib
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

ArchiveFile: TypeAlias = str | PathLike[str] | IO[bytes]

BOUNDARY = 64  # an array begins at a multiple of so many bytes, as NumPy pads what stands before it
_PADDING = 0xD935  # the number that zipalign gave to fields that hold nothing
_LOCAL = struct.Struct("<4s22xHH")  # before a member: mark, and the lengths of name and fields
_BEFORE = _LOCAL.size + 20  # bytes before a member of any size, without its name and the padding
_MOST_HEADER = 10_000  # bytes before an array that NumPy looks at
_BROKEN = (
    *(KeyError, EOFError, TypeError, ValueError, RuntimeError, struct.error, zlib.error),
    zipfile.BadZipFile,
)


class InPieces(Protocol):
    """A vector that is written piece by piece, such as `arrays.Pieces`."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of every piece."""

    @property
    def size(self) -> int:
        """Numbers of all pieces together."""

    def checked(self) -> Iterator[NDArray[Any]]:
        """Yield the pieces."""


class ArchiveError(ValueError):
    """A file that is not what it should be, or is damaged."""


def write_archive(
    file: ArchiveFile,
    form: str,
    facts: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any] | InPieces],
) -> None:
    """Write arrays and JSON facts. Equal content gives equal bytes, whole or in pieces.

    Parameters
    ----------
    file : path or binary file
        A path is written as it is: no suffix is added. A file that is there already is replaced
        when all is written, never changed: whoever has mapped it keeps what it was.
    form : str
        Name and version of the format, checked on reading.
    """
    header = json.dumps({"form": form, "facts": dict(facts)}, sort_keys=True).encode()
    columns = {"header": np.frombuffer(header, dtype=np.uint8), **arrays}
    if isinstance(file, str | PathLike):
        with _replaced(Path(os.path.realpath(file))) as opened:
            _write(opened, columns)
    else:
        _write(file, columns)


@contextmanager
def _replaced(path: Path) -> Iterator[IO[bytes]]:
    if path.exists() and not path.is_file():  # a pipe or a device has no content to replace
        with path.open("wb") as file:
            yield file
        return
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with draft.open("xb") as file:
            yield file
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _write(file: IO[bytes], columns: Mapping[str, Any]) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for name, column in columns.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # of 1980: no file tells when it was made
            entry.extra = _padding(file.tell() + _BEFORE + len(entry.filename.encode()))
            with archive.open(entry, "w", force_zip64=True) as member:
                if isinstance(column, np.ndarray):
                    np.lib.format.write_array(member, column, allow_pickle=False)
                else:
                    _write_pieces(member, column)


def _write_pieces(member: IO[bytes], column: InPieces) -> None:
    """The bytes of `write_array`, of a column that is never whole."""
    kind = np.lib.format.dtype_to_descr(column.dtype)
    head = {"descr": kind, "fortran_order": False, "shape": (column.size,)}
    np.lib.format.write_array_header_1_0(member, head)
    for piece in column.checked():
        member.write(np.ascontiguousarray(piece).view(np.uint8).data)


def _padding(end: int) -> bytes:
    """A field that takes what comes after `end` to a boundary; it is four bytes long at least."""
    missing = -end % BOUNDARY
    missing += BOUNDARY if 0 < missing < 4 else 0
    return struct.pack("<HH", _PADDING, missing - 4) + bytes(missing - 4) if missing else b""


def read_archive(
    file: ArchiveFile,
    form: str,
    arrays: Iterable[str],
    *,
    optional: Iterable[str] = (),
    mapped: bool = True,
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `write_archive` wrote; never unpickles. No array can be written to.

    Arrays of a path are mapped: they take no memory of this process, the file may be replaced or
    removed meanwhile, and what mappings hold against is the size of the file alone. They are
    copied, and their checksums compared, from open files, and from files of versions that did not
    put arrays where they can be mapped.

    Parameters
    ----------
    file : path or binary file
    form : str
    arrays, optional : iterable of str
        Names; those that are optional may be missing.
    mapped : bool
        False copies: for whoever holds more files at once than a process may have open.

    Raises
    ------
    ArchiveError
        If the file is damaged, shorter than it says, of another format, or lacks an array.
    OSError
        If it cannot be opened.
    """
    with _opened(file, form) as archive:
        told = _told(archive)
        if told["form"] != form:
            found = f"expected a file of the form {form}, found {told['form']}"
            raise ArchiveError(f"{_name(file)}{found}")
        there = set(archive.namelist())
        names = [*arrays, *(name for name in optional if f"{name}.npy" in there)]
        whole = _mapping(archive.fp) if mapped and isinstance(file, str | PathLike) else None
        return told["facts"], {name: _column(archive, whole, name) for name in names}


def form_of(file: ArchiveFile) -> str:
    """Return the name and version of the format of a file; ArchiveError if it is no such file."""
    with _opened(file, None) as archive:
        return str(_told(archive)["form"])


@contextmanager
def _opened(file: ArchiveFile, form: str | None) -> Iterator[zipfile.ZipFile]:
    try:
        with zipfile.ZipFile(file) as archive:
            yield archive
    except ArchiveError:
        raise
    except _BROKEN as error:
        wanted = f"a file of the form {form}" if form else "an archive"
        raise ArchiveError(f"{_name(file)}not {wanted}, or damaged: {error}") from error


def _name(file: ArchiveFile) -> str:
    return f"{Path(file).name}: " if isinstance(file, str | PathLike) else ""


def _told(archive: zipfile.ZipFile) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(_copied(archive, "header.npy").tobytes())
    return told


def _mapping(file: IO[bytes] | None) -> mmap.mmap | None:
    """The very file that is open, whatever its name leads to by now."""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if file else None


def _column(archive: zipfile.ZipFile, whole: mmap.mmap | None, name: str) -> NDArray[Any]:
    entry = archive.getinfo(f"{name}.npy")
    plain = entry.compress_type == zipfile.ZIP_STORED and not entry.flag_bits & 1
    found = _view(whole, entry) if whole is not None and plain else None
    if found is None:
        found = _copied(archive, entry.filename)
        found.flags.writeable = False
    return found


def _copied(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(name) as member:
        column: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    return column


def _view(whole: mmap.mmap, entry: zipfile.ZipInfo) -> NDArray[Any] | None:
    """Return an array as it stands in the file; None if it does not stand at a boundary.

    Nothing is looked at beyond the end of the file, which would end the process.
    """
    mark, of_name, of_fields = _LOCAL.unpack_from(whole, entry.header_offset)
    begin = entry.header_offset + _LOCAL.size + of_name + of_fields
    end = begin + entry.file_size
    if mark != b"PK\3\4" or end > len(whole):
        raise ArchiveError(f"the array {entry.filename} is cut off: the file is damaged")
    head = io.BytesIO(whole[begin : min(end, begin + _MOST_HEADER)])
    if np.lib.format.read_magic(head) != (1, 0):
        return None
    shape, by_column, kind = np.lib.format.read_array_header_1_0(head)
    start = begin + head.tell()
    if kind.hasobject or start + math.prod(shape) * kind.itemsize != end:
        raise ArchiveError(f"the array {entry.filename} does not fit its header")
    if start % kind.alignment:
        return None
    return np.ndarray(shape, kind, whole, start, order="F" if by_column else "C")
