"""Servers of tests that run side by side listen on ports of their own."""

import socket
import subprocess
import sys

import pytest

from tests.support.ports import free_port
from tests.support.site import REPO

ALL_OF_THEM = """
import sys
from tests.support.ports import free_port
try:
    while True:
        print(free_port(range(int(sys.argv[1]), int(sys.argv[2]))), flush=True)
except OSError as refused:
    print(refused, flush=True)
sys.stdin.read()
"""


def test_no_two_processes_are_given_one_port() -> None:
    """Though nobody listens on them yet: between choice and start there are seconds."""
    first = free_port()
    few = range(first, first + 5)
    command = [sys.executable, "-c", ALL_OF_THEM, str(few[0]), str(few[-1] + 1)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=REPO, **pipes) as other:  # type: ignore[call-overload]
        given = []
        while not (line := other.stdout.readline()).startswith("every port"):
            given.append(int(line))
        assert len(given) == len(set(given))
        assert first not in given
        with pytest.raises(OSError, match="is taken"):
            free_port(few)
        other.communicate("")
    if given:  # they are free again with the end of who held them
        assert free_port(few) != first


def test_a_port_somebody_listens_on_is_not_given() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(OSError, match="is taken"):
            free_port(range(port, port + 1))
