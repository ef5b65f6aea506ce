"""Columns too long for rows, as files named by the SHA-256 of their content: written once."""

import hashlib
import io
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from django.conf import settings


def keep(folder: str, content: bytes) -> str:
    """Stores the content and returns its name, relative to the file storage.

    On disk before it returns, under its final name only when whole: a name in the database never
    leads to half a file.
    """
    name = f"{folder}/{hashlib.sha256(content).hexdigest()}"
    path = path_of(name)
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{uuid.uuid4().hex}")
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    return name


def keep_written(folder: str, write: Callable[[BinaryIO], None]) -> str:
    """``keep`` for content that is written to a binary file."""
    buffer = io.BytesIO()
    write(buffer)
    return keep(folder, buffer.getvalue())


def path_of(name: str) -> Path:
    return Path(settings.MEDIA_ROOT) / name
