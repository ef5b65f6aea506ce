"""The queue of writers before SQLite: who comes first writes first, whatever happens to others."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.test import Client

from evalsite.sqlite.holders import holders
from evalsite.sqlite.writers import COUNTER_BYTES, Writers
from judging.models import User, WorkerHeartbeat
from tests.support.site import REPO

pytestmark = pytest.mark.sqlite_only
LONG, SHORT = 60.0, 0.2
OTHER_PROCESS = """
import os, sqlite3, sys, time
from pathlib import Path
from evalsite.sqlite.writers import Writers

writers = Writers(Path(sys.argv[1]))
ticket = writers.enter(60)
if "begin" in sys.argv:
    database = sqlite3.connect(sys.argv[1].removesuffix("-writers"))
    database.execute("BEGIN IMMEDIATE")
print(ticket, flush=True)
if "fork" in sys.argv and os.fork() == 0:
    time.sleep(600)
if "hold" in sys.argv:
    time.sleep(600)
with open(sys.argv[2], "a") as served:
    served.write(f"{ticket}\\n")
writers.leave(ticket)
"""


@pytest.fixture
def queue(tmp_path: Path) -> Path:
    return tmp_path / "queue"


@pytest.fixture
def served(tmp_path: Path) -> Path:
    return tmp_path / "served"


@contextmanager
def other(queue: Path, served: Path, *how: str) -> "Iterator[subprocess.Popen[str]]":
    """A process that comes to the queue, and holds its turn if it is to."""
    command = [sys.executable, "-c", OTHER_PROCESS, str(queue), str(served), *how]
    process = subprocess.Popen(
        command, cwd=REPO, stdout=subprocess.PIPE, text=True, process_group=0
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def until(ask: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LONG
    while not ask():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def tickets(writers: Writers) -> int:
    """How many have come so far, read as the queue does: to close a file gives up its locks."""
    return int.from_bytes(os.pread(writers._opened(), COUNTER_BYTES, 0), "little")


def its_turn(process: "subprocess.Popen[str]") -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def is_free(queue: Path) -> bool:
    """Asked by a process that has nothing to do with it: a lock does not bar its own process."""
    code = "import sys; from pathlib import Path; from evalsite.sqlite.writers import Writers;"
    code += "writers = Writers(Path(sys.argv[1])); writers.leave(writers.enter(0.3))"
    asked = [sys.executable, "-c", code, str(queue)]
    return subprocess.run(asked, cwd=REPO, check=False, capture_output=True).returncode == 0


def in_a_thread(writers: Writers, served: Path) -> threading.Thread:
    def write() -> None:
        ticket = writers.enter(LONG)
        assert ticket is not None
        with served.open("a") as file:
            file.write(f"{ticket}\n")
        writers.leave(ticket)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def order(served: Path) -> list[int]:
    return [int(line) for line in served.read_text().split()]


@pytest.mark.slow
def test_threads_and_processes_are_served_in_the_order_in_which_they_came(
    queue: Path, served: Path
) -> None:
    writers = Writers(queue)
    first = writers.enter(LONG)
    assert first == 1
    threads = []
    with other(queue, served) as one, other(queue, served) as two:
        until(lambda: tickets(writers) == 3)
        threads += [in_a_thread(writers, served) for _ in range(5)]
        until(lambda: tickets(writers) == 8)
        with other(queue, served) as three:
            until(lambda: tickets(writers) == 9)
            threads += [in_a_thread(writers, served) for _ in range(5)]
            until(lambda: tickets(writers) == 14)
            assert not served.exists()
            writers.leave(first)
            for each in (one, two, three):
                assert each.wait(LONG) == 0
            for thread in threads:
                thread.join()

    assert order(served) == list(range(2, 15))


def test_who_leaves_and_comes_again_stands_behind_those_who_wait(queue: Path, served: Path) -> None:
    writers = Writers(queue)
    ticket = writers.enter(LONG)
    for n in range(1, 21):
        assert ticket is not None
        waiting = in_a_thread(writers, served)
        until(lambda came=2 * n: tickets(writers) == came)
        writers.leave(ticket)
        ticket = writers.enter(LONG)
        waiting.join(0)
        assert len(order(served)) == n, "the thread that waited was passed"
        waiting.join()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["hold", "fork hold"])
def test_a_turn_ends_with_its_process(queue: Path, served: Path, how: str) -> None:
    """Also when a child that it forked lives on."""
    with other(queue, served, *how.split()) as holder:
        its_turn(holder)
        assert not is_free(queue)
        holder.kill()
        holder.wait()
        assert is_free(queue)


def test_one_who_waits_and_is_killed_holds_up_nobody(queue: Path, served: Path) -> None:
    writers = Writers(queue)
    first = writers.enter(LONG)
    assert first is not None
    with other(queue, served) as waiting:
        until(lambda: tickets(writers) == 2)
        behind = in_a_thread(writers, served)
        until(lambda: tickets(writers) == 3)
        waiting.kill()
        waiting.wait()
        writers.leave(first)
        behind.join()

    assert order(served) == [3]


@pytest.mark.slow
def test_one_who_gives_up_waiting_holds_up_nobody(queue: Path) -> None:
    writers = Writers(queue)
    first = writers.enter(LONG)
    assert first is not None
    with pytest.raises(TimeoutError):
        writers.enter(SHORT)
    writers.leave(first)

    assert is_free(queue)
    assert writers.enter(SHORT) is not None


@pytest.mark.slow
def test_one_who_is_called_away_while_waiting_holds_up_nobody(queue: Path, served: Path) -> None:
    """By a signal, such as that of a limit of time: its process lives on."""

    def call_away(_number: int, _frame: object) -> None:
        raise Broken

    writers, before = Writers(queue), signal.signal(signal.SIGALRM, call_away)
    try:
        with other(queue, served, "hold") as holder:
            its_turn(holder)
            signal.setitimer(signal.ITIMER_REAL, SHORT)
            with pytest.raises(Broken):
                writers.enter(LONG)
    finally:
        signal.signal(signal.SIGALRM, before)

    assert is_free(queue)


def test_without_files_that_can_be_locked_there_is_no_queue(tmp_path: Path) -> None:
    assert Writers(tmp_path / "is" / "not" / "there").enter(SHORT) is None


class Broken(Exception):
    """Raised inside of a transaction."""


@pytest.fixture
def in_use(transactional_db: None) -> Writers:
    """The queue of the test's database."""
    connection.ensure_connection()
    writers: Writers | None = connection.writers
    assert writers is not None
    return writers


