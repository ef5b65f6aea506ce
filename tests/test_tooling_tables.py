"""Commands on a database without tables, or with older ones: one line, and no traceback."""

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import get_commands, load_command_class

from tests.support import site
from tests.support.postgres import Postgres
from tests.support.site import REPO, base_environment

EMPTY = "The database has no tables yet: run manage.py migrate, or manage.py up.\n"
WITHOUT_DATABASE = {"crowd", "score", "shards", "simulate", "reproduce"}
SAYS_ITSELF = {"up", "doctor"}  # the one makes the tables, the other lists them among the rest
COMMANDS = {
    "backup": ["{folder}/copy"],
    "changepassword": ["anna"],
    "demo_truth": [],
    "import_campaign": ["{folder}", "--organizer", "anna"],
    "load_demo": [],
    "recompute": [],
    "restore": ["{folder}/backup"],
    "retry": [],
}
OF_DJANGO = {
    "createsuperuser": ["--no-input", "--username", "anna", "--email", "a@example.org"],
    "clearsessions": [],
}


MANY = """
import contextlib, io, json, sys, traceback
import manage

def told(words):
    sys.argv, out, error = ["manage.py", *words], io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        try:
            manage.main()
        except SystemExit as ended:
            if isinstance(ended.code, str):  # as Python itself does it
                print(ended.code, file=sys.stderr)
            return bool(ended.code), out.getvalue(), error.getvalue()
        except BaseException:
            traceback.print_exc()
            return True, out.getvalue(), error.getvalue()
    return False, out.getvalue(), error.getvalue()

print(json.dumps({name: told(words) for name, words in json.loads(sys.argv[1]).items()}))
"""
"""Several commands, one after the other, in one process; how each ended and what it printed."""


def manage(folder: Path, *arguments: str, **values: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(REPO / "manage.py"), *arguments]
    env = base_environment(folder / "data", **values)
    return subprocess.run(command, env=env, cwd=REPO, capture_output=True, text=True, check=False)


def arguments_of(name: str, folder: Path) -> list[str]:
    return [name, *(each.format(folder=folder) for each in (COMMANDS | OF_DJANGO)[name])]


def test_every_command_of_ours_is_known_here() -> None:
    ours = {
        name
        for name, application in get_commands().items()
        if application in {"evalsite", "estimation", "judging"}
    }
    assert {config.name for config in apps.get_app_configs()} >= {"evalsite", "estimation"}
    assert ours == WITHOUT_DATABASE | SAYS_ITSELF | set(COMMANDS)


def test_no_command_of_ours_looks_for_mistakes_in_the_code_first() -> None:
    """Which loads every address and view, and doubles the time to start; `migrate` does it."""
    for name, application in get_commands().items():
        if application in {"evalsite", "estimation", "judging"}:
            assert load_command_class(application, name).requires_system_checks == [], name


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a campaign's files and a backup, so that what is missing is the tables alone."""
    (tmp_path / "topics.tsv").write_text("t1\tone\n")
    return tmp_path


@pytest.mark.slow
def test_a_command_before_the_first_migration_says_what_to_do(folder: Path) -> None:
    _back_up_an_empty_site(folder)
    names = [*COMMANDS, *OF_DJANGO]
    words = json.dumps({name: arguments_of(name, folder) for name in names})
    ran = subprocess.run(
        [sys.executable, "-c", MANY, words], env=base_environment(folder / "data"), cwd=REPO,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = json.loads(ran.stdout)
    assert set(told) == set(names)
    for name, (failed, out, error) in told.items():
        assert failed, name
        assert error.removeprefix("CommandError: ").endswith(EMPTY), (name, error)
        assert "Traceback" not in error + out, name


@pytest.mark.slow
def test_the_command_line_ends_as_they_do(folder: Path) -> None:
    done = manage(folder, *arguments_of("import_campaign", folder))

    assert (done.returncode, done.stderr) == (1, EMPTY)


def _back_up_an_empty_site(folder: Path) -> None:
    other = folder / "other"
    site.prepare(other)
    site.manage(base_environment(other), "backup", str(folder / "backup"))


@pytest.mark.slow
def test_a_database_that_does_not_answer_is_told_in_one_line(folder: Path) -> None:
    """PostgreSQL refuses, the disk is full, the file may not be written: no tracebacks."""
    site.prepare(folder / "data")
    away = {"DATABASE_URL": "postgres://anna:secret@127.0.0.1:1/site"}
    for words in (["migrate"], arguments_of("recompute", folder)):
        done = manage(folder, *words, **away)
        assert done.returncode == 1
        assert done.stderr.startswith("The database does not work: connection failed: ")
        assert done.stderr.endswith(". Start the database, and check DATABASE_URL.\n")
        assert "secret" not in done.stderr
    for pragma, said in PRAGMAS.items():
        done = manage(folder, "shell", "--no-imports", "--command", WITH_PRAGMA.format(pragma))
        assert (done.returncode, done.stderr) == (1, f"The database does not work: {said}\n")


PRAGMAS = {
    "max_page_count = 1": "database or disk is full. Make room, and try again.",
    "query_only = on": "attempt to write a readonly database. "
    "Give this user the right to write there, or set EVALSITE_DATA.",
}
WITH_PRAGMA = """
from django.db import connection
from judging.models import User

connection.cursor().execute("PRAGMA {}")
for number in range(1000):
    User.objects.create(username="x" * 100 + str(number))
"""


@pytest.mark.slow
def test_tables_of_an_older_version_are_told_from_none(folder: Path) -> None:
    env = base_environment(folder / "data")
    first = "from tests.support import earlier; earlier.migrate(('judging', '0001_initial'))"
    site.manage(env, "shell", "--no-imports", "--command", first)

    done = manage(folder, *arguments_of("import_campaign", folder))

    assert done.returncode == 1
    assert "The database is older than this program, by " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_tables_of_a_newer_version_are_left_alone(folder: Path) -> None:
    """After going back to an older checkout, say: a backup would lack what it does not know of."""
    data = folder / "data"
    site.prepare(data)
    with contextlib.closing(sqlite3.connect(data / "evalsite.sqlite3")) as database:
        database.execute(
            "INSERT INTO django_migrations (app, name, applied)"
            " VALUES ('judging', '9999_later', '2030-01-01')"
        )
        database.commit()
    newer = "The database is of a newer evalsite, which has the migration judging.9999_later: "
    for words in (["backup", str(folder / "copy")], ["up", "--no-demo", "--port", "0"], ["doctor"]):
        done = manage(folder, *words)
        assert done.returncode == 1, words
        assert newer in done.stdout + done.stderr, words
        assert "Traceback" not in done.stderr
    assert not (folder / "copy").exists()


@pytest.mark.slow
def test_an_error_of_a_migrated_database_keeps_its_traceback(folder: Path) -> None:
    site.prepare(folder / "data")
    code = "from django.db import connection; connection.cursor().execute('SELECT * FROM nowhere')"

    done = manage(folder, "shell", "--no-imports", "--command", code)

    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "no such table: nowhere" in done.stderr


@pytest.mark.services
def test_postgresql_without_tables_is_told_in_the_same_words(
    folder: Path, postgres: Postgres
) -> None:
    url = postgres.create_database()

    done = manage(folder, *arguments_of("import_campaign", folder), DATABASE_URL=url)

    assert (done.returncode, done.stderr) == (1, EMPTY)
