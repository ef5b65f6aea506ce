"""Is the site up, and can it work? For load balancers, the supervisor and people."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from celery import current_app
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from judging import workers

PROBE_BYTES = 2**16


@login_not_required
@never_cache
def live(_request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


@login_not_required
@never_cache
def ready(_request: HttpRequest) -> JsonResponse:
    """200 when everything answers; else 503 with what does not."""
    checks = {name: _answer(check) for name, check in CHECKS.items()}
    ok = all(answer == "ok" for answer in checks.values())
    status = {"status": "ok" if ok else "unavailable", "checks": checks}
    return JsonResponse(status, status=200 if ok else 503)


def _answer(check: Callable[[], None]) -> str:
    try:
        check()
    except Exception as error:
        return type(error).__name__ if settings.HTTPS else f"{type(error).__name__}: {error}"
    return "ok"


def check_database() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")


def check_storage() -> None:
    """Writes what a full disk does not take, and looks how much room is left for what comes."""
    settings.MEDIA_ROOT.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=settings.MEDIA_ROOT) as probe:
        probe.write(bytes(PROBE_BYTES))
    for folder in _written_folders():
        free = shutil.disk_usage(folder).free
        if free < settings.MIN_FREE_BYTES:
            least = settings.MIN_FREE_BYTES // 2**20
            raise OSError(f"{folder} has {free // 2**20} MB free, expected at least {least}")


def _written_folders() -> set[Path]:
    """Where files and, with SQLite, rows are written."""
    database = settings.DATABASES["default"]
    if connection.vendor != "sqlite":
        return {settings.MEDIA_ROOT}
    return {settings.MEDIA_ROOT, Path(str(database["NAME"])).resolve().parent}


def check_broker() -> None:
    with current_app.connection_for_write(connect_timeout=1) as broker:
        broker.ensure_connection(max_retries=0, timeout=1)


def check_worker() -> None:
    """Somebody must serve each queue; else what is in it waits for ever."""
    for service in workers.unserved():
        raise RuntimeError(f"{service.missing}: {service.waits}")


CHECKS = {
    "database": check_database,
    "storage": check_storage,
    "broker": check_broker,
    "worker": check_worker,
}
