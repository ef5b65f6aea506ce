"""The zip file of a judged collection: written so that equal contents give equal bytes, and read
as what it may be, hostile.

Names in it are compared with those expected and never used as paths, and sizes are bounded before
anything is unpacked.
"""

import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from judging.formats.lines import MEBIBYTE
from judging.formats.problems import Problems

FACTS = "collection.json"
DRAWS, JUDGMENTS = "draws.tsv.gz", "judgments.tsv.gz"
"""Files that collections of every kind have."""

MAX_MEMBER = 512 * MEBIBYTE
MAX_FACTS = 32 * MEBIBYTE
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError)

_EPOCH = (1980, 1, 1, 0, 0, 0)
_MAX_DIRECTORY = 64 * 1024
_END, _LOCATOR = b"PK\x05\x06", b"PK\x06\x07"
_END_SIZE = 22
_LOCATOR_SIZE = 20  # stands before the end of a large archive


class TooLargeError(ValueError):
    """A collection of which no reader would take so much; the message says of what."""


class RefusedError(Exception):
    """A collection that has an error; what is wrong with it is recorded."""


def go_on(problems: Problems) -> None:
    """Raise RefusedError if there was an error: what comes next rests on what has it."""
    if not problems.ok:
        raise RefusedError


def write_members(file: IO[bytes], members: Mapping[str, bytes]) -> None:
    """Write the files of a collection in the order in which they are given."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.create_system, entry.external_attr = 3, 0o644 << 16
            archive.writestr(entry, content)


def open_archive(file: IO[bytes], problems: Problems) -> zipfile.ZipFile:
    """Open a collection of which nothing is known yet but that it has facts.

    Raises `UnreadableError`, its problem recorded, when reading cannot go on.
    """
    size, files = _checked_end(file, problems)
    try:
        archive = zipfile.ZipFile(file)
    except (*BROKEN, ValueError) as error:
        problems.fatal(None, "", f"expected a zip file: {str(error)[:200]}")
    if len(archive.infolist()) != files:  # one that may be missing would be lost in silence
        found = len(archive.infolist())
        problems.fatal(None, "", f"expected a zip file of {files} files, as it says, found {found}")
    for entry in archive.infolist():
        limit = MAX_FACTS if entry.filename == FACTS else MAX_MEMBER
        plain = entry.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
        if entry.flag_bits & 1 or not plain:
            problems.fatal(
                None, entry.filename, "expected a file stored or deflated, not encrypted"
            )
        if not 0 <= entry.header_offset < size:
            problems.fatal(None, entry.filename, "expected a whole zip file, found a part")
        if entry.file_size > limit:
            problems.fatal(None, entry.filename, f"expected at most {limit} bytes, found more")
    if sum(entry.filename == FACTS for entry in archive.infolist()) != 1:
        problems.fatal(None, "", f"expected the file {FACTS}, once")
    return archive


def check_members(
    archive: zipfile.ZipFile,
    expected: Collection[str],
    problems: Problems,
    *,
    optional: Collection[str] = (),
) -> None:
    """Refuse an archive that does not hold exactly these files, each once, and perhaps others."""
    found = [entry.filename for entry in archive.infolist()]
    if sorted(found) != sorted([*expected, *(name for name in optional if name in found)]):
        perhaps = f", perhaps {', '.join(optional)}," if optional else ""
        problems.fatal(None, "", f"expected the files {', '.join(expected)}{perhaps} and no others")


def _checked_end(file: IO[bytes], problems: Problems) -> tuple[int, int]:
    """Return the size of an archive, and of how many files it says it is: a few."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _MAX_DIRECTORY - _END_SIZE - _LOCATOR_SIZE))
    tail = file.read()
    file.seek(0)
    at = tail.rfind(_END)
    if at < 0 or len(tail) - at < _END_SIZE:
        problems.fatal(None, "", "expected a zip file")
    length = int.from_bytes(tail[at + 12 : at + 16], "little")
    if length > _MAX_DIRECTORY or tail[max(0, at - _LOCATOR_SIZE) : at].startswith(_LOCATOR):
        problems.fatal(None, "", "expected a zip file of a few files")
    return size, int.from_bytes(tail[at + 10 : at + 12], "little")


@contextmanager
def inside(problems: Problems, name: str) -> Iterator[Problems]:
    """Problems of one member, kept and counted with those of the file."""
    counts = problems.error_count, problems.warning_count
    member = Problems(f"{problems.file}/{name}", problems.errors, problems.warnings, *counts)
    try:
        yield member
    finally:
        problems.error_count, problems.warning_count = member.error_count, member.warning_count
