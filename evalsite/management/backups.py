"""All of a site in one folder: rows as text, and files. Made while people judge.

The rows are those of one moment (a read transaction), one compressed file of lines for each table,
and mean the same to SQLite and PostgreSQL: restoring into the other one is how a site moves. Files
are named by their content and never change. They are copied before the rows, which may name what is
removed meanwhile, and after them, what came meanwhile. The manifest, with the digest of every file
of rows and how many files there are, is written last: a folder without it is no backup. Sessions,
running work and what Django makes by itself are left out.
"""

import contextlib
import gzip
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Field, JSONField, Model

from evalsite.management.tables import APPLICATIONS, NO_TABLES, why_too_new

FORMAT, MANIFEST, ROWS, FILES = 1, "manifest.json", "rows", "files"
LEFT_OUT = {"judging.User_groups", "judging.User_user_permissions", "judging.WorkerHeartbeat"}
CHUNK = 1000
Table = type[Model]


class BackupError(Exception):
    """Why there is no backup, or why it was not restored; nothing was changed."""


def back_up(folder: Path, *, say: Callable[[str], object] = print) -> None:
    """Write everything into a folder that is empty or not there yet.

    Raises
    ------
    BackupError
        If the folder holds something, the database has no tables or newer ones, or writing failed.
    """
    if not _applied():
        raise BackupError(NO_TABLES)
    if newer := why_too_new(MigrationLoader(connection)):  # columns would be left out unseen
        raise BackupError(newer)
    _check_folder(folder)
    if folder.exists() and any(folder.iterdir()):
        raise BackupError(f"{folder} is not empty. A backup needs a folder of its own.")
    (folder / ROWS).mkdir(parents=True, exist_ok=True)
    try:
        _fill(folder, say)
    except OSError as error:
        message = f"{error}. {folder} is no whole backup: remove it."
        raise BackupError(message) from None


def _fill(folder: Path, say: Callable[[str], object]) -> None:
    tables: dict[str, Any] = {}
    media = Path(settings.MEDIA_ROOT)
    _copy(media, folder / FILES)
    with _one_moment():
        made, applied = datetime.now(UTC).isoformat(), _applied()
        for table in _tables():
            label = table._meta.label
            tables[label] = _write(table, folder / ROWS / f"{label}.jsonl.gz")
            say(f"{tables[label]['rows']:>10,} {label}")
    _copy(media, folder / FILES)
    size = _size(folder / FILES)
    say(f"{size['number']:>10,} files")
    facts = {"format": FORMAT, "evalsite": settings.VERSION, "made": made}
    facts |= {"migrations": applied, "tables": tables, "files": size}
    manifest = json.dumps(facts, indent=1)
    draft = folder / f"{MANIFEST}.draft"
    draft.write_text(manifest, "utf-8")
    draft.replace(folder / MANIFEST)


def restore(folder: Path, *, say: Callable[[str], object] = print) -> None:
    """Fill a migrated site that has no accounts with what a backup holds: all of it, or nothing.

    Raises
    ------
    BackupError
        If the folder is no whole backup, is of another schema, or the site is in use.
    """
    _check_folder(folder)
    manifest = _manifest(folder)
    with transaction.atomic():
        _check_site(manifest)
        for table in _tables():
            label = table._meta.label
            _read(table, folder / ROWS / f"{label}.jsonl.gz", manifest["tables"][label])
            say(f"{manifest['tables'][label]['rows']:>10,} {label}")
        with connection.cursor() as cursor:
            for statement in connection.ops.sequence_reset_sql(no_style(), list(_tables())):
                cursor.execute(statement)
        copied = _copy(folder / FILES, Path(settings.MEDIA_ROOT))
    say(f"{copied:>10,} files")


def _check_folder(folder: Path) -> None:
    if folder.exists() and not folder.is_dir():
        raise BackupError(f"{folder} is no folder.")


def _tables() -> Iterator[Table]:
    every = (table for name in APPLICATIONS for table in apps.get_app_config(name).get_models(True))
    return (table for table in every if table._meta.label not in LEFT_OUT)


@contextlib.contextmanager
def _one_moment() -> Iterator[None]:
    """A read transaction that keeps nobody from writing."""
    if connection.vendor == "sqlite":  # atomic() would take the lock of writers
        connection.ensure_connection()
        connection.connection.execute("BEGIN DEFERRED")
        try:
            yield
        finally:
            connection.connection.execute("ROLLBACK")
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _applied() -> list[str]:
    applied = MigrationRecorder(connection).applied_migrations()
    return sorted(f"{app}.{name}" for app, name in applied if app in APPLICATIONS)


