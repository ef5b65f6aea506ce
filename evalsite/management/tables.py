"""A command that meets no database, or one without its tables, says in one line what to do."""

from django.db import DatabaseError, OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

MISSING_STATES = {"42P01", "42703"}  # PostgreSQL: no such table, no such column
MISSING_WORDS = ("no such table", "no such column", "has no column named")  # SQLite
MEND = "run manage.py migrate, or manage.py up"
APPLICATIONS = ("judging", "estimation")
NO_TABLES = f"The database has no tables yet: {MEND}."
DISK_FULL = "53100"  # PostgreSQL
MENDS = {
    "disk is full": "Make room, and try again.",
    "readonly database": "Give this user the right to write there, or set EVALSITE_DATA.",
}  # SQLite
NO_ANSWER = "Start the database, and check DATABASE_URL."


def what_to_do(error: DatabaseError, *, migrates: bool = False) -> str | None:
    """Why a command ended with this error; None if it is of no kind that its user can mend."""
    if mend := _mend_of_machine(error):
        return f"The database does not work: {' '.join(str(error).split())}. {mend}"
    if migrates or not _is_for_want(error):
        return None
    try:
        executor = MigrationExecutor(connection)
    except DatabaseError:
        return None
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not pending:
        return None
    if not executor.loader.applied_migrations:
        return NO_TABLES
    many = f"{len(pending)} migration{'' if len(pending) == 1 else 's'}"
    return f"The database is older than this program, by {many}: {MEND}."


def why_too_new(loader: MigrationLoader) -> str | None:
    """Why this program must not use the database: it does not know all that is in the tables."""
    known = loader.disk_migrations
    unknown = [f"{app}.{name}" for app, name in loader.applied_migrations if app in APPLICATIONS
               and (app, name) not in known]  # fmt: skip
    if not unknown:
        return None
    return (
        f"The database is of a newer evalsite, which has the migration {max(unknown)}: run that"
        " version, or restore a backup that this one made."
    )


def _mend_of_machine(error: DatabaseError) -> str | None:
    if not isinstance(error, OperationalError):
        return None
    if getattr(error.__cause__, "sqlstate", None) == DISK_FULL:
        return MENDS["disk is full"]
    for words, mend in MENDS.items():
        if words in str(error):
            return mend
    try:
        connection.ensure_connection()  # Django has closed that of the command
    except OperationalError:
        return NO_ANSWER
    return None


def _is_for_want(error: DatabaseError) -> bool:
    words = str(error)
    state = getattr(error.__cause__, "sqlstate", None)
    return state in MISSING_STATES or any(each in words for each in MISSING_WORDS)
