"""The web server of `up`: slow people keep nobody waiting, and who waits at its end is answered."""

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from evalsite import server
from evalsite.management.processes import WEB_THREADS, gunicorn_command, web_command
from tests.support.client import Api
from tests.support.ports import free_port
from tests.support.site import REPO, base_environment

pytestmark = pytest.mark.services
SLOW_CLIENTS = 100
PROBES = 6  # on a loaded machine the first may overtake unfinished requests
UNFINISHED = b"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nuser"
WHOLE = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


class Web:
    """One web server on a port of its own."""

    def __init__(self, command: Callable[[str], list[str]], data: Path) -> None:
        self.address = ("127.0.0.1", free_port())
        self.url = f"http://127.0.0.1:{self.address[1]}"
        self.process = subprocess.Popen(
            command(f"127.0.0.1:{self.address[1]}"), env=base_environment(data), cwd=REPO
        )
        deadline = time.monotonic() + 60
        while not self.answers():
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def answers(self, seconds: float = 5) -> bool:
        try:
            return Api(self.url, timeout=seconds).get("/health/live").status == 200
        except OSError:
            return False

    def connect(self, sent: bytes) -> socket.socket:
        made = socket.create_connection(self.address, timeout=20)
        made.sendall(sent)
        return made

    def end(self) -> None:
        family = [psutil.Process(self.process.pid)]
        family += family[0].children(recursive=True)
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def styled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the files that pages link to, those of errors among them."""
    data = tmp_path_factory.mktemp("styled")
    command = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"]
    subprocess.run(command, env=base_environment(data), cwd=REPO, check=True, timeout=100)
    return data


@pytest.fixture
def serve(styled: Path, tmp_path: Path) -> Iterator[Callable[[Callable[[str], list[str]]], Web]]:
    running: list[Web] = []

    def start(command: Callable[[str], list[str]]) -> Web:
        shutil.copytree(styled, tmp_path / "data", dirs_exist_ok=True)
        running.append(Web(command, tmp_path / "data"))
        return running[-1]

    yield start
    for web in running:
        if web.process.poll() is None:
            web.end()


Serve = Callable[[Callable[[str], list[str]]], Web]


def answers_beside(web: Web, slow: int) -> bool:
    """Is anybody answered while so many requests are not finished?"""
    with contextlib.ExitStack() as open_ones:
        for _ in range(slow):
            open_ones.enter_context(web.connect(UNFINISHED))
        return all(answers_later(web) for _ in range(PROBES))


def answers_later(web: Web) -> bool:
    time.sleep(0.5)
    return web.answers()


def test_unfinished_requests_stop_nobody(serve: Serve) -> None:
    assert answers_beside(serve(web_command), SLOW_CLIENTS)


def test_a_server_with_a_thread_for_each_unfinished_request_is_found_out(serve: Serve) -> None:
    assert not answers_beside(serve(gunicorn_command), 3 * WEB_THREADS)


def answered_at_the_end(web: Web, waiting: int = 5) -> int:
    """How many of those are answered that connected before the server was told to stop."""
    server = psutil.Process(web.process.pid)
    processes = [server, *server.children()]
    for process in processes:
        process.suspend()
    connections = [web.connect(WHOLE) for _ in range(waiting)]
    server.send_signal(signal.SIGTERM)
    for process in processes:
        process.resume()
    return sum(_is_answered(connection) for connection in connections)


def _is_answered(connection: socket.socket) -> bool:
    with connection:
        try:
            return connection.recv(1000).startswith(b"HTTP/1.1 200")
        except OSError:
            return False


def test_who_waits_when_the_server_stops_is_answered(serve: Serve) -> None:
    web = serve(web_command)

    assert answered_at_the_end(web) == 5
    assert web.process.wait(20) == 0


def rude_command(bind: str) -> list[str]:
    """The same server, but it closes its listener without a look at who waits there."""
    code = "from evalsite import server as s; s.Server._accept_waiting = lambda self: None"
    return [sys.executable, "-c", f"{code}; s.main([{bind!r}])"]


def test_a_server_that_turns_away_who_waits_is_found_out(serve: Serve) -> None:
    assert answered_at_the_end(serve(rude_command)) < 5


def test_an_announced_body_that_is_too_long_is_refused_before_it_comes(serve: Serve) -> None:
    web = serve(web_command)
    head = "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 900000000\r\n{}\r\n"

    for path, expect in (("/sign-in/", ""), ("/api/me/", "Expect: 100-continue\r\n")):
        with web.connect(head.format(path, expect).encode()) as connection:
            answer = connection.recv(4000)
            assert answer.startswith(b"HTTP/1.1 413"), answer
            assert b"expected at most 5 MB here" in answer + connection.recv(4000)


def test_a_body_without_a_length_is_counted(serve: Serve) -> None:
    web = serve(web_command)
    head = b"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    piece = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"

    with web.connect(head) as connection:
        with contextlib.suppress(OSError):  # it is cut off while it still sends
            for _ in range(30):
                connection.sendall(piece)
            raise AssertionError("30 MB were taken")
        with contextlib.suppress(OSError):
            assert connection.recv(4000).startswith(b"HTTP/1.1 413")
    assert web.answers()


@pytest.fixture
def quiet() -> Iterator[tuple[server.Server, socket.socket]]:
    """A server whose loop the test turns, and somebody who was quiet for long."""
    listening = socket.create_server(("127.0.0.1", 0))
    made = server.server_on(listening, threads=1)
    with socket.create_connection(listening.getsockname()) as client:
        while not made.active_channels:
            made._turn(1.0)
        (channel,) = made.active_channels.values()
        channel.last_activity -= 2 * server.IDLE_SECONDS
        yield made, client
    made.close()
    made.task_dispatcher.shutdown()


def test_a_connection_is_closed_when_nothing_comes(
    quiet: tuple[server.Server, socket.socket],
) -> None:
    made, client = quiet
    made.maintenance(0.0)
    assert not made.active_channels
    assert client.recv(1) == b""


def test_what_has_come_and_was_not_read_yet_is_answered_and_not_reset(
    quiet: tuple[server.Server, socket.socket],
) -> None:
    """The process may have had no turn for a second, just as the connection got too old."""
    made, client = quiet
    client.sendall(WHOLE)
    made.maintenance(0.0)
    assert made.active_channels
    client.settimeout(0.1)
    answer = b""
    for _ in range(200):
        made._turn(0.05)
        with contextlib.suppress(TimeoutError):
            answer = client.recv(100)
            break
    assert answer.startswith(b"HTTP/1.1 200")


def test_a_server_that_does_not_look_would_reset_it(
    quiet: tuple[server.Server, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, client = quiet
    monkeypatch.setattr(server.Channel, "has_unread", lambda _: False)
    client.sendall(WHOLE)
    made.maintenance(0.0)
    with pytest.raises(ConnectionResetError):
        client.recv(1)
