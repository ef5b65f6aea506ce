"""What a database says of its own tables, names and the order of columns included."""

from typing import Any

from django.db import connection

Facts = set[tuple[Any, ...]]
POSTGRESQL = {
    "column": """
        SELECT table_name, column_name, data_type, character_maximum_length, numeric_precision,
            numeric_scale, is_nullable, column_default, is_identity, identity_generation,
            row_number() OVER (PARTITION BY table_name ORDER BY ordinal_position)
        FROM information_schema.columns WHERE table_schema = 'public'""",
    "index": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'",
    "constraint": """
        SELECT conrelid::regclass::text, conname, contype::text, condeferrable, condeferred,
            convalidated, pg_get_constraintdef(oid)
        FROM pg_constraint WHERE connamespace = 'public'::regnamespace""",
    "trigger": """
        SELECT tgrelid::regclass::text, tgname, pg_get_triggerdef(oid)
        FROM pg_trigger WHERE NOT tgisinternal""",
    "sequence": """
        SELECT sequencename, data_type::text, start_value, increment_by
        FROM pg_sequences WHERE schemaname = 'public'""",
}


def facts() -> Facts:
    """Kind, table and what is known of it, of everything that there is."""
    return _of_sqlite() if connection.vendor == "sqlite" else _of_postgresql()


def table_names() -> set[str]:
    return {*connection.introspection.table_names()}


def _rows(sql: str) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return [tuple(row) for row in cursor.fetchall()]


def _of_postgresql() -> Facts:
    return {(kind, *row) for kind, sql in POSTGRESQL.items() for row in _rows(sql)}


def _of_sqlite() -> Facts:
    """The parts of a table's statement are sorted: where constraints stand in it says nothing."""
    found: Facts = set()
    for kind, name, table, sql in _rows("SELECT type, name, tbl_name, sql FROM sqlite_master"):
        if kind != "table":
            found.add((kind, table, name, sql))
            continue
        found |= {(kind, table, part, number) for number, part in _numbered(parts(sql))}
        found |= {("column", table, *row) for row in _rows(f"PRAGMA table_xinfo('{table}')")}
        keys = _rows(f"PRAGMA foreign_key_list('{table}')")
        found |= {("key", table, *row) for _, row in _numbered(row[2:] for row in keys)}
    return found


def _numbered(found: Any) -> Any:
    return enumerate(sorted(found))


def parts(sql: str) -> list[str]:
    """What stands between the outermost commas of ``CREATE TABLE … (…)``."""
    made, depth, quote, part = [], 0, "", ""
    for letter in sql[sql.index("(") + 1 : sql.rindex(")")]:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        depth += {"(": 1, ")": -1}.get(letter, 0) if not quote else 0
        if letter == "," and not depth and not quote:
            made.append(" ".join(part.split()))
            part = ""
        else:
            part += letter
    return [*made, " ".join(part.split())]
