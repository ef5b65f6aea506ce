"""deploy/nginx.conf before gunicorn, as compose.yaml starts them."""

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalsite.management.processes import WEB_THREADS, gunicorn_command
from tests.support.client import Api
from tests.support.ports import free_port
from tests.support.site import REPO, base_environment
from tests.support.topology import NGINX, NGINX_MISSING, nginx_command

pytestmark = [pytest.mark.services, pytest.mark.slow]
PROBES = 6  # on a loaded machine the first may overtake unfinished requests
UNFINISHED = b"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nuser"


def wait_until_it_answers(port: int) -> None:
    deadline = time.monotonic() + 60
    while not answers(port):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def answers(port: int, seconds: float = 5) -> bool:
    try:
        return Api(f"http://127.0.0.1:{port}", timeout=seconds).get("/health/live").status == 200
    except OSError:
        return False


@contextlib.contextmanager
def running(command: list[str], **options: object) -> Iterator[None]:
    process = subprocess.Popen(command, **options)  # type: ignore[call-overload]
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture
def ports(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """Of the proxy, and of the server behind it."""
    if NGINX is None:
        pytest.skip(NGINX_MISSING)
    proxy, web = free_port(), free_port()
    env = base_environment(tmp_path / "data")
    gunicorn = gunicorn_command(f"127.0.0.1:{web}")
    with (
        running(gunicorn, env=env, cwd=REPO),
        running(nginx_command(tmp_path / "nginx", proxy, web)),
    ):
        wait_until_it_answers(proxy)
        yield proxy, web


def answers_beside(port: int, unfinished: int) -> bool:
    with contextlib.ExitStack() as open_ones:
        for _ in range(unfinished):
            made = open_ones.enter_context(
                socket.create_connection(("127.0.0.1", port), timeout=20)
            )
            made.sendall(UNFINISHED)
        return all(answers_later(port) for _ in range(PROBES))


def answers_later(port: int) -> bool:
    time.sleep(0.5)
    return answers(port)


def test_unfinished_requests_stop_nobody_behind_the_proxy(ports: tuple[int, int]) -> None:
    proxy, web = ports
    assert answers_beside(proxy, 100)
    assert not answers_beside(web, 3 * WEB_THREADS)  # the twin: without the proxy they do


def test_long_bodies_are_for_uploads_alone(ports: tuple[int, int]) -> None:
    proxy, _ = ports
    head = "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {}\r\n\r\n"
    too_long = {"/sign-in/": 6, "/c/x/settings/": 6, "/api/campaigns/x/uploads/": 2_000}
    for path, megabytes in too_long.items():
        with socket.create_connection(("127.0.0.1", proxy), timeout=20) as made:
            made.sendall(head.format(path, megabytes * 1_000_000).encode())
            assert made.recv(1000).split()[1] == b"413", path
    for path in ("/c/x/material/", "/api/campaigns/x/uploads/"):
        with socket.create_connection(("127.0.0.1", proxy), timeout=1) as made:
            made.sendall(head.format(path, 6_000_000).encode())
            with pytest.raises(TimeoutError):  # it waits for the body
                made.recv(1000)
