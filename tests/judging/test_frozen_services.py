"""A database or broker that is frozen, not gone, keeps nobody waiting for ever."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection, connections

from tests.support.redis import RedisServer
from tests.support.site import REPO, base_environment


def frozen() -> tuple[Any, int]:
    """A connection of its own whose server process, by its id, has been stopped."""
    own = connections.create_connection("default")
    own.settings_dict = connection.settings_dict
    with own.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()[0]
    os.kill(backend, signal.SIGSTOP)
    return own, backend


@pytest.mark.django_db
@pytest.mark.postgres_only
def test_a_frozen_database_is_given_up_and_the_next_connection_works(settings: Any) -> None:
    settings.DATABASE_SECONDS = 1
    own, backend = frozen()
    try:
        with pytest.raises(OperationalError, match="not answered within 1 seconds"):
            own.cursor().execute("SELECT 1")
    finally:
        os.kill(backend, signal.SIGCONT)

    own.close_if_unusable_or_obsolete()
    with own.cursor() as cursor:
        cursor.execute("SELECT 7")
        assert cursor.fetchone() == (7,)
    own.close()


@pytest.mark.django_db
@pytest.mark.postgres_only
@pytest.mark.timeout(60)
def test_whether_a_kept_connection_still_works_is_not_waited_for_as_long_as_a_statement(
    settings: Any,
) -> None:
    settings.DATABASE_SECONDS = 3600
    own, backend = frozen()
    try:
        assert not own.is_usable()
    finally:
        os.kill(backend, signal.SIGCONT)
    own.close()


@pytest.mark.django_db
@pytest.mark.postgres_only
def test_the_database_itself_ends_statements_and_waits_for_locks() -> None:
    with connection.cursor() as cursor:
        for name in ("statement_timeout", "lock_timeout"):
            cursor.execute(f"SHOW {name}")
            assert cursor.fetchone() == ("10min",)


@pytest.fixture
def frozen_redis() -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    os.kill(server.pid, signal.SIGSTOP)
    try:
        yield server
    finally:
        os.kill(server.pid, signal.SIGCONT)
        server.stop()


HINTS = """
import sys
from judging.services import jobs
{twin}
opened = []
sys.addaudithook(lambda event, given: event == "socket.connect" and opened.append(given[0]))
print([jobs.hint(1, "recompute"), jobs.hint(2, "recompute")])
print([each.gettimeout() for each in opened])
"""


def waits_for(server: RedisServer, data: Path, twin: str = "") -> list[float | None]:
    """How many seconds each connection waits at most that two hints are given up over."""
    env = base_environment(data, CELERY_BROKER_URL=server.url)
    code = HINTS.format(twin=twin)
    out = subprocess.run(
        [sys.executable, REPO / "manage.py", "shell", "--no-imports", "--command", code],
        env=env,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    sent, waits = out.stdout.splitlines()[-2:]
    assert sent == "[False, False]"
    return list(json.loads(waits))


@pytest.mark.services
def test_a_hint_to_a_frozen_broker_is_given_up_soon(
    frozen_redis: RedisServer, tmp_path: Path
) -> None:
    """Both tries together: the second one is not made, as the broker is left alone then."""
    assert waits_for(frozen_redis, tmp_path) == [1.0]


@pytest.mark.services
@pytest.mark.parametrize(
    "twin",
    [
        "jobs.BROKER_PAUSE_SECONDS = 0",
        "jobs.current_app.conf.broker_transport_options.pop('connect_retries_timeout')",
        "jobs.current_app.conf.broker_transport_options['socket_timeout'] = 2",
    ],
)
def test_a_broker_that_is_waited_for_longer_is_found_out(
    twin: str, frozen_redis: RedisServer, tmp_path: Path
) -> None:
    assert waits_for(frozen_redis, tmp_path, twin) != [1.0]
