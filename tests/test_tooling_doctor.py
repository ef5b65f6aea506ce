"""``manage.py doctor`` on sites that work and on sites that do not; the check of Python itself."""

import re
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from estimation.services.report_files import pdf
from evalsite.management import check_python, diagnosis
from tests.core.dask_config import dask_set
from tests.core.test_core_shard_workers import dask_cluster
from tests.support import mail, provider
from tests.support.redis import RedisServer
from tests.support.site import REPO, base_environment


def doctor(env: dict[str, str]) -> tuple[int, dict[str, str]]:
    """Exit code, and the status of every row."""
    command = [sys.executable, str(REPO / "manage.py"), "doctor", "--no-color"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert not done.stderr, done.stderr
    statuses = "|".join((diagnosis.OK, diagnosis.WARNING, diagnosis.MISSING))
    row = re.compile(rf"^(\S.*?)  +({statuses}) ", re.MULTILINE)
    return done.returncode, dict(row.findall(done.stdout))


@pytest.mark.services
def test_a_new_site_lacks_its_tables_and_files_alone(
    tmp_path: Path, redis_server: RedisServer
) -> None:
    code, found = doctor(base_environment(tmp_path, CELERY_BROKER_URL=redis_server.url))
    assert code == 1
    for row in ("Database", "Secret key", "Data directory", "Redis persistence"):
        assert found[row] == diagnosis.OK, row
    assert found["Migrations"] == diagnosis.MISSING
    assert found["Static files"] == diagnosis.MISSING


@pytest.mark.slow
def test_what_does_not_answer_is_missing(tmp_path: Path) -> None:
    env = base_environment(
        tmp_path,
        DATABASE_URL="postgres://nobody@/none?host=/no-such-folder",
        CELERY_BROKER_URL="redis://127.0.0.1:1/0",
        SITE_URL="http://judging.example",
    )
    code, found = doctor(env)
    assert code == 1
    assert found["Database"] == found["Broker"] == found["Worker"] == diagnosis.MISSING
    assert found["Site URL"] == diagnosis.WARNING


@pytest.mark.services
def test_what_is_unsafe_is_a_warning(tmp_path: Path, redis_server: RedisServer) -> None:
    """Debugging, a broker that may forget, a key and a folder that others may look into."""
    redis_server.client().config_set("appendonly", "no")
    (tmp_path / "secret_key").write_text(secrets.token_urlsafe(64))
    (tmp_path / "secret_key").chmod(0o644)
    tmp_path.chmod(0o1755)  # the sticky bit: many share it, so that the site leaves it as it is
    _, found = doctor(base_environment(tmp_path, CELERY_BROKER_URL=redis_server.url, DEBUG="1"))
    for row in ("DEBUG", "Redis persistence", "Secret key", "Data directory"):
        assert found[row] == diagnosis.WARNING, row


def test_a_site_that_makes_no_pdf_needs_no_library() -> None:
    (found,) = diagnosis.CHECKS["PDF"]()
    assert found.status == diagnosis.OK
    assert "REPORT_PDF" in found.seen


@pytest.mark.slow
def test_a_missing_library_of_pdfs_is_a_warning_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, on_paper: None
) -> None:
    (found,) = diagnosis.CHECKS["PDF"]()
    assert found.status == diagnosis.OK
    monkeypatch.setattr(pdf.pdf, "__name__", "tests.support.no_pango")
    (found,) = diagnosis.CHECKS["PDF"]()
    assert found.status == diagnosis.WARNING
    assert "Pango" in found.seen
    assert "libpango-1.0-0" in found.mend
    assert "system-libraries.sh" in found.mend


def test_requirements_are_pinned() -> None:
    pins = dict(diagnosis.pinned(REPO / "requirements.txt"))
    assert {"Django", "celery", "psycopg", "numpy"} <= set(pins)
    lines = (REPO / "requirements.txt").read_text().splitlines()
    wanted = [line for line in lines if line.strip() and not line.startswith("#")]
    assert len(pins) == len(wanted)


def test_an_unfit_python_is_told_what_to_install() -> None:
    assert check_python.complaint((3, 11), []) == ""
    assert "needs Python 3.11 or newer and this is 3.9" in check_python.complaint((3, 9), [])
    without_venv = check_python.complaint((3, 12), ["ensurepip"])
    assert "lacks ensurepip: install it (sudo apt-get install python3-venv)" in without_venv
    assert "libsqlite3" in check_python.complaint((3, 12), ["_sqlite3"])


@pytest.mark.slow
def test_mail_and_sign_on_are_asked_whether_they_are_there(settings: Any) -> None:
    (none,) = diagnosis.CHECKS["Mail"]()
    assert "passed on by hand" in none.seen
    assert "no OpenID provider" in next(iter(diagnosis.CHECKS["Sign-on"]())).seen
    settings.MAIL_ON, settings.MAIL_FROM = True, "evalsite@example.org"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    with mail.serving() as server, provider.serving() as house:
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        for name, value in house.settings().items():
            setattr(settings, name, value)
        assert [each.status for name in ASKED for each in diagnosis.CHECKS[name]()] == ["ok", "ok"]
        settings.EMAIL_PORT, settings.OIDC_ISSUER = 9, "http://127.0.0.1:9"
        found = [
            each for name in ASKED for each in diagnosis._guarded(name, diagnosis.CHECKS[name])
        ]
    assert [each.status for each in found] == [diagnosis.MISSING, diagnosis.WARNING]
    assert [each.mend.split()[1] for each in found] == ["EMAIL_URL,", "OIDC_ISSUER:"]


ASKED = ("Mail", "Sign-on")


@pytest.mark.slow
def test_a_dask_cluster_is_asked_whether_it_sees_the_files(settings: Any, tmp_path: Path) -> None:
    settings.DASK_SCHEDULER, settings.SHARD_WORKERS = "", 3
    settings.MEDIA_ROOT = tmp_path
    assert "by 3 processes" in large_pools().seen
    with dask_cluster(1) as cluster:
        settings.DASK_SCHEDULER = cluster.scheduler_address
        assert large_pools().status == diagnosis.OK
        settings.MEDIA_ROOT = tmp_path / "elsewhere"
        assert large_pools().status == diagnosis.WARNING
        assert "does not see" in large_pools().seen
    with dask_set({"distributed.comm.timeouts.connect": "100ms"}):
        gone = large_pools()
    assert gone.status == diagnosis.WARNING
    assert f"The Dask cluster at {settings.DASK_SCHEDULER}" in gone.seen
    assert "DASK_SCHEDULER" in gone.mend


def large_pools() -> diagnosis.Diagnosis:
    (found,) = diagnosis.CHECKS["Large pools"]()
    return found