def _write(table: Table, path: Path) -> dict[str, Any]:
    rows = 0
    fields = table._meta.concrete_fields
    names = [field.attname for field in fields]
    found = table._base_manager.order_by("pk").values_list(*names)
    with path.open("xb") as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        packed.write(_line(names))
        for row in found.iterator(chunk_size=CHUNK):
            packed.write(_line([_plain(value) for value in row]))
            rows += 1
    return {"rows": rows, "sha256": _digest(path)}


def _line(values: list[Any]) -> bytes:
    """Keys are sorted: PostgreSQL and SQLite keep them in orders of their own."""
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode() + b"\n"


def _plain(value: Any) -> Any:
    """As JSON can say it, and `Field.to_python` reads it again. Amounts of money stay exact."""
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def _read(table: Table, path: Path, told: dict[str, Any]) -> None:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        fields = [_field(table, name) for name in json.loads(next(lines))]
        rows = map(json.loads, lines)
        count = 0
        while chunk := list(islice(rows, CHUNK)):
            table._base_manager.bulk_create(_row(table, fields, values) for values in chunk)
            count += len(chunk)
    if count != told["rows"]:
        raise BackupError(f"{path.name} has {count} rows, and the manifest says {told['rows']}.")


def _field(table: Table, attname: str) -> "Field[Any, Any]":
    return next(field for field in table._meta.concrete_fields if field.attname == attname)


def _row(table: Table, fields: Iterable["Field[Any, Any]"], values: list[Any]) -> Model:
    return table(
        **{
            field.attname: value if isinstance(field, JSONField) else field.to_python(value)
            for field, value in zip(fields, values, strict=True)
        }
    )


def _copy(source: Path, target: Path) -> int:
    """Those of a folder that the other one lacks; one that goes meanwhile is named by nobody."""
    files = _whole(source)
    for path in files:
        into = target / path.relative_to(source)
        into.parent.mkdir(parents=True, exist_ok=True)
        if not into.exists():
            draft = into.with_name(f".{into.name}")  # what ended halfway is not taken for a file
            with contextlib.suppress(FileNotFoundError):
                shutil.copy2(path, draft)
                draft.replace(into)
    return len(files)


def _whole(folder: Path) -> list[Path]:
    """The files of a folder: names that begin with a dot are being written, or a desktop's."""
    found = sorted(folder.rglob("*")) if folder.exists() else ()
    return [path for path in found if path.is_file() and not path.name.startswith(".")]


def _size(folder: Path) -> dict[str, int]:
    """How many files there are, and how large they are together."""
    sizes = [path.stat().st_size for path in _whole(folder)]
    return {"number": len(sizes), "bytes": sum(sizes)}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest: Any = json.loads((folder / MANIFEST).read_text("utf-8"))
    except FileNotFoundError:
        raise BackupError(f"{folder} is no whole backup: it has no {MANIFEST}.") from None
    except ValueError:
        raise BackupError(f"{folder / MANIFEST} was changed: it is no JSON.") from None
    if not isinstance(manifest, dict) or not {"format", "tables"} <= manifest.keys():
        raise BackupError(f"{folder} is no backup: its {MANIFEST} is of something else.")
    if manifest["format"] != FORMAT:
        raise BackupError(f"{folder} has the format {manifest['format']}, expected {FORMAT}.")
    for label, told in manifest["tables"].items():
        path = folder / ROWS / f"{label}.jsonl.gz"
        if not path.exists() or _digest(path) != told["sha256"]:
            raise BackupError(f"{path} is missing or was changed.")
    here = _size(folder / FILES)
    if manifest.get("files", here) != here:  # earlier versions wrote no such number
        raise BackupError(f"Files are missing in {folder / FILES}, or were changed.")
    return manifest


def _check_site(manifest: dict[str, Any]) -> None:
    if not (here := _applied()):
        raise BackupError(NO_TABLES)
    if manifest["migrations"] != here:
        other = ", ".join(sorted({*manifest["migrations"]} ^ {*here})) or "their order"
        raise BackupError(
            f"The backup was made by evalsite {manifest['evalsite']} with another schema: {other}. "
            "Restore it with that version, then upgrade."
        )
    used = [table._meta.label for table in _tables() if table._base_manager.exists()]
    if used:
        raise BackupError(
            f"This site is in use: it has rows of {', '.join(used)}. Restore into a new one: "
            "another DATABASE_URL or EVALSITE_DATA, then manage.py migrate."
        )