def committed() -> None:
    with transaction.atomic(), transaction.atomic():
        WorkerHeartbeat.objects.create(name="one")
        with transaction.atomic(durable=False):
            WorkerHeartbeat.objects.create(name="two")


def rolled_back() -> None:
    with suppress(Broken), transaction.atomic():
        WorkerHeartbeat.objects.create(name="one")
        raise Broken


def rolled_back_in_part() -> None:
    with transaction.atomic():
        rolled_back()
        WorkerHeartbeat.objects.create(name="two")


def closed_in_between() -> None:
    with suppress(Broken), transaction.atomic():
        WorkerHeartbeat.objects.create(name="one")
        connection.close()
        raise Broken


def not_committed() -> None:
    """A constraint that is looked at when the transaction ends."""
    user = User(username="ann", invited_by_id=10**9)
    with pytest.raises(IntegrityError, match="FOREIGN KEY"), transaction.atomic():
        user.save()


def refused() -> None:
    with pytest.raises(IntegrityError, match="UNIQUE"):
        WorkerHeartbeat.objects.bulk_create([WorkerHeartbeat(name="one")] * 2)


def alone() -> None:
    WorkerHeartbeat.objects.filter(name="one").update(queues="celery")
    assert connection.ticket is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "work",
    [
        *(committed, rolled_back, rolled_back_in_part, closed_in_between),
        *(not_committed, refused, alone),
    ],
)
def test_a_transaction_leaves_however_it_ends(in_use: Writers, work: Callable[[], None]) -> None:
    before = tickets(in_use)

    work()

    assert tickets(in_use) == before + 1, "it came to the queue once"
    assert is_free(in_use._path)


@pytest.mark.slow
def test_writers_wait_for_their_turn_and_readers_for_nobody(
    in_use: Writers, served: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = connection.settings_dict["OPTIONS"]
    kept, options["timeout"] = options["timeout"], SHORT
    connection.close()  # the next one has the timeout
    try:
        with other(in_use._path, served, "begin", "hold") as holder:
            its_turn(holder)
            assert WorkerHeartbeat.objects.count() == 0
            with pytest.raises(OperationalError, match="no turn to write within"):
                WorkerHeartbeat.objects.update(queues="x")
            assert f"process {holder.pid} ({sys.executable} -c" in caplog.text, "who is in the way"
            assert "-shm" in caplog.text
            with pytest.raises(OperationalError, match="locked"), transaction.atomic():
                pass
            people = Client(raise_request_exception=False)
            page = people.post("/sign-in/", {"username": "ann", "password": "x"})
            answer = people.post(
                "/api/tokens/", {"username": "a", "password": "x"}, content_type="application/json"
            )
        assert (page.status_code, answer.status_code) == (503, 503)
        assert page["Retry-After"]
        WorkerHeartbeat.objects.create(name="after")
    finally:
        options["timeout"] = kept
        connection.close()


@pytest.mark.slow
def test_who_does_not_queue_is_named(
    in_use: Writers, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is our turn, and yet SQLite's own lock is taken."""
    options = connection.settings_dict["OPTIONS"]
    kept, options["timeout"] = options["timeout"], SHORT
    connection.close()
    code = "import sqlite3, sys; database = sqlite3.connect(sys.argv[1]);"
    code += "database.execute('BEGIN IMMEDIATE'); print(0, flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(connection.settings_dict["NAME"])]
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder:
            its_turn(holder)
            with pytest.raises(OperationalError, match="locked"), transaction.atomic():
                pass
            holder.communicate("")
        assert "It was our turn to write, but" in caplog.text
        assert f"process {holder.pid} (" in caplog.text
        assert is_free(in_use._path)
    finally:
        options["timeout"] = kept
        connection.close()


def test_who_looks_for_others_in_the_way_finds_nobody_where_files_are_gone(tmp_path: Path) -> None:
    assert holders(str(tmp_path / "gone")) == []
    (tmp_path / "here").touch()
    assert holders(str(tmp_path / "here")) == []


def test_a_thread_that_holds_the_turn_is_passed_by_none(in_use: Writers) -> None:
    """Two threads of one process, each with its own connection, take turns by transactions."""
    entered, may_end = threading.Event(), threading.Event()

    def hold() -> None:
        with closing(connection), transaction.atomic():
            entered.set()
            may_end.wait(LONG)

    thread = threading.Thread(target=hold)
    thread.start()
    entered.wait(LONG)
    before = tickets(in_use)
    late = threading.Thread(target=lambda: (committed(), connection.close()))
    late.start()
    until(lambda: tickets(in_use) == before + 1)
    assert WorkerHeartbeat.objects.count() == 0
    may_end.set()
    thread.join()
    late.join()
    assert WorkerHeartbeat.objects.count() == 2
