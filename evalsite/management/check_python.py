"""Run by ``make`` before anything is installed: can this Python run evalsite?

Kept to what old versions of Python understand, for it has to tell them so.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

NEEDED = {
    "venv": "python3-venv",
    "ensurepip": "python3-venv",
    "_sqlite3": "libsqlite3-0",
    "_ssl": "libssl3",
}


def complaint(version: tuple[int, int], missing: list[str]) -> str:
    """One sentence, or nothing if all is well."""
    if version < (3, 11):
        return (
            f"evalsite needs Python 3.11 or newer and this is {version[0]}.{version[1]}:"
            " install a newer one, and name it if need be: make PYTHON=python3.12 run"
        )
    if missing:
        names = ", ".join(name.lstrip("_") for name in missing)
        packages = " ".join(sorted({NEEDED[name] for name in missing}))
        return f"This Python lacks {names}: install it (sudo apt-get install {packages})."
    return ""


if __name__ == "__main__":
    sys.exit(complaint(sys.version_info[:2], [name for name in NEEDED if not find_spec(name)]) or 0)
