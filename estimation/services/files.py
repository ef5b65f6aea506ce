"""Columns too long for rows, as files named by the SHA-256 of their content: written once.

No file is ever changed in its place, and one that goes is unlinked: processes map them.
"""

import hashlib
import os
import uuid
from collections.abc import Callable
from io import BufferedRandom, BufferedReader
from pathlib import Path
from typing import BinaryIO

from django.conf import settings


def keep(folder: str, content: bytes) -> str:
    """``keep_written`` for content that is at hand."""
    return keep_written(folder, lambda file: file.write(content))


def keep_written(folder: str, write: Callable[[BinaryIO], object]) -> str:
    """Stores what is written to a binary file and returns its name, relative to the file storage.

    On disk before it returns, under its final name only when whole: a name in the database never
    leads to half a file. The file that is written to can be sought in. One that is there already
    is young from then on, so that nobody takes it for one that no row names
    (`estimation.services.unnamed_files`).
    """
    draft = path_of(folder) / f".{uuid.uuid4().hex}"
    draft.parent.mkdir(parents=True, exist_ok=True)
    try:
        with draft.open("w+b") as file:
            write(file)
            name = f"{folder}/{_digest(file)}"
            path = path_of(name)
            if not _young_again(path):
                os.fsync(file.fileno())
                draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return name


def _young_again(path: Path) -> bool:
    """Whether the file is there; its time is now."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True


def damaged(name: str) -> bool:
    """Whether a file is not there, or its content is not what it is named by."""
    path = path_of(name)
    if not path.is_file():
        return True
    with path.open("rb") as file:
        return _digest(file) != path.name


def _digest(file: BufferedRandom | BufferedReader) -> str:
    file.seek(0)  # which writes out what is written
    return hashlib.file_digest(file, "sha256").hexdigest()


def path_of(name: str) -> Path:
    return Path(settings.MEDIA_ROOT) / name
