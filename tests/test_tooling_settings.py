"""Settings from the environment: what is refused, what is asked for, and what is not."""

import json
import secrets
import string
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.site import REPO, base_environment

ANSWER = """
import json, resource, signal, sys
import django
django.setup()
from django.test import Client
if "no-room" in sys.argv:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))  # as on a full disk
path = "/health/ready" if "ready" in sys.argv else "/health/live"
answer = Client().get(path, secure=True, SERVER_NAME="localhost")
body = json.loads(answer.content) if "ready" in sys.argv else None
print(json.dumps([answer.get("Strict-Transport-Security"), answer.status_code, body]))
"""


def answer(data: Path, *arguments: str, **values: str) -> tuple[str | None, int, dict[str, object]]:
    env = base_environment(data, DJANGO_SETTINGS_MODULE="evalsite.settings", **values)
    command = [sys.executable, "-c", ANSWER, *arguments]
    done = subprocess.run(command, env=env, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    header, status, body = json.loads(done.stdout.splitlines()[-1])
    return header, status, body


def manage(data: Path, *arguments: str, **values: str) -> tuple[int, str]:
    command = [sys.executable, str(REPO / "manage.py"), *arguments]
    env = base_environment(data, **values)
    done = subprocess.run(command, env=env, cwd=REPO, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


HTTPS = {"SITE_URL": "https://judging.example", "SECRET_KEY": secrets.token_urlsafe(64)}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "header"),
    [
        ({}, None),
        ({"HSTS_SECONDS": "3600"}, "max-age=3600"),
        ({"HSTS_SECONDS": "60", "HSTS_SUBDOMAINS": "true"}, "max-age=60; includeSubDomains"),
        (
            {"HSTS_SECONDS": "31536000", "HSTS_SUBDOMAINS": "true", "HSTS_PRELOAD": "true"},
            "max-age=31536000; includeSubDomains; preload",
        ),
    ],
)
def test_browsers_are_bound_to_https_only_as_far_as_was_asked_for(
    tmp_path: Path, values: dict[str, str], header: str | None
) -> None:
    assert answer(tmp_path, **HTTPS, **values)[:2] == (header, 200)


@pytest.mark.parametrize(
    "values",
    [
        {"SITE_URL": "judging.example"},
        {"DATABASE_URL": "evalsite"},
        {"DATABASE_URL": "postgres://user:word@host:port/name"},
        {"DATABASE_URL": "mysql://user:word@host/name"},
        {"EMAIL_URL": "word"},
        {"EMAIL_URL": "smtp://user:word@host:99999"},
        {"MIN_FREE_MB": "a lot"},
        {"UPLOAD_SECONDS": "-1"},
        {"SWEEP_SECONDS": "nan"},
        {"BEHIND_PROXY": "ture"},
        {"LOG_LEVEL": "LOUD"},
        {"SECRET_KEY": "word"},
    ],
)
def test_a_value_that_is_none_is_named_in_one_line(tmp_path: Path, values: dict[str, str]) -> None:
    (variable,) = values
    code, told = manage(tmp_path, "doctor", **values)

    assert code == 1
    assert told.startswith(f"{variable} ")
    assert "expected" in told
    assert "word" not in told.partition("expected")[0]
    assert "Traceback" not in told


def test_what_is_empty_is_as_if_it_were_not_set(tmp_path: Path) -> None:
    """As compose passes on what stands in `.env` without a value."""
    names = ("MIN_FREE_MB", "SWEEP_SECONDS", "BEHIND_PROXY", "REPORT_PDF", "LOG_LEVEL")
    asked = "from django.conf import settings as s; print(s.MIN_FREE_BYTES, s.REPORT_PDF)"

    told = manage(tmp_path, "shell", "--no-imports", "--command", asked, **dict.fromkeys(names, ""))

    assert told == (0, f"{100 * 2**20} True\n")


@pytest.mark.slow
def test_without_https_nobody_is_bound(tmp_path: Path) -> None:
    code, told = manage(tmp_path, "check", HSTS_SECONDS="3600")

    assert code == 1
    assert "HSTS_SECONDS" in told
    assert "Traceback" not in told


@pytest.mark.slow
def test_the_deployment_check_is_content_without_it(tmp_path: Path) -> None:
    code, told = manage(tmp_path, "check", "--deploy", "--fail-level", "WARNING", **HTTPS)

    assert code == 0, told


WEAK = {
    "one character": "x" * 64,
    "two in turn": "ab" * 40,
    "a word": "changeme" * 8,
    "the alphabet": string.ascii_letters + string.digits,
    "a row of keys": "1234567890" * 6,
    "one long repetition": "correcthorsebattery" * 4,
    "the mark of django's examples": "django-insecure-" + "x9$kQ!w3" * 6 + "Zr7",
}


@pytest.mark.slow
@pytest.mark.parametrize("weak", WEAK)
def test_a_long_key_that_can_be_guessed_is_refused(tmp_path: Path, weak: str) -> None:
    values = {"SITE_URL": "https://judging.example", "SECRET_KEY": WEAK[weak]}

    code, told = manage(tmp_path, "check", **values)

    assert code == 1, weak
    assert "SECRET_KEY" in told
    assert "secrets.token_urlsafe(64)" in told
    assert "Traceback" not in told
    assert WEAK[weak] not in told


@pytest.mark.slow
def test_keys_as_people_make_them_are_taken() -> None:
    from evalsite.private import guessable

    for _ in range(2000):
        assert not guessable(secrets.token_urlsafe(64))
        assert not guessable(secrets.token_hex(32))
        assert not guessable("".join(secrets.choice(string.ascii_lowercase) for _ in range(50)))
        assert not guessable("".join(secrets.choice(string.digits) for _ in range(60)))
    for weak in WEAK.values():
        assert guessable(weak)


def checks(data: Path, *arguments: str, **values: str) -> dict[str, str]:
    _, status, body = answer(data, "ready", *arguments, **values)
    assert status == 503
    found = body["checks"]
    assert isinstance(found, dict)
    return found


@pytest.mark.slow
def test_a_disk_that_takes_nothing_is_not_ready(tmp_path: Path) -> None:
    assert checks(tmp_path)["storage"] == "ok"

    assert "OSError" in checks(tmp_path, "no-room")["storage"]

    assert list((tmp_path / "files").iterdir()) == []


@pytest.mark.slow
def test_on_a_disk_that_is_almost_full_the_site_says_so_instead_of_starting(tmp_path: Path) -> None:
    code, told = manage(tmp_path, "up", "--no-demo", MIN_FREE_MB=str(10**9))

    assert code == 1
    assert "MB free" in told
    assert "MIN_FREE_MB" in told
    assert "Traceback" not in told


@pytest.mark.slow
def test_a_disk_that_is_almost_full_is_not_ready(tmp_path: Path) -> None:
    told = checks(tmp_path, MIN_FREE_MB=str(10**9))["storage"]

    assert "MB free" in told
    assert str(tmp_path) in told
