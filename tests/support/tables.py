"""The database of a process of the tests: a copy of one that the migrations made once in the run.

Migrations take many seconds of a core, and a copy takes none.
"""

import itertools
import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from django.db import connection

from tests.support.site import base_environment, made_once, migrate, migrated

MADE = "tables"
_numbers = itertools.count(1)


def copy_file(database: Path) -> None:
    shutil.copyfile(made_once(MADE, migrated) / "evalsite.sqlite3", database)


def copy_in_cluster(database: str) -> None:
    """In the cluster that the whole run shares."""
    made_once(f"{MADE}-in-cluster", _migrate_in_cluster)
    _create(database, MADE)


def empty_one_of_the_same_kind(data: Path) -> dict[str, str]:
    """The environment of a site with a database without any table, of the kind of the tests'."""
    if connection.vendor == "sqlite":
        return base_environment(data)
    return base_environment(data, DATABASE_URL=_empty(f"empty_{os.getpid()}_{next(_numbers)}"))


def _migrate_in_cluster(data: Path) -> None:
    migrate(base_environment(data, DATABASE_URL=_empty(MADE)))


def _empty(database: str) -> str:
    """Its DATABASE_URL."""
    _create(database, "template0")
    url = urlsplit(os.environ["EVALSITE_TEST_POSTGRES_URL"])
    return url._replace(path=f"/{database}").geturl()


def _create(database: str, template: str) -> None:
    with psycopg.connect(os.environ["EVALSITE_TEST_POSTGRES_URL"], autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{database}" TEMPLATE {template}'.encode())
