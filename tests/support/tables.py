"""The database of a process of the tests: a copy of one that the migrations made once in the run.

Migrations take many seconds of a core, and a copy takes none.
"""

import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests.support.site import base_environment, made_once, manage, migrated

MADE = "tables"


def copy_file(database: Path) -> None:
    shutil.copyfile(made_once(MADE, migrated) / "evalsite.sqlite3", database)


def copy_in_cluster(database: str) -> None:
    """In the cluster that the whole run shares."""
    made_once(f"{MADE}-in-cluster", _migrate_in_cluster)
    _create(database, MADE)


def _migrate_in_cluster(data: Path) -> None:
    _create(MADE, "template0")
    url = urlsplit(os.environ["EVALSITE_TEST_POSTGRES_URL"])._replace(path=f"/{MADE}").geturl()
    manage(base_environment(data, DATABASE_URL=url), "migrate", "--verbosity", "0")


def _create(database: str, template: str) -> None:
    with psycopg.connect(os.environ["EVALSITE_TEST_POSTGRES_URL"], autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{database}" TEMPLATE {template}'.encode())
