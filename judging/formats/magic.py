"""Tells files that no reader takes by their first bytes: what they are, and what to do."""

import re
from dataclasses import dataclass
from typing import Literal

HEAD = 4096
"""Bytes of a file's beginning that are looked at."""

_UNPACK = "unpack it and upload the files that are in it"
_ARCHIVE = "upload it as an archive of files, or unpack it"
_REPACK = "unpack it, or pack it with gzip instead"
_TEXT = "only text is read here"
_DOCUMENTS = "save its text as JSON lines with docno, title and text"
_TABLE = "save it as text with tabs between the columns"
_UTF8 = "save it as UTF-8"
_MAGIC = (
    (0, b"\x1f\x8b", "gzip inside gzip", "unpack it once"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (0, b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (257, b"ustar", "a tar archive", _ARCHIVE),
    (0, b"\xfd7zXZ\x00", "an xz archive", _REPACK),
    (0, b"BZh", "a bzip2 archive", _REPACK),
    (0, b"\x28\xb5\x2f\xfd", "a Zstandard archive", _REPACK),
    (0, b"\x04\x22\x4d\x18", "an LZ4 archive", _REPACK),
    (0, b"\x89PNG", "a picture (PNG)", _TEXT),
    (0, b"\xff\xd8\xff", "a picture (JPEG)", _TEXT),
    (0, b"GIF8", "a picture (GIF)", _TEXT),
    (0, b"II*\x00", "a picture (TIFF)", _TEXT),
    (0, b"MM\x00*", "a picture (TIFF)", _TEXT),
    (8, b"WEBP", "a picture (WebP)", _TEXT),
    (4, b"ftyp", "a film or picture (MPEG-4)", _TEXT),
    (0, b"%PDF-", "a PDF document", _DOCUMENTS),
    (0, b"{\\rtf", "a document of a word processor (RTF)", _DOCUMENTS),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "a spreadsheet or document (old Office)", _TABLE),
    (0, b"SQLite format 3\x00", "a SQLite database", _TABLE),
    (0, b"PAR1", "a Parquet table", _TABLE),
    (0, b"\x89HDF", "an HDF5 file", _TABLE),
    (0, b"\x93NUMPY", "a NumPy array", _TABLE),
    (0, b"\x80\x04\x95", "a Python pickle", _TABLE),
    (0, b"\x7fELF", "a program", _TEXT),
    (0, b"\xff\xfe", "UTF-16 text", _UTF8),
    (0, b"\xfe\xff", "UTF-16 text", _UTF8),
)
_ZIPPED = (
    ((b"xl/", b"opendocument.spreadsheet"), "a spreadsheet", _TABLE),
    ((b"word/", b"opendocument.text"), "a document of a word processor", _DOCUMENTS),
    ((b"ppt/", b"opendocument.presentation"), "a presentation", _DOCUMENTS),
)
_WEB_PAGE = re.compile(rb"\s*<(?:!doctype\s+html|html|svg)\b", re.IGNORECASE)
_UNPRINTABLE = bytes({*range(9), *range(14, 32)})
_SHORT = 64  # bytes: so little may hold a stray control character, which is told with its line


@dataclass(frozen=True, slots=True)
class Foreign:
    """What a file is, with its article, and what its owner can do."""

    name: str
    advice: str


_ZIP = Foreign("a zip archive", _ARCHIVE)
_EMPTY_ZIP = b"PK\x05\x06"


def archive(head: bytes) -> Literal["zip", "tar"] | None:
    """Return whether files may be read out of it; `head` is not compressed."""
    has_files = head.startswith(b"PK\x03\x04") and _zipped(head[:HEAD]) is _ZIP
    if has_files or head.startswith(_EMPTY_ZIP):
        return "zip"
    return "tar" if head.startswith(b"ustar", 257) else None


def foreign(head: bytes) -> Foreign | None:
    """Return what a file is of which nothing can be read, or None; `head` is not compressed."""
    head = head[:HEAD]
    if head.startswith((b"PK\x03\x04", _EMPTY_ZIP)):
        return _zipped(head)
    for place, magic, name, advice in _MAGIC:
        if head.startswith(magic, place):
            return Foreign(name, advice)
    if _WEB_PAGE.match(head):
        return Foreign("a web page or drawing", _DOCUMENTS)
    unprintable = len(head) - len(head.translate(None, _UNPRINTABLE))
    if len(head) >= _SHORT and 10 * unprintable > len(head):
        return Foreign("binary data", _TEXT)
    return None


def _zipped(head: bytes) -> Foreign:
    for marks, name, advice in _ZIPPED:
        if any(mark in head for mark in marks):
            return Foreign(name, advice)
    return _ZIP
