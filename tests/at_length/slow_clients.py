"""Two hundred people whose bytes dribble in: nobody else may notice."""

import contextlib
import socket
import statistics
import threading
import time
from collections.abc import Iterator

from tests.at_length.ground import Ground, embedded, p95, prepare, production
from tests.at_length.tally import Tally

SLOW = 200
TURNS = 8
TURN_SECONDS = 12.0
SETTLE_SECONDS = 2.0
AT_MOST = 2.0
HEAD = b"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n"
STARTS = (b"", HEAD, HEAD + b"\r\n")
"""One is slow from the first byte, one in its headers, one in its body."""
DRIBBLE_SECONDS = 0.5


class Dribblers:
    """Connections that send a byte now and then; who is thrown out comes again."""

    def __init__(self, port: int, count: int) -> None:
        self.port, self.count = port, count
        self.sent = self.thrown_out = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        connections = [self._connect(n) for n in range(self.count)]
        while not self.over.wait(DRIBBLE_SECONDS):
            for n, connection in enumerate(connections):
                if not self._dribble(connection):
                    self.thrown_out += 1
                    connection.close()
                    connections[n] = self._connect(n)
        for connection in connections:
            connection.close()

    def _connect(self, n: int) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        made.sendall(STARTS[n % len(STARTS)] or b"G")
        made.setblocking(False)
        return made

    def _dribble(self, connection: socket.socket) -> bool:
        try:
            self.sent += connection.send(b"x")
            return connection.recv(4096) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False


@contextlib.contextmanager
def dribbling(port: int, count: int = SLOW) -> Iterator[Dribblers]:
    dribblers = Dribblers(port, count)
    dribblers.thread.start()
    try:
        yield dribblers
    finally:
        dribblers.over.set()
        dribblers.thread.join()


def on_production() -> Tally:
    with production() as site:
        ground = prepare(site, "slow clients, production", people=4, pause=0.2)
        drill(ground)
        return ground.tally


def on_up() -> Tally:
    with embedded() as site:
        ground = prepare(site, "slow clients, up", people=4, pause=0.2)
        drill(ground)
        return ground.tally


def drill(ground: Ground) -> None:
    """Quiet and loaded in turn, so that whatever else the machine does falls on both."""
    tally, ratios, quiet, loaded = ground.tally, [], [], []
    with ground.judging():
        ground.go_on(5)
        for _ in range(TURNS):
            quiet.append(window(ground))
            with dribbling(ground.site.port) as slow:
                tally.faults += SLOW
                loaded.append(window(ground))
            assert slow.sent > SLOW, "they did not dribble"
            ratios.append(p95(loaded[-1]) / p95(quiet[-1]))
    ratio = statistics.median(ratios)
    tally.notes.append(f"p95 {_all(quiet):.3f} s quiet, {_all(loaded):.3f} s beside {SLOW} slow")
    tally.expect(ratio < AT_MOST, f"p95 {ratio:.2f} times the quiet one (median of {TURNS} turns)")


def window(ground: Ground) -> list[float]:
    """Seconds of the requests of the others in one turn, once it has settled."""
    ground.go_on(SETTLE_SECONDS)
    began = time.monotonic()
    ground.go_on(TURN_SECONDS)
    return ground.seconds(began, time.monotonic())


def _all(turns: list[list[float]]) -> float:
    return p95([seconds for turn in turns for seconds in turn])
