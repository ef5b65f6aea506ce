"""What is configured, what answers and what is missing; ``manage.py doctor`` shows it."""

import os
import platform
import shutil
import stat
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

from celery import current_app
from django.conf import settings
from django.core.mail import get_connection
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor

from estimation.formats.pdf import STYLE, STYLE_ENDS
from estimation.services import sharding
from estimation.services.machines import calls
from estimation.services.report_files import pdf
from estimation.services.report_files.kinds import NotForThisRound
from evalsite import health, private
from evalsite.management.preparation import running_address, working_demo_sign_ins
from evalsite.management.tables import why_too_new
from judging import workers
from judging.errors import UserError
from judging.services import jobs, passkeys, sign_on

OK, WARNING, MISSING = "ok", "warning", "missing"
LOW_DISK_BYTES = 2**30
PDF_SECONDS = 60
LOOPBACK = {"127.0.0.1", "localhost", "::1"}
START = "Start the site: python manage.py up (or gunicorn and celery, see docs)."


@dataclass(frozen=True)
class Diagnosis:
    """One row: what was looked at, how it is, what was seen, and how to mend it."""

    name: str
    status: str
    seen: str
    mend: str = ""


def diagnose() -> list[Diagnosis]:
    """Every finding, in order; a check that fails unexpectedly is a finding too."""
    return [finding for name, check in CHECKS.items() for finding in _guarded(name, check)]


def _guarded(name: str, check: Callable[[], Iterator[Diagnosis]]) -> list[Diagnosis]:
    try:
        return list(check())
    except Exception as error:
        seen = " ".join(f"{type(error).__name__}: {error}".split())
        if isinstance(error, DatabaseError) and name != "Database":
            seen = "not known, as the database does not answer"
        return [Diagnosis(name, MISSING, seen[:200], MENDS.get(name, ""))]


def _profile() -> Iterator[Diagnosis]:
    database = "SQLite" if connection.vendor == "sqlite" else "PostgreSQL"
    broker = "files" if settings.EMBEDDED_BROKER else urlsplit(settings.CELERY_BROKER_URL).scheme
    yield Diagnosis("evalsite", OK, f"{settings.VERSION}, on {database} with a broker of {broker}")


def _python() -> Iterator[Diagnosis]:
    yield Diagnosis("Python", OK, f"{platform.python_version()} ({sys.executable})")


def _libraries() -> Iterator[Diagnosis]:
    wrong = []
    for name, wanted in pinned(settings.BASE_DIR / "requirements.txt"):
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            mend = "python -m pip install -r requirements.txt"
            yield Diagnosis("Libraries", MISSING, f"{name} is not installed", mend)
            return
        if found != wanted:
            wrong.append(f"{name} {found} instead of {wanted}")
    names = ("Django", "celery", "gunicorn", "numpy", "scipy")
    seen = ", ".join(f"{name} {metadata.version(name)}" for name in names)
    if wrong:
        mend = "python -m pip install -r requirements.txt"
        yield Diagnosis("Libraries", WARNING, "; ".join(wrong), mend)
    else:
        yield Diagnosis("Libraries", OK, seen)


def pinned(requirements: Path) -> Iterator[tuple[str, str]]:
    """(name, version) of every pinned line."""
    for line in requirements.read_text().splitlines():
        name, pin, version = line.partition("#")[0].strip().partition("==")
        if pin:
            yield name.partition("[")[0], version


def _data_directory() -> Iterator[Diagnosis]:
    free = shutil.disk_usage(settings.DATA_DIR).free
    seen = f"{settings.DATA_DIR}, {free / 2**30:.1f} GB free"
    if not os.access(settings.DATA_DIR, os.W_OK | os.X_OK):
        yield Diagnosis("Data directory", MISSING, f"{seen}, not writable", MENDS["Data directory"])
    elif private.open_to_others(settings.DATA_DIR):
        mend = f"Give it to the account of the site, and chmod 700 {settings.DATA_DIR}"
        yield Diagnosis("Data directory", WARNING, f"{seen}, others may look into it", mend)
    elif free < LOW_DISK_BYTES:
        yield Diagnosis(
            "Data directory", WARNING, seen, "Make room, or move it with EVALSITE_DATA."
        )
    else:
        yield Diagnosis("Data directory", OK, seen)


def _database() -> Iterator[Diagnosis]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    version = ".".join(str(part) for part in connection.get_database_version())
    named = Path(str(settings.DATABASES["default"]["NAME"]))
    open_files = filter(private.open_to_others, private.database_files(named))
    if connection.vendor == "sqlite" and (readable := " ".join(map(str, open_files))):
        mend = f"Give them to the account of the site, and chmod 600 {readable}"
        yield Diagnosis("Database", WARNING, f"others may read {readable}", mend)
    else:
        yield Diagnosis("Database", OK, f"{connection.display_name} {version}")


