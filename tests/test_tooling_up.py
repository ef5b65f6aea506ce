"""``manage.py up`` with real processes: it starts, survives, refuses and stops."""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from evalsite.management.serving import Serving
from tests.support import site
from tests.support.client import Api
from tests.support.site import REPO, base_environment
from tests.support.up import (
    STOP_SECONDS,
    Up,
    assert_stops,
    command,
    end,
    everybody,
    loaded_demo,
    none_left,
    wait_until,
)

pytestmark = pytest.mark.services
STOPPED_BEFORE = """
import json, os, signal, sys
from evalsite.management import serving
execv = os.execv
def stopped_first(*command):
    os.kill(os.getpid(), signal.SIGTERM)
    execv(*command)
os.execv = stopped_first
serving.become(serving.Serving(**json.loads(sys.argv[1])))
"""
WITHOUT_ROOTS_POWERS = (
    ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all")
    if os.getuid() == 0
    else ()
)


@pytest.fixture
def data() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="evs-up-") as folder:
        yield Path(folder) / "data"


@pytest.fixture
def up(data: Path) -> Iterator[Up]:
    """On a folder whose database and static files are there already."""
    site.prepare(data)
    yield from started(data)


@pytest.fixture(scope="module")
def shared() -> Iterator[Up]:
    """For tests after which it is as before; its folder was empty at first."""
    with tempfile.TemporaryDirectory(prefix="evs-up-") as folder:
        yield from started(Path(folder) / "data")


def started(data: Path) -> Iterator[Up]:
    running = Up(data)
    try:
        running.wait_ready()
        yield running
    finally:
        end(running)


def refusal(data: Path, *arguments: str, prefix: tuple[str, ...] = ()) -> str:
    """What ``up`` says when it must not start: one sentence or two, no traceback, exit code 1."""
    done = subprocess.run(
        [*prefix, *command("--no-demo", *arguments)],
        env=base_environment(data) | {"PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    return done.stderr


def libraries(process: psutil.Process) -> set[str]:
    """Names of the libraries that a process has in its memory."""
    return {Path(mapped.path).name.partition(".")[0] for mapped in process.memory_maps()}


def test_the_supervisor_has_let_go_of_what_prepared_the_site(shared: Up) -> None:
    supervisor = psutil.Process(shared.process.pid)
    assert not libraries(supervisor) & {"_sqlite3", "_multiarray_umath"}
    assert "_sqlite3" in libraries(shared.child("evalsite.server"))


def test_a_stop_signal_is_obeyed_while_the_supervisor_takes_over(data: Path) -> None:
    site.prepare(data)
    with socket.create_server(("127.0.0.1", 0)) as listener, (data / "lock").open("a+") as lock:
        lock.write("somebody\n")
        lock.flush()
        serving = Serving(
            host="127.0.0.1",
            port=listener.getsockname()[1],
            listener=listener.fileno(),
            lock=lock.fileno(),
            data=str(data),
            queue="celery",
            uploads="uploads",
            announcement="",
        )
        described = json.dumps(dataclasses.asdict(serving))
        done = subprocess.run(
            [sys.executable, "-c", STOPPED_BEFORE, described],
            env=base_environment(data),
            capture_output=True,
            text=True,
            check=False,
            cwd=REPO,
            pass_fds=(serving.listener, serving.lock),
            timeout=STOP_SECONDS,
        )
    assert (done.returncode, done.stdout) == (0, "Stopped.\n"), done
    assert (data / "lock").read_text() == ""


@pytest.mark.slow
def test_the_demo_is_loaded_once_and_its_sign_ins_work_until_a_stop_signal(data: Path) -> None:
    """The first start was stopped as by Ctrl-C, the second is with a request in flight."""
    shutil.copytree(loaded_demo(), data)
    second = Up(data, demo=True)
    try:
        second.wait_ready()
        assert "Loading the demo campaign" not in second.text()
        assert "assessor" in second.text()
        assert Api(second.url).get("/health/ready").status == 200
        children = everybody(second)
        assert_answered_while_it_stops(second)
        assert_stops(second, children)
    finally:
        end(second)


def assert_answered_while_it_stops(up: Up) -> None:
    host, port = up.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        time.sleep(0.5)
        up.process.send_signal(signal.SIGTERM)
        time.sleep(1)
        connection.sendall(b"Connection: close\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("words", ["celery", "evalsite.server"])
def test_a_killed_child_is_started_again(shared: Up, words: str) -> None:
    before = shared.child(words)
    told = len(shared.text())
    before.kill()
    wait_until(lambda: "starting it again" in shared.text()[told:])

    def replaced() -> bool:
        with contextlib.suppress(StopIteration, psutil.Error):
            return shared.child(words).pid != before.pid
        return False

    wait_until(replaced)
    wait_until(lambda: Api(shared.url).get("/health/ready").status == 200)


def test_the_children_do_not_outlive_a_killed_supervisor(up: Up, data: Path) -> None:
    children = up.children()
    up.process.kill()
    up.process.wait()
    wait_until(lambda: none_left(children))
    again = Up(data)
    try:
        again.wait_ready()
    finally:
        end(again)


def test_doctor_finds_the_site_at_its_own_port(shared: Up) -> None:
    shown = site.manage(base_environment(shared.data), "doctor")
    assert re.search(rf"Web server +ok +{shared.url}/health/live answers", shown)


def test_a_second_site_on_the_same_data_is_refused(shared: Up) -> None:
    running = f"is already running on {shared.data} (process {shared.process.pid})"
    assert running in refusal(shared.data)


def test_a_port_in_use_is_refused(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"Port {port} on 127.0.0.1 is in use." in refusal(data, "--port", str(port))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--host", "192.0.2.77"), "192.0.2.77 is not an address of this machine."),
        (("--host", "no-such-host.invalid"), "no-such-host.invalid is not an address"),
        (("--port", "70000"), "There is no port 70000. Choose one from 1024 to 65535 with PORT=."),
        (("--port", "-1"), "There is no port -1."),
    ],
)
def test_an_impossible_address_is_refused(
    data: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    assert sentence in refusal(data, *arguments)


@pytest.mark.parametrize("made_before", [False, True])
def test_an_unwritable_data_directory_is_refused(data: Path, made_before: bool) -> None:
    if made_before:
        base = base_environment(data)
        subprocess.run([sys.executable, REPO / "manage.py", "check"], env=base, check=True)
    shut = data if made_before else data.parent
    shut.chmod(0o555)
    message = refusal(data, prefix=WITHOUT_ROOTS_POWERS)
    shut.chmod(0o755)
    assert f"The data directory {data} cannot be" in message
    assert "EVALSITE_DATA" in message


def test_a_child_that_never_starts_is_given_up(data: Path) -> None:
    site.prepare(data)
    env = base_environment(data) | {"CELERY_BROKER_URL": "no-such-transport://"}
    done = subprocess.run(
        command("--no-demo"), env=env, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 1
    told = r"The (worker|reader) process ended 5 times in a row right after its start\."
    assert re.search(told, done.stderr)  # neither starts; whichever has tried five times first
    assert "no-such-transport" in done.stderr
