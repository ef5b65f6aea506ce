"""A command that meets a database without its tables says in one line what to do."""

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

MISSING_STATES = {"42P01", "42703"}  # PostgreSQL: no such table, no such column
MISSING_WORDS = ("no such table", "no such column", "has no column named")  # SQLite
MEND = "run manage.py migrate, or manage.py up"
NO_TABLES = f"The database has no tables yet: {MEND}."


def what_to_do(error: DatabaseError) -> str | None:
    """Why a command ended with this error; None if it is not for want of tables or columns."""
    if not _is_for_want(error):
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
    return f"The database is older than this program, by {len(pending)} migrations: {MEND}."


def _is_for_want(error: DatabaseError) -> bool:
    words = str(error)
    state = getattr(error.__cause__, "sqlstate", None)
    return state in MISSING_STATES or any(each in words for each in MISSING_WORDS)