def _migrations() -> Iterator[Diagnosis]:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if newer := why_too_new(executor.loader):
        yield Diagnosis("Migrations", MISSING, newer)
    elif plan:
        seen = f"{len(plan)} not applied"
        yield Diagnosis("Migrations", MISSING, seen, "python manage.py migrate")
    else:
        yield Diagnosis("Migrations", OK, "all applied")


def _broker() -> Iterator[Diagnosis]:
    health.check_broker()
    embedded = f"files in {settings.DATA_DIR / 'queue'}"
    uri = current_app.connection_for_write().as_uri()
    yield Diagnosis("Broker", OK, embedded if settings.EMBEDDED_BROKER else uri)
    if "redis" in settings.CELERY_BROKER_URL:
        yield from _redis_persistence()


def _redis_persistence() -> Iterator[Diagnosis]:
    with current_app.connection_for_write(connect_timeout=1) as broker:
        client = broker.default_channel.client
        kept = {name: client.config_get(name).get(name) for name in REDIS_WANTED}
    seen = ", ".join(f"{name} {value}" for name, value in kept.items())
    if kept == REDIS_WANTED:
        yield Diagnosis("Redis persistence", OK, seen)
    else:
        mend = "In redis.conf: appendonly yes, maxmemory-policy noeviction."
        yield Diagnosis("Redis persistence", WARNING, seen, mend)


REDIS_WANTED = {"appendonly": "yes", "maxmemory-policy": "noeviction"}


def _storage() -> Iterator[Diagnosis]:
    health.check_storage()
    yield Diagnosis("File storage", OK, f"{settings.MEDIA_ROOT} is writable")


def _static_files() -> Iterator[Diagnosis]:
    if (settings.STATIC_ROOT / "staticfiles.json").exists():
        yield Diagnosis("Static files", OK, f"collected in {settings.STATIC_ROOT}")
    else:
        yield Diagnosis("Static files", MISSING, "not collected", "python manage.py collectstatic")


def _worker() -> Iterator[Diagnosis]:
    alive, unserved = workers.alive(), workers.unserved()
    if not alive:
        yield Diagnosis("Worker", WARNING, "none seen lately", START)
    elif unserved:
        seen = "; ".join(f"{service.missing}: {service.waits}" for service in unserved)
        yield Diagnosis("Worker", WARNING, seen, unserved[0].mend)
    else:
        yield Diagnosis("Worker", OK, f"{alive} seen within {settings.WORKER_SILENT_SECONDS} s")


def _web_server() -> Iterator[Diagnosis]:
    url = f"{running_address(settings.DATA_DIR) or settings.SITE_URL}/health/live"
    try:
        with urllib.request.urlopen(url, timeout=3):  # noqa: S310  (the operator's own SITE_URL)
            yield Diagnosis("Web server", OK, f"{url} answers")
    except (urllib.error.URLError, OSError) as error:
        reason = getattr(error, "reason", error)
        yield Diagnosis("Web server", WARNING, f"{url}: {reason}", f"{START} Check SITE_URL.")


def _secret_key() -> Iterator[Diagnosis]:
    if os.environ.get("SECRET_KEY"):
        yield Diagnosis("Secret key", OK, "from SECRET_KEY")
        return
    path = settings.DATA_DIR / "secret_key"
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        yield Diagnosis("Secret key", WARNING, f"others may read {path}", f"chmod 600 {path}")
    else:
        yield Diagnosis("Secret key", OK, f"in {path}")


def _debug() -> Iterator[Diagnosis]:
    if settings.DEBUG:
        yield Diagnosis("DEBUG", WARNING, "on", "Unset DEBUG; error pages show the code.")
    else:
        yield Diagnosis("DEBUG", OK, "off")


def _site_url() -> Iterator[Diagnosis]:
    local = urlsplit(settings.SITE_URL).hostname in LOOPBACK
    if settings.HTTPS or local:
        yield Diagnosis("Site URL", OK, settings.SITE_URL)
    else:
        mend = "Passwords travel in the clear: put HTTPS before it and set SITE_URL=https://…"
        yield Diagnosis("Site URL", WARNING, settings.SITE_URL, mend)
    if not local and _demo_is_open():
        mend = "Change or deactivate the demo accounts."
        yield Diagnosis("Demo accounts", WARNING, "their passwords are public", mend)


def _endpoints() -> Iterator[Diagnosis]:
    """Keys are those of this process: workers may have others."""
    for endpoint in settings.MACHINE_ENDPOINTS.values():
        name, wrong = f"Endpoint {endpoint.name}", calls.probe(endpoint)
        if wrong:
            mend = f"Check MACHINE_{endpoint.name.upper().replace('-', '_')}_URL and its key."
            yield Diagnosis(name, WARNING, wrong, mend)
        elif endpoint.key_place and endpoint.in_the_clear:
            mend = "Its key and documents travel in the clear: use an https address."
            yield Diagnosis(name, WARNING, endpoint.url, mend)
        else:
            models = ", ".join(endpoint.models)
            yield Diagnosis(name, OK, f"{endpoint.host} answers; offers {models}")


