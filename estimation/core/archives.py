"""Arrays with a JSON header in one npz file: how pools, designs and samples are stored."""

from __future__ import annotations

import json
import zipfile
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

ArchiveFile: TypeAlias = str | PathLike[str] | IO[bytes]


class ArchiveError(ValueError):
    """A file that is not what it should be, or is damaged."""


def write_archive(
    file: ArchiveFile, form: str, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays and JSON facts. Equal content gives equal bytes.

    Parameters
    ----------
    file : path or binary file
        A path is written as it is: no suffix is added.
    form : str
        Name and version of the format, checked on reading.
    """
    header = json.dumps({"form": form, "facts": dict(facts)}, sort_keys=True).encode()
    columns: dict[str, Any] = {"header": np.frombuffer(header, dtype=np.uint8), **arrays}
    if isinstance(file, str | PathLike):
        with open(file, "wb") as opened:
            np.savez(opened, **columns)
    else:
        np.savez(file, **columns)


def read_archive(
    file: ArchiveFile, form: str, arrays: Iterable[str], *, optional: Iterable[str] = ()
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what `write_archive` wrote; never unpickles. Optional arrays may be missing.

    Raises
    ------
    ArchiveError
        If the file is damaged, of another format, or lacks an array.
    OSError
        If it cannot be opened.
    """
    try:
        with np.load(file, allow_pickle=False) as stored:
            header = json.loads(stored["header"].tobytes())
            if header["form"] != form:
                raise ArchiveError(f"expected a file of the form {form}, found {header['form']}")
            names = [*arrays, *(name for name in optional if name in stored)]
            return header["facts"], {name: stored[name] for name in names}
    except (KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise ArchiveError(f"not a file of the form {form}, or damaged") from error


def form_of(file: ArchiveFile) -> str:
    """Return the name and version of the format of a file; ArchiveError if it is no such file."""
    try:
        with np.load(file, allow_pickle=False) as stored:
            return str(json.loads(stored["header"].tobytes())["form"])
    except (KeyError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise ArchiveError("not an archive, or damaged") from error
