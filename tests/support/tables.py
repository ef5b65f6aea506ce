"""The database of a process of the tests: a copy of one that the migrations made once in the run,
and emptied again after tests that commit.

Migrations take many seconds of a core, and a copy takes none.
"""

import itertools
import os
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from django.apps import apps
from django.core.management import call_command
from django.db import connection, transaction
from django.db.models import Model

from tests.support.site import base_environment, made_once, migrate, migrated

MADE = "tables"
OF_MIGRATIONS = {"contenttypes.ContentType", "auth.Permission"}
"""Their tables are never empty."""
LARGE = 2**19
"""Bytes of a table of PostgreSQL, from which on it is better made anew than to delete its rows."""
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


def models() -> list[type[Model]]:
    """Those whose tables are empty when a test begins."""
    every = apps.get_models(include_auto_created=True)
    return [each for each in every if each._meta.managed and each._meta.label not in OF_MIGRATIONS]


def empty() -> None:
    """Deletes all rows that a test has committed, from the few tables that have some.

    Django would make all tables of PostgreSQL anew, and look for what migrations put into two of
    them, which takes longer than most such tests. That is left for when much was written.
    """
    sizes = _sizes()
    if any(size > LARGE for size in sizes.values()):
        call_command("flush", verbosity=0, interactive=False, allow_cascade=False)
        return
    with transaction.atomic(), connection.cursor() as cursor:
        for table, size in sizes.items():
            if size:
                cursor.execute(f"DELETE FROM {table}")


def _sizes() -> dict[str, int]:
    """Of each table, 0 where it has no rows: of SQLite no more is asked."""
    names = [connection.ops.quote_name(each._meta.db_table) for each in models()]
    if connection.vendor == "postgresql":
        asked = [f"pg_relation_size('{name}')" for name in names]
    else:
        asked = [f"EXISTS (SELECT 1 FROM {name})" for name in names]
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(asked)}")
        return dict(zip(names, cursor.fetchone(), strict=True))
