"""The files in a zip or tar archive, one after the other; nothing is unpacked under its own name.

Archives come from strangers: sizes are those that are really read, and names are only shown.
"""

import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import SEEK_END
from pathlib import PurePosixPath
from typing import IO, BinaryIO, NoReturn

from judging.formats.lines import BinaryFile, Limits, file_head
from judging.formats.magic import HEAD, archive
from judging.formats.problems import Problems

MAX_FILES = 2000
_RATIO_FREE = 16 * 2**20  # a small archive may be packed as well as it likes
_LEFT_OUT = ("__MACOSX",)  # what file managers put beside the files
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError)


@dataclass(frozen=True)
class Member:
    """A file in an archive; to be read before the next one is asked for."""

    name: str
    file: BinaryFile


def read_archive(file: BinaryIO, problems: Problems, *, limits: Limits) -> Iterator[Member]:
    """Yield the files of a zip or tar archive, the latter plain or in gzip, in their order.

    Folders and what file managers hide are left out. Links, files with a password, more than
    `MAX_FILES` files are problems, and reading ends there. Raises `UnreadableError`, also while a
    file is read, where there are more bytes than `limits` has or packing explains, and where the
    archive is broken.
    """
    kind, packed = archive(file_head(file.read(HEAD))), file.seek(0, SEEK_END)
    file.seek(0)
    if kind is None:
        problems.error(None, "", "This is no zip or tar archive.")
        return
    room = _Room(problems, min(limits.max_bytes, max(_RATIO_FREE, limits.max_ratio * packed)))
    try:
        members = _zipped(file, problems) if kind == "zip" else _taped(file, problems)
        for count, (name, inner) in enumerate(members, start=1):
            if count > MAX_FILES:
                message = f"The archive has more than {MAX_FILES:,} files: split it."
                problems.error(None, "", message)
                return
            yield Member(name, _Counted(inner, room))
    except _BROKEN as error:
        _broken(problems, error)


def _zipped(file: BinaryIO, problems: Problems) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(file) as packed:
        for entry in packed.infolist():
            if entry.is_dir() or _is_hidden(entry.filename):
                continue
            if entry.flag_bits & 1:
                problems.error(None, entry.filename, "This file has a password.")
                return
            with packed.open(entry) as inner:
                yield entry.filename, inner


def _taped(file: BinaryIO, problems: Problems) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(fileobj=file, mode="r|*") as packed:
        for entry in packed:
            if entry.isdir() or _is_hidden(entry.name):
                continue
            inner = packed.extractfile(entry) if entry.isreg() else None
            if inner is None:
                problems.error(None, entry.name, "This is no file but a link or a device.")
                return
            yield entry.name, inner


def _is_hidden(name: str) -> bool:
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return any(part in _LEFT_OUT or part.startswith("._") for part in parts) or (
        bool(parts) and parts[-1].startswith(".")
    )


def _broken(problems: Problems, error: Exception) -> NoReturn:
    problems.fatal(None, "", f"The archive cannot be read to its end ({error}): pack it anew.")


@dataclass
class _Room:
    """How many bytes may still come out of an archive."""

    problems: Problems
    most: int
    taken: int = 0


class _Counted:
    """A file that is read, never beyond what is taken of the whole archive."""

    def __init__(self, inner: IO[bytes], room: _Room) -> None:
        self._inner = inner
        self._room = room

    def read(self, size: int, /) -> bytes:
        room = self._room
        try:
            found = self._inner.read(min(size, room.most - room.taken + 1))
        except _BROKEN as error:
            _broken(room.problems, error)
        room.taken += len(found)
        if room.taken > room.most:
            most = f"{room.most / 2**20:,.0f} MB"
            message = f"The files of this archive have more than {most}: split it."
            room.problems.fatal(None, "", message)
        return found
