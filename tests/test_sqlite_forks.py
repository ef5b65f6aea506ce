"""A child that is forked while a thread of its parent is writing can write itself."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.site import REPO

LONG = 60.0
FORKING = """
import os, sys, threading, time
from contextlib import nullcontext
from django.conf import settings

options = {"transaction_mode": "IMMEDIATE", "timeout": 1.0}
options["init_command"] = "PRAGMA journal_mode=WAL"
database = {"ENGINE": "evalsite.sqlite", "NAME": sys.argv[1], "OPTIONS": options}
settings.configure(DATABASES={"default": database})

import django
django.setup()
from django.db import connection, transaction
from evalsite.sqlite.forks import forks

if "twin" in sys.argv:
    forks.opening = lambda _connection: nullcontext()
entered = threading.Event()

def write(who):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("INSERT INTO said VALUES (%s)", [who])
        if who == "thread":
            entered.set()
            time.sleep(0.3)

def in_a_thread():
    for _ in range(int(sys.argv[2])):
        write("thread")
    connection.close()

with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE said (who TEXT)")
if "kept" in sys.argv:
    write("main")
else:
    connection.close()
thread = threading.Thread(target=in_a_thread)
thread.start()
entered.wait()
child = os.fork()
if child == 0:
    write("child")
    os._exit(0)
ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
thread.join()
write("parent")
with connection.cursor() as cursor:
    cursor.execute("SELECT who FROM said ORDER BY rowid")
    print(ended, *[who for who, in cursor.fetchall()])
"""


def ran(script: str, folder: Path, *how: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", script, str(folder / "some.sqlite3"), *how],
        cwd=REPO, check=False, capture_output=True, text=True, timeout=LONG,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("how", ["1", "3", "1 kept"])
def test_a_child_writes_after_the_thread_that_was_writing_when_it_was_forked(
    tmp_path: Path, how: str
) -> None:
    """Also where the thread goes on for a while, and where the forking thread has a connection."""
    done = ran(FORKING, tmp_path, *how.split())

    turns = ["thread"] * int(how[0])
    main = ["main"] if "kept" in how else []
    assert done.stdout.split() == ["0", *main, *turns, "child", "parent"], done.stderr


@pytest.mark.slow
def test_a_child_that_inherits_an_open_file_is_found_out(tmp_path: Path) -> None:
    done = ran(FORKING, tmp_path, "1", "twin")

    assert "database is locked" in done.stderr
    assert done.stdout.split()[0] != "0"


LEFT = """
import gc, os, sys, threading
from evalsite.sqlite import forks

gc.disable()
forks.WAIT_SECONDS = 0.3
if "twin" in sys.argv:
    gc.collect = lambda: 0

def leave():
    left = forks.Connection(sys.argv[1], check_same_thread=False)
    left.execute("SELECT 1")

thread = threading.Thread(target=leave)
thread.start()
thread.join()
if os.fork() == 0:
    os._exit(0)
os.wait()
"""


APART = """
import asyncio, os, sys
from django.conf import settings

database = {"ENGINE": "evalsite.sqlite", "NAME": sys.argv[1]}
settings.configure(DATABASES={"default": database})

import django
django.setup()
from django.db import connection, connections
from evalsite.sqlite import forks

forks.WAIT_SECONDS = 0.3
if "twin" in sys.argv:
    forks.Forks._others_have_some = lambda self: bool(self._open)
connection.ensure_connection()

async def fork():
    assert not connections.all(initialized_only=True)
    if os.fork() == 0:
        os._exit(0)
    os.wait()

asyncio.run(fork())
connection.close()
"""


@pytest.mark.parametrize("twin", [[], ["twin"]], ids=["", "twin"])
@pytest.mark.parametrize("script", [LEFT, APART], ids=["left behind", "of its own thread"])
def test_a_fork_does_not_wait_in_vain(tmp_path: Path, script: str, twin: list[str]) -> None:
    """For a connection whose thread has ended, which refers to itself by its statements while the
    collector rests; and for one of its own thread that Django does not show in an event loop."""
    done = ran(script, tmp_path, *twin)
    assert done.returncode == 0, done.stderr
    assert ("while a thread has the database open" in done.stderr) == bool(twin)