def _large_pools() -> Iterator[Diagnosis]:
    """The cluster is asked for by this process: workers of the site may see another one."""
    if not settings.DASK_SCHEDULER:
        seen = f"in shards by {settings.SHARD_WORKERS} processes beside a worker (DASK_SCHEDULER)"
        yield Diagnosis("Large pools", OK, seen)
        return
    mend, seen = MENDS["Large pools"], f"workers at {settings.DASK_SCHEDULER} see the files"
    try:
        if not sharding.cluster_sees_files():
            seen = f"a worker at {settings.DASK_SCHEDULER} does not see {settings.MEDIA_ROOT}"
            yield Diagnosis("Large pools", WARNING, seen, mend)
            return
    except jobs.Hindered as error:
        yield Diagnosis("Large pools", WARNING, str(error), mend)
    else:
        yield Diagnosis("Large pools", OK, seen)


def _mail() -> Iterator[Diagnosis]:
    if not settings.MAIL_ON:
        yield Diagnosis("Mail", OK, "none is sent: links are passed on by hand (EMAIL_URL)")
        return
    server = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
    connected = get_connection()
    connected.open()
    connected.close()
    yield Diagnosis("Mail", OK, f"{server} answers; letters are from {settings.MAIL_FROM}")


def _sign_on() -> Iterator[Diagnosis]:
    if not settings.OIDC_ISSUER:
        yield Diagnosis("Sign-on", OK, "none: no OpenID provider is set up (OIDC_ISSUER)")
        return
    try:
        sign_on.provider()
    except UserError as error:
        yield Diagnosis("Sign-on", WARNING, error.message, MENDS["Sign-on"])
    else:
        yield Diagnosis("Sign-on", OK, f"{settings.OIDC_ISSUER} answers")


def _second_factors() -> Iterator[Diagnosis]:
    wanted = ", ".join(settings.SECOND_FACTOR_FOR)
    seen = f"asked of {wanted}" if wanted else "asked of nobody (SECOND_FACTOR_FOR)"
    yield Diagnosis("Second factor", OK, f"{seen}. {passkeys.why_not() or 'Passkeys can be used.'}")


def _paper() -> Iterator[Diagnosis]:
    """By making a page, in the program and with the bounds that every report has."""
    if not settings.REPORT_PDF:
        yield Diagnosis("PDF", OK, "this site makes none: REPORT_PDF is off")
        return
    try:
        made = pdf.printed(f"{STYLE}{STYLE_ENDS}<p>A page.</p>", seconds=PDF_SECONDS)
    except NotForThisRound:
        seen = "no system library Pango: all works but report.pdf and the site's report as PDF"
        yield Diagnosis("PDF", WARNING, seen, f"{pdf.INSTALL}, or sh deploy/system-libraries.sh")
    except UserError as error:
        yield Diagnosis("PDF", WARNING, error.message, MENDS["PDF"])
    else:
        yield Diagnosis("PDF", OK, f"Pango is there: a page takes {len(made):,} bytes")


def _demo_is_open() -> bool:
    try:
        return bool(working_demo_sign_ins())
    except DatabaseError:
        return False


MENDS = {
    "Data directory": "Give this user the right to write there, or set EVALSITE_DATA.",
    "Database": "Start the database, and check DATABASE_URL.",
    "Migrations": "Mend the database first.",
    "Broker": "Start the broker, and check CELERY_BROKER_URL.",
    "File storage": "Give this user the right to write there, or set EVALSITE_DATA.",
    "Worker": "Mend the database first.",
    "Large pools": "Check DASK_SCHEDULER: docs/deployment.md says what its workers must see.",
    "Mail": "Check EMAIL_URL, and that the mail server lets this machine in.",
    "Sign-on": "Check OIDC_ISSUER: its /.well-known/openid-configuration must say the same.",
    "PDF": "python -m pip install -r requirements.txt, and sh deploy/system-libraries.sh",
}
CHECKS: dict[str, Callable[[], Iterator[Diagnosis]]] = {
    "evalsite": _profile,
    "Python": _python,
    "Libraries": _libraries,
    "Data directory": _data_directory,
    "Database": _database,
    "Migrations": _migrations,
    "Broker": _broker,
    "File storage": _storage,
    "Static files": _static_files,
    "Worker": _worker,
    "Web server": _web_server,
    "Secret key": _secret_key,
    "DEBUG": _debug,
    "Site URL": _site_url,
    "Endpoints": _endpoints,
    "Large pools": _large_pools,
    "Mail": _mail,
    "Sign-on": _sign_on,
    "Second factor": _second_factors,
    "PDF": _paper,
}
