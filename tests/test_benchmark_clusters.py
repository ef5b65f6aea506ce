"""What a server takes is counted in full, whoever of its processes took it."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

from benchmarks.clusters import seconds_of

SERVER = """
import os, sys, time
child = os.fork()
if not child:
    while time.process_time() < 0.3:
        pass
    sys.stdout.write("busy\\n")
    sys.stdout.flush()
    sys.stdin.readline()
    os._exit(0)
os.waitpid(child, 0)
print("ended", flush=True)
sys.stdin.readline()
"""


def test_what_a_server_took_for_a_closed_connection_stays_counted() -> None:
    command, pipe = [sys.executable, "-c", SERVER], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        cluster: Any = SimpleNamespace(process=server)
        assert server.stdout.readline() == "busy\n"
        before = seconds_of(cluster)
        print(file=server.stdin, flush=True)
        assert server.stdout.readline() == "ended\n"
        assert seconds_of(cluster) >= before >= 0.25
        print(file=server.stdin, flush=True)
