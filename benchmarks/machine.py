"""What figures were measured on, and with."""

import json
import platform
import sqlite3
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psutil

from benchmarks.peers import names
from tests.support.postgres import bin_dir

LIBRARIES = ("Django", "djangorestframework", "numpy", "scipy", "celery", "psycopg")
TOLD = {"numpy": "NumPy", "scipy": "SciPy", "Django": "Django", "sqlite": "SQLite"}
ASK = """
import json, sys
from importlib import metadata
print(json.dumps({name: metadata.version(name) for name in sys.argv[1:]}))
"""


def machine(peers: Path | None = None) -> dict[str, object]:
    """Its processors, and versions; those of peers only if the Python is known that has them."""
    return {
        "day": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "system": platform.platform(),
        "processors": psutil.cpu_count(),
        "memory": psutil.virtual_memory().total,
        **{name: metadata.version(name) for name in LIBRARIES},
        "sqlite": sqlite3.sqlite_version,
        "postgresql": _postgresql(),
        "peers": {} if peers is None else _versions(peers),
    }


def in_words(told: Mapping[str, object]) -> str:
    """One line of it, for people."""
    parts = [f"{told['processors']} processors", f"Python {told['python']}"]
    parts += [f"{shown} {told[name]}" for name, shown in TOLD.items()]
    parts += [f"PostgreSQL {told['postgresql']}"] if told["postgresql"] else []
    peers = told["peers"]
    assert isinstance(peers, Mapping)
    parts += [f"{name} {version}" for name, version in peers.items()]
    return f"{', '.join(parts)}; {told['day']}."


def _postgresql() -> str | None:
    """The version of the server that benchmarks start; None where there is none."""
    programs = bin_dir()
    if programs is None:
        return None
    asked = [programs / "postgres", "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return said.split()[2]


def _versions(python: Path) -> dict[str, str]:
    asked = [python, "-c", ASK, *names()]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    return dict(json.loads(said))
