"""What the site keeps is readable by the account it runs under, and by nobody else."""

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.site import REPO

WRITE = """
import os, django
os.umask(0o022)
django.setup()
from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE IF NOT EXISTS written (n integer)")
    default_storage.save("uploads/one.txt", ContentFile(b"x"))
    for suffix in ("", "-wal", "-shm"):
        print(oct(os.stat(settings.DATABASES["default"]["NAME"] + suffix).st_mode & 0o777))
"""


def use(data: Path, **environment: str) -> list[str]:
    """Writes to a site's database and files; the modes of the database's three files."""
    env = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    env |= {"EVALSITE_DATA": str(data), "DJANGO_SETTINGS_MODULE": "evalsite.settings"}
    done = subprocess.run(
        [sys.executable, "-c", WRITE],
        env=env | environment,
        cwd=REPO,
        check=True,
        capture_output=True,
        text=True,
        umask=0o022,
    )
    return done.stdout.split()


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


@pytest.mark.slow
def test_a_new_site_is_its_owners_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"

    assert use(data) == ["0o600"] * 3

    assert mode(data) == "0o700"
    assert mode(data / "files" / "uploads" / "one.txt") == "0o600"


@pytest.mark.slow
def test_a_site_that_stood_open_is_closed(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    database = data / "evalsite.sqlite3"
    with sqlite3.connect(database) as held:  # keeps the two files beside it
        held.execute("PRAGMA journal_mode=WAL")
        held.execute("CREATE TABLE written (n integer)")
        held.commit()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{database}{suffix}").chmod(0o644)

        assert use(data) == ["0o600"] * 3

        assert mode(data) == "0o700"
        assert held.execute("SELECT count(*) FROM written").fetchone() == (0,)
    held.close()


@pytest.mark.slow
def test_a_database_elsewhere_is_closed_and_its_folder_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o755)

    modes = use(tmp_path / "data", DATABASE_URL=f"sqlite:///{elsewhere / 'db.sqlite3'}")

    assert modes == ["0o600"] * 3
    assert mode(elsewhere) == "0o755"


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0o1777, 0o1755])
def test_a_folder_that_many_share_is_not_taken_from_them(tmp_path: Path, shared: int) -> None:
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(shared)

    assert use(data) == ["0o600"] * 3

    assert mode(data) == oct(shared)
