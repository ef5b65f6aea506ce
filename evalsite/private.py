"""What only the site may know: its files, and its secret key.

Judgments, documents and digests of passwords stand in them. What this account does not own is left
as it is (``manage.py doctor`` says so), and so is a folder with the sticky bit: many share it.
"""

import contextlib
import stat
from itertools import pairwise
from pathlib import Path

OTHERS = stat.S_IRWXG | stat.S_IRWXO
BESIDE = ("", "-wal", "-shm", "-journal")  # SQLite gives new ones the mode of the database


def open_to_others(path: Path) -> bool:
    return path.exists() and bool(path.stat().st_mode & OTHERS)


def close_folder(path: Path) -> None:
    if not path.stat().st_mode & stat.S_ISVTX:
        _close(path)


def close_database(name: str) -> None:
    """Makes the database's file if there is none: SQLite would make it readable by everybody."""
    if not name or name.startswith((":", "file:")):
        return
    path = Path(name)
    with contextlib.suppress(OSError):  # said by whoever opens the database
        path.touch(mode=0o600)
    for each in database_files(path):
        _close(each)


def database_files(path: Path) -> list[Path]:
    """The database and what SQLite keeps beside it, as far as they are there."""
    named = [path.with_name(path.name + ending) for ending in BESIDE]
    return [each for each in named if each.exists()]


def _close(path: Path) -> None:
    with contextlib.suppress(OSError):
        if open_to_others(path):
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~OTHERS)


EXAMPLE_KEYS = "django-insecure-"
DISTINCT_TRIPLES, DISTINCT_STEPS = 30, 10


def guessable(key: str) -> bool:
    """Whether a key of any length repeats itself, counts on, or is an example.

    50 characters from a source of chance, be they digits alone, are far from all three limits.
    """
    triples = {key[at : at + 3] for at in range(len(key) - 2)}
    steps = {ord(after) - ord(before) for before, after in pairwise(key)}
    repeats = len(triples) < DISTINCT_TRIPLES or len(steps) < DISTINCT_STEPS
    return repeats or key.startswith(EXAMPLE_KEYS)
