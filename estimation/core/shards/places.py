"""Where results are: folders, or addresses of object storage that fsspec knows (``s3://...``).

What is at an address is read and written as objects: there are no folders and no renames.
Columns that are read whole are copied to this machine once, under the SHA-256 of their bytes: a
copy never is of something else, whoever writes to the address, and may be deleted at any time.
"""

from __future__ import annotations

import importlib
import os
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

COPIES = "EVALSITE_COPIES"


@dataclass(frozen=True)
class Remote:
    """A place at an address; what is below it is named as that of a path is.

    Attributes
    ----------
    address : str
        ``protocol://...``, of a file system that fsspec knows on every worker.

    Raises
    ------
    ImportError
        When it is read or written, if fsspec or the package of the protocol is not installed.
    ValueError
        Then, if fsspec knows no such protocol.
    OSError
        Then, if that cannot be, whatever the protocol's own error is; it names the address.
    """

    address: str

    def __truediv__(self, name: str) -> Remote:
        return Remote(f"{self.address.rstrip('/')}/{name}")

    def __str__(self) -> str:
        return self.address

    @property
    def name(self) -> str:
        """The last part."""
        return self.address.rstrip("/").rpartition("/")[2]

    def read(self, start: int | None = None, stop: int | None = None) -> bytes:
        """Return the bytes of a file, or some of them; FileNotFoundError if there is none."""
        with self._named("read", FileNotFoundError):
            system, path = self._found
            return bytes(system.cat_file(path, start=start, end=stop))

    def write(self, content: bytes) -> None:
        """Write a file: all of it, or nothing."""
        with self._named("written"):
            system, path = self._found
            system.pipe_file(path, content)

    def send(self, file: Path) -> None:
        """Write the content of a file of this machine; as `write`."""
        with self._named("written"):
            system, path = self._found
            system.put_file(str(file), path)

    def fetch(self, file: Path) -> None:
        """Write the content to a file of this machine; as `read`."""
        with self._named("copied to this machine", FileNotFoundError):
            system, path = self._found
            system.get_file(path, str(file))

    def remove(self) -> None:
        """Remove all that is below; nothing if there is nothing."""
        with self._named("removed"):
            system, path = self._found
            system.invalidate_cache()  # others have written there
            if system.exists(path):
                system.rm(path, recursive=True)

    @contextmanager
    def _named(self, done: str, passed: type[Exception] = ImportError) -> Iterator[None]:
        """Each protocol has errors of its own, some of which cannot be sent between processes."""
        try:
            yield
        except (ImportError, ValueError, passed):
            raise
        except Exception as error:
            why = str(error) or type(error).__name__
            raise OSError(f"{self} cannot be {done}: {why}") from error

    @property
    def _found(self) -> tuple[Any, str]:
        """The file system, which fsspec keeps for each process, and the path in it."""
        try:
            system, path = importlib.import_module("fsspec.core").url_to_fs(self.address)
        except ImportError as error:
            needed = "needs the packages fsspec and that of its protocol, such as s3fs"
            raise ImportError(f"{self.address} {needed}: {error}") from error
        return system, str(path)


Place: TypeAlias = Path | Remote


def place_of(text: str) -> Place:
    """Return the place that a user names: an address, or a folder of this machine."""
    path = text.removeprefix("file://")
    return Remote(text) if "://" in path else Path(path).resolve()


def copies() -> Path:
    """Return the folder of this machine in which copies are, of `EVALSITE_COPIES` or its user's."""
    return Path(os.environ.get(COPIES) or Path.home() / ".cache" / "evalsite" / "columns")


def copy_of(digest: str) -> Path:
    """Return where the copy of a column is, or will be."""
    return copies() / digest[:2] / f"{digest}.npy"


def put_copy(digest: str, file: Path) -> None:
    """Keep a file of this machine as the copy of a column: it is moved there."""
    place = copy_of(digest)
    place.parent.mkdir(parents=True, exist_ok=True)
    file.replace(place)


def draft_of_copy() -> Path:
    """Return a new name beside the copies."""
    copies().mkdir(parents=True, exist_ok=True)
    return copies() / f".{uuid.uuid4().hex}"
